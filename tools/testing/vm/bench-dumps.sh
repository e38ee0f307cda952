#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Cost of dumps of backward buffers, base and patched:
#
#   events	for a CPU that writes at full speed: events missing between the oldest
#		and the newest event of each dump, events that the kernel could not
#		store, and bytes lost to overwriting. Patched uses
#		PERF_EVENT_IOC_RESERVED_HEAD, base uses the hop method.
#   writer	the effect of a dump on the writing CPU: function call interrupts. It
#		executes nothing else for a dump, except for switches to a reader that
#		hops. (Its instructions cannot be counted separately, because all CPUs
#		of a guest that counts instructions share one clock.)
#   file	time from the signal to the complete file of 'perf record --overwrite
#		--switch-output', with 20 and with 2,000 other processes.
#
# usage: bench-dumps [events|writer|file]	on the host
#	 bench-dumps guest CASE			in the guest; prints "NAME NUMBER" lines
#
# DUMPS=1000 is the number of dumps of each buffer, LARGE_DUMPS that of buffers of 16 MiB
# (a tenth of DUMPS), FILES=15 the number of files. Fails if events are missing.
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

export DUMPS=${DUMPS:-1000} FILES=${FILES:-15}
export LARGE_DUMPS=${LARGE_DUMPS:-$(((DUMPS + 9) / 10))}
LIVE=$BUILD/patched/selftests/rb_live
SIZES=(64k 256k 1m 4m 16m)
PROCESSES=(20 2000)

# rb_live WAY SIZE SNAPSHOTS: checks every record and prints its output
live()
{
	RB_LIVE_SNAPSHOTS=$3 "$LIVE" -v "$1_$2" 2>&1
}

# The time to check a dump is proportional to its size.
dumps_of()
{
	if [ "$1" = 16m ]; then
		echo "$LARGE_DUMPS"
	else
		echo "$DUMPS"
	fi
}

way_of()
{
	[ "$1" = base ] && echo hop || echo ioctl
}

# Convert lines of rb_live to "NAME median most missing". missing is 0 unless rb_live failed
guest_events()
{
	local size way text
	way=$(way_of "${VARIANT-}")
	for size in "${SIZES[@]}"; do
		text=$(live "$way" "$size" "$(dumps_of "$size")") || true
		if ! grep -q '^ok 1 ' <<<"$text" || grep -q SKIP <<<"$text"; then
			printf '%s\n' "$text" >&2
			echo "$size - - missing"
			continue
		fi
		sed -nE "s/.*given up: median ([0-9.]+) %, most ([0-9.]+) %.*/$size \1 \2 0/p" \
			<<<"$text" | tail -n1
	done
}

# Function call interrupts of CPU 1, on which rb_live writes
calls()
{
	awk '$1 == "CAL:" { print $3 }' /proc/interrupts
}

# The difference made by DUMPS more dumps; opening and closing events has a cost, too.
guest_writer()
{
	local way before few many
	way=$(way_of "${VARIANT-}")
	before=$(calls)
	live "$way" 1m 10 >/dev/null || true
	few=$(($(calls) - before))
	before=$(calls)
	live "$way" 1m $((DUMPS + 10)) >/dev/null || true
	many=$(($(calls) - before))
	awk -v d=$((many - few)) -v n="$DUMPS" 'BEGIN { printf "calls/dump %.3f\n", d / n }'
}

now()
{
	local t=${EPOCHREALTIME/[.,]/}
	printf '%s' "$t"
}

# Wait until process $1 has a handler for SIGUSR2
wait_catching()
{
	local i mask
	for ((i = 0; i < 600; i++)); do
		mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
		((0x$mask >> 11 & 1)) && return 0
		sleep 0.1
	done
	die "perf record is not ready"
}

