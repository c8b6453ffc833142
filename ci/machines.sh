#!/usr/bin/env bash
# Checks that every available kind of machine computes the digests in tests/golden/digests.txt: three matches of 10,000
# ticks, and a table of float operations. A leg without its tools prints which are missing, and how to get them.
#
#   bash ci/machines.sh                    all legs
#   bash ci/machines.sh aarch64 wasm32     some of them
#   bash ci/machines.sh --install          before that, fetches Debian's packages into a cache folder
#
#   debug release native    this machine: without and with optimisation, and with all features of its processor
#   aarch64                 64-bit ARM, by qemu
#   wasm32                  the target of browsers, by Node
#   windows                 x86_64-pc-windows-gnu, by Wine
#   windows-tests           unit tests of the libraries there, without digests; in debug
#   apple                   aarch64-apple-darwin: the libraries are type-checked only
#   aarch64-match           bots on that machine play on a server on this one, over UDP; then it verifies a journal of this one
#   windows-match
#
# --install needs Debian and no root: it unpacks packages into $TWINSTEP_MACHINES (else ~/.cache/twinstep-machines, some
# 2 GB) and changes nothing else.
#
#   TWINSTEP_MATCH_SECONDS   how long a match lasts, 60 by default
#   MACHINES_SECONDS         no leg starts later than this
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

here=x86_64-unknown-linux-gnu
golden=tests/golden/digests.txt
cache=${TWINSTEP_MACHINES:-${XDG_CACHE_HOME:-$HOME/.cache}/twinstep-machines}
unpacked=$cache/unpacked
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
scratch=$(mktemp -d)
began=()
finish() {
    [ "${#began[@]}" -eq 0 ] || kill "${began[@]}" 2>/dev/null
    rm -rf "$scratch"
}
trap finish EXIT

# ---- Packages for --install.

packages=(
    rustc-web rust-web-src lld-22                           # a compiler, and the sources of its standard library
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user   # aarch64
    gcc-mingw-w64-x86-64-win32 wine64                       # Windows
)

