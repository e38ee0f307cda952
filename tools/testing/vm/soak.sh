#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run these at the same time, in the guest: a flight recorder that dumps and is killed,
# sessions that are created, read and ended, CPU hotplug, a fuzzer, and, if the kernel
# supports it, failing allocations of our code.
#
# usage: soak.sh [SECONDS]	$TORTURE_SECS, or a minute
#
# Counts go to $OUT/soak.jsonl, a line of JSON every ten seconds; soak-table.py converts it
# to a table. A snapshot is verified if perf script reads all of it in the order of time, and
# a dump if it also has as many samples as its summary states. Prints TAP: each part worked,
# also in the second half, nothing was bad, nothing is left, and memory was released. Failures
# are also written to $OUT/soak.bad.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

LENGTH=${1:-${TORTURE_SECS:-60}}
SYSFS=/sys/bus/event_source/devices/persistent/sessions
FAILSLAB=/sys/kernel/debug/failslab
FAULTS=100000000
# Permitted growth of slabs in KiB: caches that the kernel keeps.
KEPT=$((16 * 1024))
COUNTS=(dumps kills made refused reads ended verified hotplug epochs bad)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/soak.XXXXXX")
LOG=${OUT:-$WORK}/soak.jsonl
BAD=${OUT:-$WORK}/soak.bad
export HOME=$WORK

# Several processes count, so a counter is a file with one byte per count.
count()
{
	printf . >>"$WORK/count.$1"
}

# bad TEXT FILE: report a failure with the end of the file
bad()
{
	count bad
	{ echo "$SECONDS s: $1:"; tail -n 5 "$2"; } >>"$BAD" 2>/dev/null
}

is_over()
{
	[ -e "$WORK/stop" ]
}

# verify FILE: check that a file is complete and sorted
verify()
{
	local events
	perf script -i "$1" -F comm,tid,cpu,time,event >"$1.txt" 2>"$1.err" || return 1
	[ -s "$1.txt" ] || { echo "no samples" >>"$1.err"; return 1; }
	sed -nE 's/.* +([0-9]+)\.([0-9]{6}): .*/\1\2/p' "$1.txt" |
		awk '$1 < t { exit 1 } { t = $1 }' ||
		{ echo "not in order" >>"$1.err"; return 1; }
	if [ -e "$1.json" ]; then
		events=$(jq .events "$1.json")
		[ "$events" = "$(wc -l <"$1.txt")" ] ||
			{ echo "$(wc -l <"$1.txt") samples of $events" >>"$1.err"; return 1; }
	fi
	count verified
}

newest_dump()
{
	find "$WORK" -maxdepth 1 -name 'rec.sample.*.json' | sort | sed 's/\.json$//' | tail -n1
}

