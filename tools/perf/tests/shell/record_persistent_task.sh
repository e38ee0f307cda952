#!/bin/bash
# perf record -P -p PID follows tasks, and keeps what they did
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

# A process that waits for "go", and then runs the command as another program.
start_waiting()
{
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	sh -c 'read -r _ <"$0"; exec "$@"' "$TMP/go" "$@" >/dev/null 2>&1 &
	TASK=$!
}

threads_of()
{
	find "/proc/$1/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort
}

go()
{
	timeout 300 tee "$TMP/go" <<<go
}

# has_state SESSION WORDS: in the list, within five minutes
has_state()
{
	for _ in {1..300}; do
		! perf ctl -l | grep -E "^$1 .* $2\$" || return 0
		sleep 1
	done
	perf ctl -l
	return 1
}

makes_and_tells()
{
	start_waiting perf test -w noploop 1
	perf record -P tt -e cpu-clock/freq=999/,sched:sched_switch -p "$TASK" 2>&1 | tee "$TMP/log"
	grep -q 'per thread 512 KiB for samples, 128 KiB for side-band' "$TMP/log"
	perf ctl -l
	has '^tt +[0-9]+ +0 +task +3 ' perf ctl -l
	has '^task +0 +0 +128 .*side-band' perf ctl -i tt
	has '^task +1 +1 +512 .* runs +cpu-clock' perf ctl -i tt
	has '^task +2 +1 +512 .* runs +sched:sched_switch' perf ctl -i tt
	echo "$TASK" >"$TMP/task"
	go
	wait "$TASK"
}

tells_that_it_has_gone()
{
	has_state tt 'task gone'
	has '^task +1 .* task gone +cpu-clock' perf ctl -i tt
}

# The task has exited before anybody looked. Its program is known from its exec.
is_a_post_mortem()
{
	local pid

	pid=$(cat "$TMP/task")
	not kill -0 "$pid"
	perf record -e persistent/tt/ -N -o "$TMP/d" 2>&1 | tee "$TMP/log"
	grep -q 'task, buffer 1: samples: .* task gone' "$TMP/log"
	"$BASE_PERF" report -i "$TMP/d" --stdio --no-children --sort comm,sym >"$TMP/report" 2>&1
	head -n 30 "$TMP/report"
	grep -qE '^ *[0-9.]+% +perf +\[\.\] noploop' "$TMP/report"
	# Of that task, and of no other.
	"$BASE_PERF" script -i "$TMP/d" -F pid 2>/dev/null | tr -d ' ' | sort | uniq -c
	[ "$("$BASE_PERF" script -i "$TMP/d" -F pid 2>/dev/null | tr -d ' ' | sort -u)" = "$pid" ]
}

stays_until_claimed()
{
	"$BASE_PERF" script -i "$TMP/d" -F time,event 2>/dev/null >"$TMP/first"
	perf record -e persistent/tt/ -N -o "$TMP/d" --kill 2>/dev/null
	"$BASE_PERF" script -i "$TMP/d" -F time,event 2>/dev/null >"$TMP/second"
	[ -s "$TMP/first" ]
	cmp "$TMP/first" "$TMP/second"
	[ -z "$(sessions)" ]
}

# -p: the threads that there are, each with buffers of its own; -t: one of them.
follows_threads()
{
	cat >"$TMP/threads.py" <<-'EOF'
	import threading
	def spin():
	    while True:
	        pass
	threading.Thread(target=spin, daemon=True).start()
	spin()
	EOF
	python3 "$TMP/threads.py" &
	TASK=$!
	for _ in {1..3000}; do
		[ "$(threads_of "$TASK" | wc -l)" != 2 ] || break
		sleep 0.1
	done
	perf record -P tp -e cpu-clock -p "$TASK" || touch "$TMP/failed"
	perf record -P t1 -e cpu-clock -t "$TASK" || touch "$TMP/failed"
	for _ in {1..300}; do
		perf record -e persistent/tp/ -N -o "$TMP/p" 2>/dev/null
		perf script -i "$TMP/p" -F tid 2>/dev/null | tr -d ' ' | sort -u >"$TMP/tids"
		[ "$(wc -l <"$TMP/tids")" != 2 ] || break
		sleep 1
	done
	threads_of "$TASK" >"$TMP/threads"
	kill "$TASK"
	[ ! -e "$TMP/failed" ]
	cmp "$TMP/threads" "$TMP/tids"
	has '^tp .* task +4 ' perf ctl -l
	has '^t1 .* task +2 ' perf ctl -l
	perf record -e persistent/t1/ -N -o "$TMP/p" 2>/dev/null
	lacks "^ *$(grep -v "^$TASK\$" "$TMP/threads")\$" perf script -i "$TMP/p" -F tid
	has_state tp 'task gone'
	perf ctl -d tp t1
}

# Tasks and CPUs in one session.
adds_a_task()
{
	perf record -q -P ta -e cpu-clock -C 0
	start_waiting perf test -w noploop 1
	perf record -P ta --add -e sched:sched_process_exec -p "$TASK"
	go
	wait "$TASK"
	perf record -e persistent/ta/ -N -o "$TMP/a" 2>/dev/null
	has sched_process_exec perf script -i "$TMP/a" -F event
	has cpu-clock perf script -i "$TMP/a" -F event
	perf ctl -d ta
}

no_such_task()
{
	fails 1 'No such process or thread: 4194305' perf record -P tn -e cs -p 4194305
	[ -z "$(sessions)" ]
}

persistent_begin
check "-p makes a session that follows a task, and says so" makes_and_tells
check "when the task has exited, its state says so" tells_that_it_has_gone
check "what is there outlives the task: a post-mortem, named" is_a_post_mortem
check "it is there until it is claimed" stays_until_claimed
check "-p follows the threads that there are, -t one of them" follows_threads
check "a task is added to the session of a CPU" adds_a_task
check "a task that is not there is told" no_such_task
persistent_end
