#!/bin/bash
# Recordings keep the invariant of rounds
# SPDX-License-Identifier: GPL-2.0
#
# Once pass n + 1 is closed by PERF_RECORD_FINISHED_ROUND, no event that comes
# later in the file is older than the newest event of pass n: that is what allows
# perf report to deliver up to there. Checked on what perf record writes, and on a
# made-up recording with late events, on which the check has to fail. The perf in
# $BASE_PERF, if set, prints the same of each recording.
set -euo pipefail

PERF=${PERF:-perf}
dir=$(mktemp -d /tmp/perf-record-rounds.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# keeps_rounds FILE: prints what it saw, fails if an event comes too late
keeps_rounds()
{
	"$PERF" report -D -i "$1" 2>/dev/null | awk '
	/PERF_RECORD_FINISHED_ROUND/ { limit = closed; closed = newest; rounds++; next }
	/ PERF_RECORD_/ {
		# [CPU] TIME OFFSET [SIZE]: TYPE, or OFFSET [SIZE]: TYPE without a time
		time = $3 ~ /^0x/ ? $2 : $2 ~ /^0x/ ? $1 : 0
		if (time + 0 == 0)
			next
		events++
		if (time + 0 < limit + 0)
			late++
		if (time + 0 > newest + 0)
			newest = time
	}
	END {
		printf "%d events, %d rounds, %d late\n", events, rounds, late
		exit late > 0 || events == 0
	}'
}

# same_as_base WHAT: perf.data is printed as by the unchanged perf, if there is one
same_as_base()
{
	local perf=${BASE_PERF:-}

	[ -n "$perf" ] && [ -x "$perf" ] || return 0
	"$perf" script --ns --show-task-events --show-mmap-events >base.out 2>base.err
	"$PERF" script --ns --show-task-events --show-mmap-events >own.out 2>own.err
	if [ ! -s own.out ] || ! cmp base.out own.out || ! cmp base.err own.err; then
		echo "perf script differs from the base's: $1"
		exit 1
	fi
}

check()
{
	local what=$1

	shift
	"$PERF" record -q "$@" >log 2>&1 || {
		cat log
		echo "perf record failed: $what"
		exit 1
	}
	if [ -f perf.data ]; then
		keeps_rounds perf.data >seen || {
			echo "events come too late: $what: $(cat seen)"
			exit 1
		}
		echo "$what: $(cat seen)"
	fi
	same_as_base "$what"
	rm -rf perf.data*
}

"$PERF" bench internals ordered-events -o good -c 8 -r 20 -n 20 -d 200 >/dev/null
"$PERF" bench internals ordered-events -o bad -c 8 -r 20 -n 20 -L 20 >/dev/null
keeps_rounds good
if keeps_rounds bad; then
	echo "late events were not noticed"
	exit 1
fi

if ! "$PERF" record -q -e cpu-clock -o probe -- true >/dev/null 2>&1; then
	echo "skip: perf record does not work here"
	exit 2
fi

load=("$PERF" bench sched messaging -g 1 -l 200)
check forward -e cpu-clock -c 100000 -a -- "${load[@]}"
check "forward, small buffers" -e cpu-clock -c 100000 -a -m 4 -- "${load[@]}"
check "per task" -e cpu-clock -c 100000 -- "${load[@]}"
check overwrite -e cpu-clock -c 100000 -a --overwrite -- "${load[@]}"
check "one file for each CPU" -e cpu-clock -c 100000 -a --threads=cpu -- "${load[@]}"
