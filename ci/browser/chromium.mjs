// Serves a folder on loopback, and drives a headless Chromium by its debugging protocol.
import { createServer } from "node:http";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";

const types = { html: "text/html", js: "text/javascript", wasm: "application/wasm" };
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
export const failures = [];
export const check = (holds, sentence) => { console.log(`${holds ? "ok  " : "FAIL"} ${sentence}`); if (!holds) failures.push(sentence); };
export async function until(what, ms, sentence) {
  const began = Date.now();
  while (Date.now() - began < ms) {
    const found = await what();
    if (found) return found;
    await sleep(20);
  }
  throw new Error(`not within ${ms} ms: ${sentence}`);
}

// `written`: errors and warnings of the page's console.
export async function open(folder, hash, flags) {
  const written = [];
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
    "--disable-component-update", "--disable-sync", "--remote-debugging-port=0", `--user-data-dir=${profile}`,
    ...flags, `${home}${hash}`], { stdio: ["ignore", "ignore", "pipe"] });
  const close = async () => {
    browser.kill();
    files.close();
    await sleep(300);
    await rm(profile, { recursive: true, force: true }).catch(() => {});
  };
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
      const { id, result, error, method, params } = JSON.parse(data);
      if (id) { waiting.get(id)?.(result ?? error); waiting.delete(id); }
      else if (method === "Runtime.exceptionThrown") written.push(params.exceptionDetails.exception?.description);
      else if (method === "Log.entryAdded" && params.entry.level === "error"
        && !params.entry.text.includes("favicon") && !params.entry.url?.includes("favicon")) written.push(params.entry.text);
      else if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) {
        written.push(params.args.map((one) => one.value ?? one.description).join(" "));
      }
    });
    const ask = (method, params = {}) => new Promise((done) => {
      waiting.set(++number, done);
      socket.send(JSON.stringify({ id: number, method, params }));
    });
    for (const domain of ["Runtime", "Log", "Page"]) await ask(`${domain}.enable`);
    const value = async (expression) => (await ask("Runtime.evaluate", { expression, returnByValue: true })).result?.value;
    const picture = async (file) => writeFile(file, Buffer.from((await ask("Page.captureScreenshot")).data, "base64"));
    return { ask, value, picture, written, close };
  } catch (error) {
    await close();
    throw error;
  }
}
