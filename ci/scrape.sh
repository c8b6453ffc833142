#!/usr/bin/env bash
# Has a Prometheus scrape a server under play, and asks it for every expression of the dashboard and the alerts in
# server/ops. Half a minute; needs the program `prometheus` (Debian's package of that name).
#
#   bash ci/scrape.sh
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v prometheus >/dev/null; then
    echo "SKIPPED: prometheus is missing: apt-get install prometheus"
    exit 0
fi
exec cargo test -p powderkeg --test processes scrape:: -- --ignored --nocapture
