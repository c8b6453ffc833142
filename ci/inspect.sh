#!/usr/bin/env bash
# Makes two pages for looking into a match (ten minutes of eight players; a short match with a client's tape, a desync and a
# heal), and opens them in a headless Chromium. Pages and pictures are in target/inspect.
#
#   bash ci/inspect.sh
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. ci/browser/tools.sh
need "${untried[@]}"
pages=$CARGO_TARGET_DIR/inspect
mkdir -p "$pages"
TWINSTEP_PAGE=$pages cargo test --workspace --release --locked --test chaos -- inspect:: || exit 1
CHROMIUM=$chromium "$node" --experimental-websocket ci/browser/inspect.mjs "$pages"
