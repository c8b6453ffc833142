// Loads Powderkeg (demo/view/src/tab.rs) and gives it what a page has: frames, time, storage, downloads, gamepads, touch.
//
// macroquad's script mq_js_bundle.js, which is loaded before, draws, plays sounds and reads keyboard and mouse.
import { twinstep } from "./twinstep.js";

const STORE = "powderkeg";
const canvas = document.getElementById("glcanvas"), said = document.getElementById("say"), buttons = document.getElementById("touch");
const times = [], waits = [];
let line, over = false;
// The first reason for an end stays.
const say = (sentence) => { if (!over) said.textContent = sentence; if (sentence) console.info(sentence); };

// Two sticks: the left half of the screen walks, the right half aims and fires. A tap dashes. Bits are of a standard gamepad.
const fingers = new Map(), FIRE = 1 << 7, REACH = 60;
let taps = 0;
function touchPad() {
  const pad = [0, 0, 0, 0, taps];
  taps = 0;
  for (const { right, x, y } of fingers.values()) {
    const scale = REACH * Math.max(1, Math.hypot(x, y) / REACH);
    pad.splice(right ? 2 : 0, 2, x / scale, y / scale);
    if (right && Math.hypot(x, y) > REACH / 3) pad[4] |= FIRE;
  }
  return pad;
}
function touch(event) {
  event.preventDefault();
  event.stopImmediatePropagation(); // The library would take a finger for the mouse.
  buttons.hidden = false;
  for (const { identifier, clientX, clientY } of event.changedTouches) {
    const finger = fingers.get(identifier);
    if (event.type === "touchstart") {
      fingers.set(identifier, { right: clientX > innerWidth / 2, from: [clientX, clientY], since: event.timeStamp, x: 0, y: 0 });
    } else if (finger && event.type === "touchmove") [finger.x, finger.y] = [clientX - finger.from[0], clientY - finger.from[1]];
    else if (finger) {
      if (event.timeStamp - finger.since < 250 && Math.hypot(finger.x, finger.y) < 12) taps |= 1;
      fingers.delete(identifier);
    }
  }
}
for (const kind of ["touchstart", "touchmove", "touchend", "touchcancel"]) canvas.addEventListener(kind, touch, { passive: false });
for (const button of buttons.children) button.addEventListener("click", () => { taps |= 1 << button.dataset.bit; canvas.focus(); });

function gamepads() {
  const own = [...(navigator.getGamepads?.() ?? [])].filter((pad) => pad?.connected && pad.mapping === "standard").map(
    (pad) => [...pad.axes.slice(0, 4), pad.buttons.reduce((bits, button, n) => bits | (button.pressed << n), 0)]);
  return (buttons.hidden ? own : [touchPad(), ...own]).slice(0, 4);
}

// A key that is released while the page has no focus would stay down.
const held = new Set();
canvas.addEventListener("keydown", (event) => { held.add(event.code); if (event.code === "F12") event.preventDefault(); });
canvas.addEventListener("keyup", (event) => held.delete(event.code));
addEventListener("blur", () => { for (const code of [...held]) canvas.dispatchEvent(new KeyboardEvent("keyup", { code })); });
addEventListener("pointerdown", (event) => { if (event.target === canvas) canvas.focus(); });
canvas.addEventListener("contextmenu", (event) => event.preventDefault());

function download(name, length) {
  const bytes = line.view(length).slice(), link = document.createElement("a");
  link.download = new TextDecoder().decode(bytes.subarray(0, name));
  link.href = URL.createObjectURL(new Blob([bytes.subarray(name)]));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
const imports = {
  powderkeg_now: () => performance.now(),
  powderkeg_date: () => Date.now(),
  powderkeg_end: (length) => { say(`${line.text(length)}. Reload this page to play again.`); over = true; },
  powderkeg_download: download,
  powderkeg_keep: (length) => { try { localStorage.setItem(STORE, line.text(length)); return 1; } catch { return 0; } },
  powderkeg_kept: (to) => {
    let text = "";
    try { text = localStorage.getItem(STORE) ?? ""; } catch { /* Then the settings are the defaults. */ }
    const bytes = new TextEncoder().encode(text).subarray(0, 4096);
    new Uint8Array(wasm_memory.buffer, to, bytes.length).set(bytes);
    return bytes.length;
  },
  powderkeg_pads: (to) => {
    const pads = gamepads();
    new Float32Array(wasm_memory.buffer, to, 20).set(pads.flat());
    return pads.length;
  },
};

async function begin() {
  if (!document.createElement("canvas").getContext("webgl")) {
    return say("this browser has no WebGL: turn on hardware acceleration, or use a newer browser");
  }
  register_plugins(plugins);
  // Sounds before the first key or click would all be played at that moment.
  const play = importObject.env.audio_play_buffer;
  importObject.env.audio_play_buffer = (...sound) => navigator.userActivation?.hasBeenActive === false ? 0 : play(...sound);
  Object.assign(importObject.env, imports);
  const { instance } = await WebAssembly.instantiateStreaming(fetch("powderkeg.wasm"), importObject);
  [wasm_exports, wasm_memory] = [instance.exports, instance.exports.memory];
  say("");
  // Sounds are loaded before the first frame of the match, and the server closes a line that is silent for 2 s.
  let begun = false;
  const twinstep_dial = () => (begun ||= wasm_exports.powderkeg_report() > 0) ? wasm_exports.twinstep_dial() : 0;
  line = twinstep({ ...wasm_exports, twinstep_dial }, { say });
  canvas.focus();
  wasm_exports.powderkeg_begin();
  let last = performance.now();
  line.frames(() => {
    // A match without others waits while it is not seen.
    if (over || (document.hidden && !line.hasTicket)) return;
    const began = performance.now();
    wasm_exports.frame();
    times.push(performance.now() - began);
    waits.push(began - last);
    last = began;
  });
}
begin().catch((error) => { say(`this page has failed: ${error}. Reload it, or use a newer browser.`); console.error(error); });

// For tests, and for whoever opens the console.
globalThis.powderkeg = {
  forget: () => { times.length = waits.length = 0; },
  report: () => {
    const of = (list, part) => [...list].sort((a, b) => a - b)[Math.floor(part * (list.length - 1))] ?? 0;
    return {
      ...JSON.parse(line.text(wasm_exports.powderkeg_report()) || "{}"), over, frames: times.length,
      p50: of(times, 0.5), p99: of(times, 0.99), max: of(times, 1), wait_p50: of(waits, 0.5), wait_p99: of(waits, 0.99),
    };
  },
};
