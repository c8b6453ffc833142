// Plays the page of Powderkeg in a headless Chromium, alone and by a link:  node page.mjs FOLDER SECONDS
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check, failures, open, sleep, until } from "./chromium.mjs";

const [folder, seconds] = [process.argv[2], Number(process.argv[3])];
const seen = `${folder}-seen`, scratch = await mkdtemp(join(tmpdir(), "powderkeg-page-")), children = [];
await mkdir(seen, { recursive: true });
const flags = ["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--window-size=1280,720"];
const KEYS = { Space: [" ", 32], Tab: ["Tab", 9], F3: ["F3", 114], Escape: ["Escape", 27] };
const start = (args) => {
  const child = spawn(process.env.POWDERKEG, args, { cwd: scratch, stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  return child;
};

async function page(hash) {
  const tab = await open(folder, hash, flags);
  const report = async () => JSON.parse((await tab.value("JSON.stringify(globalThis.powderkeg?.report() ?? {})")) ?? "{}");
  const key = async (code, ms = 100) => {
    const [name, number] = KEYS[code] ?? [code.slice(3).toLowerCase(), code.charCodeAt(3)];
    const of = { code, key: name, windowsVirtualKeyCode: number };
    await tab.ask("Input.dispatchKeyEvent", { type: "keyDown", ...of });
    await sleep(ms);
    await tab.ask("Input.dispatchKeyEvent", { type: "keyUp", ...of });
  };
  const mouse = (type, x, y) => tab.ask("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: 1, clickCount: 1 });
  const play = async (ms) => {
    const end = Date.now() + ms;
    await mouse("mousePressed", 800, 300);
    for (let n = 0; Date.now() < end; n++) {
      await mouse("mouseMoved", 640 + 300 * Math.cos(n / 3), 360 + 200 * Math.sin(n / 3));
      await key(["KeyW", "KeyA", "KeyS", "KeyD"][n % 4], 300);
    }
    await mouse("mouseReleased", 640, 360);
  };
  const whole = async (what) => {
    const now = await report();
    console.log(`     ${what}:`, JSON.stringify(now));
    check(now.heals === 0 && now.stall_ms < 500 && !now.over, `${what}: no desync, and stalled for ${now.stall_ms} ms`);
    check(tab.written.length === 0, `${what}: no error in the console ${JSON.stringify(tab.written)}`);
    return now;
  };
  return { ...tab, report, key, play, whole };
}

async function alone() {
  const tab = await page("");
  try {
    await until(async () => (await tab.report()).seat >= 0, 30_000, "the match begins");
    await sleep(1_000);
    await tab.picture(join(seen, "title.png"));
    await tab.key("Space");
    await tab.key("F3");
    await until(async () => { await tab.key("KeyR"); return (await tab.report()).wave > 0; }, 60_000, "the first wave");
    await tab.value("powderkeg.forget()");
    await tab.play(seconds * 1_000);
    await tab.picture(join(seen, "wave.png"));
    const now = await tab.whole("alone");
    check(now.players === 4 && now.wave > 0, `${now.players} players in wave ${now.wave}`);
    check(now.p99 <= 12, `frames: p50 ${now.p50.toFixed(1)}, p99 ${now.p99.toFixed(1)}, max ${now.max.toFixed(1)} ms; one each ${now.wait_p50.toFixed(1)} ms, p99 ${now.wait_p99.toFixed(1)} ms`);
    for (const code of ["Tab", "KeyD", "Tab"]) await tab.key(code);
    await sleep(300);
    const kept = await tab.value("localStorage.getItem('powderkeg')");
    check(JSON.parse(kept ?? "{}").volume === 8, "the settings are kept");
    await tab.key("Escape");
    const said = await until(() => tab.value("document.getElementById('say').textContent"), 5_000, "a sentence at the end");
    check(said.startsWith("you left"), `at the end it says: ${said}`);
  } finally { await tab.close(); }
}

async function byLink() {
  const host = start(["host", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--page", "http://127.0.0.1/", "--players", "3"]);
  const links = [];
  createInterface({ input: host.stdout }).on("line", (line) => {
    const link = line.match(/#(twinstep-ticket-\S+)/)?.[1];
    if (link) links.push(link);
  });
  await until(() => links.length === 3, 10_000, "a link for each invite");
  const bots = [1, 2].map((n) => {
    const bot = start(["join", "--bot", "-"]);
    bot.stdin.end(`${links[n]}\n`);
    return bot;
  });
  const tab = await page(`#${links[0]}`);
  try {
    await until(async () => (await tab.report()).players === 3, 20_000, "page and bots join");
    check((await tab.value("location.hash")) === "", "the secret left the address bar");
    await tab.key("Space");
    await until(async () => { await tab.key("KeyR"); return (await tab.report()).wave > 0; }, 60_000, "the first wave");
    await tab.play(seconds * 1_000);
    await tab.picture(join(seen, "link.png"));
    const now = await tab.whole("by a link");
    check(now.seat >= 0 && bots.every((bot) => bot.exitCode === null), `seat ${now.seat}, with ${bots.length} native bots`);
    await tab.ask("Page.reload");
    await until(async () => { const one = await tab.report(); return one.seat === now.seat && one.frames < now.frames; }, 20_000, "a reload is the same player");
  } finally { await tab.close(); }
}

try {
  await alone();
  await byLink();
} catch (error) {
  check(false, error.message);
} finally {
  for (const child of children) child.kill();
  await rm(scratch, { recursive: true, force: true });
}
console.log(failures.length ? `page: FAILED ${failures.length}` : "page: all held");
process.exit(failures.length ? 1 : 0);
