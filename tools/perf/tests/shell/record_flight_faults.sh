#!/bin/bash
# perf record -M: what goes wrong around it (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# FLIGHT_KILLS: how often it, or a child of it, is killed
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

# A dump that cannot be written is told, leaves nothing, and harms nothing.
survives_a_missing_directory()
{
	mkdir "$TMP/gone"
	start_recorder "$TMP/gone/m" -M 4M -e cpu-clock -F 199 -a
	exec 5<"$TMP/gone/m.stderr"
	rm -r "$TMP/gone"
	kill -USR1 "$RECORDER"
	wait_for grep -q 'could not be written: No such file' /proc/self/fd/5
	mkdir "$TMP/gone"
	dump
	opens "$DUMP"
	stop_recorder INT
	exec 5<&-
}

nothing_half_written()
{
	[ -z "$(find "$1" -name '.*.tmp')" ]
}

survives_a_full_disk()
{
	mkdir "$TMP/full"
	mount -t tmpfs -o size=256k none "$TMP/full"
	start_recorder "$TMP/full/n" -M 8M -e syscalls:sys_enter_close -a -g
	close_files 10000
	kill -USR1 "$RECORDER"
	wait_for grep -q 'could not be written: No space' "$TMP/full/n.stderr"
	not has_dumps "$TMP/full/n" 1
	wait_for nothing_half_written "$TMP/full"
	mount -o remount,size=64m "$TMP/full"
	dump
	opens "$DUMP"
	stop_recorder INT
	umount "$TMP/full"
}

# Names are of the wall clock, times are not.
survives_clock_steps()
{
	local now

	now=$(date +%s)
	start_recorder "$TMP/o" -M 4M -e cpu-clock -F 199 -a
	run_dead
	dump
	date -s "@$((now - 86400))" >/dev/null
	dump_any 2
	date -s "@$((now + 86400 * 365))" >/dev/null
	dump_any 3
	date -s "@$((now + 60))" >/dev/null
	stop_recorder INT
	has_dumps "$TMP/o" 4
	for DUMP in $(dumps "$TMP/o"); do
		opens "$DUMP"
		[ "$(json "$DUMP" window | cut -d. -f1)" -lt 600 ]
	done
}

dump_any()
{
	kill -USR1 "$RECORDER"
	wait_for has_dumps "$OUT_NAME" "$1"
}

# All that the header of each of these files points to is in it.
are_whole()
{
	python3 - "$@" <<-END
		import os, struct, sys
		for name in sys.argv[1:]:
		    size = os.path.getsize(name)
		    with open(name, 'rb') as f:
		        head = struct.unpack('<8s12Q', f.read(104))
		        data, nr = head[5] + head[6], sum(bin(x).count('1') for x in head[9:])
		        f.seek(data)
		        table = struct.unpack('<%dQ' % (2 * nr), f.read(16 * nr))
		    ends = [data] + [a + b for a, b in zip(table[::2], table[1::2])]
		    if head[0] != b'PERFILE2' or not head[6] or max(ends) > size:
		        sys.exit(name + ' is not whole')
		print(len(sys.argv) - 1, 'files are whole')
	END
}

# Whenever a child that writes a dump is killed, and every fifth time the recorder with it
# or without: each file that has a name is whole.
survives_sigkill()
{
	local i

	for ((i = 0; i < ${FLIGHT_KILLS:-50}; i++)); do
		[ -n "$RECORDER" ] || start_recorder "$TMP/p" -M 4M -e cpu-clock -F 499 -a
		kill -USR1 "$RECORDER"
		sleep "0.$(printf %03d $((RANDOM % 250)))"
		[ $((i % 10)) = 4 ] || pkill -KILL -P "$RECORDER" || true
		[ $((i % 5)) = 4 ] || continue
		kill -KILL "$RECORDER"
		wait "$RECORDER" 2>/dev/null || true
		RECORDER=
	done
	start_recorder "$TMP/p" -M 4M -e cpu-clock -F 499 -a
	run_dead
	stop_recorder INT
	are_whole "$TMP"/p.sample.*[0-9Z]
	opens "$DUMP"
	# Nothing half-written stays for ever.
	wait_for nothing_half_written "$TMP"
}

