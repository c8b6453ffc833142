// Serves a page of boxes, starts its server, and drives a headless Chromium:  node play.mjs FOLDER SECONDS
import { createServer } from "node:http";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [folder, seconds] = [process.argv[2], Number(process.argv[3])];
const types = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const failures = [], console_ = [];
const check = (holds, sentence) => { console.log(`${holds ? "ok  " : "FAIL"} ${sentence}`); if (!holds) failures.push(sentence); };
async function until(what, ms, sentence) {
  const began = Date.now();
  while (Date.now() - began < ms) {
    const found = await what();
    if (found) return found;
    await sleep(20);
  }
  throw new Error(`not within ${ms} ms: ${sentence}`);
}

const imports = WebAssembly.Module.imports(new WebAssembly.Module(await readFile(join(folder, "game.wasm"))));
check(imports.length === 0, `the module has no import (${JSON.stringify(imports)})`);

// The match and its bots.
const server = spawn(process.env.SERVER, [String(seconds + 60), "wan"], { stdio: ["ignore", "pipe", "inherit"] });
let ticket;
const digests = new Map();
createInterface({ input: server.stdout }).on("line", (line) => {
  const [word, ...rest] = line.split(" ");
  if (word === "TICKET") ticket = rest[0];
  else if (word === "DIGEST") digests.set(Number(rest[0]), rest[1]);
});
await until(() => ticket, 10_000, "the server prints a ticket");

const files = createServer(async (ask, answer) => {
  const name = ask.url === "/" ? "index.html" : ask.url.slice(1).replaceAll("..", "");
  try {
    const bytes = await readFile(join(folder, name));
    answer.setHeader("content-type", types[name.split(".").pop()] ?? "text/plain");
    answer.end(bytes);
  } catch { answer.statusCode = 404; answer.end(); }
});
await new Promise((done) => files.listen(0, "127.0.0.1", done));
const home = `http://127.0.0.1:${files.address().port}/`;

const profile = await mkdtemp(join(tmpdir(), "twinstep-browser-"));
const browser = spawn(process.env.CHROMIUM, ["--headless=new", "--no-sandbox", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${profile}`,
  "--window-size=800,800", `${home}#${ticket}`], { stdio: ["ignore", "ignore", "pipe"] });
let code = 1;
try {
  let said = "";
  browser.stderr.on("data", (text) => { said += text; });
  const port = await until(() => said.match(/ws:\/\/127\.0\.0\.1:(\d+)/)?.[1], 30_000, "Chromium starts");
  const target = await until(async () => {
    const pages = await (await fetch(`http://127.0.0.1:${port}/json`)).json().catch(() => []);
    return pages.find((page) => page.type === "page" && page.url.startsWith(home));
  }, 30_000, "the page opens");
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise((done) => socket.addEventListener("open", done));
  const waiting = new Map();
  let number = 0;
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(data);
    if (message.id) { waiting.get(message.id)?.(message.result ?? message.error); waiting.delete(message.id); }
    else if (message.method === "Runtime.exceptionThrown") console_.push(message.params.exceptionDetails.exception?.description);
    else if (message.method === "Log.entryAdded" && message.params.entry.level === "error"
      && !message.params.entry.text.includes("favicon") && !message.params.entry.url?.includes("favicon")) console_.push(message.params.entry.text);
    else if (message.method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(message.params.type)) {
      console_.push(message.params.args.map((one) => one.value ?? one.description).join(" "));
    }
  });
  const ask = (method, params = {}) => new Promise((done) => {
    waiting.set(++number, done);
    socket.send(JSON.stringify({ id: number, method, params }));
  });
  for (const domain of ["Runtime", "Log", "Page"]) await ask(`${domain}.enable`);
  const value = async (expression) => (await ask("Runtime.evaluate", { expression, returnByValue: true })).result?.value;
  const report = async () => JSON.parse((await value("globalThis.boxes ? JSON.stringify(boxes.report()) : '{}'")) ?? "{}");
  const joined = async () => { const one = await report(); return one.seat < 255 && one.tick > 0 && one; };

  const first = await until(joined, 20_000, "the page joins");
  check((await value("location.hash")) === "", "the secret left the address bar");
  let common = 0, different = 0;
  const compare = async () => {
    const { tick, digest } = await report();
    const servers = digests.get(tick);
    if (servers) servers === digest ? common++ : different++;
  };
  const play = async (ms) => {
    const end = Date.now() + ms;
    for (let n = 0; Date.now() < end; n++) {
      if (n % 10 === 0) await value(`boxes.hold(${1 << (n / 10) % 4})`);
      await compare();
      await sleep(90);
    }
  };
  await play(seconds * 1000);
  let now = await report();
  console.log("     after play:", JSON.stringify(now));
  check(now.heals === 0 && now.over === "" && now.returns === 0, "no desync, no reconnect");
  check(now.stall_ms < 500, `stalled for ${now.stall_ms} ms`);
  check(different === 0 && common >= 10, `${common} digests of common ticks are equal, ${different} differ`);
  check(now.frames > seconds * 20, `${now.frames} frames; p50 ${now.p50.toFixed(1)}, p99 ${now.p99.toFixed(1)}, max ${now.max.toFixed(1)} ms`);
  const shot = await ask("Page.captureScreenshot");
  await writeFile(join(folder, "..", "boxes.png"), Buffer.from(shot.data, "base64"));

  await ask("Page.reload");
  const reloaded = Date.now();
  await until(async () => { const one = await joined(); return one && one.frames < now.frames && one; }, 20_000, "the reloaded page joins");
  const again = await report();
  check(again.seat === first.seat, `a reload is the same player, after ${Date.now() - reloaded} ms`);

  const other = await ask("Target.createTarget", { url: "about:blank", background: false });
  await until(async () => (await value("document.hidden")) === true, 5_000, "the tab is hidden").catch(() => {});
  const hidden = await value("document.hidden"), before = await report();
  await sleep(Math.min(30_000, seconds * 500));
  const after = await report();
  check(hidden && after.tick > before.tick + 60 && after.lost === before.lost && after.returns === 0,
    `hidden (${hidden}): ${after.tick - before.tick} ticks, ${after.frames - before.frames} frames, controls lost ${after.lost - before.lost} times`);
  await ask("Target.closeTarget", { targetId: other.targetId });
  await ask("Page.bringToFront");
  await play(2000);
  now = await report();
  check(now.heals === 0 && different === 0 && now.over === "", "and plays on without a desync");
  check(console_.length === 0, `no error in the console ${JSON.stringify(console_)}`);
  code = failures.length ? 1 : 0;
} catch (error) {
  console.log("FAIL", error.message, JSON.stringify(console_));
} finally {
  browser.kill();
  server.kill();
  files.close();
  await sleep(300);
  await rm(profile, { recursive: true, force: true }).catch(() => {});
  console.log(code === 0 ? "browser: all held" : `browser: FAILED ${failures.length}`);
  process.exit(code);
}
