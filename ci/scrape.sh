#!/usr/bin/env bash
# Checks the alerts in server/ops with promtool, and lets Prometheus scrape a server with players: every expression of the
# dashboard and the alerts must have a result, and promtool checks the metrics. Takes half a minute. Needs the programs
# `prometheus` and `promtool` (Debian's package prometheus has both). It reuses the build of `cargo test --workspace`.
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