# The oldest dumps make room for a new one.
makes_room()
{
	local oldest newer free

	mkdir -p "$TMP/full"
	mount -t tmpfs -o size=64m none "$TMP/full"
	start_recorder "$TMP/full/r" -M 8M -e syscalls:sys_enter_close -a -g
	close_files 3000
	dump
	oldest=$DUMP
	dump
	newer=$DUMP
	# So that there is room for less than one more.
	free=$(($(stat -f -c '%a * %S' "$TMP/full")))
	head -c $((free - $(stat -c %s "$DUMP") / 2)) /dev/zero >"$TMP/full/other"
	kill -USR1 "$RECORDER"
	wait_for grep -q "The disk is full: removed the old dump $oldest" "$TMP/full/r.stderr"
	[ ! -e "$oldest" ] && [ ! -e "$oldest.json" ]
	wait_for has_newer_than "$newer"
	not grep 'could not be written' "$TMP/full/r.stderr"
	stop_recorder INT
	umount "$TMP/full"
}

has_newer_than()
{
	[[ "$(newest_dump "$OUT_NAME")" > "$1" ]]
}

# A dump that has failed is tried again, with its reason, and no cooldown without a dump.
tries_again()
{
	mkdir -p "$TMP/full"
	mount -t tmpfs -o size=256k none "$TMP/full"
	start_recorder "$TMP/full/s" -M 8M -e syscalls:sys_enter_close -a -g \
		--trigger signal,cooldown=1h
	close_files 10000
	kill -USR1 "$RECORDER"
	wait_for grep -q 'could not be written: No space' "$TMP/full/s.stderr"
	wait_for grep -q 'is tried again: free some space' "$TMP/full/s.stderr"
	kill -USR1 "$RECORDER"
	mount -o remount,size=64m "$TMP/full"
	wait_for has_dumps "$TMP/full/s" 1
	DUMP=$(dumps "$TMP/full/s" | sed -n 1p)
	json "$DUMP" reason | grep -c "SIGUSR1 from pid"
	# The second hit is in that dump, or in its cooldown.
	kill -USR1 "$RECORDER"
	sleep 1
	not has_dumps "$TMP/full/s" 2
	stop_recorder INT
	[ "$(json "$(dumps "$TMP/full/s" | sed -n 1p)" swallowed)" = 2 ]
	umount "$TMP/full"
}

# wrote_the_last_dump_itself WHY: no process could be forked
wrote_the_last_dump_itself()
{
	cat "$OUT_NAME.stderr"
	grep -c "could not be begun: $1" "$OUT_NAME.stderr"
	DUMP=$(newest_dump "$OUT_NAME")
	[ "$(json "$DUMP" trigger)" = end ]
	opens "$DUMP"
	dead_have_names "$DUMP"
}

# Without a child the recorder writes the last dump itself. Nothing here may fork meanwhile.
writes_the_last_dump_itself()
{
	local max

	read -r max </proc/sys/kernel/threads-max
	start_recorder "$TMP/fork" -M 4M -e cpu-clock -F 199 -a
	run_dead
	echo 20 >/proc/sys/kernel/threads-max
	kill -USR1 "$RECORDER"
	pause 2
	kill -INT "$RECORDER"
	wait "$RECORDER" || true
	echo "$max" >/proc/sys/kernel/threads-max
	wrote_the_last_dump_itself 'Resource temporarily unavailable'
}

# The kernel adds up what processes may write to in parts; a fork() of less than all of them
# together may pass unseen.
counts_memory_coarsely()
{
	awk -v cpus="$(online_cpus | wc -l)" '/^MemTotal/ { exit $2 / cpus / 256 < 4200 }' \
		/proc/meminfo
}

