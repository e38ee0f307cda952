#!/bin/bash
# perf record -M: events and BPF programs as triggers (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

EXAMPLE=$(dirname "$0")/../../examples/flight

# dumped N: so many dumps, and what is known of the last one; sets DUMP
dumped()
{
	wait_for has_dumps "$OUT_NAME" "$1"
	DUMP=$(newest_dump "$OUT_NAME")
	grep -E '"(trigger|reason|action|swallowed)"' "$DUMP.json"
}

# A program that nobody else runs, under a name of its own.
run_as()
{
	ln -sf /bin/true "$TMP/$1"
	"$TMP/$1"
}

# What the tracepoint tells is the reason; only what passes the filter is a hit.
tracepoint_with_filter()
{
	local event='sched:sched_process_exec/filename ~ "*cra,sh*"/'

	mount_cgroups
	# Until a controller was given to cgroups once, perf takes all tasks for those of the root.
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	start_recorder "$TMP/a" -M 4M -e cpu-clock -F 199 -a \
		--trigger "event:$event,delay=10ms,cooldown=0"
	make_cgroup flight-event
	run_as other
	inside run_as cra,sh
	dumped 1
	[ "$(json "$DUMP" trigger)" = event ]
	[ "$(json "$DUMP" trigger_cgroup)" = /flight-event ]
	grep -qE '"reason": "sched:sched_process_exec by pid [0-9]+ on CPU [0-9]+: .*cra,sh' \
		"$DUMP.json"
	opens "$DUMP"
	run_as other
	run_as cra,sh
	dumped 2
	stop_recorder INT
	[ "$(dumps "$TMP/a" | wc -l)" = 3 ]
}

# Any event, and it need not be where the recorder records.
other_events()
{
	start_recorder "$TMP/b" -M 4M -e cpu-clock -F 199 -p $$ \
		--trigger 'event:page-faults/period=20000,name=many-faults/,action=stop'
	python3 -c 'import mmap
for i in range(20): m = mmap.mmap(-1, 16 << 20); m.write(bytes(16 << 20)); m.close()'
	wait "$RECORDER"
	RECORDER=
	dumped 1
	grep -q '"reason": "many-faults' "$DUMP.json"
	[ "$(json "$DUMP" action)" = stop ]
}

# A storm is one dump in its cooldown, which tells the others.
storm_of_events()
{
	local i first

	start_recorder "$TMP/c" -M 4M -e cpu-clock -F 199 -a --trigger signal \
		--trigger 'event:sched:sched_process_exec/filename ~ "*storm*"/,cooldown=1h'
	for ((i = 0; i < 20; i++)); do
		run_as storm
	done
	dumped 1
	first=$(dumps "$TMP/c" | sed -n 1p)
	run_as storm
	stop_recorder INT
	json "$first" swallowed
	# All of them were heard of: merged into that dump, or in its cooldown.
	[ "$(json "$first" swallowed)" = 20 ]
	[ "$(dumps "$TMP/c" | wc -l)" = 2 ]
}

# bytes_of_dumps OUT: with their manifests
bytes_of_dumps()
{
	find "$(dirname "$1")" -maxdepth 1 -name "$(basename "$1").sample.*" -printf '%s\n' |
		awk '{ n += $1 } END { print n + 0 }'
}

# Asks each time: the hits of before may be dumped after what was asked for.
newest_is_asked_for()
{
	! grep -q '"trigger": "signal"' "$(newest_dump "$1").json" || return 0
	kill -USR1 "$RECORDER"
	return 1
}

# looked SOCKET: the recorder has looked at all its triggers since. Two answers are of two passes.
looked()
{
	python3 - "$1" <<-'END'
		import socket, sys
		for i in range(2):
		    s = socket.socket(socket.AF_UNIX)
		    s.settimeout(300)
		    s.connect(sys.argv[1])
		    s.send(b"status\n")
		    assert s.recv(1)
	END
}

