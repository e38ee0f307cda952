#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A perf that is built without clang, and so without BPF skeletons, says so where a trigger wants
# them. Builds it in build/no-skeletons. Prints TAP.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

OUT_DIR=$BUILD/no-skeletons
export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=${CCACHE_DIR:-$BUILD/ccache} CCACHE_BASEDIR=$BUILD
mkdir -p "$OUT_DIR/perf"
run_logged "perf without BPF skeletons" "$OUT_DIR/perf.log" \
	make -C "$BUILD/patched/src/tools/perf" O="$OUT_DIR/perf" -j"$JOBS" prefix="$OUT_DIR" \
	WERROR=0 PYTHON=/usr/bin/python3 PYTHON_CONFIG=/usr/bin/python3-config BUILD_BPF_SKEL=0 \
	NO_LIBLLVM=1 NO_LIBPERL=1 NO_JVMTI=1 NO_GTK2=1 NO_SHELLCHECK=1 install-bin >&2
"$OUT_DIR/bin/perf" version --build-options | sed 's/^/# /' | grep bpf
CMD="PATH=$OUT_DIR/bin:\$PATH \
	$BUILD/patched/src/tools/perf/tests/shell/record_flight_latency.sh" \
	VARIANT=patched ACCEL=single SMP=2 MEM='' APPEND='' ICOUNT='' \
	TIMEOUT=$((100 * ${SLACK:-1})) exec "$TOP/tools/testing/vm/vm.sh"