# restore_memory OVERCOMMIT RATIO KIB RESERVE: either of RATIO and KIB is 0. By this shell alone.
restore_memory()
{
	echo "$1" >/proc/sys/vm/overcommit_memory
	echo "$2" >/proc/sys/vm/overcommit_ratio
	[ "$3" = 0 ] || echo "$3" >/proc/sys/vm/overcommit_kbytes
	echo "$4" >/proc/sys/vm/user_reserve_kbytes
}

# fork() needs memory for all that the recorder may write to. There is some for what it
# allocates, but not so much. Nothing here may fork meanwhile.
writes_the_last_dump_without_memory()
{
	local how ratio limit reserve key n kib=0

	read -r how </proc/sys/vm/overcommit_memory
	read -r ratio </proc/sys/vm/overcommit_ratio
	read -r limit </proc/sys/vm/overcommit_kbytes
	read -r reserve </proc/sys/vm/user_reserve_kbytes
	start_recorder "$TMP/memory" -M 4M -e cpu-clock -F 199 -a
	run_dead
	grep -E 'VmData|VmStk' "/proc/$RECORDER/status"
	while read -r key n _; do
		[ "$key" != Committed_AS: ] || kib=$n
	done </proc/meminfo
	# shellcheck disable=SC2064 # these values
	trap "restore_memory $how $ratio $limit $reserve" EXIT
	echo 0 >/proc/sys/vm/user_reserve_kbytes
	echo $((kib + 3072)) >/proc/sys/vm/overcommit_kbytes
	echo 2 >/proc/sys/vm/overcommit_memory
	kill -USR1 "$RECORDER"
	pause 2
	kill -INT "$RECORDER"
	wait "$RECORDER" || true
	restore_memory "$how" "$ratio" "$limit" "$reserve"
	wrote_the_last_dump_itself 'Cannot allocate memory'
}

# The recorder allocates at its start what it needs to fork a child. So the first dump has a
# child, too, which says that there is no memory.
says_that_there_is_no_memory()
{
	local kib

	start_recorder "$TMP/address" -M 4M -e cpu-clock -F 199 -a
	kib=$(awk '/^VmSize/ { print $2 }' "/proc/$RECORDER/status")
	prlimit --pid "$RECORDER" --as=$(((kib + 64) * 1024)):
	kill -USR1 "$RECORDER"
	wait_for grep -qE 'could not be written: Cannot allocate|no memory for a dump' \
		"$OUT_NAME.stderr"
	prlimit --pid "$RECORDER" --as=unlimited:
	wait_for has_dumps "$OUT_NAME" 1
	stop_recorder INT
	cat "$OUT_NAME.stderr"
	not grep 'could not be begun' "$OUT_NAME.stderr"
	DUMP=$(dumps "$OUT_NAME" | sed -n 1p)
	json "$DUMP" reason | grep -c "SIGUSR1 from pid"
	opens "$DUMP"
}

# What the kernel does to the rate is not silent.
tells_a_lower_rate()
{
	local rate

	read -r rate </proc/sys/kernel/perf_event_max_sample_rate
	start_recorder "$TMP/rate" -M 4M -e cpu-clock -F 999 -a
	echo 100 >/proc/sys/kernel/perf_event_max_sample_rate
	dump
	echo "$rate" >/proc/sys/kernel/perf_event_max_sample_rate
	[ "$(json "$DUMP" max_sample_rate)" = 100 ]
	wait_for grep -q "was lowered from $rate to 100" "$TMP/rate.stderr"
	stop_recorder INT
}

# No signal kills it by default. That of a terminal that goes ends it with a dump.
dies_of_no_signal()
{
	start_recorder "$TMP/sig" -M 4M -e cpu-clock -F 199 -a --trigger "socket:$TMP/sig.sock"
	kill -USR2 "$RECORDER"
	dump
	[ "$(json "$DUMP" trigger)" = signal ]
	kill -USR2 "$RECORDER"
	dump
	stop_recorder HUP
	echo "$STATUS"
	[ "$(json "$DUMP" trigger)" = end ]
	has_dumps "$TMP/sig" 3
}

