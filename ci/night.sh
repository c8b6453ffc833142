#!/usr/bin/env bash
# Plays worlds of chaos for a whole night, and prints the number of virtual hours:   bash ci/night.sh [HOURS] [FROM]
#
# All three games on as many processes as there are cores, from seed FROM on (1,000,000 by default), in portions of new seeds
# until HOURS (8) are over. Worlds last 90 s, every tenth one 5 minutes, every sixtieth 30. It continues after failures; failed
# worlds are listed at the end, each with the command that replays it. The output of each portion stays in a folder that is
# named at the end. Exits with 1 if a world failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

hours=${1:-8} from=${2:-1000000}
portion=30
games=(the_history_game_survives_chaos powderkeg_survives_chaos the_game_of_edges_survives_chaos)
cores=$(getconf _NPROCESSORS_ONLN)
folder=$(mktemp -d)

# All packages, as in the whole check: nothing is built twice.
cargo test --workspace --release --locked --test chaos --no-run || exit 1
end=$(awk -v now="$(date +%s)" -v hours="$hours" 'BEGIN { printf "%d", now + hours * 3600 }')

# One process: every `cores`-th portion, each in all games.
play() {
    local n=$1 game first
    while [ "$(date +%s)" -lt "$end" ]; do
        first=$((from + n * portion))
        for game in "${games[@]}"; do
            [ "$(date +%s)" -lt "$end" ] || break
            TWINSTEP_FROM=$first TWINSTEP_SEEDS=$portion TWINSTEP_SECONDS=90 TWINSTEP_LONG=10 TWINSTEP_GO_ON=1 \
                nice cargo test --workspace --release --locked -q --test chaos -- \
                --nocapture --test-threads 1 "$game" >"$folder/$game.$first" 2>&1 ||
                grep -q '^rerun: ' "$folder/$game.$first" ||
                echo "rerun: TWINSTEP_FROM=$first TWINSTEP_SEEDS=$portion TWINSTEP_SECONDS=90 TWINSTEP_LONG=10 $game (it ended without output)" \
                    >>"$folder/$game.$first"
        done
        n=$((n + cores))
    done
}

for ((core = 0; core < cores; core++)); do
    play "$core" &
done
wait

for game in "${games[@]}"; do
    cat "$folder/$game".* 2>/dev/null | awk -v game="$game" '
        $1 == game ":" { worlds += $2; seconds += $(NF - 2) }
        END { printf "%-36s %7d worlds, %8.1f virtual hours\n", game, worlds, seconds / 3600 }'
done
cat "$folder"/* | awk '/ worlds, / { seconds += $(NF - 2) } END { printf "in all: %.1f virtual hours\n", seconds / 3600 }'
failed=$(cat "$folder"/* | grep -c '^rerun: ')
echo "$failed failed; output in $folder"
cat "$folder"/* | grep -A1 '^seed [0-9]* failed: ' | grep -v '^--'
[ "$failed" -eq 0 ]
