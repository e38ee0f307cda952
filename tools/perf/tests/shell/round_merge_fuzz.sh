#!/bin/bash
# Round merge: fuzzed operations keep the order
# SPDX-License-Identifier: GPL-2.0
#
# Builds the libFuzzer target tests/fuzz/round-merge.c with AddressSanitizer and
# UndefinedBehaviorSanitizer, and runs it for FUZZ_SECONDS (20 is the default).
# The corpus in FUZZ_CORPUS, if set, is read and added to.
set -euo pipefail

SECONDS_TO_RUN=${FUZZ_SECONDS:-20}
CLANG=${CLANG:-clang}
tools=$(cd "${BASH_SOURCE[0]%/*}/../../.." && pwd -P)
include=${TOOLS_INCLUDE:-$tools/include}

if ! command -v "$CLANG" >/dev/null; then
	echo "skip: no clang"
	exit 2
fi
if [ ! -e "$include/linux/list.h" ]; then
	echo "skip: TOOLS_INCLUDE does not name the tools/include of a kernel tree"
	exit 2
fi

dir=$(mktemp -d /tmp/perf-round-merge-fuzz.XXXXXX)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/main.c" <<-END
	int main(void) { return 0; }
END
if ! "$CLANG" -fsanitize=fuzzer-no-link,address "$dir/main.c" -o "$dir/main" 2>/dev/null; then
	echo "skip: $CLANG has no sanitizers"
	exit 2
fi

"$CLANG" -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=undefined -I"$include" -I"$tools/perf/util" -I"$tools/perf/tests" \
	"$tools/perf/tests/fuzz/round-merge.c" "$tools/perf/util/round-merge.c" -o "$dir/fuzz"

corpus=${FUZZ_CORPUS:-$dir/corpus}
mkdir -p "$corpus"
cd "$dir"
if ! "$dir/fuzz" -max_total_time="$SECONDS_TO_RUN" -max_len=2048 -print_final_stats=1 \
	"$corpus" >log 2>&1; then
	tail -n 40 log
	exit 1
fi
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' log)
if [ "${runs:-0}" -lt 1000 ]; then
	tail -n 20 log
	echo "only ${runs:-0} runs"
	exit 1
fi
echo "$runs runs in $SECONDS_TO_RUN s"
