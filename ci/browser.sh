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
target=wasm32-unknown-unknown
cache=${TWINSTEP_MACHINES:-${XDG_CACHE_HOME:-$HOME/.cache}/twinstep-machines}
unpacked=$cache/unpacked
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

missing=()
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || missing+=("Chromium (apt-get install chromium)")
node=$(command -v node) || missing+=("Node 20 or later (apt-get install nodejs)")
cargo=(env CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_OPT_LEVEL=s CARGO_PROFILE_RELEASE_LTO=true
    CARGO_PROFILE_RELEASE_PANIC=abort "RUSTFLAGS=--cfg getrandom_backend=\"custom\"")
build_std=()
if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    cargo+=(cargo)
elif [ -x "$cache/rustc" ]; then
    linker=$(PATH=$PATH:$unpacked/usr/bin command -v wasm-ld-22 || PATH=$PATH:$unpacked/usr/bin command -v wasm-ld) || missing+=("a linker for wasm32 (apt-get install lld)")
    cargo+=("LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu" "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=${linker:-}"
        "RUSTC=$cache/rustc" RUSTC_BOOTSTRAP=1 cargo)
    build_std=("-Zbuild-std=std,panic_abort")
else
    missing+=("Rust's standard library for $target (rustup target add $target, or on Debian: bash ci/machines.sh --install wasm32)")
fi
if [ "${#missing[@]}" -gt 0 ]; then
    echo "SKIPPED: browser.sh lacks"
    printf '  %s\n' "${missing[@]}"
    exit 0
fi

"${cargo[@]}" build --release --locked --target $target "${build_std[@]}" -p twinstep-web --example boxes || exit 1
cargo build --workspace --locked --example boxes_server || exit 1
page=$CARGO_TARGET_DIR/page/boxes
mkdir -p "$page"
cp client/web/page/* "$page/"
cp "$CARGO_TARGET_DIR/$target/release/examples/boxes.wasm" "$page/game.wasm"
echo "game.wasm: $(stat -c %s "$page/game.wasm") bytes, $(gzip -9c "$page/game.wasm" | wc -c) compressed"
[ "$(gzip -9c "$page/game.wasm" | wc -c)" -le 250000 ] || exit 1
CHROMIUM=$chromium SERVER=$CARGO_TARGET_DIR/debug/examples/boxes_server "$node" --experimental-websocket ci/browser/play.mjs "$page" "$seconds"