# samples_of CPU AFTER: in DUMP, behind that time
samples_of()
{
	perf script -i "$DUMP" -F cpu,time | tr -d '[]:' |
		awk -v cpu="$1" -v after="$2" '$1 + 0 == cpu && $2 > after { n++ }
			END { print n + 0 }'
}

monotonic()
{
	python3 -c 'import time; print(time.monotonic())'
}

# A CPU that comes back is recorded again, twice; with two events, so that ids matter.
follows_a_cpu()
{
	local cpu back times

	cpu=$(online_cpus | tail -n1)
	start_recorder "$TMP/cpu" -M 8M -a -e cpu-clock/freq=99/ \
		-e syscalls:sys_enter_close --filter 'fd >= 1000000' "$@"
	for ((times = 0; times < 2; times++)); do
		echo 0 >"/sys/devices/system/cpu/cpu$cpu/online"
		sleep 2
		echo 1 >"/sys/devices/system/cpu/cpu$cpu/online"
		wait_for has_lines "CPUs have come back.*; 0 events" $((times + 1))
		back=$(monotonic)
		taskset -c "$cpu" python3 "$FLIGHT_LIB/close_files.py" 1000000 1000999
	done
	sleep 1
	stop_recorder INT
	[ "$(samples_of "$cpu" "$back")" -ge 1000 ]
	# What was there before is, too; nothing came twice.
	[ "$(samples_of "$cpu" 0)" -ge 2000 ]
	perf script -i "$DUMP" -F event,trace | grep -cE 'fd: 0x000f4240' | grep -cx 2
	opens "$DUMP"
}

# has_lines PATTERN N: the recorder has printed so many, or more
has_lines()
{
	[ "$(grep -cE "$1" "$OUT_NAME.stderr")" -ge "$2" ]
}

set_online()
{
	echo "$2" >"/sys/devices/system/cpu/cpu$1/online"
}

# follows_a_fast_cpu OUT [WAIT]: CPUs that are back between two looks
follows_a_fast_cpu()
{
	local cpu back times

	cpu=$(online_cpus | tail -n1)
	start_recorder "$1" -M 8M -a -e syscalls:sys_enter_close --filter 'fd >= 1000000'
	local -x FLIGHT_WAIT=${2-${FLIGHT_WAIT-}}
	for times in 1 2 3; do
		set_online "$cpu" 0
		set_online "$cpu" 1
		wait_for has_lines "CPUs have come back.*; 0 events" "$times"
	done
	back=$(monotonic)
	taskset -c "$cpu" python3 "$FLIGHT_LIB/close_files.py" 1000000 1000099
	sleep 3
	# Others stay as they are, and so do CPUs that stay.
	[ "$(grep -c 'CPUs have come back' "$OUT_NAME.stderr")" = 3 ]
	stop_recorder INT
	[ "$(samples_of "$cpu" "$back")" = 100 ]
	opens "$DUMP"
}

# To the network of another user namespace the kernel sends no uevents.
follows_a_fast_cpu_untold()
{
	# shellcheck disable=SC2317,SC2032 # follows_a_fast_cpu calls it
	perf() { outside_chroot unshare --user --map-root-user --net perf "$@"; }
	OLD_PARANOID=$(cat /proc/sys/kernel/perf_event_paranoid)
	trap 'echo "$OLD_PARANOID" >/proc/sys/kernel/perf_event_paranoid' EXIT
	echo -1 >/proc/sys/kernel/perf_event_paranoid
	follows_a_fast_cpu "$TMP/untold"
}