# As fast as a program can, far more than the buffers of the trigger hold: the cooldown and the
# disk bound the dumps, and each hit is counted. Without a cooldown, the disk still does.
storm_at_full_rate()
{
	local began dump total=0 nr=0 told=0 cpu

	start_recorder "$TMP/i" -M 4M -e cpu-clock -F 99 -a --max-disk 4M \
		--trigger 'event:syscalls:sys_enter_close/fd >= 1000000/,cooldown=2s' \
		--trigger signal --trigger "socket:$TMP/sock"
	began=$SECONDS
	close_range 1000000 1009999 '' 0
	wait_for has_dumps "$TMP/i" 1
	# Those that were lost are told by the next record of their buffer, when there is room.
	looked "$TMP/sock"
	for cpu in $(online_cpus); do
		taskset -c "$cpu" python3 "$FLIGHT_LIB/close_files.py" 2000000 2000000
		told=$((told + 1))
	done
	# At the end, a hit without a dump would get none. It is the first one's turn before.
	looked "$TMP/sock"
	wait_for newest_is_asked_for "$TMP/i"
	stop_recorder INT
	while read -r dump; do
		[ "$(json "$dump" trigger)" = event ] || continue
		total=$((total + 1 + $(json "$dump" swallowed)))
		nr=$((nr + 1))
	done < <(dumps "$TMP/i")
	echo "$total hits, $nr dumps, $((SECONDS - began)) s, $(bytes_of_dumps "$TMP/i") bytes"
	[ $total = $((10000 + told)) ]
	[ $nr -le $((1 + (SECONDS - began) / 2)) ]
	[ "$(bytes_of_dumps "$TMP/i")" -le $((4 << 20)) ]

	start_recorder "$TMP/j" -M 4M -e cpu-clock -F 99 -a --max-disk 1M --trigger signal \
		--trigger 'event:syscalls:sys_enter_close/fd >= 1000000/,cooldown=0'
	close_range 1000000 1009999 '' 0
	# Their number does not grow: each new one may remove an old one.
	wait_for newest_is_asked_for "$TMP/j"
	stop_recorder INT
	echo "$(dumps "$TMP/j" | wc -l) dumps are left, $(bytes_of_dumps "$TMP/j") bytes"
	[ "$(bytes_of_dumps "$TMP/j")" -le $((1 << 20)) ]
}

