#!/bin/bash
# Build the library and replay corpus and fuzz seeds on any machine: needs a C compiler only.
#   CC=gcc CFLAGS="-O1 -m32 -msse2 -mfpmath=sse -idirafter /usr/include/x86_64-linux-gnu" \
#       tests/hostile/replay.sh
#   CC=s390x-linux-gnu-gcc RUN="qemu-s390x -L /usr/s390x-linux-gnu" tests/hostile/replay.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
read -ra cc <<<"${CC:-cc} -std=c11 ${CFLAGS:--O1 -g} -Iinclude -Isrc -Isrc/core -Isrc/model -Ifuzz"
read -ra run <<<"${RUN:-}"
for source in src/*/*.c src/*/*/*.c; do
    "${cc[@]}" -c "$source" -o "$out/$(tr / _ <<<"${source%.c}").o"
done
"${cc[@]}" tests/hostile/replay.c "$out"/*.o -pthread -o "$out/replay"
status=0
if compgen -G 'tests/corpus/*/*.safetensors' >/dev/null; then
    "${run[@]}" "$out/replay" tests/corpus || status=1
fi
for harness in open walk scan slice json index; do
    seeds=fuzz/corpus/$harness
    [[ -d $seeds ]] || seeds=fuzz/corpus/open
    "${cc[@]}" "fuzz/fuzz_$harness.c" fuzz/replay_main.c "$out"/src_*.o -pthread \
        -o "$out/fuzz_$harness"
    echo -n "$harness: "
    "${run[@]}" "$out/fuzz_$harness" "$seeds" || status=1
done
exit $status
