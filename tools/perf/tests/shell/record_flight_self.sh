#!/bin/bash
# perf record -M: does not record itself (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

# In ms; in clock ticks if the kernel has nothing better
cpu_time()
{
	if [ -r "/proc/$1/schedstat" ]; then
		awk '{ print int($1 / 1000000) }' "/proc/$1/schedstat"
	else
		awk '{ print ($14 + $15) * 10 }' "/proc/$1/stat"
	fi
}

# rests_for SECONDS MS: the recorder uses at most that meanwhile. Ticks also count the time
# for which the host did not run the guest. So once of five times is enough; what keeps the
# recorder busy does so each time. A builtin that sleeps disturbs nobody.
rests_for()
{
	local i before used _

	sleep 2
	for i in 1 2 3 4 5; do
		before=$(cpu_time "$RECORDER")
		read -rt "$1" -u 7 _ || true
		used=$(($(cpu_time "$RECORDER") - before))
		echo "$i: $used ms in $1 s"
		[ "$used" -gt "$2" ] || return 0
	done
	return 1
}

# at_most KEY PERCENT: of the samples of DUMP
share_is_at_most()
{
	local events own

	events=$(json "$DUMP" events)
	own=$(json "$DUMP" self_events)
	echo "$own of $events samples are its own"
	[ "$events" -gt 0 ]
	[ $((own * 100)) -le $((events * $1)) ]
}

# A machine that does nothing, but for the recorder: 1 % of a CPU at most, by ticks of the
# scheduler. A child that writes OUT.auxiliary is not part of it.
rests()
{
	start_recorder "$TMP/a" -M 16M -a -e 'raw_syscalls:*'
	rests_for 5 50
	stop_recorder INT
	grep -E '"(self.*|window|events)"' "$DUMP.json"
	[ "$(json "$DUMP" self)" = filtered ]
	[ "$(json "$DUMP" self_events)" = 0 ]
	awk "BEGIN { exit !($(json "$DUMP" window) >= 6.5) }"
	opens "$DUMP"
}

# A pass for each eighth of --max-age.
rests_with_a_maximum_age()
{
	start_recorder "$TMP/b" -M 4M -a -e 'raw_syscalls:*' --max-age 2s
	rests_for 5 100
	stop_recorder INT
	[ "$(json "$DUMP" self_events)" = 0 ]
}

waits()
{
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$RECORDER/status"
}

# A trigger that is hit all the time wakes it every 5 ms at most.
is_not_kept_busy()
{
	local before begin passes ms

	start_recorder "$TMP/h" -M 4M -a -e cpu-clock -F 99 \
		--trigger 'event:syscalls:sys_enter_close/fd >= 1000000/,cooldown=1h'
	close_files 1
	wait_for has_dumps "$TMP/h" 1
	sleep 1
	before=$(waits) begin=${EPOCHREALTIME/[.,]/}
	close_files 20000
	passes=$(($(waits) - before)) ms=$(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
	stop_recorder INT
	echo "$passes passes in $ms ms"
	[ "$passes" -le $((ms / 2)) ]
}

# The thread of a trigger is the recorder's, too: it wakes four times per window.
leaves_out_the_threads_of_triggers()
{
	start_recorder "$TMP/i" -M 4M -a -e 'raw_syscalls:*' \
		--trigger psi/resource=cpu,some,over=490ms,window=500ms/
	rests_for 5 50
	stop_recorder INT
	grep -E '"(self.*|window|events)"' "$DUMP.json"
	[ "$(json "$DUMP" self)" = filtered ]
	[ "$(json "$DUMP" self_events)" = 0 ]
	opens "$DUMP"
}

# All the same it does not cause itself.
records_itself_if_asked()
{
	start_recorder "$TMP/c" -M 16M -a -e 'raw_syscalls:*' --record-self --max-age 1h
	rests_for 5 250
	dump
	stop_recorder INT
	[ "$(json "$DUMP" self)" = recorded ]
	[ "$(json "$DUMP" self_events)" -gt 0 ]
}

# The switch from the recorder to a task is the only one that tells that the task runs.
keeps_what_others_need()
{
	start_recorder "$TMP/d" -M 4M -a -e sched:sched_switch -e raw_syscalls:sys_enter \
		--max-age 1s
	sleep 2
	dump
	perf script -i "$DUMP" -F pid,event >"$TMP/script"
	grep -cE "^ *$RECORDER .*sched_switch" "$TMP/script"
	not grep -E "^ *$RECORDER .*sys_enter" "$TMP/script"
	stop_recorder INT
}

# The filter of the user stays.
keeps_the_filter()
{
	start_recorder "$TMP/e" -M 4M -a -e syscalls:sys_enter_close --filter 'fd >= 1000000'
	close_files 100
	stop_recorder INT
	perf script -i "$DUMP" -F trace >"$TMP/script"
	[ "$(wc -l <"$TMP/script")" = 100 ]
}

# A workload or a task of its own is not the recorder.
is_outside()
{
	perf record -q -M 4M -e raw_syscalls:sys_enter -o "$TMP/f" -- true
	DUMP=$(newest_dump "$TMP/f")
	[ "$(json "$DUMP" self)" = outside ]
}

# Its samples are dropped when they are read; other readers have them.
drops_those_of_a_session()
{
	local pid

	perf record -P self -e raw_syscalls:sys_enter -e sched:sched_switch -a
	start_recorder "$TMP/g" -M 32M -e persistent/self/
	pid=$RECORDER
	sleep 1
	dump
	sleep 1
	stop_recorder INT
	grep -E '"(self.*|window|events)"' "$DUMP.json"
	[ "$(json "$DUMP" self)" = dropped ]
	[ "$(json "$DUMP" self_dropped)" -gt 0 ]
	perf script -i "$DUMP" -F pid,event >"$TMP/script"
	not grep -E "^ *$pid .*sys_enter" "$TMP/script"
	opens "$DUMP"
	perf ctl -d self
}

flight_begin
mkfifo "$TMP/never"
exec 7<>"$TMP/never"
check "an idle machine stays idle" rests
check "nor does --max-age keep it busy" rests_with_a_maximum_age
check "nor does a trigger" is_not_kept_busy
if cat /proc/pressure/cpu >/dev/null 2>&1; then
	check "nor do the threads of triggers" leaves_out_the_threads_of_triggers
else
	leave_out "nor do the threads of triggers" "the kernel does not measure pressure"
fi
check "--record-self" records_itself_if_asked
check "what tells of other tasks is kept" keeps_what_others_need
check "the filter of the user" keeps_the_filter
check "a workload" is_outside
if supported; then
	check "a session" drops_those_of_a_session
else
	leave_out "a session" "this kernel has no persistent events"
fi
persistent_end