# late_storm CPU FD...: on each CPU one call with that fd, while the recorder does not look
late_storm()
{
	kill -STOP "$RECORDER"
	while [ $# -gt 0 ]; do
		taskset -c "$1" python3 "$FLIGHT_LIB/close_files.py" "$2" "$2"
		shift 2
	done
	kill -CONT "$RECORDER"
}

# Of several hits that are seen at once, the earliest is the reason, whatever its CPU is.
tells_the_first_hit()
{
	local first last

	first=$(online_cpus | head -n1)
	last=$(online_cpus | tail -n1)
	start_recorder "$TMP/f" -M 4M -e cpu-clock -F 99 -a \
		--trigger 'event:syscalls:sys_enter_close/fd >= 1000000/,cooldown=0'
	late_storm "$first" 1000000 "$last" 2000000
	dumped 1
	grep -q '"reason": ".* on CPU '"$first"': fd: 0x000f4240' "$DUMP.json"
	late_storm "$last" 3000000 "$first" 4000000
	dumped 2
	grep -q '"reason": ".* on CPU '"$last"': fd: 0x002dc6c0' "$DUMP.json"
	stop_recorder INT
}

# The record that tells of lost ones comes before the hit that is the reason now.
tells_no_old_reason()
{
	start_recorder "$TMP/g" -M 4M -e cpu-clock -F 99 -a \
		--trigger 'event:syscalls:sys_enter_close/fd >= 1000000/,cooldown=0'
	kill -STOP "$RECORDER"
	taskset -c 0 python3 "$FLIGHT_LIB/close_files.py" 1000000 1001999
	kill -CONT "$RECORDER"
	dumped 1
	grep -q '"reason": ".*fd: 0x000f4240' "$DUMP.json"
	taskset -c 0 python3 "$FLIGHT_LIB/close_files.py" 2000000 2000000
	dumped 2
	[ "$(json "$DUMP" swallowed)" -gt 0 ]
	grep -q '"reason": ".*fd: 0x001e8480' "$DUMP.json"
	stop_recorder INT
}

tells_swallowed()
{
	[ "$(json "$1" swallowed)" = "$2" ]
}

# hit_one_and_two OUT: sets one and two to the dumps of the first hits
hit_one_and_two()
{
	start_recorder "$1" -M 4M -e cpu-clock -F 99 -a --trigger signal \
		--trigger 'event:sched:sched_process_exec/filename ~ "*one"/,cooldown=30s' \
		--trigger 'event:sched:sched_process_exec/filename ~ "*two"/,cooldown=1h'
	run_as one
	dumped 1
	one=$DUMP
	run_as two
	dumped 2
	two=$DUMP
	dump
	for _ in {1..3}; do
		run_as one
		run_as two
	done
	run_as two
}

# Each trigger has a cooldown, and a dump that tells of what it has swallowed: of two with
# cooldowns at the same time, and of one while another has the last dump.
counts_for_each_trigger()
{
	local i one two began

	for i in {1..20}; do
		began=$SECONDS
		hit_one_and_two "$TMP/h-$i"
		# Else the cooldown of 30 s may have been over before the last hit.
		[ $((SECONDS - began)) -gt 25 ] || break
		stop_recorder INT
	done
	FLIGHT_WAIT=60 wait_for tells_swallowed "$one" 3
	stop_recorder INT
	json "$one" swallowed
	json "$two" swallowed
	tells_swallowed "$one" 3
	tells_swallowed "$two" 4
	[ "$(dumps "$OUT_NAME" | wc -l)" = 4 ]
}

supports_bpf()
{
	command -v clang >/dev/null && [ -e /usr/include/bpf/libbpf.h ] &&
		mkdir -p "$TMP/bpf" && mount -t bpf none "$TMP/bpf"
}

load_example()
{
	make -s -C "$EXAMPLE" OUTPUT="$TMP" 2>&1
	"$TMP/load" "$TMP/slow-syscall.bpf.o" "$TMP/bpf/slow" limit_ns=300000000 \
		"syscall_nr=$SLEEP_NR"
	ls "$TMP/bpf/slow"
	[ -e "$TMP/bpf/slow/reasons" ]
}

# clock_nanosleep, which sleep uses.
SLEEP_NR=230
[ "$(uname -m)" = x86_64 ] || SLEEP_NR=115

sleep_in()
{
	cp "$(command -v sleep)" "$TMP/sleeper"
	"$TMP/sleeper" "$1"
}

# Others may sleep long as well. Then ours can be merged into their dump.
sleeper_is_the_reason()
{
	sleep_in 1
	grep -rqE 'system call [0-9]+ of sleeper \(pid [0-9]+\) took [0-9]{4,} ms"' \
		"$TMP" --include 'd.sample.*.json'
}

# A real program, loaded and pinned by somebody else, gives the reason.
bpf_program()
{
	sleep_in 0.5
	start_recorder "$TMP/d" -M 4M -e cpu-clock -F 199 -a \
		--trigger "bpf:$TMP/bpf/slow/reasons"
	sleep_in 0.01
	wait_for sleeper_is_the_reason
	DUMP=$(newest_dump "$TMP/d")
	grep -E '"(trigger|reason)"' "$DUMP.json"
	[ "$(json "$DUMP" trigger)" = bpf ]
	opens "$DUMP"
	stop_recorder INT
	# The map is not the recorder's.
	[ -e "$TMP/bpf/slow/reasons" ]
}

# All kinds at once, many times; each gets its dump, and recording goes on.
storm_of_all()
{
	local i

	start_recorder "$TMP/e" -M 4M -e cpu-clock -F 199 -a --max-files 8 \
		--trigger signal --trigger socket,cooldown=1s \
		--trigger "bpf:$TMP/bpf/slow/reasons,freeze" \
		--trigger 'event:sched:sched_process_exec/filename ~ "*storm*"/,delay=100ms'
	for i in {1..10}; do
		kill -USR1 "$RECORDER"
		run_as storm
		sleep_in 0.4
		printf 'dump %s\n' {1..50} | socat -t 0.1 - "UNIX-CONNECT:$TMP/e.sock" >/dev/null
	done
	wait_for has_dumps "$TMP/e" 4
	run_dead
	dump_last
	opens "$DUMP"
	dead_have_names "$DUMP"
}

dump_last()
{
	stop_recorder INT
	[ "$STATUS" = 130 ]
	[ "$(dumps "$TMP/e" | wc -l)" -le 8 ]
}

refuses()
{
	local m=(perf record -M 4M -a -e cpu-clock -o "$TMP/q")

	fails 129 'requires the name of an event' "${m[@]}" --trigger event
	fails 129 'event:no-such-event names no event; .* Use event:NAME' "${m[@]}" \
		--trigger event:no-such-event
	fails 129 'between two slashes' "${m[@]}" --trigger event:sched:sched_switch/prev_pid
	fails_somehow 'rejects the filter' "${m[@]}" \
		--trigger 'event:sched:sched_switch/nonsense == 3/'
	fails 129 'requires the path of a pinned' "${m[@]}" --trigger bpf
	fails 129 'no BPF program can write to .*use bpf:PINNED_MAP' "${m[@]}" \
		--trigger event:bpf-output/name=alarm,no-inherit=1/
	fails 129 'perf does not load BPF programs: .*--trigger bpf:PINNED_MAP' \
		perf record -e ./slow.bpf.o -a true
	fails_somehow 'cannot open the map .*: No such file' "${m[@]}" --trigger "bpf:$TMP/none"
	[ -z "$(dumps "$TMP/q")" ]
}

# shellcheck disable=SC2317 # called by the trap
triggers_cleanup()
{
	rm -rf "$TMP/bpf/slow"
	umount "$TMP/bpf" 2>/dev/null || true
	flight_cleanup
}

flight_begin
trap triggers_cleanup EXIT
check "a tracepoint with a filter" tracepoint_with_filter
check "another event, elsewhere" other_events
check "a storm of events" storm_of_events
check "a storm of 10000 events" storm_at_full_rate
check "hits before a record of lost ones" tells_no_old_reason
check "hits that two triggers have swallowed" counts_for_each_trigger
if [ "$(online_cpus | wc -l)" -gt 1 ]; then
	check "hits on two CPUs" tells_the_first_hit
else
	leave_out "hits on two CPUs" "there is one CPU alone"
fi
if supports_bpf; then
	check "the example is built, loaded and pinned" load_example
	check "a BPF program" bpf_program
	check "a map of another kind" fails_somehow 'is not a BPF ring buffer map' \
		perf record -M 4M -a -e cpu-clock -o "$TMP/q" --trigger "bpf:$TMP/bpf/slow/begun"
	check "a storm of all triggers" storm_of_all
else
	leave_out "BPF programs as triggers" "no clang, no libbpf, or no BPF file system"
fi
check "refuses what makes no sense" refuses
persistent_end
