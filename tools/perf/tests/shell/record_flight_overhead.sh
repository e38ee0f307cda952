#!/bin/bash
# perf record -M --max-overhead: what is given up for the limit (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# A load begins at once, lasts, and ends: rates are lowered and events are given up in one
# step, nothing changes while it lasts, and all is given back when it has ended.
# FLIGHT_LOAD: for how many seconds it lasts.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

LOAD=${FLIGHT_LOAD:-10}
M=(-M 8M -a --trigger signal --trigger socket)

steps()
{
	grep 'Recording takes' "$OUT_NAME.stderr" || true
}

has_steps()
{
	[ "$(steps | wc -l)" -ge "$1" ]
}

is_given_back()
{
	steps | grep -q 'rates are those of the start again' &&
		steps | grep -q 'raw_syscalls:sys_enter is recorded again'
}

# status KEY: of the recorder
status()
{
	perf ctl --status --json "$OUT_NAME" |
		sed -nE "s/.*\"$1\": \"?([^\",}]*)[\",}].*/\1/p"
}

# begin_load: 50,000 system calls a second on each CPU
begin_load()
{
	local cpu

	BUSY=()
	for cpu in $(online_cpus); do
		# A check that fails does not wait for it.
		python3 - "$cpu" <<-'END' >/dev/null 2>&1 &
			import os, sys, time
			os.sched_setaffinity(0, [int(sys.argv[1])])
			until = time.monotonic()
			while True:
			    until += 0.01
			    for i in range(500): os.getppid()
			    time.sleep(max(until - time.monotonic(), 0))
		END
		BUSY+=($!)
		echo $! >>"$TMP/recorders"
	done
}

end_load()
{
	kill "${BUSY[@]}"
	wait "${BUSY[@]}" 2>/dev/null || true
}

holds()
{
	awk "BEGIN { exit !($1) }"
}

load_comes_and_goes()
{
	local i step took

	start_recorder "$TMP/load" "${M[@]}" -e cpu-clock/freq=999/ -e raw_syscalls:sys_enter \
		-e sched:sched_process_exec --max-overhead 1%
	sleep 4
	echo "quiet: $(status overhead) %"
	[ "$(steps | wc -l)" = 0 ]
	[ "$(status rate_divisor)" = 1 ]

	begin_load
	took=$(date +%s%N)
	FLIGHT_WAIT=16 wait_for has_steps 1
	echo "acted after $((($(date +%s%N) - took) / 1000000)) ms"
	for ((i = 0; i < LOAD; i++)); do
		sleep 1
		echo "loaded: $(status overhead) %"
	done
	step=$(steps)
	echo "$step"
	# Rates first, then the event that is to blame, and no other, in one step.
	[ "$(wc -l <<<"$step")" = 1 ]
	grep -q 'rates are divided by 8; raw_syscalls:sys_enter ([0-9.]* %) is given up\.$' \
		<<<"$step"
	[ "$(status rate_divisor)" = 8 ]
	[ "$(status events_given_up)" = raw_syscalls:sys_enter ]
	[ "$(status nr_events_given_up)" = 1 ]
	[ "$(status max_overhead)" = 1.000 ]
	holds "$(status overhead) < 1"
	perf ctl --prometheus | grep '^perf_flight_events_given_up{.*} 1$'
	perf ctl --prometheus | grep '^perf_flight_rate_divisor{.*} 8$'

	dump
	sed -n '/"max_overhead"/,/"overhead_acted"/p' "$DUMP.json"
	[ "$(json "$DUMP" rate_divisor)" = 8 ]
	[ "$(json "$DUMP" events_given_up)" = raw_syscalls:sys_enter ]
	holds "$(json "$DUMP" overhead_acted) < $(json "$DUMP" newest)"
	has 'Not all was recorded: .* raw_syscalls:sys_enter was disabled, .* divided by 8 when' \
		perf verdict -i "$DUMP"
	opens "$DUMP"
	# The rate is an eighth, and the event is not recorded.
	perf script -i "$DUMP" -F event,time -G 2>/dev/null | tr -d ' ' |
		awk -F: -v at="$(json "$DUMP" overhead_acted)" '$1 > at + 0.2' >"$TMP/after"
	sort "$TMP/after" | awk -F: '{ n[$2]++ } END { for (e in n) print e, n[e] }'
	not grep raw_syscalls "$TMP/after"
	holds "$(grep -c cpu-clock "$TMP/after") < 999 / 8 * 1.5 * $(nproc) * \
		($(json "$DUMP" newest) - $(json "$DUMP" overhead_acted))"

	end_load
	FLIGHT_WAIT=120 wait_for is_given_back
	sleep 3
	steps
	[ "$(steps | wc -l)" = 3 ]
	[ "$(status rate_divisor)" = 1 ]
	[ "$(status nr_events_given_up)" = 0 ]
	dump
	[ "$(json "$DUMP" nr_events_given_up)" = 0 ]
	# Both are recorded again, as they were.
	perf script -i "$DUMP" -F event,time 2>/dev/null | tr -d ' ' |
		awk -F: -v at="$(json "$DUMP" overhead_acted)" '$1 > at + 0.2' >"$TMP/after"
	grep -q raw_syscalls "$TMP/after"
	holds "$(grep -c cpu-clock "$TMP/after") > 999 * 0.7 * $(nproc) * \
		($(json "$DUMP" newest) - $(json "$DUMP" overhead_acted) - 0.2)"
	stop_recorder INT
}

