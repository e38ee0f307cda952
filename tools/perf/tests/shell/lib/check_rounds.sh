#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does a recording keep the invariant of rounds? Once pass n + 1 is closed by
# PERF_RECORD_FINISHED_ROUND, no event that comes later in the file may be older
# than the newest event of pass n: that is what allows perf report to deliver up
# to there. With --rounds it must also have at least that many of them.
#
# usage: check_rounds.sh [--rounds MIN] FILE...      $PERF reads them
set -euo pipefail

PERF=${PERF:-perf}
min=0
if [ "${1:-}" = --rounds ]; then
	min=$2
	shift 2
fi

# check FILE: prints what it saw, fails if an event comes too late or none at all
check()
{
	"$PERF" report -D -i "$1" 2>/dev/null </dev/null | awk -v file="$1" -v min="$min" '
	# Times in ns are beyond what awk counts exactly: compare the digits.
	function older(a, b)
	{
		return length(a) != length(b) ? length(a) < length(b) : a "" < b ""
	}
	BEGIN { limit = closed = newest = "0" }
	/PERF_RECORD_FINISHED_ROUND/ { limit = closed; closed = newest; rounds++; next }
	/ PERF_RECORD_/ {
		# [CPU] TIME OFFSET [SIZE]: TYPE, or OFFSET [SIZE]: TYPE without a time
		time = $3 ~ /^0x/ ? $2 : $2 ~ /^0x/ ? $1 : "0"
		if (time !~ /^[1-9][0-9]*$/ || time == "18446744073709551615")
			next
		events++
		if (older(time, limit))
			late++
		if (older(newest, time))
			newest = time
	}
	END {
		printf "%s: %d events, %d rounds, %d late\n", file, events, rounds, late
		exit late > 0 || events == 0 || rounds < min
	}'
}

[ $# -gt 0 ]
for file in "$@"; do
	check "$file"
done