install() {
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || {
        echo "--install needs Debian's apt-get and dpkg"
        return 1
    }
    local wanted
    # Installed tools are not in this list, and are found by PATH.
    wanted=$(apt-get -s install --no-install-recommends "${packages[@]}" | awk '/^Inst/ { sub(/\(/, "", $3); print $2 "=" $3 }')
    rm -rf "$unpacked" "$cache/debs" "$cache/rustc"
    mkdir -p "$unpacked" "$cache/debs" || return 1
    (cd "$cache/debs" && xargs -r apt-get download <<<"$wanted") || return 1
    local package
    for package in "$cache"/debs/*.deb; do
        dpkg -x "$package" "$unpacked" || return 1
    done
    rm -rf "$cache/debs"
    # Packages contain absolute paths; these are the ones that matter.
    local libc=$unpacked/usr/aarch64-linux-gnu/lib/libc.so wine=$unpacked/usr/lib/wine
    [ ! -e "$libc" ] || sed -i 's,/usr/aarch64-linux-gnu/lib/,,g' "$libc" || return 1
    if [ -d "$wine" ]; then
        sed -i "s,=/usr/lib/wine,=$wine," "$wine/wineserver" &&
            ln -sf "$unpacked/usr/x86_64-w64-mingw32/lib/zlib1.dll" "$unpacked/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/" ||
            return 1
    fi
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
        "$unpacked/usr/lib/x86_64-linux-gnu" "$unpacked/usr/bin/rustc" >"$cache/rustc"
    chmod +x "$cache/rustc"
}

# ---- Finding tools.

# The missing tools of the leg.
missing=()

# tool VARIABLE HOW NAME...: sets VARIABLE to the first of these programs that exists.
tool() {
    local variable=$1 how=$2 name
    shift 2
    for name in "$@"; do
        if name=$(PATH=$PATH:$unpacked/usr/bin:$unpacked/usr/lib/wine command -v "$name"); then
            printf -v "$variable" %s "$name"
            return 0
        fi
    done
    missing+=("$1 ($how)")
    return 1
}

# std TARGET PANIC: a standard library, as rustup has it or built from its sources. Sets $cargo and what it needs for that.
cargo=()
build_std=()
std() {
    # Line numbers for backtraces take a third of the build time.
    cargo=(env CARGO_PROFILE_RELEASE_DEBUG=0 "PATH=$PATH:$unpacked/usr/bin" "LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
    if [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ]; then
        cargo+=(cargo)
        build_std=()
    elif [ -x "$cache/rustc" ]; then
        cargo+=("RUSTC=$cache/rustc" RUSTC_BOOTSTRAP=1 cargo)
        build_std=("-Zbuild-std=std,$2")
    else
        missing+=("Rust's standard library for $1 (rustup target add $1)")
        return 1
    fi
}

# ready: succeeds if the leg can run; otherwise prints the reason.
ready() {
    [ "${#missing[@]}" -gt 0 ] || return 0
    echo "SKIPPED: $leg lacks $(IFS=';' && echo "${missing[*]}" | sed 's/;/; /g')"
    echo "         or, on Debian, all of it in a cache folder: bash ci/machines.sh --install $leg"
    skipped+=("$leg")
    return 1
}

# ---- Legs.

lean=(-p twinstep-rig --no-default-features --locked)
libraries=(-p twinstep-core -p twinstep-protocol -p twinstep-udp -p twinstep-client -p twinstep-server -p twinstep-host -p twinstep-ops -p twinstep-local -p twinstep-testing)

# same COMMAND...: checks that the command prints the golden digests. Also prints which system functions differ from those
# of earlier legs: this shows why the guide forbids them, and that the table would detect them.
same() {
    local out=$scratch/$leg
    "$@" >"$out" 2>"$out.err"
    local code=$?
    tr -d '\r' <"$out" >"$out.lines"
    if ! tr -d '\r' <"$golden" | diff - "$out.lines" >"$out.diff" || [ ! -s "$out.lines" ]; then
        echo "these lines differ from $golden (>: the output; exit code $code):"
        cat "$out.diff"
        tail -n 20 "$out.err"
        return 1
    fi
    "$@" system 2>/dev/null | tr -d '\r' >"$scratch/system.$leg"
    echo "all $(wc -l <"$out.lines") digests are equal; $(grep t10000 "$out.lines" | paste -sd ' ')"
    local reference
    for reference in "$scratch"/system.*; do
        reference=$(basename "$reference")
        [ "$reference" = "system.$leg" ] || diff "$scratch/$reference" "$scratch/system.$leg" |
            awk -v than="${reference#system.}" '/^>/ { names = names " " $2 } END { if (names) print "  forbidden in a step, differ from " than ":" names }'
    done
    # Differences between system functions are no failure.
    return 0
}

debug() {
    cargo build "${lean[@]}" --bin digests || return 1
    same "$CARGO_TARGET_DIR/debug/digests"
}

release() {
    cargo build --release "${lean[@]}" --bin digests || return 1
    same "$CARGO_TARGET_DIR/release/digests"
}

native() {
    CARGO_PROFILE_RELEASE_DEBUG=0 RUSTFLAGS="${RUSTFLAGS:-} -C target-cpu=native" cargo build --release "${lean[@]}" --target "$here" --bin digests || return 1
    same "$CARGO_TARGET_DIR/$here/release/digests"
}

arm=aarch64-unknown-linux-gnu
arm_tools() {
    std $arm panic_unwind
    tool linker "apt-get install gcc-aarch64-linux-gnu" aarch64-linux-gnu-gcc
    tool qemu "apt-get install qemu-user" qemu-aarch64 qemu-aarch64-static
    ready || return 2
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$linker
    local libs=/usr/aarch64-linux-gnu
    [ -d $libs/lib ] || libs=$unpacked$libs
    runner=(env "LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu" "$qemu" -U LD_LIBRARY_PATH -L "$libs")
}

aarch64() {
    local linker qemu runner
    arm_tools || return
    "${cargo[@]}" build --release "${lean[@]}" --target $arm "${build_std[@]}" --bin digests || return 1
    same "${runner[@]}" "$CARGO_TARGET_DIR/$arm/release/digests"
}

wasm32() {
    local node lld wasm=wasm32-unknown-unknown
    std $wasm panic_abort
    tool node "apt-get install nodejs" node
    [ "${#build_std[@]}" -eq 0 ] || tool lld "apt-get install lld" wasm-ld-22 wasm-ld
    ready || return 2
    [ -z "${lld:-}" ] || export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$lld
    "${cargo[@]}" build --release "${lean[@]}" --target $wasm "${build_std[@]}" --bin digests || return 1
    same "$node" ci/machines/digests.mjs "$CARGO_TARGET_DIR/$wasm/release/digests.wasm"
}

windows=x86_64-pc-windows-gnu
windows_tools() {
    std $windows panic_unwind
    tool linker "apt-get install gcc-mingw-w64-x86-64-win32" x86_64-w64-mingw32-gcc-win32 x86_64-w64-mingw32-gcc
    tool wine "apt-get install wine64" wine64 wine
    ready || return 2
    # Dependencies contain C.
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=$linker CC_x86_64_pc_windows_gnu=$linker
    # A separate Wine prefix without a display, so that it never shows a dialog.
    export WINEPREFIX=$cache/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
    mkdir -p "$cache"
    runner=(env -u DISPLAY "LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu" "$wine")
    [ -d "$WINEPREFIX" ] || "${runner[@]}" wineboot -i >/dev/null 2>&1
    local system=$WINEPREFIX/drive_c/windows/system32 zlib=$unpacked/usr/x86_64-w64-mingw32/lib/zlib1.dll
    # Debian's user32.dll loads it, only from there.
    [ ! -e "$zlib" ] || cp -u "$zlib" "$system/"
    # Newer versions of Wine have it.
    [ -e "$system/bcryptprimitives.dll" ] ||
        "${cargo[@]:0:4}" "$linker" -shared -o "$system/bcryptprimitives.dll" ci/machines/bcryptprimitives.c -ladvapi32
}

windows() {
    local linker wine runner
    windows_tools || return
    "${cargo[@]}" build --release "${lean[@]}" --target $windows "${build_std[@]}" --bin digests || return 1
    same "${runner[@]}" "$CARGO_TARGET_DIR/$windows/release/digests.exe"
}

# Tests of what Wine cannot do, each with the reason.
wine_lacks=(
    "a_match_whose_journal_was_taken_away_cannot_write_to_it: Wine never replaces an open file, as Windows 10 does"
)

windows-tests() {
    local linker wine runner test skips=() log=$scratch/$leg code
    windows_tools || return
    for test in "${wine_lacks[@]}"; do
        git grep -q "fn ${test%%:*}()" || {
            echo "no test is named ${test%%:*}"
            return 1
        }
        echo "skipped: $test"
        skips+=(--skip "${test%%:*}")
    done
    # Cargo runs each program in the folder of its crate.
    CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="timeout 300 ${runner[*]}" "${cargo[@]}" test --lib --no-fail-fast --locked \
        --target $windows "${build_std[@]}" "${libraries[@]}" -p twinstep-rapier2d -- "${skips[@]}" >"$log" 2>&1
    code=$?
    tr -d '\r' <"$log" | sed -nE 's/^ +Running .*deps.([a-z0-9_]+)-.*/\1:/p; s/^test result: /    /p'
    [ $code -eq 0 ] || tr -d '\r' <"$log" | sed -n '/^error/,$p; /^failures:/,/^test result/p' | head -n 200
    return $((code != 0))
}

