#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What ordering events costs in a whole command: perf report of made-up
# recordings by the perf in $BASE_PERF and the one in $PERF, in turns, and a table
# of the ratios of their medians with the spread (lowest and highest) of the pairs.
#
# TIME is user time, so that what else runs disturbs little. MEMORY is the peak
# beyond what the same perf needs for a recording of one event. With valgrind the
# instructions of smaller recordings are counted, which are exact where the times
# of the two are close.
#
# usage: ordered-events.sh [PAIRS]      7 pairs are the default
set -euo pipefail

PERF=${PERF:-perf}
PAIRS=${1:-7}
: "${BASE_PERF:?names the perf to compare with}"

dir=$(mktemp -d /tmp/perf-bench-ordered.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# make_recording NAME [GENERATOR OPTIONS]
make_recording()
{
	local name=$1

	shift
	"$PERF" bench internals ordered-events -o "$name" "$@" >/dev/null
}

# measure PERF FILE: user seconds and peak in KB
measure()
{
	command time -o measured -f '%U %M' "$1" report --stdio --sort cpu -i "$2" >/dev/null 2>&1
	cat measured
}

# row NAME BAR [GENERATOR OPTIONS]: pairs of one recording, a line of the table
row()
{
	local name=$1 bar=$2 i

	shift 2
	make_recording data "$@"
	: >pairs
	for ((i = 0; i < PAIRS; i++)); do
		echo "$(measure "$BASE_PERF" data) $(measure "$PERF" data)" >>pairs
	done
	rm -rf data
	awk -v name="$name" -v bar="$bar" -v base0="$base_floor" -v own0="$own_floor" '
	function median(a, n,   i, j, t) {
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && a[j - 1] > a[j]; j--) {
				t = a[j]; a[j] = a[j - 1]; a[j - 1] = t
			}
		return a[int((n + 1) / 2)]
	}
	{
		base[NR] = $1; own[NR] = $3; ratio[NR] = $1 / ($3 > 0 ? $3 : 0.01)
		base_kb[NR] = $2 - base0; own_kb[NR] = $4 - own0
	}
	END {
		b = median(base, NR); o = median(own, NR); r = median(ratio, NR)
		printf "%-18s %8.2f %8.2f %7.2f  %5.2f..%-6.2f %2d  %-8s %8.1f %8.1f %6.2f\n",
		       name, b, o, b / o, ratio[1], ratio[NR], NR, bar,
		       median(base_kb, NR) / 1024, median(own_kb, NR) / 1024,
		       median(own_kb, NR) / median(base_kb, NR)
	}' pairs
}

# instructions NAME [GENERATOR OPTIONS]
instructions()
{
	local name=$1 perf count=()

	shift
	make_recording data "$@"
	for perf in "$BASE_PERF" "$PERF"; do
		count+=("$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
			"$perf" report --stdio --sort cpu -i data 2>&1 >/dev/null |
			sed -n 's/.*Collected : *//p')")
	done
	rm -rf data
	awk -v name="$name" -v b="${count[0]}" -v o="${count[1]}" 'BEGIN {
		printf "%-18s %12d %12d  %7.4f  <= 1.00\n", name, b, o, o / b }'
}

make_recording floor -c 1 -r 1 -n 1
base_floor=$(measure "$BASE_PERF" floor | cut -d' ' -f2)
own_floor=$(measure "$PERF" floor | cut -d' ' -f2)

echo "perf report --sort cpu of about 2.5 million events; n pairs"
printf "%-18s %8s %8s %7s  %-13s %2s  %-8s %8s %8s %6s\n" \
	recording "base s" "own s" ratio spread n bar "base MB" "own MB" ratio
row "1 CPU"		">= 0.97"	-c 1 -r 25 -n 100000
row "8 CPUs"		">= 0.97"	-c 8 -r 3000 -n 100
row "64 CPUs"		""		-c 64 -r 400 -n 100
row "256 CPUs"		">= 6"		-c 256 -r 100 -n 100
row "backward, 64 CPUs"	">= 3"		-c 64 -r 1 -n 40000 -b
row "directory, 256"	""		-f dir -c 256 -r 1 -n 10000
row "1024 CPUs"		">= 30"		-c 1024 -r 25 -n 100

if command -v valgrind >/dev/null; then
	echo "instructions"
	printf "%-18s %12s %12s  %7s  %s\n" recording base own ratio bar
	instructions "1 CPU" -c 1 -r 25 -n 10000
	instructions "8 CPUs" -c 8 -r 300 -n 100
	instructions "8 CPUs, disorder" -c 8 -r 300 -n 100 -d 30 -s 20 -p 8
fi
