#!/usr/bin/env bash
# Games in other languages and engines, as far as this machine has them:   bash ci/engines.sh [--godot]
#
# Programs in C, C++ and C# are compiled without a warning, play on a real server, and load and unload a game's library; an app of
# Bevy plays 300 frames. With --godot, the project for Godot is compiled. A missing part gives a line that starts with SKIPPED.
set -euo pipefail
cd "$(dirname "$0")/.."

# With all packages selected, so that nothing is built twice: see .ci/run.
cargo test --workspace --locked --test library -- --nocapture program
cargo build --workspace --locked --example boxes --quiet
"${CARGO_TARGET_DIR:-target}/debug/examples/boxes" --frames 300

if [ "${1:-}" = --godot ]; then
    cargo check --locked --manifest-path client/godot/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/godot"
    echo "SKIPPED: Godot itself: the project is compiled, but not played"
else
    echo "SKIPPED: the project for Godot: it is compiled with --godot, which takes some minutes"
fi
