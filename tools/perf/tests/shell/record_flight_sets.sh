#!/bin/bash
# perf record: sets of events, and the defaults of --flight (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

EVENTS=/sys/kernel/tracing/events

# configure LINE...: the configuration of what follows
configure()
{
	printf '%s\n' "$@" >"$TMP/config"
	export PERF_CONFIG=$TMP/config
}

# records SET EVENT...: just these
records()
{
	local set=$1

	shift
	perf record -q -a --event-set "$set" -o "$TMP/set.data" -- true
	perf evlist -i "$TMP/set.data" | grep -v '^#' | grep -v '^dummy' | sort | tee "$TMP/events"
	[ "$(cat "$TMP/events")" = "$(printf '%s\n' "$@" | sort)" ]
}

records_sets()
{
	records syscalls raw_syscalls:sys_enter raw_syscalls:sys_exit
	records sched,syscalls sched:sched_{switch,waking,wakeup_new,migrate_task} \
		sched:sched_process_{fork,exec,exit} raw_syscalls:sys_{enter,exit}
	if [ -d $EVENTS/block ]; then
		records io block:block_rq_{insert,issue,complete,requeue}
	fi
	perf record -q -a --event-set incident -o "$TMP/set.data" -- true
	perf evlist -v -i "$TMP/set.data" | tee "$TMP/events"
	grep -q '^cpu-clock.*sample_type.*CALLCHAIN' "$TMP/events"
	grep -q 'sample_freq.*: 99' "$TMP/events"
	grep -q '^sched:sched_switch.*CALLCHAIN' "$TMP/events"
	grep -q '^lock:contention_begin' "$TMP/events"
	not grep '^lock:contention_begin.*CALLCHAIN' "$TMP/events"
}

records_own_sets()
{
	configure '[event-set]' '	mine = cpu-clock/freq=50/,sched:sched_switch' \
		'	io = task-clock'
	records mine cpu-clock/freq=50/ sched:sched_switch
	records io,mine task-clock cpu-clock/freq=50/ sched:sched_switch
	configure '[event-set]' '	wrong = no_such_event'
	fails_somehow 'no_such_event' perf record -a --event-set wrong -o "$TMP/x" -- true
	unset PERF_CONFIG
}

# What a kernel without these tracepoints says. Must end with umount.
leaves_out()
{
	mount -t tmpfs none "$EVENTS/lock"
	perf record -a --event-set incident -o "$TMP/set.data" -- true >"$TMP/said" 2>&1 ||
		{ cat "$TMP/said"; umount "$EVENTS/lock"; return 1; }
	umount "$EVENTS/lock"
	cat "$TMP/said"
	grep -q 'this kernel has no lock:contention_begin, which is left out' "$TMP/said"
	perf evlist -i "$TMP/set.data" | tee "$TMP/events"
	grep -q sched:sched_switch "$TMP/events"
	not grep lock: "$TMP/events"

	mount -t tmpfs none "$EVENTS/raw_syscalls"
	fails_somehow 'has none of its events' \
		perf record -a --event-set syscalls -o "$TMP/x" -- true ||
		{ umount "$EVENTS/raw_syscalls"; return 1; }
	umount "$EVENTS/raw_syscalls"
}

# plans OPTION...: what --dry-run says
plans()
{
	perf record --dry-run "$@" | tee "$TMP/plan"
}

# in_cgroup LIMIT COMMAND...: with so much memory
in_cgroup()
{
	local limit=$1 group=/sys/fs/cgroup/flight-sets/one

	shift
	mkdir -p "$group"
	for g in /sys/fs/cgroup "${group%/*}"; do
		echo +memory >"$g/cgroup.subtree_control"
	done
	echo "$limit" >"${group%/*}/memory.max"
	# shellcheck disable=SC2016 # the inner shell expands it
	bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$@"
	rmdir "$group" "${group%/*}"
}

# kib: of a machine or cgroup with so many KiB of memory, as the man page says
kib()
{
	python3 -c '
import sys
m = int(sys.argv[1])
print(min(max(min(max(m // 128, 16 << 10), 256 << 10), 0), m // 4) // 1024 * 1024)' "$1"
}

chooses_a_size()
{
	plans --flight
	grep -q "^memory: *$(kib "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)") KiB" "$TMP/plan"
	grep -q '^events:.*cpu-clock.*sched:sched_switch.*lock:contention_end' "$TMP/plan"
	plans -M auto -a -e task-clock
	grep -q "^events: *task-clock$" "$TMP/plan"
	in_cgroup 60M perf record --dry-run -M auto -a -e task-clock | tee "$TMP/plan"
	grep -q "^memory: *$(kib 61440) KiB" "$TMP/plan"
	# The events that are named take the place of the set.
	plans --flight -e task-clock
	grep -q "^events: *task-clock$" "$TMP/plan"
	plans --flight -M 3M
	grep -q "^memory: *3072 KiB" "$TMP/plan"
}

takes_the_configuration()
{
	mkdir -p "$TMP/dir"
	configure '[flight]' '	size = 6M' '	event-set = sched,syscalls' "	dir = $TMP/dir"
	plans --flight
	grep -q '^memory: *6144 KiB' "$TMP/plan"
	grep -q '^events: *sched:sched_switch.*raw_syscalls:sys_enter' "$TMP/plan"
	grep -q "^dumps: *$TMP/dir/perf.data.sample" "$TMP/plan"
	plans -M auto -e task-clock -o "$TMP/other"
	grep -q '^memory: *6144 KiB' "$TMP/plan"
	grep -q "^dumps: *$TMP/other.sample" "$TMP/plan"
	perf record --flight -- perf test -w noploop 1
	DUMP=$(dumps "$TMP/dir/perf.data")
	opens "$DUMP"
	perf record --combine
	[ -s "$TMP/dir/perf.data" ]

	configure '[flight]' '	siez = 6M'
	perf record --dry-run -M 4M -a -e task-clock 2>&1 | tee "$TMP/said"
	grep -q 'flight.siez is ignored: only flight.size' "$TMP/said"
	configure '[flight]' '	size = 6Q'
	fails_somehow 'flight.size 6Q: invalid size' perf record --flight -- true
	unset PERF_CONFIG
}

refuses()
{
	local sets='incident sched io interrupts syscalls'

	fails_somehow "No set of events is called 'disk'. Sets of events: $sets" \
		perf record -a --event-set sched,disk -o "$TMP/x" -- true
	configure '[event-set]' '	mine = task-clock'
	fails_somehow "$sets mine" \
		perf record -a --event-set x -o "$TMP/x" -- true
	unset PERF_CONFIG
	configure '[flight]' '	event-set = none-such'
	fails_somehow "No set of events is called 'none-such'" perf record --flight -- true
	unset PERF_CONFIG
	[ ! -e "$TMP/x" ]
}

flight_begin
check "--event-set" records_sets
check "--event-set of the configuration" records_own_sets
check "--event-set on a kernel that lacks an event" leaves_out
check "--flight, -M auto" chooses_a_size
check "flight.size, flight.event-set, flight.dir" takes_the_configuration
check "refuses unknown sets" refuses
persistent_end
