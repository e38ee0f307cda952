#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the incident page costs, beside perf report --stdio of the same recording: CPU time
# (user and system, with all that it starts) and peak of memory. One recording is of a clock
# alone, the other one mostly of switches and wakeups. And what a step of a drag over the
# timeline costs in headless Chromium. The recordings are of the host's own perf bench, with call
# chains. No kernel is needed.
# SAMPLES is how many samples the first one has at least (500000), SWITCHES how often tasks of the
# second one give the CPU to each other (100000), RUNS how often each runs (3).
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/least-cost.sh
. "${BASH_SOURCE[0]%/*}/least-cost.sh"

PERF=$BUILD/patched/bin/perf
failed=0
dir=$(mktemp -d "${TMPDIR:-/tmp}/perf-bench-incident.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME=$dir PERF_BUILDID_DIR=$dir PATH=$BUILD/patched/bin:$PATH

# compare_costs NAME DATA: makes DATA.html
compare_costs()
{
	local size report page

	size=$(($(stat -c %s "$2") / 1024))
	report=$(least_cost "$PERF" report --stdio -i "$2")
	page=$(least_cost "$PERF" script report incident -i "$2" -o "$2.html")
	printf '%-14s %12s %10s\n' "$1" 'CPU seconds' 'peak KB'
	# shellcheck disable=SC2086 # two words
	printf '%-14s %12s %10s\n' 'report --stdio' $report incident $page
	echo "$size KB of recording, $(($(stat -c %s "$2.html") / 1024)) KB of page"
	awk -v own="${page% *}" -v report="${report% *}" -v kb="${page#* }" -v size="$size" 'BEGIN {
		printf "%.2f times the CPU time of perf report\n", own / report
		if (own > 1.5 * report)
			bad = "! more than 1.5 times"
		if (kb > 102400 + 1.5 * size)
			bad = "! more memory than 100 MiB and 1.5 times the recording"
		if (bad)
			print bad
		exit (bad != "")
	}' || failed=1
}

"$PERF" record -q -g -F 25000 -m 4M --sample-cpu -e cpu-clock:u -o part -- \
	"$PERF" bench internals ordered-events -c 64 -r 50 -l 3 >/dev/null 2>&1 ||
	die "this host does not let perf record"
"$TOP/tools/testing/vm/repeat-samples.py" part data "${SAMPLES:-500000}"
compare_costs samples data
# Of the whole machine: that takes root, or perf_event_paranoid of -1.
if "$PERF" record -q -a -g -m 16M -e cpu-clock/freq=499/ -e sched:sched_switch,sched:sched_waking \
	-o switching -- "$PERF" bench sched pipe -l "${SWITCHES:-100000}" >/dev/null 2>said; then
	compare_costs switches switching
else
	echo "no switches: $(head -n1 said)"
fi

if ! command -v chromedriver >/dev/null || ! command -v chromium >/dev/null; then
	echo "no drag: chromium and chromedriver are not installed"
	exit "$failed"
fi
read -r median most longest counted < <("$TOP/tools/testing/vm/drag-page.py" data.html)
echo "a step of a drag: $median ms of CPU, 95th percentile $most ms, at most $longest ms"
echo "what was selected is counted and drawn: $counted ms"
if awk -v most="$most" 'BEGIN { exit most <= 8 }'; then
	echo "! more than 8 ms"
	failed=1
fi
exit "$failed"
