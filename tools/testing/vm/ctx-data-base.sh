#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest, with the base's kernel: perf_ctx_data tells. What it asks of per-process
# events holds there, and what it asks of system-wide ones does not.
set -uo pipefail
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
export TEST_PMU_MODULE=$BUILD/$VARIANT/test_modules/perf_test_pmu.ko

per_process_is_whole()
{
	"$BUILD/patched/selftests/perf_ctx_data" -t per_process
}

# All samples are there, nearly all are short, and no frame is somebody else's.
system_wide_is_shorter()
{
	local text
	text=$("$BUILD/patched/selftests/perf_ctx_data" -t system_wide 2>&1)
	echo "$text"
	grep -q '^not ok 1 ctx_data.system_wide' <<<"$text" &&
		grep -qE 'system-wide: [0-9]+ samples, .* [1-9][0-9]* later$' <<<"$text" &&
		! grep -qE 'Expected.*(foreign|lost|samples)' <<<"$text"
}

tap_run "per-process stacks are whole" per_process_is_whole
tap_run "system-wide stacks are shorter, and perf_ctx_data sees it" system_wide_is_shorter
tap_end
