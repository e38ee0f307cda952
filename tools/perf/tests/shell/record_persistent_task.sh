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
	perf record -P tt -e cpu-clock/freq=999/,sched:sched_switch -p "$TASK" --per-thread 2>&1 |
		tee "$TMP/log"
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
	other_perf report -i "$TMP/d" --stdio --no-children --sort comm,sym >"$TMP/report" 2>&1
	head -n 30 "$TMP/report"
	# perf of Linux 7.3 gives the workload a name of its own.
	grep -qE '^ *[0-9.]+% +perf(-noploop)? +\[\.\] noploop' "$TMP/report"
	# Of that task, and of no other.
	other_perf script -i "$TMP/d" -F pid 2>/dev/null | tr -d ' ' | sort | uniq -c
	[ "$(other_perf script -i "$TMP/d" -F pid 2>/dev/null | tr -d ' ' | sort -u)" = "$pid" ]
}

stays_until_claimed()
{
	other_perf script -i "$TMP/d" -F time,event 2>/dev/null >"$TMP/first"
	perf record -e persistent/tt/ -N -o "$TMP/d" --kill 2>/dev/null
	other_perf script -i "$TMP/d" -F time,event 2>/dev/null >"$TMP/second"
	[ -s "$TMP/first" ]
	cmp "$TMP/first" "$TMP/second"
	[ -z "$(sessions)" ]
}

wait_for_two_threads()
{
	for _ in {1..3000}; do
		[ "$(threads_of "$TASK" | wc -l)" != 2 ] || break
		pause 0.2
	done
}

# wait_for_samples_of_both SESSION: until both threads are in $TMP/tids
wait_for_samples_of_both()
{
	for _ in {1..300}; do
		perf record -e "persistent/$1/" -N -o "$TMP/both" 2>/dev/null
		perf script -i "$TMP/both" -F tid 2>/dev/null | tr -d ' ' | sort -u >"$TMP/tids"
		[ "$(wc -l <"$TMP/tids")" != 2 ] || break
		sleep 1
	done
}

# -p: the threads that there are; -t: one of them; each with buffers of its own.
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
	wait_for_two_threads
	perf record -P tp -e cpu-clock -p "$TASK" --per-thread || touch "$TMP/failed"
	perf record -P t1 -e cpu-clock -t "$TASK" --no-inherit || touch "$TMP/failed"
	wait_for_samples_of_both tp
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

# Waits for "go", then starts a thread and a child, which both run when it has exited.
start_parent()
{
	cat >"$TMP/parent.py" <<-'EOF'
	import ctypes, os, sys, threading, time
	def name(text):
	    ctypes.CDLL(None).prctl(15, text)
	def spin():
	    name(b"py-thread")
	    end = time.time() + 1
	    while time.time() < end:
	        pass
	open(sys.argv[1]).read()
	thread = threading.Thread(target=spin)
	thread.start()
	thread.join()
	if not os.fork():
	    if not os.fork():
	        name(b"py-grandchild")
	        open(sys.argv[1]).read()
	        os.execlp("perf", "perf", "test", "-w", "noploop", "1")
	    os._exit(0)
	os.wait()
	EOF
	rm -f "$TMP/go"
	mkfifo "$TMP/go"
	python3 "$TMP/parent.py" "$TMP/go" >/dev/null 2>&1 &
	TASK=$!
}

# -p: what the process starts is recorded as well, and outlives it.
follows_what_it_starts()
{
	start_parent
	perf record -P ti -e cpu-clock/freq=999/,sched:sched_switch -p "$TASK" 2>&1 |
		tee "$TMP/log"
	grep -q '6 events in 4 ring buffers' "$TMP/log"
	grep -q 'per CPU 512 KiB for samples, 128 KiB for side-band' "$TMP/log"
	has '^ti +[0-9]+ +0 +0-1 +6 ' perf ctl -l
	has '^ *0 +0 +0 +128 .*side-band' perf ctl -i ti
	has '^ *1 +2 +1 +512 .* runs +sched:sched_switch' perf ctl -i ti
	go
	wait "$TASK"
	# Its grandchild waits.
	has '^ti .* runs$' perf ctl -l
	go
	has_state ti 'task gone'
	perf record -e persistent/ti/ -N -o "$TMP/i" 2>&1 | tee "$TMP/log"
	grep -q 'CPU 0: samples: .* task gone' "$TMP/log"
	other_perf script -i "$TMP/i" -F comm,ip,sym 2>/dev/null |
		awk '{ print $1, $3 }' | sort | uniq -c | sort -rn >"$TMP/who"
	head -n 20 "$TMP/who"
	grep -q 'py-thread' "$TMP/who"
	grep -q 'py-grandchild' "$TMP/who"
	grep -qE ' perf(-noploop)? noploop' "$TMP/who"
	# And nobody else. Some have no name: they got it before the session began.
	not grep -qvE ' (:[0-9]+|py-thread|py-grandchild|perf(-noploop)?) ' "$TMP/who"
	perf ctl -d ti
}

