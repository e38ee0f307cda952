#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest, with the base's kernel: perf_ctx_data tells. On Linux 6.12, what it asks of
# per-process events holds there, and what it asks of system-wide ones does not. On Linux 7.3 it is
# the other way round: see perf-flight-bases.rst.
set -uo pipefail
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
export TEST_PMU_MODULE=$BUILD/$VARIANT/test_modules/perf_test_pmu.ko

# whole TEST
whole()
{
	"$BUILD/patched/selftests/perf_ctx_data" -t "$1"
}

# shorter TEST: all samples are there, some or nearly all are short, and no frame is somebody
# else's.
shorter()
{
	local text
	text=$("$BUILD/patched/selftests/perf_ctx_data" -t "$1" 2>&1)
	echo "$text"
	grep -q "^not ok 1 ctx_data.$1" <<<"$text" &&
		grep -qE '(system-wide|per process): [0-9]+ samples, .* [1-9][0-9]* later$' \
			<<<"$text" &&
		! grep -qE 'Expected.*(foreign|lost|samples)' <<<"$text"
}

if [[ ${BASE:-6.12} = 6.12 ]]; then
	tap_run "per-process stacks are whole" whole per_process
	tap_run "system-wide stacks are shorter, and perf_ctx_data sees it" shorter system_wide
else
	tap_run "per-process stacks are shorter, and perf_ctx_data sees it" shorter per_process
	tap_run "system-wide stacks are whole" whole system_wide
fi
tap_end
