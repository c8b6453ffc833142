// Serves a page of boxes, starts its server, and drives a headless Chromium:  node play.mjs FOLDER SECONDS
import { readFile } from "node:fs/promises";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { join } from "node:path";
import { check, failures, open, sleep, until } from "./chromium.mjs";

const [folder, seconds] = [process.argv[2], Number(process.argv[3])];
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

let code = 1, browser;
try {
  browser = await open(folder, `#${ticket}`, ["--disable-gpu", "--window-size=800,800"]);
  const { ask, value } = browser;
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
  await browser.picture(join(folder, "seen.png"));

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
  check(browser.written.length === 0, `no error in the console ${JSON.stringify(browser.written)}`);
  code = failures.length ? 1 : 0;
} catch (error) {
  console.log("FAIL", error.message, JSON.stringify(browser?.written));
} finally {
  server.kill();
  await browser?.close();
  console.log(code === 0 ? "browser: all held" : `browser: FAILED ${failures.length}`);
  process.exit(code);
}