# With --overwrite the recorder reads no samples: it is the events alone that cost.
events_count()
{
	start_recorder "$TMP/events" "${M[@]}" --overwrite -e cpu-clock/freq=99/ \
		-e raw_syscalls:sys_enter --max-overhead 1
	begin_load
	FLIGHT_WAIT=16 wait_for has_steps 1
	end_load
	steps | head -n1 | grep 'raw_syscalls:sys_enter ([0-9.]* %) is given up'
	stop_recorder INT
}

# ask: for the status, for 5 s, as fast as the recorder answers
ask()
{
	timeout 100 python3 - "$1" <<-'END'
		import socket, sys, time
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		end = time.monotonic() + 5
		while time.monotonic() < end:
		    s.send(b"status\n")
		    s.recv(65536)
	END
}

# The clock alone is too expensive. Then the recorder is, which is told once.
nothing_is_left()
{
	start_recorder "$TMP/none" "${M[@]}" -e cpu-clock -F 499 -g --max-overhead 0.05
	FLIGHT_WAIT=16 wait_for has_steps 1
	ask "$TMP/none.sock"
	# The clock may have come back for the time that it takes to begin to ask.
	steps >"$TMP/steps"
	cat "$TMP/steps"
	head -n1 "$TMP/steps" | grep -q 'cpu-clock.* is given up'
	# It may have come back since then, too.
	sed '/nothing is left/q' "$TMP/steps" >"$TMP/until"
	tail -n2 "$TMP/until" | head -n1 | grep -q 'cpu-clock.* is given up'
	tail -n1 "$TMP/until" | grep -q 'nothing is left whose loss would help'
	[ "$(grep -c 'nothing is left' "$TMP/steps")" = 1 ]
	stop_recorder INT
}

# A freeze of the samples ends, and what was given up stays so.
stays_given_up()
{
	start_recorder "$TMP/freeze" -M 8M -a --trigger signal,freeze --trigger socket \
		-e cpu-clock/freq=999/ -e raw_syscalls:sys_enter --max-overhead 1
	begin_load
	FLIGHT_WAIT=16 wait_for has_steps 1
	dump
	sleep 2
	dump
	end_load
	steps
	perf script -i "$DUMP" -F event,time 2>/dev/null | tr -d ' ' |
		awk -F: -v at="$(json "$DUMP" overhead_acted)" '$1 > at + 0.2' >"$TMP/after"
	not grep raw_syscalls "$TMP/after"
	grep -q cpu-clock "$TMP/after"
	stop_recorder INT
}

