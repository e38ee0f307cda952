#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What ordering events costs in a whole command: perf report of made-up recordings,
# and of the real ones in $RECORDINGS (files, separated by spaces), by the perf in
# $BASE_PERF and the one in $PERF, in turns.
#
# Times are CPU time, user and system, so that what else runs disturbs little:
# medians, and the ratio of base to own in the pairs: median, lowest and highest.
# FLOOR is the own time for an event in multiples of that for an event of one CPU,
# with which there is nothing to order. MEMORY is the peak beyond what the same perf
# needs for a recording of one event. With valgrind instructions are counted as
# well, which are exact where the times of the two are close.
#
# usage: ordered-events.sh [PAIRS]      $PAIRS, or 7, is the default
set -euo pipefail

PERF=${PERF:-perf}
PAIRS=${1:-${PAIRS:-7}}
: "${BASE_PERF:?names the perf to compare with}"
read -ra real <<<"${RECORDINGS:-}"

dir=$(mktemp -d /tmp/perf-bench-ordered.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
one_cpu=0

# make_recording NAME [GENERATOR OPTIONS]
make_recording()
{
	local name=$1

	shift
	"$PERF" bench internals ordered-events -o "$name" "$@" >/dev/null
}

# measure PERF FILE: CPU seconds and peak in KB
measure()
{
	command time -o measured -f '%U %S %M' "$1" report --stdio --sort cpu -i "$2" \
		>/dev/null 2>&1
	awk 'END { print $1 + $2, $3 }' measured
}

# compare NAME FILE EVENTS BAR FLOOR_BAR MEMORY_BAR: pairs of one recording, a line of
# the table. What misses a bar is marked by a "!".
compare()
{
	local i

	: >pairs
	measure "$PERF" "$2" >/dev/null
	for ((i = 0; i < PAIRS; i++)); do
		echo "$(measure "$BASE_PERF" "$2") $(measure "$PERF" "$2")" >>pairs
	done
	awk -v name="$1" -v events="$3" -v bar="$4" -v floor_bar="$5" -v memory_bar="$6" \
	    -v base0="$base_floor" -v own0="$own_floor" -v one_cpu="$one_cpu" '
	function median(a, n,   i, j, t) {
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && a[j - 1] > a[j]; j--) {
				t = a[j]; a[j] = a[j - 1]; a[j - 1] = t
			}
		return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
	}
	function mark(missed) { return missed ? "!" : " " }
	{
		base[NR] = $1; own[NR] = $3; ratio[NR] = $1 / ($3 > 0 ? $3 : 0.01)
		base_kb[NR] = $2 - base0; own_kb[NR] = $4 - own0
	}
	END {
		b = median(base, NR); o = median(own, NR); r = median(ratio, NR)
		bk = median(base_kb, NR); ok = median(own_kb, NR)
		ns = o * 1e9 / events
		floor = one_cpu > 0 ? ns / one_cpu : 1
		memory = bk > 0 ? ok / bk : 0
		printf "%-20s %7.2f %7.2f %7.2f %6.2f..%-6.2f %5s%s",
		       name, b, o, r, ratio[1], ratio[NR], bar, mark(bar != "" && r < bar)
		printf " %6.0f %5.2f %5s%s",
		       ns, floor, floor_bar, mark(floor_bar != "" && floor > floor_bar)
		printf " %7.1f %7.1f %5.2f %5s%s\n",
		       bk / 1024, ok / 1024, memory, memory_bar, mark(memory > memory_bar)
		print ns >"ns"
	}' pairs
}

# row NAME BAR FLOOR_BAR MEMORY_BAR CPUS ROUNDS EVENTS [GENERATOR OPTIONS]
row()
{
	local name=$1 bar=$2 floor_bar=$3 memory_bar=$4 cpus=$5 rounds=$6 events=$7

	shift 7
	make_recording data -c "$cpus" -r "$rounds" -n "$events" "$@"
	compare "$name" data $((cpus * rounds * events)) "$bar" "$floor_bar" "$memory_bar"
	rm -rf data
}

# instructions NAME FILE
instructions()
{
	local perf count=()

	for perf in "$BASE_PERF" "$PERF"; do
		count+=("$(valgrind --tool=callgrind --callgrind-out-file=/dev/null \
			"$perf" report --stdio --sort cpu -i "$2" 2>&1 >/dev/null |
			sed -n 's/.*Collected : *//p')")
	done
	awk -v name="$1" -v b="${count[0]}" -v o="${count[1]}" 'BEGIN {
		printf "%-20s %12d %12d  %7.4f  <= 1.00%s\n", name, b, o, o / b,
		       o > b ? "!" : "" }'
}

# generated_instructions NAME [GENERATOR OPTIONS]
generated_instructions()
{
	local name=$1

	shift
	make_recording data "$@"
	instructions "$name" data
	rm -rf data
}

nr_samples()
{
	"$PERF" report --stdio --sort cpu -F sample,cpu -i "$1" 2>/dev/null |
		awk '/^ *[0-9]+ / { n += $1 } END { print n + 0 }'
}

make_recording floor -c 1 -r 1 -n 1
base_floor=$(measure "$BASE_PERF" floor | cut -d' ' -f2)
own_floor=$(measure "$PERF" floor | cut -d' ' -f2)

echo "perf report --sort cpu: $PAIRS pairs of base and own"
printf "%-20s %7s %7s %7s %-14s %6s %6s %5s %6s %7s %7s %5s %6s\n" recording "base s" "own s" \
	ratio spread "bar " "own ns" floor "bar " "base MB" "own MB" ratio "bar "
row "1 CPU"		0.97 ""  1.00 1 25 100000
one_cpu=$(cat ns)
row "8 CPUs"		0.97 ""  1.00 8 3000 100
row "64 CPUs"		""   ""  1.00 64 400 100
row "256 CPUs"		6    ""  1.00 256 100 100
row "1024 CPUs"		30   1.5 1.00 1024 25 100
row "backward, 64 CPUs"	3    ""  1.00 64 1 40000 -b
row "directory, 256"	""   ""  0.10 256 1 10000 -f dir
for file in "${real[@]}"; do
	compare "${file##*/}" "$file" "$(nr_samples "$file")" 0.97 "" 1.00
done

if command -v valgrind >/dev/null; then
	echo
	printf "%-20s %12s %12s  %7s  %s\n" instructions base own ratio bar
	generated_instructions "1 CPU" -c 1 -r 25 -n 10000
	generated_instructions "8 CPUs" -c 8 -r 300 -n 100
	generated_instructions "8 CPUs, disorder" -c 8 -r 300 -n 100 -d 30 -s 20 -p 8
	for file in "${real[@]}"; do
		instructions "${file##*/}" "$file"
	done
fi
