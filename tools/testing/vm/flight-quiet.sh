#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What must not fire the triggers of perf record -M, FLIGHT_TIMES times each. Time follows the
# instructions of the guest: a host that is busy is not taken for a wait. Only in real time does
# a CPU with its interrupts off get its share: under -icount it can stand still for seconds.
# Builds the variant irqsoff.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

TIMES=${FLIGHT_TIMES:-1}
SHELL_TESTS=$BUILD/patched/src/tools/perf/tests/shell

# quiet_on VARIANT TEST [SETTING...]
quiet_on()
{
	local stall=$BUILD/$1/test_modules/perf_stall.ko

	CMD="PATH=$BUILD/patched/bin:\$PATH FLIGHT_QUIET=only FLIGHT_TIMES=$TIMES \
		PERF_STALL=$stall ${*:3} $SHELL_TESTS/record_flight_$2.sh" \
	VARIANT=$1 ACCEL=single SMP=2 MEM='' APPEND='' ICOUNT=${ICOUNT-1} \
	TIMEOUT=$((300 * TIMES * ${SLACK:-1})) "$TOP/tools/testing/vm/vm.sh"
}

"$TOP/tools/testing/vm/build.sh" kernel irqsoff || die "the variant irqsoff does not build"
quiet_on patched by_itself
quiet_on patched latency
quiet_on patched reports FLIGHT_HARD=no
ICOUNT='' quiet_on patched reports FLIGHT_HARD=only
ICOUNT='' quiet_on irqsoff latency FLIGHT_IRQOFF=only
