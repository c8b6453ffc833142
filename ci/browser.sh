#!/usr/bin/env bash
# Plays boxes in a headless Chromium, against a real server with three native bots over a simulated bad network:
#
#   bash ci/browser.sh [SECONDS]      60 by default
#
# Checks that the page joins, that all digests of common ticks are equal, that a reload is the same player, that a hidden
# tab stays in the match, that the console has no error, and that the module has no import. Says loudly what it lacks:
# Chromium, Node, or Rust's standard library for wasm32 (rustup, or ci/machines.sh --install).
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
seconds=${1:-60}
. ci/browser/tools.sh
need "${missing[@]}" "${untried[@]}"

"${cargo[@]}" build --release --locked --target $target "${build_std[@]}" -p twinstep-web --example boxes || exit 1
cargo build --workspace --locked --example boxes_server || exit 1
page=$CARGO_TARGET_DIR/boxes
mkdir -p "$page"
cp client/web/page/* "$page/"
cp "$CARGO_TARGET_DIR/$target/release/examples/boxes.wasm" "$page/game.wasm"
small game.wasm 250000 "$page/game.wasm" || exit 1
CHROMIUM=$chromium SERVER=$CARGO_TARGET_DIR/debug/examples/boxes_server "$node" --experimental-websocket ci/browser/play.mjs "$page" "$seconds"
