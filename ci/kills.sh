#!/usr/bin/env bash
# Kills a real server again and again (kill -9) while four bots play on it over loopback, and prints what came of it:
# desyncs, lost or doubled orders, lock-outs, the time from restart to play.
#
#   bash ci/kills.sh            50 kills in 10 minutes
#   bash ci/kills.sh 10 120     10 kills in 120 seconds
set -euo pipefail
cd "$(dirname "$0")/.."
export TWINSTEP_KILLS=${1:-50} TWINSTEP_SECONDS=${2:-600}
exec cargo test --release -p powderkeg --test kill -- --nocapture
