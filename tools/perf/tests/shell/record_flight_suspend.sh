#!/bin/bash
# perf record -M: a machine that is suspended (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# FLIGHT_SUSPEND: how the machine sleeps, "mem" (default) or "freeze". Its RTC wakes it up.
# FLIGHT_SLEEP: for how long, in s. All that runs here is to be in memory: the test machine loses
# its 9p.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

STATE=${FLIGHT_SUSPEND:-mem}
SLEEP=${FLIGHT_SLEEP:-20}
# In s: a sleep, and a cooldown and a deadline that would end meanwhile
LONG_SLEEP=60
LONG=50
ALARM=/sys/class/rtc/rtc0/wakealarm
NUMBERS=(-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000000')

# clock NAME
clock()
{
	python3 -c "import time; print(time.clock_gettime(time.CLOCK_$1))"
}

slept()
{
	awk "BEGIN { printf \"%d\", $(clock BOOTTIME) - $(clock MONOTONIC) }"
}

# sleep_now SECONDS [COMMAND]: right before, runs the command. Sets RESUMED to the time of the
# records at the return, and SLEPT to that of the wall clock before
sleep_now()
{
	local before now

	before=$(slept)
	echo 0 >$ALARM
	echo "+$1" >$ALARM
	SLEPT=$(date +%s)
	"${@:2}"
	echo "$STATE" >/sys/power/state
	RESUMED=$(clock MONOTONIC)
	now=$(slept)
	echo "slept for $((now - before)) s"
	# The alarm counts whole seconds, from before the tasks were frozen.
	[ $((now - before)) -ge $(($1 - 4)) ]
}

# On each CPU, some that nobody else has: after the look for CPUs that are back
count_on_each_cpu()
{
	local cpu

	sleep 3
	for cpu in $(online_cpus); do
		taskset -c "$cpu" python3 "$FLIGHT_LIB/close_files.py" 1900000000 1900000199
	done
	sleep 1
}

# All that was counted on each CPU is in DUMP, and what ran through the sleep has no gap.
has_all_numbers()
{
	perf script -i "$DUMP" -F cpu,time,trace >"$TMP/script" 2>/dev/null
	online_cpus | tr "\n" " " >"$TMP/cpus"
	python3 - "$TMP/script" "$RESUMED" "$TMP/cpus" <<-'END'
		import re, sys
		line_of = re.compile(r"\[(\d+)\] +([\d.]+): +.*fd: 0x([0-9a-f]+)")
		late, through, before = {}, [], 0
		for line in open(sys.argv[1]):
		    match = line_of.search(line)
		    if not match:
		        continue
		    cpu, time, number = int(match[1]), float(match[2]), int(match[3], 16)
		    if number >= 1900000000:
		        late.setdefault(cpu, []).append(number)
		    else:
		        through.append(number)
		        before += time < float(sys.argv[2]) - 1
		gaps = sum(b != a + 1 for a, b in zip(through, through[1:]))
		print(len(through), "numbers through the sleep,", before, "before it,")
		print(gaps, "gaps;", {cpu: len(n) for cpu, n in late.items()}, "behind it")
		for cpu in map(int, open(sys.argv[3]).read().split()):
		    if late.get(cpu) != list(range(1900000000, 1900000200)):
		        sys.exit("CPU %d lacks some" % cpu)
		sys.exit(gaps or before < 50 or before > len(through) - 50)
	END
}

# On the CPU that stays
count_through()
{
	rm -f "$TMP/enough"
	taskset -c 0 python3 "$FLIGHT_LIB/close_files.py" 1000000 1800000000 "$TMP/enough" 0.2 \
		>/dev/null 2>&1 &
	echo $! >>"$TMP/recorders"
	sleep 2
}

# window_is_short BEGAN: the sleep is not in it; BEGAN is of a clock that goes on meanwhile
window_is_short()
{
	local now

	now=$(clock BOOTTIME)
	echo "window $(json "$DUMP" window) s, from $1 to $now"
	awk "BEGIN { exit !($(json "$DUMP" window) < $now - $1 - $SLEEP + 5) }"
	[ "$(json "$DUMP" lost)" = 0 ]
	[ "$(json "$DUMP" given_up)" = 0 ]
}

# records_through NAME OPTION...
records_through()
{
	local began

	count_through
	began=$(clock BOOTTIME)
	start_recorder "$TMP/$1" -M 16M "${@:2}"
	sleep 3
	sleep_now "$SLEEP"
	count_on_each_cpu
	touch "$TMP/enough"
	stop_recorder INT
	cat "$OUT_NAME.stderr"
	has_all_numbers
	window_is_short "$began"
	opens "$DUMP"
}

live_events()
{
	records_through live -a -e cpu-clock/freq=99/ "${NUMBERS[@]}"
	[ "$STATE" != mem ] || grep 'CPUs have come back.*; 0 events' "$OUT_NAME.stderr"
}

live_overwrite()
{
	records_through over -a --overwrite -e cpu-clock/freq=99/ "${NUMBERS[@]}"
}

a_session()
{
	perf record -q -P sleeper -a -e cpu-clock/freq=99/ "${NUMBERS[@]}"
	records_through session -e persistent/sleeper/
	perf ctl -d sleeper
}

# What was read of the session itself, with nobody reading meanwhile
a_session_alone()
{
	count_through
	perf record -q -P alone -a -m 4M -e cpu-clock/freq=99/ "${NUMBERS[@]}"
	sleep 3
	sleep_now "$SLEEP"
	count_on_each_cpu
	touch "$TMP/enough"
	perf record -q -e persistent/alone/ -N -o "$TMP/alone.data"
	DUMP=$TMP/alone.data
	has_all_numbers
	opens "$DUMP"
	perf ctl -d alone
}

ask_socket()
{
	echo "$1" | timeout 60 socat -t 60 - "UNIX-CONNECT:$TMP/sock"
}

# Triggers that watch the time do not take the sleep for it, and their cooldown stands still.
triggers_do_not_fire()
{
	local dumps

	start_recorder "$TMP/t" -M 4M -a -e cpu-clock/freq=99/ \
		--trigger "signal,cooldown=${LONG}s" \
		--trigger "socket:$TMP/sock" --trigger psi/resource=cpu,some,over=9s,window=10s/ \
		--trigger psi/resource=io,some,over=9s,window=10s/ \
		--trigger 'cpu/busy,over=97%,for=5s/' --trigger hung --trigger lockup \
		--trigger rcu-stall
	dump
	printf 'keep\narm sleeper %ss\n' "$LONG" | timeout 60 socat -t 5 - "UNIX-CONNECT:$TMP/sock"
	sleep_now $LONG_SLEEP
	kill -USR1 "$RECORDER"
	sleep 5
	dumps=$(dumps "$OUT_NAME")
	ask_socket 'disarm sleeper' | grep '"ok": true'
	[ "$dumps" = "$DUMP" ] || { echo "dumps: $dumps"; cat "$OUT_NAME".sample.*.json; return 1; }
	# On the clock of the records, it ends.
	sleep $LONG
	dump
	[ "$(json "$(dumps "$OUT_NAME" | sed -n 1p)" swallowed)" = 1 ]
	stop_recorder INT
	opens "$DUMP"
}

# A child that writes is frozen, and goes on. Its time-out is not used up.
a_dump_through()
{
	start_recorder "$TMP/d" -M 32M -a -e cpu-clock/freq=999/ --dump-timeout $((SLEEP / 2))s
	sleep 3
	sleep_now "$SLEEP" kill -USR1 "$RECORDER"
	wait_for has_dumps "$OUT_NAME" 1
	DUMP=$(dumps "$OUT_NAME")
	# It was not complete before.
	[ "$(stat -c %Y "$DUMP.json")" -gt $((SLEPT + SLEEP / 2)) ]
	opens "$DUMP"
	not grep 'did not finish' "$OUT_NAME.stderr"
	stop_recorder INT
}

flight_begin_sessions
if [ "${TEST_MACHINE:-}" != 1 ] || ! grep -qw "$STATE" /sys/power/state || [ ! -e $ALARM ]; then
	echo "1..0 # SKIP suspends the machine: for the test machine alone, with an RTC"
	exit 2
fi
check "$STATE: live events" live_events
check "$STATE: live events, with --overwrite" live_overwrite
check "$STATE: a session" a_session
check "$STATE: a session that nobody reads" a_session_alone
check "$STATE: triggers" triggers_do_not_fire
check "$STATE: a dump that is being written" a_dump_through
persistent_end
