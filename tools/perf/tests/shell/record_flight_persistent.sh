#!/bin/bash
# perf record -M -e persistent/NAME/: a flight recorder of a session (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

records_a_session()
{
	perf record -P fa -e cpu-clock -F 499 -a
	start_recorder "$TMP/a" -M 16M -e persistent/fa/
	run_dead
	dump
	opens "$DUMP"
	dead_have_names "$DUMP"
	cat "$DUMP.json"
	[ "$(grep -c '"way": "ioctl"' "$DUMP.json")" = "$(online_cpus | wc -l)" ]
	# The maker of the session has ended, and had its name before the recorder began.
	[ $((10 * $(json "$DUMP" unresolved))) -lt "$(json "$DUMP" events)" ]
	# Nobody's reading is disturbed by it.
	perf record -e persistent/fa/ -o "$TMP/a.data"
	opens "$TMP/a.data"
	stop_recorder INT
	[ "$STATUS" = 130 ]
	has_dumps "$TMP/a" 2
	opens "$DUMP"
	[ "$(sessions)" = fa ]
	perf ctl -d fa
}

# More than the session's buffers hold, read while it comes, is in the dump.
keeps_more_than_the_buffers()
{
	reads_more_than 5000 keep_more_than_the_buffers
}

keep_more_than_the_buffers()
{
	perf record -P fb -m 64K -a \
		-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000000'
	start_recorder "$TMP/b" -M 16M -e persistent/fb/
	close_range 1000000 1019999
	dump
	stop_recorder INT
	cat "$DUMP.json"
	has_numbers "$DUMP" 1000000 1019999 || [ "$(json "$DUMP" given_up)" != 0 ]
	# What was given up is told by CPU as well.
	[ "$(sed -nE 's/.*"given_up": ([0-9]+), "way".*/\1/p' "$DUMP.json" |
	     awk '{ n += $1 } END { print n }')" = "$(json "$DUMP" given_up)" ]
	perf ctl -d fb
}

# The same memory reaches back further, and says how much.
compresses()
{
	perf record -P fz -m 256K -a \
		-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000000'
	start_recorder "$TMP/z" -M 8M -z -e persistent/fz/
	close_range 1000000 1019999
	stop_recorder INT
	cat "$DUMP.json"
	opens "$DUMP"
	has_numbers "$DUMP" 1000000 1019999 || [ "$(json "$DUMP" given_up)" != 0 ]
	[ "$(json "$DUMP" raw)" -gt $((2 * $(json "$DUMP" stored))) ]
	grep -qE 'reaching back [0-9.]+ times as far' "$TMP/z.stderr"
	fails 1 '^-z does not work with persistent sessions' \
		perf record -z -e persistent/fz/ -o "$TMP/q"
	perf ctl -d fz
}

# Killed in between, and nothing is missing; who died meanwhile has a name.
goes_on_after_sigkill()
{
	perf record -P fc -m 4M -a -e cpu-clock/freq=199/ \
		-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000000'
	start_recorder "$TMP/c" -M 64M -e persistent/fc/
	close_range 1000000 1000999
	dump
	rm "$TMP"/c.sample.*
	close_range 1001000 1001999
	kill -KILL "$RECORDER"
	wait "$RECORDER" 2>/dev/null || true
	run_dead
	close_range 1002000 1002999
	start_recorder "$TMP/c" -M 64M -e persistent/fc/
	close_range 1003000 1003999
	dump
	stop_recorder TERM
	[ "$STATUS" = 143 ]
	opens "$DUMP"
	has_numbers "$DUMP" 1000000 1003999
	dead_have_names "$DUMP"
	perf ctl -d fc
}

# Its program began before what the buffers hold, and it ended before the second recorder
# began: OUT.auxiliary alone names it.
recovers_names_of_the_dead()
{
	local pid i

	perf record -P fd -m 256K -a -e cpu-clock -F 199
	start_recorder "$TMP/d" -M 16M -e persistent/fd/
	perf test -w noploop 600 &
	pid=$!
	sleep 1
	dump
	rm -f "$TMP/d.auxiliary"
	kill -USR1 "$RECORDER"
	wait_for test -s "$TMP/d.auxiliary"
	kill -KILL "$RECORDER"
	wait "$RECORDER" 2>/dev/null || true
	# Side-band that pushes out that of noploop.
	for ((i = 0; i < 400; i++)); do
		/bin/true
	done
	sleep 1
	kill -KILL $pid
	wait $pid 2>/dev/null || true
	not sideband_names $pid fd
	start_recorder "$TMP/d" -M 16M -e persistent/fd/
	stop_recorder INT
	opens "$DUMP"
	dead_have_names "$DUMP"
	perf ctl -d fd
}

# The side-band alone, of all tasks, for when the recorder is killed; written when there is
# something new; combined with the dumps.
keeps_an_auxiliary_file()
{
	perf record -P fs -m 256K -a -e cpu-clock -F 199
	start_recorder "$TMP/s" -M 16M -e persistent/fs/
	wait_for test -s "$TMP/s.auxiliary"
	[ "$(stat -c %a "$TMP/s.auxiliary")" = 600 ]
	run_dead
	dump
	rm "$TMP/s.auxiliary"
	run_dead
	kill -USR1 "$RECORDER"
	wait_for test -s "$TMP/s.auxiliary"
	wait_for has_dumps "$TMP/s" 2
	kill -KILL "$RECORDER"
	wait "$RECORDER" 2>/dev/null || true
	other_perf script -i "$TMP/s.auxiliary" --show-task-events --show-mmap-events \
		>"$TMP/script" 2>&1
	# Tasks that lived all the time, perhaps without a sample, and others
	grep -q "PERF_RECORD_COMM.*:1/1" "$TMP/script"
	grep -q "PERF_RECORD_EXIT" "$TMP/script"
	grep -q 'PERF_RECORD_MMAP2.*/perf$' "$TMP/script"
	not grep -q 'cpu-clock:' "$TMP/script"
	has 'has no samples! They are in the files beside it' \
		sh -c "perf report --stdio -i '$TMP/s.auxiliary' 2>&1"
	perf record --combine -o "$TMP/s"
	opens "$TMP/s"
	not test -e "$TMP/s.auxiliary"
	python3 -c 'import json, sys; m = json.load(open(sys.argv[1])); print(m)
assert len(m["parts"]) == 3' "$TMP/s.json"
	perf ctl -d fs
}

