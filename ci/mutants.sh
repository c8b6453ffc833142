#!/usr/bin/env bash
# Plants one known defect after the other in a scratch copy, and requires that a named test finds each.
#
#   bash ci/mutants.sh            all of ci/mutants/*.patch
#   bash ci/mutants.sh withhold   those whose names contain a word
#   MUTANTS_SECONDS=400 bash ci/mutants.sh   starts no mutant after this time, with a different first one each day. For
#                                            use after a passed `cargo test`: named tests are not run without mutants
#
# A patch starts with two lines:
#   # breaks: what it does
#   # killed by: PACKAGE TARGET TEST      as in  cargo test -p PACKAGE --test TARGET TEST
# Fails if a patch does not apply or does not compile, if a named test fails without its mutant, or if a mutant
# survives.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
only=${1:-}
# Dependencies are built once, and those of an earlier `cargo test` are reused.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
copy=$scratch/copy
log=$scratch/log

fail() {
    echo "mutants: $1"
    [ -s "$log" ] && tail -n 40 "$log"
    exit 1
}

field() { sed -n "s/^# $2: //p" "$1" | head -n 1; }

# The files of the checkout, tracked or not, without ignored ones.
mkdir "$copy"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- --ignore-failed-read -f - 2>/dev/null) |
    tar -x -C "$copy" -f - || fail "the checkout cannot be copied"
cd "$copy" || exit 1

within=${MUTANTS_SECONDS:-}
patches=()
for patch in "$root"/ci/mutants/*"$only"*.patch; do
    [ -e "$patch" ] || fail "there is no mutant named $only"
    patches+=("$patch")
done

if [ -n "$within" ]; then
    # A day's check plants a few, so the next day's starts seven later.
    first=$((10#$(date +%j) * 7 % ${#patches[@]}))
    patches=("${patches[@]:first}" "${patches[@]:0:first}")
fi

# A mutant's crates are built again each time for a single test, so the build is made as fast as possible: what a mutant
# does not change is taken from the build before, and of a test program only the file of the test is built.
export CARGO_INCREMENTAL=1
quick=()
for package in core client udp; do quick+=(--config "profile.dev.package.twinstep-$package.opt-level=1"); done
for package in twinstep-rig powderkeg-game powderkeg-view; do
    quick+=(--config "profile.dev.package.$package.opt-level=0")
done

# All packages are selected, as by the `cargo test --workspace` before, so dependencies have the same features and are not
# built again. run TARGET TEST: one test, exactly.
run() { cargo "${quick[@]}" test --workspace --locked --test "$1" -- --exact "$2" >"$log" 2>&1; }

# reduce TARGET TEST: leaves the module of one test in a test program.
reduce() {
    local program=tests/tests/$1.rs
    cp "$root/$program" "$program" && sed -i "/^mod /{/^mod ${2%%::*};/!d}" "$program"
}

for patch in "${patches[@]}"; do
    read -r package target name <<<"$(field "$patch" "killed by")"
    [ -n "$name" ] || fail "$patch does not say by which test it is killed"
    [ -z "$within" ] || continue
    reduce "$target" "$name"
    run "$target" "$name" || fail "$name fails without its mutant"
    grep -q "^test $name .*ok$" "$log" || fail "there is no test $name in $target of $package"
done

killed=0
left=()
for patch in "${patches[@]}"; do
    began=$SECONDS
    if [ -n "$within" ] && [ "$began" -ge "$within" ]; then
        left+=("$(basename "$patch" .patch)")
        continue
    fi
    read -r package target name <<<"$(field "$patch" "killed by")"
    : >"$log"
    reduce "$target" "$name"
    # Little context, so that edits nearby do not matter.
    git apply -C1 "$patch" 2>"$log" || fail "$patch does not apply: write it anew"
    cargo "${quick[@]}" test --workspace --locked --test "$target" --no-run >"$log" 2>&1 || fail "$patch does not compile"
    if run "$target" "$name"; then
        fail "SURVIVED: $(basename "$patch" .patch) ($(field "$patch" breaks)); $name did not see it"
    fi
    grep -q "^test $name .*FAILED$" "$log" || fail "$(basename "$patch" .patch): $name did not run to its end"
    git apply -C1 -R "$patch" || fail "$patch cannot be taken back"
    killed=$((killed + 1))
    echo "killed: $(basename "$patch" .patch) by $name ($((SECONDS - began)) s)"
done
[ "${#left[@]}" -eq 0 ] || echo "SKIPPED, because the time is over: ${left[*]}"
echo "$killed mutants, all killed"
