#!/usr/bin/env bash
# Has promtool look at the alerts in server/ops, and a Prometheus scrape a server under play: it is asked for every expression
# of the dashboard and the alerts, and promtool for what it thinks of the metrics. Half a minute; needs the programs
# `prometheus` and `promtool` (Debian's package prometheus has both). It builds what `cargo test --workspace` builds.
#
#   bash ci/scrape.sh
set -euo pipefail
cd "$(dirname "$0")/.."
for tool in prometheus promtool; do
    if ! command -v "$tool" >/dev/null; then
        echo "SKIPPED: $tool is missing: apt-get install prometheus"
        exit 0
    fi
done
promtool check rules server/ops/alerts.yml
exec cargo test --workspace --locked --test processes scrape:: -- --ignored --nocapture
