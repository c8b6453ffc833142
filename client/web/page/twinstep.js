// Carries the datagrams, tickets and random bytes of a Twinstep client (client/web/src/lib.rs) in a page.
//
//   const game = (await WebAssembly.instantiateStreaming(fetch("game.wasm"), imports)).instance.exports;
//   const line = twinstep(game, { say: (sentence) => console.warn(sentence) });
//   line.frames(() => game.my_frame(performance.now()));
//
// `game` are the exports of any wasm module: of wasm-bindgen, of macroquad, or of neither.

const KEPT = "twinstep"; // In the session's storage, so that each tab is one player and a reload is the same one.

export function twinstep(game, { say = console.warn } = {}) {
  const lines = new Map();
  let dead = false;

  // The call may grow the memory, which detaches earlier views of it.
  const view = (length) => { const at = game.twinstep_buffer(length); return new Uint8Array(game.memory.buffer, at, length); };
  const text = (length) => new TextDecoder().decode(view(length).slice());
  const put = (bytes) => { view(bytes.length).set(bytes); return bytes.length; };
  const random = (length) => game.twinstep_random(put(crypto.getRandomValues(new Uint8Array(length))));

  const stored = () => { try { return JSON.parse(sessionStorage.getItem(KEPT)); } catch { return null; } };
  const store = (kept) => { try { sessionStorage.setItem(KEPT, JSON.stringify(kept)); } catch { /* Then a reload begins with the link. */ } };

  // The ticket of the link, or the newest one of the player that came by it. The secret leaves the address bar at once.
  function ticket() {
    const link = decodeURIComponent(location.hash.slice(1));
    let kept = stored();
    if (link.startsWith("twinstep-ticket-")) {
      history.replaceState(null, "", location.pathname + location.search);
      if (kept?.link !== link) kept = { link, ticket: link };
    }
    if (kept) store(kept);
    return kept?.ticket ?? "";
  }

  function dial(server, hashes) {
    const options = { requireUnreliable: true };
    const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
    if (hashes) options.serverCertificateHashes = hashes.split(",").map((hex) => ({ algorithm: "sha-256", value: bytes(hex) }));
    const web = new WebTransport(`https://${server}/`, options);
    web.closed.catch(() => {});
    return web;
  }

  async function open(number, servers, hashes) {
    let web, dials = [];
    try {
      dials = servers.split(",").map((server) => dial(server, hashes));
      web = await Promise.any(dials.map((one) => one.ready.then(() => one)));
    } catch (error) {
      say(`no answer from ${servers}: is the server there, is UDP open, and may this page reach it? (${error.errors?.[0] ?? error})`);
    }
    for (const other of dials) if (other !== web) try { other.close(); } catch { /* It never opened. */ }
    if (!web) return game.twinstep_closed(number);
    // Safari has only the first of these, Chromium only the second.
    const writable = web.datagrams.createWritable?.() ?? web.datagrams.writable;
    const writer = writable.getWriter(), reader = web.datagrams.readable.getReader();
    lines.set(number, writer);
    game.twinstep_opened(number);
    for (;;) {
      const { value, done } = await reader.read().catch(() => ({ done: true }));
      if (done || dead) break;
      game.twinstep_came(number, put(value));
    }
    lines.delete(number);
    if (!dead) game.twinstep_closed(number);
  }

  // Does what the game waits for. After each frame.
  function pump() {
    for (let length; (length = game.twinstep_dial()); ) {
      const [number, where] = text(length).split(" ");
      open(Number(number), ...where.split("#"));
    }
    for (let out; (out = game.twinstep_outgoing() >>> 0); ) {
      const writer = lines.get(out >>> 16), datagram = view(out & 0xffff).slice();
      // A full queue loses the datagram, as any network may.
      if (writer?.desiredSize > 0) writer.write(datagram).catch(() => {});
    }
    const length = game.twinstep_kept();
    if (length) store({ ...stored(), ticket: text(length) });
    random(64);
  }

  // Calls `frame` for each drawn frame, and 20 times a second while the tab is hidden: a worker's timer is not slowed down.
  function frames(frame) {
    const once = () => {
      if (dead) return;
      try { frame(); pump(); } catch (error) {
        dead = true;
        say(`this page has failed: ${text(game.twinstep_why()) || error}. Reload it to return.`);
        throw error;
      }
    };
    const draw = () => { once(); if (!dead) requestAnimationFrame(draw); };
    const timer = new Worker(URL.createObjectURL(new Blob(["setInterval(() => postMessage(0), 50)"])));
    timer.onmessage = () => { if (document.hidden) once(); };
    draw();
  }

  random(4096);
  const given = ticket();
  if (given && !("WebTransport" in globalThis)) {
    say("this browser has no WebTransport: use Chromium, Edge or Firefox, or Safari from 26.4 on; the page must come by https");
  }
  const hasTicket = given !== "" && game.twinstep_ticket(put(new TextEncoder().encode(given))) === 1;
  if (given && !hasTicket) say("this link is cut off or damaged: copy the whole link again, or ask for a new one");
  return { hasTicket, pump, frames, view, text, put };
}