# Milliseconds from each signal to the message that the file is complete
time_files()
{
	local log=/tmp/dumps.fifo dir=/tmp/dumps.d line start pid i
	mkdir -p "$dir"
	mkfifo "$log"
	perf record --overwrite --switch-output=signal -m 512K -a -e sched:sched_switch \
		-e cpu-clock -o "$dir/data" >"$log" 2>&1 &
	pid=$!
	exec 7<"$log"
	wait_catching "$pid"
	# It is ready for dumps a little later.
	sleep 3
	for ((i = 0; i < FILES; i++)); do
		sleep 0.5
		start=$(now)
		kill -USR2 "$pid"
		while read -r -t 60 line <&7; do
			[[ $line != *"[ perf record: Dump "* ]] || break
		done
		printf '%s %d.%03d\n' "$1" $((($(now) - start) / 1000)) \
			$((($(now) - start) % 1000))
		rm -f "$dir"/data.*
	done
	kill -INT "$pid"
	cat <&7 >/dev/null
	exec 7<&-
	wait "$pid" || true
	rm -rf "$log" "$dir"
}

guest_file()
{
	local n never=/tmp/dumps.never pids=()
	mkfifo "$never"
	for n in "${PROCESSES[@]}"; do
		# Processes that sleep forever; an exec for each would take minutes.
		while [ ${#pids[@]} -lt "$n" ]; do
			(read -r <"$never") &
			pids+=($!)
		done
		time_files "$n"
	done
	kill "${pids[@]}"
}

measure()
{
	local variant guest=$TOP/tools/testing/vm/${0##*/}
	for variant in base patched; do
		CMD="VARIANT=$variant DUMPS=$DUMPS LARGE_DUMPS=$LARGE_DUMPS FILES=$FILES \
			$guest guest $1" VARIANT=$variant ACCEL=multi \
			TIMEOUT="${TIMEOUT:-1200}" "$TOP/tools/testing/vm/vm.sh" |
			sed "s/^/$variant /"
	done
}

table_events()
{
	awk -v n="$DUMPS" -v large="$LARGE_DUMPS" '
	{ text[$1, $2] = $5 == 0 ? $3 " % (" $4 " %)" : "EVENTS ARE MISSING"
	  bad += $5 != "0"; if (!seen[$2]++) order[++k] = $2 }
	END {
		printf "%-12s %26s %26s\n", "given up", "base, hop", "patched, ioctl"
		for (i = 1; i <= k; i++)
			printf "%-12s %26s %26s\n", order[i], text["base", order[i]],
				text["patched", order[i]]
		printf "median (most) of %d dumps each, of 16m %d; ", n, large
		printf "no event is missing or lost, "
		print bad ? "but where said" : "in any"
		exit bad > 0 || k == 0
	}'
}

table_writer()
{
	awk -v n="$DUMPS" '{ value[$1] = $3 }
	END {
		printf "%-28s %10s %10s\n", "", "base, hop", "patched"
		printf "%-28s %10s %10s\n", "interrupts of the writer/dump", value["base"],
			value["patched"]
		printf "function call interrupts, %d dumps of 1 MiB\n", n
	}'
}

# Convert lines "VARIANT CASE NUMBER" to medians with quartiles
table_file()
{
	sort -k1,1 -k2,2n -k3,3n | awk '
	{ v[$1, $2, ++n[$1, $2]] = $3; if (!seen[$2]++) order[++k] = $2 }
	function at(w, c, q) { return v[w, c, int((n[w, c] - 1) * q + 1.5)] }
	END {
		printf "%-14s %26s %26s %8s\n", "signal to file", "base", "patched", "ratio"
		for (i = 1; i <= k; i++) {
			c = order[i]
			printf "%5d processes %9.1f ms (%5.1f .. %5.1f) ",
				c, at("base", c, .5), at("base", c, .25), at("base", c, .75)
			printf "%9.1f ms (%5.1f .. %5.1f) %8.2f\n",
				at("patched", c, .5), at("patched", c, .25), at("patched", c, .75),
				at("patched", c, .5) / at("base", c, .5)
		}
		printf "median (quartiles) of %d files each\n", n["base", order[1]]
	}'
}

table()
{
	case $1 in
	events) table_events ;;
	writer) table_writer ;;
	file) table_file ;;
	esac
}

if [ "${1-}" = guest ]; then
	case $2 in
	events) guest_events ;;
	writer) guest_writer ;;
	file) guest_file ;;
	esac
	exit
fi
status=0
for what in ${1:-events writer file}; do
	measure "$what" | table "$what" || status=1
done
exit $status
