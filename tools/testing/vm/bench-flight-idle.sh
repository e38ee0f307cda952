#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What a flight recorder costs on a machine that does nothing, for each set of events that the
# guide names: its CPU time in percent of one CPU, and the percentage of the samples of a dump that
# are its own. Time follows the instructions of the guest, one for each nanosecond.
#
# usage: bench-flight-idle.sh		on the host; RUNS=3 SECS=60
#	 bench-flight-idle.sh guest	in the guest; prints "SET CPU OWN EVENTS" lines
#
# Fails if the CPU time is above 1 %, or the samples are.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

export RUNS=${RUNS:-3} SECS=${SECS:-60}
WORK=/tmp/idle
# As in perf-flight.service, in "Cost", and all of --event-set; each with its name
SETS=("unit:-e cpu-clock -F 99 -g"
	"switches:-e cpu-clock/freq=499/ -e sched:sched_switch -g"
	"calls:-e raw_syscalls:*"
	"incident:--event-set incident"
	"sched:--event-set sched"
	"io:--event-set io"
	"interrupts:--event-set interrupts"
	"syscalls:--event-set syscalls")

# In ns
cpu_time()
{
	local used _
	read -r used _ <"/proc/$pid/schedstat"
	echo "$used"
}

# A process that sleeps would be recorded.
idle()
{
	read -rt "$1" -u 7 || true
}

# own_and_all DUMP FROM TO: of the samples between these times, those of $pid, and how many
own_and_all()
{
	perf script -i "$1" -F pid,time 2>/dev/null | tr -d : | awk -v pid="$pid" -v from="$2" \
		-v to="$3" '$2 >= from && $2 < to { n++; own += $1 == pid }
		END { print own + 0, n + 0 }'
}

measure()
{
	local name=$1 before used dump own all from to i _
	shift
	rm -rf "$WORK"
	mkdir -p "$WORK"
	perf record -M 16M -a -o "$WORK/d" "$@" 2>"$WORK/log" &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		! grep -q 'flight recorder [0-9]' "$WORK/log" || break
		sleep 0.1
	done
	# What it does at its start is not what it does on an idle machine.
	idle 3
	before=$(cpu_time)
	read -r from _ </proc/uptime
	idle "$SECS"
	read -r to _ </proc/uptime
	used=$(($(cpu_time) - before))
	kill -INT $pid
	wait $pid || true
	dump=$(find "$WORK" -name '*.json')
	[ -n "$dump" ] || { cat "$WORK/log" >&2; die "$name: no dump"; }
	read -r own all < <(own_and_all "${dump%.json}" "$from" "$to")
	awk -v name="$name" -v used=$used -v secs="$SECS" -v all="$all" -v own="$own" 'BEGIN {
		printf "%s %.4f %.4f %d\n", name, used / secs / 1e7, all ? 100 * own / all : 0,
			all }'
}

guest()
{
	local set words i
	exec 7<> <(:)
	for ((i = 0; i < RUNS; i++)); do
		for set in "${SETS[@]}"; do
			read -ra words <<<"${set#*:}"
			measure "${set%%:*}" "${words[@]}"
		done
	done
}

table()
{
	awk '
	NF != 4 { next }
	!n[$1]++ { order[++sets] = $1 }
	{ cpu[$1] = $2 > cpu[$1] ? $2 : cpu[$1]; own[$1] = $3 > own[$1] ? $3 : own[$1]
	  events[$1] = $4 }
	END {
		printf "%-12s %10s %10s %10s %4s\n", "events", "% of a CPU", "% own", "samples", "n"
		for (i = 1; i <= sets; i++) {
			s = order[i]
			missed = cpu[s] > 1 || own[s] > 1
			bad += missed
			printf "%-12s %10.4f %10.4f %10d %4d%s\n", s, cpu[s], own[s],
				events[s], n[s], (missed ? "  MISSED" : "")
		}
		exit !sets || bad
	}'
}

if [ "${1-}" = guest ]; then
	guest
else
	mkdir -p "$BUILD/bench"
	PASS_ENV="RUNS SECS" CMD="$TOP/tools/testing/vm/${0##*/} guest" VARIANT=patched SMP=2 \
		ACCEL=single ICOUNT=1 TIMEOUT=3600 "$TOP/tools/testing/vm/vm.sh" |
		tee "$BUILD/bench/flight-idle.raw" | table
fi
