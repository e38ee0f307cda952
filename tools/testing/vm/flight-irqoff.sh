#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The trigger latency/irqoff/ on a kernel that has its tracepoints and nothing else that is slow.
# Builds the variant irqsoff. FLIGHT_TIMES: how often; FLIGHT_FULL: see lib/flight_hits.sh of
# perf's shell tests.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

TIMES=${FLIGHT_TIMES:-1}
"$TOP/tools/testing/vm/build.sh" kernel irqsoff || die "the variant irqsoff does not build"
CMD="PATH=$BUILD/patched/bin:\$PATH FLIGHT_IRQOFF=only FLIGHT_TIMES=$TIMES \
	FLIGHT_FULL=${FLIGHT_FULL-} PERF_STALL=$BUILD/irqsoff/test_modules/perf_stall.ko \
	$BUILD/patched/src/tools/perf/tests/shell/record_flight_latency.sh" \
	VARIANT=irqsoff ACCEL=single SMP=2 MEM='' APPEND='' ICOUNT='' \
	TIMEOUT=$((300 * TIMES * ${SLACK:-1})) exec "$TOP/tools/testing/vm/vm.sh"
