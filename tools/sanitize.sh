#!/usr/bin/env bash
# The C tests of the sockets with the library under a sanitizer: AddressSanitizer and UndefinedBehaviorSanitizer (of the C side), or
# ThreadSanitizer with a standard library that is built for it. `tools/sanitize.sh address|thread [PROGRAM...]`; needs gcc.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:?"address or thread"}
shift
programs=("$@")
tests=crates/tresse-sockets/tests/c
if ((!${#programs[@]})); then
    programs=(blocked calls daemon failures figure7 forks interleave messages notifications one_to_many one_to_one options \
        schedulers stress)
fi
host=$(rustc -vV | sed -n 's/^host: //p')
into=${CARGO_TARGET_DIR:-target}/sanitize/$kind
library=$into/$host/debug/libtresse_sockets.a
runtime=()
build=(--locked --quiet --package tresse-sockets --lib --target "$host" --target-dir "$into")
case $kind in
address)
    flags=(-fsanitize=address,undefined -fno-sanitize-recover=undefined)
    link=("${flags[@]}")
    ;;
thread)
    # What the standard library does with locks has to be seen, too. gcc's runtime lacks calls that Rust's compiler makes.
    rustup component add rust-src >/dev/null
    build+=(-Zbuild-std=std,panic_abort)
    flags=(-fsanitize=thread)
    link=()
    runtime=(-Wl,--whole-archive "$(rustc --print sysroot)/lib/rustlib/$host/lib/librustc-stable_rt.tsan.a" \
        -Wl,--no-whole-archive -rdynamic)
    ;;
*)
    echo "sanitize: \"$kind\": address or thread" >&2
    exit 2
    ;;
esac
# Sanitizers are there in every compiler of Rust, and not yet promised to stay as they are.
RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=$kind" "${CARGO:-cargo}" build "${build[@]}"

# A process that was forked from one with threads goes on; memory that lasts as long as the process is no leak.
export TSAN_OPTIONS="exitcode=66 die_after_fork=0"
export ASAN_OPTIONS="detect_leaks=1 detect_stack_use_after_return=1"

port() { echo $((20000 + RANDOM % 8000)); }

# Threads with event loops on both sides, without losses.
stress() {
    local server client
    server=$(port) client=$(port)
    rm -f "$1.port"
    TRESSE_UDP_PORT=$server timeout 600 "$1" server "$1.port" 200 &
    until [[ -s $1.port ]]; do sleep 0.1; done
    TRESSE_UDP_PORT=$client timeout 600 "$1" client 127.0.0.1 "$(<"$1.port")" "$server" 200
    wait $!
}

once() {
    local said=0 name=$1
    shift
    "$@" >"$binary.log" 2>&1 || said=$?
    if ((said)); then
        echo "sanitize: $kind: $name: failed with $said"
        head -n 60 "$binary.log"
        failed=1
    else
        echo "sanitize: $kind: $name: clean"
    fi
}

failed=0
for program in "${programs[@]}"; do
    binary=$into/$program
    gcc "${flags[@]}" -std=gnu11 -O1 -g -pthread -Iinclude -c -o "$binary.o" "$tests/$program.c"
    gcc "${link[@]}" -pthread -o "$binary" "$binary.o" "$library" "${runtime[@]}" -lm -ldl -lrt
    if [[ $program == stress ]]; then
        once stress stress "$binary"
        continue
    fi
    once "$program" env TRESSE_UDP_PORT="$(port)" timeout 600 "$binary"
    once "$program, synchronous" env TRESSE_UDP_PORT="$(port)" TRESSE_SYNCHRONOUS=1 timeout 600 "$binary"
done
exit $failed