# The threads that there are share the buffers of a CPU.
follows_existing_threads()
{
	python3 "$TMP/threads.py" &
	TASK=$!
	wait_for_two_threads
	perf record -P te -e cpu-clock -p "$TASK" || touch "$TMP/failed"
	wait_for_samples_of_both te
	threads_of "$TASK" >"$TMP/threads"
	kill "$TASK"
	[ ! -e "$TMP/failed" ]
	cmp "$TMP/threads" "$TMP/tids"
	has '^te .* 0-1 +8 ' perf ctl -l
	has_state te 'task gone'
	perf ctl -d te
}

# The side-band of tasks is not that of a CPU.
adds_cpus()
{
	start_waiting true
	perf record -q -P tc -e cpu-clock -p "$TASK"
	perf record -P tc --add -e cs -a 2>&1 | tee "$TMP/log"
	grep -q '4 events in 4 ring buffers' "$TMP/log"
	go
	wait "$TASK"
	perf ctl -d tc
}

# As the owner of the session, who may not record a CPU.
without_privileges()
{
	setpriv --bounding-set -all --inh-caps -all "$@"
}

# -G: the tasks of a cgroup, and what is left when it was removed.
follows_cgroup()
{
	local group=/sys/fs/cgroup/perf_persistent task other

	# Until a controller was given to cgroups once, they do not have perf's either.
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control || true
	mkdir "$group"
	perf record -P tg -e cpu-clock/freq=999/ -a -G perf_persistent
	has '^ *0 +1 +1 +512 .* runs +cpu-clock.* in cgroup /perf_persistent$' perf ctl -i tg
	lacks 'side-band.*cgroup' perf ctl -i tg
	has '"cgroup": *"/perf_persistent"' perf ctl -i tg --json
	# Beside it there is one that is not in the cgroup.
	perf test -w noploop 1 >/dev/null 2>&1 &
	other=$!
	bash -c 'echo 0 >"$0/cgroup.procs"; exec perf test -w noploop 1' "$group" >/dev/null 2>&1 &
	task=$!
	wait "$task"
	wait "$other"
	for _ in {1..300}; do
		! rmdir "$group" || break
		pause 0.2
	done
	has_state tg 'cgroup gone'
	has '^ *0 +1 +1 +512 .* cgroup gone +cpu-clock.* in cgroup /perf_persistent$' perf ctl -i tg
	has '"state": *"cgroup gone"' perf ctl -l --json
	has '"state": *"cgroup gone"' perf ctl -i tg --json
	# A user who may not open its events does not learn what has gone.
	has '^tg .* gone$' without_privileges perf ctl -l
	lacks '(task|cgroup) gone' without_privileges perf ctl -l
	perf record -e persistent/tg/ -N -o "$TMP/g" 2>&1 | tee "$TMP/log"
	grep -qE 'CPU [0-9]+: samples: .* cgroup gone' "$TMP/log"
	other_perf script -i "$TMP/g" -F comm,ip,sym 2>/dev/null | awk '{ print $1, $3 }' |
		sort | uniq -c | sort -rn >"$TMP/who"
	head -n 20 "$TMP/who"
	grep -qE ' perf(-noploop)? noploop' "$TMP/who"
	# Of that task alone. Its parent may reap it on another CPU between exit_notify() and its
	# last context switch. It has no pid then, and perf_event_pid() returns -1.
	other_perf script -i "$TMP/g" -F pid 2>/dev/null | tr -d ' ' | sort | uniq -c |
		tee "$TMP/pids"
	grep -qE "^ *[0-9]+ $task\$" "$TMP/pids"
	not grep -vE "^ *[0-9]+ ($task|-1)\$" "$TMP/pids"
	perf ctl -d tg
}

# Names of cgroups are any bytes: those that a terminal takes for commands are escaped.
escapes_cgroup()
{
	local name=$'perf_\033[7m_\302\233 ' path

	path=/sys/fs/cgroup/$name
	mkdir "$path"
	perf record -P te -e dummy -a -G "$name"
	# The last line ends with the blank that the name ends with.
	has '^ *0 .* in cgroup /perf_\\033\[7m_\\302\\233 $' perf ctl -i te
	has '"cgroup": *"/perf_\\\\033\[7m_\\\\302\\\\233 "' perf ctl -i te --json
	perf ctl -d te
	rmdir "$path"
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
check "--per-thread follows the threads that there are, with -t one of them" follows_threads
check "-p follows the threads and children that the process starts" follows_what_it_starts
check "-p follows the threads that there are" follows_existing_threads
check "--add -a has side-band of its own" adds_cpus
check "-G follows a cgroup, and it is there when the cgroup was removed" follows_cgroup
check "control characters in the name of a cgroup are escaped" escapes_cgroup
check "a task is added to the session of a CPU" adds_a_task
check "a task that is not there is told" no_such_task
persistent_end
