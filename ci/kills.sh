#!/usr/bin/env bash
# Kills a real server repeatedly (kill -9) while four bots play on it over loopback, and prints the results: desyncs, lost
# or doubled commands, lock-outs, the time from restart to play. Then kills clients at any moment within 3 s of
# joining or returning, over 200 ms with 2 % loss; and the server 0.05 s after each return.
#
#   bash ci/kills.sh            50 kills in 10 minutes, 100 of clients, 50 as they get a ticket, 30 right after a return
#   bash ci/kills.sh 10 120     10 kills in 120 seconds, 100, 50, 30
#   bash ci/kills.sh 10 120 20 5
set -euo pipefail
cd "$(dirname "$0")/.."
export TWINSTEP_KILLS=${1:-50} TWINSTEP_SECONDS=${2:-600}
export TWINSTEP_CLIENT_KILLS=${3:-100} TWINSTEP_RETURN_KILLS=${4:-30}
# All packages, as in the whole check: nothing is built twice.
exec cargo test --workspace --release --locked --test processes kill:: -- --nocapture --test-threads 1