# --control enables all events. The limit holds all the same, from the next look on.
stays_so_under_control()
{
	local control

	mkfifo "$TMP/control"
	exec {control}<>"$TMP/control"
	start_recorder "$TMP/ctl" "${M[@]}" -e cpu-clock/freq=999/ -e raw_syscalls:sys_enter \
		--max-overhead 1 --control fifo:"$TMP/control"
	begin_load
	FLIGHT_WAIT=16 wait_for has_steps 1
	echo disable >&$control
	wait_for grep -q 'Events disabled' "$OUT_NAME.stderr"
	echo enable >&$control
	wait_for grep -q 'Events enabled' "$OUT_NAME.stderr"
	sleep 4
	dump
	end_load
	steps
	[ "$(json "$DUMP" events_given_up)" = raw_syscalls:sys_enter ]
	perf script -i "$DUMP" -F event,time 2>/dev/null | tr -d ' ' |
		awk -F: -v end="$(json "$DUMP" newest)" '$1 > end - 1' >"$TMP/after"
	not grep raw_syscalls "$TMP/after"
	grep -q cpu-clock "$TMP/after"
	stop_recorder INT
	exec {control}>&-
}

configured()
{
	printf '%s\n' '[flight]' '	max-overhead = 3%' >"$TMP/config"
	PERF_CONFIG=$TMP/config start_recorder "$TMP/config.out" "${M[@]}" -e cpu-clock -F 9
	[ "$(status max_overhead)" = 3.000 ]
	stop_recorder INT
	PERF_CONFIG=$TMP/config start_recorder "$TMP/config.out" "${M[@]}" -e cpu-clock -F 9 \
		--max-overhead 0.5%
	[ "$(status max_overhead)" = 0.500 ]
	stop_recorder INT
	not grep max_overhead <(PERF_CONFIG=$TMP/config perf record "${M[@]}" -e cpu-clock \
		--no-max-overhead -o "$TMP/none.out" -- perf ctl --status --json none.out)
	printf '%s\n' '[flight]' '	max-overhead = much' >"$TMP/config"
	PERF_CONFIG=$TMP/config fails_somehow 'flight.max-overhead much: invalid percentage' \
		perf record "${M[@]}" -e cpu-clock -o "$TMP/q" -- true
}

refuses()
{
	local bad

	for bad in 0 -1 101 1%% '' nan; do
		fails 129 "max-overhead $bad: invalid percentage. Use one from 0.01 to 100" \
			perf record -M 4M -a -e cpu-clock -o "$TMP/q" --max-overhead "$bad" -- true
	done
	fails 1 'max-overhead is for a flight recorder' perf record --max-overhead 1 -a true
	fails_somehow 'record CPUs, with -a or -C' \
		perf record -M 4M -e cpu-clock -o "$TMP/q" --max-overhead 1 -- true
	# What the completion of bash offers; its status is that of a usage.
	{ perf record --list-opts || true; } | tr ' ' '\n' | grep -x -e --max-overhead
	[ -z "$(dumps "$TMP/q")" ]
}

refuses_sessions()
{
	perf record -q -P overhead -e cpu-clock -a
	fails_somehow 'does not support persistent sessions' \
		perf record -M 4M -e persistent/overhead/ -o "$TMP/q" --max-overhead 1
	perf ctl -d overhead
}

flight_begin
check "a load that comes and goes" load_comes_and_goes
check "events of which the recorder reads nothing" events_count
check "what was given up stays so after a freeze" stays_given_up
check "what was given up stays so when --control enables all" stays_so_under_control
check "nothing is left to give up" nothing_is_left
check "flight.max-overhead" configured
check "refuses what makes no sense" refuses
if perf ctl -l >/dev/null 2>&1; then
	check "refuses persistent sessions" refuses_sessions
else
	leave_out "refuses persistent sessions" "the kernel has none"
fi
persistent_end
