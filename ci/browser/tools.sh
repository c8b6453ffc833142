# Sourced by browser.sh and page.sh: finds what a page is built and tested with. Sets $cargo, $build_std and $target for
# wasm32, and $chromium and $node; $missing and $untried are what is missing to build and to try it.
target=wasm32-unknown-unknown
cache=${TWINSTEP_MACHINES:-${XDG_CACHE_HOME:-$HOME/.cache}/twinstep-machines}
unpacked=$cache/unpacked
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}

missing=() untried=()
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || untried+=("Chromium (apt-get install chromium)")
node=$(command -v node) || untried+=("Node 20 or later (apt-get install nodejs)")
cargo=(env CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_PROFILE_RELEASE_OPT_LEVEL=s CARGO_PROFILE_RELEASE_LTO=true
    CARGO_PROFILE_RELEASE_PANIC=abort "RUSTFLAGS=--cfg getrandom_backend=\"custom\"")
build_std=()
if [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
    cargo+=(cargo)
elif [ -x "$cache/rustc" ]; then
    linker=$(PATH=$PATH:$unpacked/usr/bin command -v wasm-ld-22 || PATH=$PATH:$unpacked/usr/bin command -v wasm-ld) || missing+=("a linker for wasm32 (apt-get install lld)")
    cargo+=("LD_LIBRARY_PATH=$unpacked/usr/lib/x86_64-linux-gnu" "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=${linker:-}"
        "RUSTC=$cache/rustc" RUSTC_BOOTSTRAP=1 cargo)
    build_std=("-Zbuild-std=std,panic_abort")
else
    missing+=("Rust's standard library for $target (rustup target add $target, or on Debian: bash ci/machines.sh --install wasm32)")
fi

# need THING...: if anything is missing, says so loudly and ends the script.
need() {
    [ $# -gt 0 ] || return 0
    echo "SKIPPED: $0 lacks"
    printf '  %s\n' "$@"
    exit 0
}

# small NAME BYTES_MAX FILE...: fails if the files, compressed, are larger.
small() {
    local bytes
    bytes=$(cat "${@:3}" | gzip -9c | wc -c)
    echo "$1: $(cat "${@:3}" | wc -c) bytes, $bytes compressed, at most $2"
    [ "$bytes" -le "$2" ]
}
