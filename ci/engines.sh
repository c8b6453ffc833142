#!/usr/bin/env bash
# Games in other languages and engines, as far as this machine has them:   bash ci/engines.sh
#
# Programs in C, C++ and C# are compiled without a warning, play on a real server, and load and unload a game's library; an app of
# Bevy plays 300 frames. What is missing is a line that begins with SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."

# With all packages selected, so that nothing is built twice: see .ci/run.
cargo test --workspace --locked --test library -- --nocapture program
cargo build --workspace --locked --example boxes --quiet
"${CARGO_TARGET_DIR:-target}/debug/examples/boxes" --frames 300

echo "SKIPPED: Godot: the pattern in docs/guide/engines.md is not compiled"