# triggers_on_a_cpu_that_was_gone NAME OPTION...: a trigger has events of its own, whatever
# is recorded
triggers_on_a_cpu_that_was_gone()
{
	local cpu times

	cpu=$(online_cpus | tail -n1)
	start_recorder "$TMP/$1" -M 16M "${@:2}" \
		--trigger 'event:syscalls:sys_enter_close/fd >= 1000000/,cooldown=0'
	for times in 1 2; do
		set_online "$cpu" 0
		sleep 1.5
		set_online "$cpu" 1
		wait_for has_lines "CPUs have come back.*; 0 events" "$times"
		taskset -c "$cpu" python3 "$FLIGHT_LIB/close_files.py" 1000000 1000000
		wait_for has_dumps "$OUT_NAME" "$times"
		grep -qE '"reason": "syscalls:sys_enter_close by pid [0-9]+ on CPU '"$cpu: fd" \
			"$(newest_dump "$OUT_NAME").json"
	done
	stop_recorder INT
	[ "$(dumps "$OUT_NAME" | wc -l)" = 3 ]
}

triggers_beside_a_session()
{
	perf record -q -P hotplug -e cpu-clock -F 99 -a
	triggers_on_a_cpu_that_was_gone beside -e persistent/hotplug/
	perf ctl -d hotplug
}

# A CPU that was not online at the start is left out, and the user is told, once.
tells_of_a_new_cpu()
{
	NEW_CPU=$(online_cpus | tail -n1)
	set_online "$NEW_CPU" 0
	trap 'set_online "$NEW_CPU" 1' EXIT
	start_recorder "$TMP/new" -M 4M -a -e cpu-clock -F 99
	dump
	not grep cpus_left_out "$DUMP.json"
	set_online "$NEW_CPU" 1
	wait_for has_lines "came online after the start are left out: $NEW_CPU\\." 1
	set_online "$NEW_CPU" 0
	set_online "$NEW_CPU" 1
	sleep 3
	dump
	stop_recorder INT
	[ "$(json "$DUMP" cpus_left_out)" = "$NEW_CPU" ]
	[ "$(grep -c 'are left out' "$OUT_NAME.stderr")" = 1 ]
}

flight_begin
check "a directory that is gone" survives_a_missing_directory
check "a full disk" survives_a_full_disk
check "a full disk with old dumps" makes_room
check "a dump that has failed" tries_again
check "no memory for a dump" says_that_there_is_no_memory
check "a lower sample rate" tells_a_lower_rate
check "signals" dies_of_no_signal
# These set what is the machine's.
if [ "${TEST_MACHINE:-}" = 1 ]; then
	check "clock steps" survives_clock_steps
	if [ "$(online_cpus | wc -l)" -gt 1 ]; then
		check "a CPU that comes back" follows_a_cpu
		check "a CPU that comes back, with --overwrite" follows_a_cpu --overwrite
		# Without uevents there would be a look once a minute.
		check "a CPU that comes back at once" follows_a_fast_cpu "$TMP/fast" 45
		check "a CPU that comes back where nobody is told" follows_a_fast_cpu_untold
		check "a CPU that comes back to a trigger" triggers_on_a_cpu_that_was_gone \
			trigger -a -e cpu-clock -F 99
		check "a CPU that comes online later" tells_of_a_new_cpu
	else
		leave_out "a CPU that comes back" "there is one CPU alone"
	fi
	if [ "$(online_cpus | wc -l)" -gt 1 ] && supported; then
		check "a CPU that comes back to a trigger beside a session" \
			triggers_beside_a_session
	else
		leave_out "a CPU that comes back to a trigger beside a session" \
			"there is one CPU alone, or no persistent events"
	fi
	check "no more processes" writes_the_last_dump_itself
	if [ "$(wc -l </proc/swaps)" -gt 1 ] || counts_memory_coarsely; then
		leave_out "no memory for a process" "swap, or more than 1 GiB for each CPU"
	else
		check "no memory for a process" writes_the_last_dump_without_memory
	fi
else
	leave_out "clock steps" "this is not the test machine, whose clock may be set"
	leave_out "no more processes" "this is not the test machine"
	leave_out "no memory for a process" "this is not the test machine"
fi
check "kill -9" survives_sigkill
persistent_end
