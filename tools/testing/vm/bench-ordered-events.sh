#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run tools/perf/bench/ordered-events.sh with a recording from the VM: the scheduler
# events of perf bench sched messaging.
# PAIRS is the number of pairs.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

out=$BUILD/out/bench
mkdir -p "$out"
# shellcheck disable=SC2016 # the guest expands it
CMD='perf record -q -B -N -a -m 2M -e sched:sched_switch,sched:sched_wakeup \
	-e sched:sched_stat_runtime -e cpu-clock -o /tmp/sched -- \
	perf bench sched messaging -g 1 -l 500 && cp /tmp/sched "$OUT"' \
	OUT=$out "$TOP/tools/testing/vm/vm.sh" >"$out/log" 2>&1 ||
	{ tail -n 20 "$out/log" >&2; die "recording in the VM failed"; }

export PERF=$BUILD/patched/bin/perf BASE_PERF=$BUILD/base/bin/perf
export RECORDINGS=$out/sched
exec "$TOP/tools/perf/bench/ordered-events.sh" "$@"
