#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The causes of kernel.perf_persistent_freeze, in a guest that must report what it is made to do.
# VARIANT=debug: its kernel has no detectors, only the OOM killer and an oops are tried.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

VARIANT=${VARIANT:-patched}
# RCU warns of each notifier.
EXPECT='^INFO: task bash:[0-9]+ blocked for more than [0-9]+ seconds
^watchdog: BUG: soft lockup - CPU#1 stuck for [0-9]+s!
^rcu: INFO:
^Oops:[ ]
^WARNING: .* rcu_stall_chain_notifier_register'
# A busy host stops a CPU for as long as a detector waits. The deadline server of a CPU that was
# locked up is late.
ALLOW='^INFO: task |^watchdog: BUG: soft lockup|^BUG: kernel NULL pointer dereference'
ALLOW+='|^sched: DL replenish lagged too much'
if [ "$VARIANT" = debug ]; then
	EXPECT='^Oops: '
fi
# With CHECK_ONLY, what else must be reported is not.
if [ -n "${CHECK_ONLY-}" ]; then
	ALLOW+="|${EXPECT//$'\n'/|}"
	EXPECT=
fi
export EXPECT ALLOW VARIANT
CMD="PATH=$BUILD/patched/bin:\$PATH CHECK_ONLY=${CHECK_ONLY-} \
	PERF_STALL=$BUILD/$VARIANT/test_modules/perf_stall.ko \
	$BUILD/patched/src/tools/perf/tests/shell/ctl_freeze_causes.sh" \
	ACCEL=single SMP=2 MEM='' APPEND=rcupdate.rcu_cpu_stall_notifiers=1 ICOUNT='' \
	TIMEOUT=$((100 * ${SLACK:-1})) exec "$TOP/tools/testing/vm/vm.sh"
