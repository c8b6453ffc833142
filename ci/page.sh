#!/usr/bin/env bash
# Builds target/page: Powderkeg as static files, for a browser's tab. Then plays it in a headless Chromium with software GL:
#
#   bash ci/page.sh [SECONDS]      20 by default; 0 only builds
#
# First alone, without a server: title and a wave (pictures in target/page-seen), 99 % of the frames within 12 ms. Then by a
# link, with native bots, on a server in this machine. To look at it: python3 -m http.server -d target/page
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
seconds=${1:-20}
. ci/browser/tools.sh
need "${missing[@]}"

page=$CARGO_TARGET_DIR/page
mkdir -p "$page"
# The functions of the page are undefined until it loads the module.
"${cargo[@]}" rustc --release --locked --target $target "${build_std[@]}" -p powderkeg-view --lib --crate-type cdylib -- \
    -C link-arg=--allow-undefined || exit 1
cp "$CARGO_TARGET_DIR/$target/release/powderkeg_view.wasm" "$page/powderkeg.wasm"
cp demo/page/* client/web/page/twinstep.js "$page/"
# The script of macroquad comes with its crate.
macroquad=$(cargo metadata --format-version 1 --locked --filter-platform $target | grep -oE '"[^"]*/macroquad-[0-9.]+/Cargo.toml"' | head -n 1 | tr -d '"')
cp "${macroquad%/*}/js/mq_js_bundle.js" "$page/" || exit 1
small page 1500000 "$page"/* || exit 1
[ "$seconds" -gt 0 ] || exit 0

need "${untried[@]}"
cargo build --workspace --locked --bin powderkeg || exit 1
CHROMIUM=$chromium POWDERKEG=$CARGO_TARGET_DIR/debug/powderkeg "$node" --experimental-websocket ci/browser/page.mjs "$page" "$seconds"
