#!/bin/bash
# perf record -M -e persistent/NAME/: the session changes, or is replaced (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

CPU1=/sys/devices/system/cpu/cpu1/online

# A close() of a file that there cannot be: close_range() makes them.
CLOSES=(-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000000')

# make_session NAME OPTION...: quietly
make_session()
{
	perf record -q -P "$@"
}

said()
{
	wait_for grep -qE "$1" "$OUT_NAME.stderr" || { cat "$OUT_NAME.stderr"; return 1; }
}

# samples DUMP EVENT [CPU]: how many there are
samples()
{
	perf script -i "$1" -F cpu,event 2>/dev/null |
		grep -cE "\[0*${3:-[0-9]+}\] +$2: *$" || true
}

# The recorder wakes up for it, although nothing else is to be read.
reads_added_events()
{
	make_session ca -e cpu-clock -F 99 -a
	start_recorder "$TMP/a" -M 32M -e persistent/ca/
	run_dead
	dump
	make_session ca --add "${CLOSES[@]}" -a
	close_range 1000000 1000999
	said "session 'ca' got [0-9]+ events more"
	dump
	opens "$DUMP"
	cat "$DUMP.json"
	has_numbers "$DUMP" 1000000 1000999
	[ "$(samples "$DUMP" cpu-clock)" -gt 0 ]
	dead_have_names "$DUMP"
	[ "$(json "$DUMP" given_up)" = 0 ]
	stop_recorder INT
	has_numbers "$DUMP" 1000000 1000999
	# Those from before they were added have other events.
	perf record --combine -o "$TMP/a" 2>"$TMP/combine"
	not grep -q skipped "$TMP/combine"
	has_numbers "$TMP/a" 1000000 1000999
	perf ctl -d ca
}

# has_closed FILE N: close_files.py is beyond that
has_closed()
{
	[ "$(cat "$1")" -gt "$2" ]
}

# No record of theirs is lost between the moment that they run, and the one that they are read.
reads_them_from_the_first_one()
{
	local first

	make_session cb -e cpu-clock -F 499 -a
	start_recorder "$TMP/b" -M 64M -e persistent/cb/
	python3 "$FLIGHT_LIB/close_files.py" 1000000 900000000 "$TMP/enough" 0.025 &
	echo $! >>"$TMP/recorders"
	wait_for test -s "$TMP/enough.begun"
	make_session cb --add -m 2M "${CLOSES[@]}" -a
	wait_for has_closed "$TMP/enough.begun" $(($(cat "$TMP/enough.begun") + 300))
	touch "$TMP/enough"
	wait $!
	stop_recorder INT
	first=$(closed_numbers "$DUMP" | awk 'NR == 1')
	cat "$DUMP.json"
	# They were added while files were being closed.
	[ "$first" -gt 1000000 ]
	has_numbers "$DUMP" "$first" $((first + 200))
	[ "$(json "$DUMP" given_up)" = 0 ]
	not grep -q 'unknown' "$OUT_NAME.stderr"
	perf ctl -d cb
}

# As udev does it on a machine that gets CPUs.
reads_cpus_that_join()
{
	echo 0 >$CPU1
	make_session cc -e cpu-clock -F 499 -a
	start_recorder "$TMP/c" -M 32M -e persistent/cc/
	echo 1 >$CPU1
	taskset -c 1 perf test -w noploop 1
	dump
	[ "$(samples "$DUMP" cpu-clock 1)" = 0 ]
	perf ctl --join-cpu=1 cc
	cp "$(command -v bash)" "$TMP/late-program"
	taskset -c 1 "$TMP/late-program" -c 'for ((i = 0; i < 300000; i++)); do :; done'
	dump
	[ "$(samples "$DUMP" cpu-clock 1)" -gt 100 ]
	perf script -i "$DUMP" -F comm,cpu 2>/dev/null |
		grep -c '^ *late-program *\[001\]'
	# It is the same event, on one more CPU.
	[ "$("$BASE_PERF" evlist -i "$DUMP" | grep -c cpu-clock)" = 1 ]
	grep -E '"cpu": 1,' "$DUMP.json"
	stop_recorder INT
	perf ctl -d cc
}

# nr_mapped, nr_open: what the recorder has of buffers
nr_mapped()
{
	grep -c 'anon_inode:.*perf' "/proc/$RECORDER/maps" || true
}

nr_open()
{
	find "/proc/$RECORDER/fd" -lname '*perf*' | wc -l
}

maps()
{
	[ "$(nr_mapped)" = "$1" ]
}

has_let_go()
{
	maps "$1" && [ "$(nr_open)" = "$2" ]
}

# claim CPU INDEX SESSION: take an event back from it
claim()
{
	python3 "$(dirname "$0")/lib/claim_event.py" "$1" "$2" \
		"$(cat "$PERSISTENT_SYSFS/sessions/$3/id")"
}

# Its memory is its owner's again. What it recorded stays.
lets_go_of_claimed_events()
{
	local mapped open events

	make_session cd -e cpu-clock -F 99 -a
	start_recorder "$TMP/d" -M 64M -e persistent/cd/
	mapped=$(nr_mapped) open=$(nr_open)
	for ((i = 0; i < 5; i++)); do
		make_session cd --add -m 256K "${CLOSES[@]}" -C 0
		wait_for maps $((mapped + 1))
		taskset -c 0 python3 "$FLIGHT_LIB/close_files.py" $((1000000 + i * 10)) \
			$((1000009 + i * 10))
		dump
		events=$(cat "$PERSISTENT_SYSFS/sessions/cd/nr_events")
		claim 0 "$(perf ctl -i cd | awk '/sys_enter_close/ { print $2 }')" cd
		[ "$(cat "$PERSISTENT_SYSFS/sessions/cd/nr_events")" = $((events - 1)) ]
		wait_for has_let_go "$mapped" "$open"
	done
	dump
	has_numbers "$DUMP" 1000000 1000049
	stop_recorder INT
	perf ctl -d cd
}

# is_open SESSION-ID CPU INDEX: has any process this event open?
is_open()
{
	# Files may be gone meanwhile.
	{ cat /proc/[0-9]*/fdinfo/* 2>/dev/null || true; } | awk -v want="$1 $2 $3" '
		$1 == "pos:" { id = cpu = "" }
		$1 == "perf_persistent_id:" { id = $2 }
		$1 == "cpu:" { cpu = $2 }
		$1 == "index:" && id " " cpu " " $2 == want { found = 1 }
		END { exit !found }'
}

is_closed()
{
	! is_open "$@"
}

# One event of each CPU has the buffer of both. It stays until the other one leaves; then
# nobody has them open, not even the keeper of the notes.
keeps_shared_buffers()
{
	reads_more_than 7000 keep_shared_buffers
}

keep_shared_buffers()
{
	local id cpu before

	make_session ck -e cpu-clock "${CLOSES[@]}" -a
	id=$(cat "$PERSISTENT_SYSFS/sessions/ck/id")
	has '^ *0 +1 +1 .*cpu-clock' perf ctl -i ck
	has '^ *0 +2 +1 .*sys_enter_close' perf ctl -i ck
	start_recorder "$TMP/m" -M 32M -e persistent/ck/
	close_range 1000000 1000499
	for cpu in $(online_cpus); do
		claim "$cpu" 1 ck
	done
	sleep 1
	# More than a buffer holds: the recorder is woken up for it.
	close_range 1000500 1019999
	dump
	has_numbers "$DUMP" 1000000 1019999 || [ "$(json "$DUMP" given_up)" != 0 ]
	before=$DUMP
	is_open "$id" 0 2
	for cpu in $(online_cpus); do
		claim "$cpu" 2 ck
	done
	for cpu in $(online_cpus); do
		wait_for is_closed "$id" "$cpu" 1
		wait_for is_closed "$id" "$cpu" 2
	done
	stop_recorder INT
	DUMP=$before
	perf ctl -d ck
}

# was_replaced TIMES: at least
was_replaced()
{
	[ "$(grep -c 'was replaced' "$OUT_NAME.stderr")" -ge "$1" ]
}

# What was recorded before it was taken back is read, although nothing woke the recorder before.
loses_nothing_of_a_claim()
{
	make_session cm -m 1M "${CLOSES[@]}" -a
	start_recorder "$TMP/n" -M 64M -e persistent/cm/
	taskset -c 1 python3 "$FLIGHT_LIB/close_files.py" 1000000 1000999
	claim 1 "$(perf ctl -i cm | awk '$1 == 1 && /sys_enter_close/ { print $2 }')" cm
	wait_for is_closed "$(cat "$PERSISTENT_SYSFS/sessions/cm/id")" 1 1
	dump
	has_numbers "$DUMP" 1000000 1000999
	stop_recorder INT
	perf ctl -d cm
}

# The records of both are there, and those of one event are of one event.
follows_a_replacement()
{
	make_session ce "${CLOSES[@]}" -a
	start_recorder "$TMP/e" -M 32M -e persistent/ce/
	close_range 1000000 1000999
	run_dead
	make_session ce --replace "${CLOSES[@]}" -e cpu-clock/freq=499/ -a
	close_range 1001000 1001999
	said "session 'ce' was replaced"
	close_range 1002000 1002999
	dump
	opens "$DUMP"
	cat "$DUMP.json"
	has_numbers "$DUMP" 1000000 1002999
	[ "$("$BASE_PERF" evlist -i "$DUMP" | grep -c sys_enter_close)" = 1 ]
	[ "$(samples "$DUMP" cpu-clock)" -gt 0 ]
	# And again, with a trigger on its way: it is not the end of the recorder.
	make_session ce --replace "${CLOSES[@]}" -a
	kill -USR1 "$RECORDER"
	close_range 1003000 1003999
	wait_for was_replaced 2
	wait_for has_dumps "$OUT_NAME" 2
	make_session ce --add -e cpu-clock -F 499 -a
	close_range 1004000 1004999
	stop_recorder INT
	[ "$STATUS" = 130 ]
	has_numbers "$DUMP" 1000000 1004999
	perf ctl -d ce
}

# ends_for REASON: with a dump, and a message
ends_for()
{
	wait_for is_gone "$RECORDER" || { cat "$OUT_NAME.stderr"; return 1; }
	wait "$RECORDER"
	RECORDER=
	said "$1"
	DUMP=$(newest_dump "$OUT_NAME")
	has_numbers "$DUMP" 1000000 1000099
}

does_not_follow_another_kind()
{
	make_session cf "${CLOSES[@]}" -a
	start_recorder "$TMP/f" -M 32M -e persistent/cf/
	close_range 1000000 1000099
	make_session cf --replace "${CLOSES[@]}" -k CLOCK_MONOTONIC_RAW -a
	ends_for "took the place of 'cf'.*times of another clock. Start the recorder again"
	make_session cf --replace "${CLOSES[@]}" -a
	start_recorder "$TMP/g" -M 8M -e persistent/cf/
	close_range 1000000 1000099
	make_session cf --replace -m 4M "${CLOSES[@]}" -a
	ends_for "took the place of 'cf'.*memory is too small: give it -M [0-9]+M"
	# A number stands for one session alone.
	make_session cf --replace "${CLOSES[@]}" -a
	start_recorder "$TMP/h" -M 8M -e "persistent/id=$(cat "$PERSISTENT_SYSFS/sessions/cf/id")/"
	close_range 1000000 1000099
	make_session cf --replace "${CLOSES[@]}" -a
	ends_for "session 'cf' has ended"
	perf ctl -d cf
}

# A user's session that takes the name is not what root has asked for. The recorder does not look
# while nobody has the name.
does_not_follow_another_user()
{
	make_session ch "${CLOSES[@]}" -a
	start_recorder "$TMP/i" -M 32M -e persistent/ch/
	close_range 1000000 1000099
	kill -STOP "$RECORDER"
	perf ctl -d ch
	setpriv --reuid=65534 --clear-groups --inh-caps=+perfmon,+ipc_lock \
		--ambient-caps=+perfmon,+ipc_lock perf record -q -P ch -e cpu-clock -a
	kill -CONT "$RECORDER"
	ends_for "took the place of 'ch'.*belongs to another user"
	perf ctl -d ch
}

# It says what it does not read, and goes on with the rest.
says_what_does_not_fit()
{
	make_session ci "${CLOSES[@]}" -a
	start_recorder "$TMP/j" -M 8M -e persistent/ci/
	make_session ci --add -m 4M -e cpu-clock -a
	said "Not all of the events that session 'ci' got.*too small: give it -M [0-9]+M"
	close_range 1000000 1000099
	dump
	has_numbers "$DUMP" 1000000 1000099
	[ "$(samples "$DUMP" cpu-clock)" = 0 ]
	stop_recorder INT
	# With what it said, they are read.
	start_recorder "$TMP/k" -e persistent/ci/ \
		-M "$(sed -nE 's/.*too small: give it -M ([0-9]+M).*/\1/p' "$TMP/j.stderr" |
			tail -n1)"
	dump
	[ "$(samples "$DUMP" cpu-clock)" -gt 0 ]
	stop_recorder INT
	perf ctl -d ci
}

# A session that changes without end costs no memory.
stays_small()
{
	local before i

	make_session cj -e cpu-clock -F 99 -a
	start_recorder "$TMP/l" -M 32M -e persistent/cj/
	make_session cj --replace -e cpu-clock -F 99 -a
	said "session 'cj' was replaced"
	before=$(awk '/^Pss_Anon/ { print $2 }' "/proc/$RECORDER/smaps_rollup")
	for ((i = 2; i < 22; i++)); do
		make_session cj --replace -e cpu-clock -F 99 -a
		wait_for was_replaced $i
	done
	awk -v before="$before" '/^Pss_Anon/ { print before, $2; exit $2 > before + 2048 }' \
		"/proc/$RECORDER/smaps_rollup"
	stop_recorder INT
	perf ctl -d cj
}

flight_begin_sessions
check "reads events that are added" reads_added_events
check "from their first record on" reads_them_from_the_first_one
if [ -w $CPU1 ] && [ "$(online_cpus | wc -l)" -gt 2 ]; then
	check "reads CPUs that join" reads_cpus_that_join
else
	leave_out "reads CPUs that join" "wants three CPUs"
fi
check "lets go of events that leave" lets_go_of_claimed_events
check "keeps buffers that are shared" keeps_shared_buffers
check "loses nothing of an event that leaves" loses_nothing_of_a_claim
check "follows a session that is replaced" follows_a_replacement
check "does not follow one of another kind" does_not_follow_another_kind
check "does not follow one of another user" does_not_follow_another_user
check "says what does not fit" says_what_does_not_fit
check "takes no memory for changes" stays_small
persistent_end
