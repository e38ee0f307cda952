#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build perf with AddressSanitizer and UndefinedBehaviorSanitizer (build/asan), and let
# it read broken recordings for FUZZ_SECONDS (60), starting with seed FUZZ_SEED (0). This
# runs tools/perf/tests/shell/ordered_events_hostile.sh and data_export_hostile.sh with ten
# seeds at a time.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

seconds=${FUZZ_SECONDS:-60}
seed=${FUZZ_SEED:-0}
out=$BUILD/asan/perf
mkdir -p "$out"
export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache}

run_logged "perf asan" "$BUILD/asan/perf.log" \
	make -C "$BUILD/patched/src/tools/perf" O="$out" -j"$JOBS" WERROR=0 DEBUG=1 \
	EXTRA_CFLAGS="-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined \
		-fno-sanitize=alignment,shift,nonnull-attribute -fno-sanitize-recover=undefined" \
	NO_JEVENTS=1 NO_LIBPYTHON=1 NO_LIBPERL=1 NO_JVMTI=1 NO_GTK2=1 NO_SLANG=1 \
	NO_LIBUNWIND=1 NO_LIBBABELTRACE=1 NO_LIBCAPSTONE=1 BUILD_BPF_SKEL=0 \
	NO_SHELLCHECK=1 perf

export PERF=$out/perf BASE_PERF=$BUILD/base/bin/perf HOSTILE_COUNT=10
echo 1..1
start=$SECONDS
while ((SECONDS - start < seconds)); do
	if ! HOSTILE_SEED=$seed "$TOP/tools/perf/tests/shell/ordered_events_hostile.sh" \
			>"$BUILD/asan/hostile.log" 2>&1; then
		sed 's/^/# /' "$BUILD/asan/hostile.log"
		echo "not ok 1 broken recordings, seeds $seed to $((seed + 9))"
		exit 1
	fi
	if ! HOSTILE_SEED=$seed "$TOP/tools/perf/tests/shell/data_export_hostile.sh" \
			>"$BUILD/asan/hostile.log" 2>&1; then
		sed 's/^/# /' "$BUILD/asan/hostile.log"
		echo "not ok 1 broken recordings to convert, seeds $seed to $((seed + 9))"
		exit 1
	fi
	seed=$((seed + HOSTILE_COUNT))
done
echo "ok 1 broken recordings, seeds up to $((seed - 1)), with sanitizers"
