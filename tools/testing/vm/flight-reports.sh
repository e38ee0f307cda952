#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The triggers of the kernel's detectors, in a guest that must report what it is made to do.
# FLIGHT_TIMES: how often; FLIGHT_FULL: see lib/flight_hits.sh of perf's shell tests. Without
# pressure (psi=0), for the check that wants a kernel that does not measure it.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

TIMES=${FLIGHT_TIMES:-1}
EXPECT='^INFO: task stuck:[0-9]+ blocked for more than [0-9]+ seconds
^watchdog: BUG: soft lockup - CPU#1 stuck for [0-9]+s! \[spinner:[0-9]+\]
^rcu: INFO: ' \
	CMD="FLIGHT_TIMES=$TIMES FLIGHT_FULL=${FLIGHT_FULL-} \
		PERF_STALL=$BUILD/patched/test_modules/perf_stall.ko \
		$BUILD/patched/src/tools/perf/tests/shell/record_flight_reports.sh" \
	VARIANT=patched ACCEL=single SMP=2 MEM='' APPEND=psi=0 ICOUNT='' \
	TIMEOUT=$((300 * TIMES * ${SLACK:-1})) exec "$TOP/tools/testing/vm/vm.sh"
