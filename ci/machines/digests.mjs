// Prints the module's digests:  node digests.mjs MODULE [system]
import { readFile } from "node:fs/promises";

const module = await WebAssembly.instantiate(await readFile(process.argv[2]));
const { digests, memory } = module.instance.exports;
const start = digests(process.argv[3] === "system" ? 1 : 0);
const bytes = new Uint8Array(memory.buffer);
process.stdout.write(new TextDecoder().decode(bytes.subarray(start, bytes.indexOf(0, start))));
