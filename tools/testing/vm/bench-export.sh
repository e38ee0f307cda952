#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What perf data convert costs, beside perf report and gecko.py, which writes the stacks of
# each thread for the Firefox Profiler: CPU time (user and system) and peak of memory, for
# a recording of the host's own perf bench with call chains. No kernel is needed.
# SAMPLES is how many samples it has at least (500000), RUNS how often each runs (3).
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/least-cost.sh
. "${BASH_SOURCE[0]%/*}/least-cost.sh"

PERF=$BUILD/patched/bin/perf
samples=${SAMPLES:-500000}
dir=$(mktemp -d "${TMPDIR:-/tmp}/perf-bench-export.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export HOME=$dir PERF_BUILDID_DIR=$dir

"$PERF" record -q -g -F 25000 -m 4M -e cpu-clock:u -o part -- \
	"$PERF" bench internals ordered-events -c 64 -r 50 -l 3 >/dev/null 2>&1 ||
	die "this host does not let perf record"
"$TOP/tools/testing/vm/repeat-samples.py" part data "$samples"

printf '%-10s %12s %10s\n' what 'CPU seconds' 'peak KB'
report=$(least_cost "$PERF" report --stdio -i data)
# shellcheck disable=SC2086 # two words
printf '%-10s %12s %10s\n' report $report
for format in pprof otlp perfetto; do
	own=$(least_cost "$PERF" data convert --to-$format out -f -i data)
	# shellcheck disable=SC2086
	printf '%-10s %12s %10s\n' $format $own
	awk -v own="${own% *}" -v report="${report% *}" -v format=$format 'BEGIN {
		if (own > 1.5 * report)
			print "! " format ": more than 1.5 times perf report"
	}'
	[ $format != pprof ] || pprof=$own
done
gecko=$(least_cost "$PERF" script -i data \
	-s "$BUILD/patched/src/tools/perf/scripts/python/gecko.py" -- --save-only out.json)
# shellcheck disable=SC2086
printf '%-10s %12s %10s\n' gecko.py $gecko
awk -v own="${pprof% *}" -v gecko="${gecko% *}" \
	'BEGIN { printf "gecko.py takes %.1f times the CPU time of --to-pprof\n", gecko / own
		 if (gecko < 10 * own) print "! less than 10 times" }'

# Do both have the same samples?
"$PERF" data convert --to-pprof out -f -i data 2>/dev/null
"$TOP/tools/perf/tests/shell/lib/read_profile.py" sums pprof out |
	awk '{ n += $(NF - 1) } END { print n, "samples in the profile" }'
python3 -c '
import json, sys
threads = json.load(open(sys.argv[1]))["threads"]
print(sum(len(t["samples"]["data"]) for t in threads), "samples of gecko.py")' out.json