apple() {
    std aarch64-apple-darwin panic_unwind
    ready || return 2
    "${cargo[@]}" check --locked --target aarch64-apple-darwin "${build_std[@]}" \
        "${libraries[@]}" -p powderkeg-game
}

# ---- A match between two machines.

aarch64-match() {
    local linker qemu runner
    arm_tools || return
    match $arm powderkeg
}

windows-match() {
    local linker wine runner
    windows_tools || return
    match $windows powderkeg.exe
}

# match TARGET PROGRAM: two bots on another machine and two on this one, on a server on this one.
match() {
    "${cargo[@]}" build --release --locked --target "$1" "${build_std[@]}" -p powderkeg || return 1
    cargo build --release --locked -p powderkeg || return 1
    local ours=$CARGO_TARGET_DIR/release/powderkeg theirs=("${runner[@]}" "$CARGO_TARGET_DIR/$1/release/$2")
    local seconds=${TWINSTEP_MATCH_SECONDS:-60} folder=$scratch/match-$leg n code=0
    mkdir -p "$folder/journals"
    (
        # Relative paths are the same for all of them.
        cd "$folder" || exit 1
        "$ours" key match.key >/dev/null || exit 1
        # Without a journal the server issues no return tickets.
        "$ours" serve --listen 127.0.0.1:0 --key-file match.key --seed 1 >server.log 2>&1 &
        local server=$! clients=() address=
        trap 'kill $server "${clients[@]}" 2>/dev/null' EXIT
        for n in $(seq 100); do
            address=$(grep -aoE '127\.0\.0\.1:[0-9]+' server.log | head -n 1)
            [ -z "$address" ] || break
            sleep 0.1
        done
        for n in 1 2 3 4; do
            "$ours" ticket --key-file match.key --server "$address" --player "player-$n" --out "$n.ticket" >/dev/null || exit 1
        done
        for n in 1 2; do
            "${theirs[@]}" join --bot "$n.ticket" >"$n.log" 2>&1 &
            clients+=($!)
        done
        for n in 3 4; do
            "$ours" join --bot "$n.ticket" >"$n.log" 2>&1 &
            clients+=($!)
        done
        sleep "$seconds"
        kill -TERM $server
        for n in 1 2 3 4; do
            wait "${clients[n - 1]}" || code=1
            sed "s/^/  player $n: /" "$n.log" | tr -d '\r'
            grep -q 'differed 0 times' "$n.log" || code=1
        done
        wait $server || code=1
        # A machine that could not keep up proves nothing.
        for n in 1 2; do
            [ "$(sed -n 's/^played to tick t*\([0-9]*\):.*/\1/p' "$n.log")" -gt $((seconds * 20)) ] || code=1
        done
        [ $code -eq 0 ] || tail -n 20 server.log
        "$ours" bots --players 4 --seconds 10 --seed 1 --journal journals >/dev/null || code=1
        for n in journals/*; do
            "${theirs[@]}" replay --verify "$n" || code=1
        done
        exit $code
    )
}

# ---- All legs.

all=(debug release native aarch64 wasm32 windows windows-tests apple aarch64-match windows-match)
legs=()
skipped=()
failed=()
passed=()
for word in "$@"; do
    case " ${all[*]} " in
        *" $word "*) legs+=("$word") ;;
        *)
            if [ "$word" = --install ]; then
                install || exit 1
            else
                sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
                exit 2
            fi
            ;;
    esac
done
[ "${#legs[@]}" -gt 0 ] || legs=("${all[@]}")

for leg in "${legs[@]}"; do
    echo
    echo "-- $leg"
    if [ "$SECONDS" -ge "${MACHINES_SECONDS:-$((SECONDS + 1))}" ]; then
        echo "SKIPPED: no time is left for it"
        skipped+=("$leg")
        continue
    fi
    case $leg in
        debug | release | native) [ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || missing=("Linux on x86_64 (elsewhere: cargo test -p twinstep-tests --test floats)") ;;
    esac
    ready || {
        missing=()
        continue
    }
    "$leg"
    case $? in
        0) passed+=("$leg") ;;
        2) missing=() ;;
        *) failed+=("$leg") ;;
    esac
done

echo
echo "machines: passed: ${passed[*]:-none}; skipped: ${skipped[*]:-none}; FAILED: ${failed[*]:-none}"
[ "${#failed[@]}" -eq 0 ]