# sideband_names PID SESSION: do the session's buffers still tell the name of it?
sideband_names()
{
	perf record -e "persistent/$2/" -o "$TMP/names" >/dev/null 2>&1
	other_perf script -i "$TMP/names" --show-task-events 2>/dev/null |
		grep -q "PERF_RECORD_COMM exec.*:$1/"
}

ends_with_its_session()
{
	perf record -P fe -e cpu-clock -F 99 -a
	start_recorder "$TMP/e" -M 16M -e persistent/fe/
	run_dead
	perf ctl -d fe
	wait "$RECORDER"
	RECORDER=
	grep -q "session 'fe' has ended" "$TMP/e.stderr"
	DUMP=$(dumps "$TMP/e")
	opens "$DUMP"
	dead_have_names "$DUMP"
}

records_a_command()
{
	perf record -P ff -e cpu-clock -F 499 -a
	STATUS=0
	perf record -M 16M -e persistent/ff/ -o "$TMP/f" -- \
		sh -c 'perf test -w noploop 1; exit 7' || STATUS=$?
	[ "$STATUS" = 7 ]
	DUMP=$(dumps "$TMP/f")
	dead_have_names "$DUMP"
	perf record -M 16M --dry-run -e persistent/ff/ -o "$TMP/t" | tee "$TMP/t.out"
	grep -qE '^window: *about [1-9][0-9]* s' "$TMP/t.out"
	[ -z "$(dumps "$TMP/t")" ]
	perf ctl -d ff
}

# All triggers, and one file at the end; the session goes on.
is_a_daemon()
{
	perf record -P fh -e cpu-clock -F 499 -a
	serves_as_daemon "$TMP/h" -M 16M -e persistent/fh/
	[ "$(sessions)" = fh ]
	perf ctl -d fh
}

# A session that somebody has frozen stays so, and the dump says since when. One that the
# trigger freezes goes on behind the dump.
freezes()
{
	local newest

	perf record -P fk -e cpu-clock -F 499 -a
	start_recorder "$TMP/k" -M 16M -e persistent/fk/ --trigger signal,freeze
	dump
	cat "$DUMP.json"
	[ "$(json "$DUMP" session)" = fk ]
	[ "$(json "$DUMP" frozen_by)" = user ]
	newest=$(json "$DUMP" newest | cut -d. -f1)
	sleep 2
	perf ctl --freeze fk
	dump
	[ "$(json "$DUMP" newest | cut -d. -f1)" -gt "$newest" ]
	[ -n "$(json "$DUMP" frozen)" ]
	newest=$(json "$DUMP" newest)
	sleep 1
	dump
	cat "$DUMP.json"
	[ "$(json "$DUMP" newest)" = "$newest" ]
	[ "$(json "$DUMP" frozen_lost)" -gt 0 ]
	if perf version --build-options | grep -qE 'libpython: \[ on'; then
		perf script report incident --json -i "$DUMP" -o "$TMP/page.html" >"$TMP/figures"
		grep -F 'The session fk was frozen (by: user)' "$TMP/figures"
	fi
	fails 1 "'fk' is frozen already" perf ctl --freeze fk
	perf ctl --thaw fk
	stop_recorder INT
	[ -z "$(json "$DUMP" frozen)" ]
	perf ctl -d fk
}

bpf_programs()
{
	perf record -P fj -e cpu-clock -F 499 -a
	names_bpf -M 16M -e persistent/fj/
	perf ctl -d fj
}

refuses()
{
	perf record -P fg -e cpu-clock -F 99 -a
	fails 1 'is not enough to read session' perf record -M 1M -e persistent/fg/ -o "$TMP/q"
	fails 1 "kill does not work with -M" perf record -M 16M -e persistent/fg/ --kill -o "$TMP/q"
	fails 1 'Cannot run /does/not/exist|Cannot run the command' \
		perf record -M 16M -e persistent/fg/ -o "$TMP/q" -- /does/not/exist
	fails 1 'No persistent session' perf record -M 16M -e persistent/none/ -o "$TMP/q"
	[ -z "$(dumps "$TMP/q")" ]
	perf ctl -d fg
}

flight_begin_sessions
check "records a session, beside other readers" records_a_session
check "keeps more than the session's buffers" keeps_more_than_the_buffers
check "compresses what it keeps" compresses
check "goes on where a killed one was" goes_on_after_sigkill
check "recovers the names of the dead" recovers_names_of_the_dead
check "keeps an auxiliary file" keeps_an_auxiliary_file
check "ends with its session" ends_with_its_session
check "records a command, and measures" records_a_command
check "freezes its session, and tells of one that is frozen" freezes
check "is a daemon, with each trigger" is_a_daemon
check_bpf_programs
check "refuses options that do not work together" refuses
persistent_end