# Wait up to a minute for output of a recorder.
wait_until()
{
	local i
	for ((i = 0; i < 600; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}

has_new_dump()
{
	[ "$(newest_dump)" != "$1" ]
}

# recorder_starts PID: return 1 if the recorder reports that a listed CPU is gone
recorder_starts()
{
	local i
	for ((i = 0; i < 1200; i++)); do
		! grep -q 'flight recorder [0-9]' "$WORK/rec.stderr" || return 0
		[ -e "/proc/$1/exe" ] || break
		sleep 0.1
	done
	if ! grep -qiE 'no such device|memory' "$WORK/rec.stderr"; then
		bad "the recorder does not start" "$WORK/rec.stderr"
	fi
	return 1
}

dump()
{
	local last
	last=$(newest_dump)
	kill -USR1 "$1"
	if ! wait_until has_new_dump "$last"; then
		bad "no dump" "$WORK/rec.stderr"
		return 1
	fi
	last=$(newest_dump)
	if verify "$last"; then
		count dumps
	else
		bad "a dump" "$last.err"
	fi
	rm -f "$WORK"/rec.sample.*
}

# One recorder after the other, each ended with SIGKILL.
recorder()
{
	local pid i
	until is_over; do
		: >"$WORK/rec.stderr"
		perf record -M 4M -a -e cpu-clock -F 99 -o "$WORK/rec" 2>"$WORK/rec.stderr" &
		pid=$!
		if recorder_starts $pid; then
			for ((i = 0; i < 5; i++)); do
				sleep 1
				dump $pid || break
				! is_over || break
			done
			count kills
		else
			count refused
		fi
		kill -KILL $pid 2>/dev/null
		wait $pid 2>/dev/null
	done
}

# A session from creation to end. If a CPU has gone offline or an allocation has failed,
# the session is refused and nothing is left.
session()
{
	local name=$1 i
	if ! perf record -P "$name" -e cpu-clock -F 99 -a -m 64K >"$WORK/$name.log" 2>&1; then
		[ ! -e "$SYSFS/$name" ] || bad "refused, and there" "$WORK/$name.log"
		count refused
		return
	fi
	count made
	sleep 0.5
	if perf record -e "persistent/$name/" -N -o "$WORK/$name.data" >"$WORK/$name.log" 2>&1; then
		if verify "$WORK/$name.data"; then
			count reads
		else
			bad "what was read of a session" "$WORK/$name.data.err"
		fi
	else
		count refused
	fi
	# The lookup by perf may fail because of a failing allocation.
	for ((i = 0; i < 100; i++)); do
		! perf ctl -d "$name" >"$WORK/$name.log" 2>&1 || break
		[ -e "$SYSFS/$name" ] || break
		count refused
	done
	if [ -e "$SYSFS/$name" ]; then
		bad "a session does not end" "$WORK/$name.log"
	else
		count ended
	fi
	rm -f "$WORK/$name".*
}

sessions()
{
	local i=0
	until is_over; do
		session "soak_$1_$((i++))"
	done
}

hotplug()
{
	local online=/sys/devices/system/cpu/cpu1/online
	[ -w $online ] || return
	until is_over; do
		sleep 3
		echo 0 >$online
		sleep 0.5
		echo 1 >$online
		count hotplug
	done
}

fuzzer()
{
	local seed=$RANDOM
	until is_over; do
		# Ignore the ratios of successful calls: here some calls must fail.
		timeout 300 "$BUILD/patched/selftests/perf_fuzz" -b -s $((seed++)) -e 1 \
			-n 100 >"$WORK/fuzz.log" 2>&1
		if grep -q '^ok 1 ' "$WORK/fuzz.log"; then
			count epochs
		else
			bad "the fuzzer left something" "$WORK/fuzz.log"
		fi
		# Its events use most of the time of a slow machine.
		sleep 5
	done
}

# Fail one in fifty slab allocations with our code on the stack. Our objects are adjacent in
# the kernel image, except for cold and init code.
inject()
{
	local range
	[ -w $FAILSLAB/require-start ] || return 0
	range=$(awk '$3 == "_etext" { exit }
		$2 ~ /^[tT]$/ && $3 ~ /^perf_(ctx_data|rb|persistent)_/ && $3 !~ /\.cold$/ {
			if (!first)
				first = $1
			last = $1
		}
		END { print first, last }' /proc/kallsyms)
	echo "0x${range% *}" >$FAILSLAB/require-start
	echo "0x${range#* }" >$FAILSLAB/require-end
	echo 32 >$FAILSLAB/stacktrace-depth
	echo 0 >$FAILSLAB/verbose
	echo N >$FAILSLAB/ignore-gfp-wait
	echo $FAULTS >$FAILSLAB/times
	echo 2 >$FAILSLAB/probability
}

injected()
{
	[ -w $FAILSLAB/require-start ] && echo $((FAULTS - $(cat $FAILSLAB/times))) || echo 0
}

meminfo()
{
	sed -nE "s/^$1: *([0-9]+) kB/\1/p" /proc/meminfo
}

slabs()
{
	meminfo SUnreclaim
}

# Shrink caches first; this also releases the quarantine of KASAN.
least_slabs()
{
	local f
	echo 3 >/proc/sys/vm/drop_caches
	for f in /sys/kernel/slab/*/shrink; do
		[ -L "${f%/*}" ] || echo 1 >"$f" 2>/dev/null
	done
	slabs
}

# Write a line at once, with few processes, so as not to disturb the test.
report()
{
	local name line size
	local -A counts=()
	while read -r name size; do
		counts[${name##*count.}]=$size
	done < <(stat -c '%n %s' "$WORK"/count.* 2>/dev/null)
	line="{\"seconds\": $SECONDS, \"faults\": $(injected)"
	for name in "${COUNTS[@]}"; do
		line+=", \"$name\": ${counts[$name]-0}"
	done
	line+=", \"available_kb\": $(meminfo MemAvailable), \"slab_kb\": $(slabs)"
	line+=", \"sessions\": $(find $SYSFS -mindepth 1 -maxdepth 1 | wc -l)}"
	echo "$line"
}

nothing_bad()
{
	[ ! -s "$BAD" ] || { head -n 60 "$BAD"; return 1; }
}

size_of()
{
	stat -c %s "$1" 2>/dev/null || echo 0
}

# each_worked [SINCE]: check that each part has done more than at that time
each_worked()
{
	local name rc=0
	for name in dumps kills made reads ended hotplug epochs; do
		[ "$(size_of "$WORK/count.$name")" -gt "$(size_of "$WORK/${1:-none}.$name")" ] ||
			{ echo "no $name"; rc=1; }
	done
	return "$rc"
}

# The counts at half-time
note_half()
{
	local name
	for name in "${COUNTS[@]}"; do
		[ ! -e "$WORK/count.$name" ] || cp "$WORK/count.$name" "$WORK/half.$name"
	done
}

nothing_listed()
{
	[ -z "$(ls -A $SYSFS)" ] || { ls -A $SYSFS; return 1; }
}

memory_came_back()
{
	local i now
	for ((i = 0; i < 10; i++)); do
		now=$(least_slabs)
		[ "$now" -gt $((before + KEPT)) ] || return 0
		sleep 2
	done
	echo "$before KiB of slabs before, $now after"
	return 1
}

main()
{
	local workers=() before half
	: >"$LOG"
	: >"$BAD"
	# Fill the caches with the first of each
	session soak_first
	rm -f "$WORK"/count.*
	before=$(least_slabs)
	SECONDS=0
	inject
	recorder & workers+=($!)
	sessions a & workers+=($!)
	sessions b & workers+=($!)
	hotplug & workers+=($!)
	fuzzer & workers+=($!)
	while [ $SECONDS -lt "$LENGTH" ]; do
		sleep 10
		report >>"$LOG"
		if [ -z "${half-}" ] && [ $SECONDS -ge $((LENGTH / 2)) ]; then
			half=1
			note_half
		fi
	done
	touch "$WORK/stop"
	wait "${workers[@]}"
	[ ! -w $FAILSLAB/probability ] || echo 0 >$FAILSLAB/probability
	echo 1 >/sys/devices/system/cpu/cpu1/online
	report | tee -a "$LOG" | sed 's/^/# /'
	tap_run "each part did its work" each_worked
	tap_run "each part did its work in the second half" each_worked half
	tap_run "nothing went wrong" nothing_bad
	tap_run "no session is left" nothing_listed
	tap_run "memory came back" memory_came_back
	tap_end
}

trap 'rm -rf "$WORK"' EXIT
main
