#!/bin/bash
# perf record -M: triggers that fire by themselves (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# For each kind a cause that it is hit by, and others that it must not be hit by. In the
# dump are the samples from before the cause; the manifest tells what it was. FLIGHT_TIMES:
# how often, see lib/flight_hits.sh.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/flight_hits.sh
. "$(dirname "$0")/lib/flight_hits.sh"

say()
{
	echo "<4>$*" >/dev/kmsg
}

kernel_messages()
{
	say 'flight: disk sda, old'
	start kmsg 'kmsg/match=disk (sd[a-z]|nvme[0-9]+), .*/fs/'
	say 'flight: disk ram0, /fs/'
	say 'flight: disk sdb is well'
	quiet
	sleep 1
	say 'flight: disk sdb, all /fs/ of it'
	hit kmsg
	grep -q '"reason": "flight: disk sdb, all /fs/ of it"' "$DUMP.json"
	end 1
}

monotonic()
{
	python3 -c 'import time; print(time.monotonic())'
}

# The recorder is stopped while the message comes. The time is that of the kernel.
read_late()
{
	local before after

	start late 'kmsg/match=flight: late/'
	kill -STOP "$RECORDER"
	before=$(monotonic)
	say 'flight: late'
	after=$(monotonic)
	sleep 2
	kill -CONT "$RECORDER"
	hit kmsg
	echo "between $before and $after"
	awk "BEGIN { at = $(json "$DUMP" trigger_time); exit !($before < at && at < $after) }"
	end 1
}

# Root can write to /dev/kmsg what a report looks like.
believes_the_kernel()
{
	start fake oom
	say 'Out of memory: Killed process 1 (init) total-vm:1kB'
	no_dump
	end 0
	start fake2 hung
	say 'INFO: task cat:77 blocked for more than 122 seconds.'
	no_dump
	end 0
	start fake3 lockup
	say 'watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [cat:77]'
	no_dump
	end 0
	start fake4 rcu-stall
	say 'rcu: INFO: rcu_sched self-detected stall on CPU'
	no_dump
	end 0
}

limit_memory()
{
	CGROUP=/sys/fs/cgroup/$1
	mount_cgroups
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir "$CGROUP"
	echo 32M >"$CGROUP/memory.max"
	[ ! -e "$CGROUP/memory.swap.max" ] || echo 0 >"$CGROUP/memory.swap.max"
}

eat()
{
	# shellcheck disable=SC2016 # for the shell in there
	sh -c 'echo $$ >"$1/cgroup.procs"; exec python3 - "$2"' - "$CGROUP" "$1" <<-'END'
		import sys
		open("/proc/self/comm", "w").write("eater")
		b = bytearray(int(sys.argv[1]) << 20)
		for i in range(0, len(b), 4096): b[i] = 1
	END
}

# The limit is that of the outermost cgroup, the task is in the innermost one.
out_of_memory()
{
	local dirs dir

	limit_memory flight-oom
	trap 'find /sys/fs/cgroup/flight-oom -depth -type d -exec rmdir {} \;' EXIT
	IFS=/ read -ra dirs <<<"${POD_CGROUP#/}"
	for dir in "${dirs[@]}"; do
		echo +memory >"$CGROUP/cgroup.subtree_control"
		CGROUP+=/$dir
		mkdir "$CGROUP"
	done
	run_container
	start "oom" oom
	eat 4
	quiet
	sleep 1
	eat 200 || true
	hit oom
	grep -q '"trigger_comm": "eater"' "$DUMP.json"
	names_container "${CGROUP#/sys/fs/cgroup}"
	grep -qE '"trigger_pid": [0-9]+' "$DUMP.json"
	end 1
}

# crash NAME SIGNAL: a process of that name kills itself by it
crash()
{
	python3 - "$@" <<-'END' || true
		import os, signal, sys
		open("/proc/self/comm", "w").write(sys.argv[1])
		os.kill(os.getpid(), int(sys.argv[2]))
	END
}

crashes()
{
	make_cgroup "flight-exit$POD_CGROUP"
	run_container
	start exit 'exit/comm=victim,signal=SEGV/'
	crash other 11
	crash victim 6
	# Handled, it is none.
	python3 -c 'import os, signal
open("/proc/self/comm", "w").write("victim")
signal.signal(11, lambda *a: None)
os.kill(os.getpid(), 11)'
	quiet
	sleep 1
	inside crash victim 11
	hit exit
	grep -q 'signal:signal_deliver by pid [0-9]* on CPU [0-9]*: sig=11' "$DUMP.json"
	# It is dead by now; the sample has its cgroup.
	names_container "/flight-exit$POD_CGROUP"
	end 1
}

# Threads of a process that exits are no victims of SIGKILL.
killed()
{
	start kill 'exit/signal=KILL/'
	python3 -c 'import threading, time, os
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
os._exit(0)'
	crash victim 11
	quiet
	sleep 1
	crash victim 9
	hit exit
	end 1
}

died()
{
	start any exit
	crash victim 15
	crash victim 9
	quiet
	sleep 1
	crash victim 7
	hit exit
	end 1
}

burn()
{
	local i pids=()

	for ((i = 0; i < $(nproc); i++)); do
		timeout "$1" sh -c 'while :; do :; done' &
		pids+=("$!")
	done
	wait "${pids[@]}" || true
}

busy_cpus()
{
	local began

	start cpu 'cpu/busy,over=90%,for=2s/'
	began=${EPOCHREALTIME/[.,]/}
	burn 1
	stood_still "$(ms_since "$began")" 1700
	sleep 3
	quiet
	# One hit, however long it lasts.
	burn 7
	hit cpu
	grep -qE '"value": (9[0-9]|100),' "$DUMP.json"
	grep -q '"threshold": 90,' "$DUMP.json"
	grep -q '"unit": "%"' "$DUMP.json"
	end 1
}

has_pressure()
{
	cat /proc/pressure/cpu >/dev/null 2>&1
}

# waited FILE: in ms, for a CPU, since it was first measured
waited()
{
	awk '$1 == "some" { sub("total=", "", $5); print int($5 / 1000) }' "$1"
}

pressure()
{
	local burners before

	before=$(waited /proc/pressure/cpu)
	start psi 'psi/resource=cpu,some,over=1800ms,window=2s/'
	sleep 3
	stood_still $(($(waited /proc/pressure/cpu) - before)) 1800
	quiet
	burners=()
	for _ in 1 2 3; do
		burn 4 &
		burners+=($!)
	done
	wait "${burners[@]}"
	hit psi
	grep -q '"unit": "ms"' "$DUMP.json"
	grep -q '"threshold": 1800,' "$DUMP.json"
	[ "$(sed -nE 's/^  "value": ([0-9]+),/\1/p' "$DUMP.json")" -ge 1800 ]
	stop_recorder INT
}

says()
{
	grep -q "$1" "$OUT_NAME.stderr"
}

in_cgroup()
{
	# shellcheck disable=SC2016 # for the shell in there
	sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$CGROUP" "$@"
}

# A service that is started again has another cgroup, of the same name.
pressure_in_a_cgroup()
{
	local burners

	CGROUP=/sys/fs/cgroup/flight-psi
	mount_cgroups
	mkdir "$CGROUP"
	trap 'rmdir "$CGROUP"' EXIT
	start psi-cgroup 'psi/resource=cpu,some,over=800ms,window=2s,cgroup=flight-psi/'
	rmdir "$CGROUP"
	wait_for says 'The cgroup flight-psi is gone: --trigger psi waits'
	sleep 2
	mkdir "$CGROUP"
	wait_for says 'The cgroup flight-psi is back: --trigger psi watches'
	# A task alone does not wait.
	in_cgroup timeout 2 sh -c 'while :; do :; done' || true
	stood_still "$(waited "$CGROUP/cpu.pressure")" 800
	quiet
	in_cgroup sh -c 'for i in 1 2 3; do timeout 5 sh -c "while :; do :; done" & done; wait' &
	burners=$!
	FLIGHT_WAIT=60 wait_for has_dumps "$OUT_NAME" 1
	hit psi
	grep -q '"trigger_cgroup": "flight-psi"' "$DUMP.json"
	wait $burners
	stop_recorder INT
	[ "$(grep -c 'The cgroup' "$OUT_NAME.stderr")" = 2 ]
}

# say_many TIMES N [SOCKET]: each time as fast as a program can; then the recorder has read them,
# as it has answered in two passes since
say_many()
{
	python3 - "$@" <<-'END'
		import socket, sys
		kmsg = open("/dev/kmsg", "wb", buffering=0)
		for i in range(int(sys.argv[1])):
		    for k in range(int(sys.argv[2])):
		        kmsg.write(b"<4>flight storm %d\n" % k)
		    for path in 2 * sys.argv[3:]:
		        s = socket.socket(socket.AF_UNIX)
		        s.connect(path)
		        s.send(b"status\n")
		        assert s.recv(1)
	END
}

# storm OUT: 10000 messages. A log of 128 KiB has room for each part of them. One pass reads 1024,
# and there are two passes before the end: some of the last 3600 are left for the end. Sets MS to
# the time for that.
storm()
{
	local began

	start_recorder "$1" -M 4M -e cpu-clock -F 199 -a --trigger "socket:$TMP/sock" \
		--trigger 'kmsg/match=flight storm/' --trigger 'cpu/busy,over=99%,for=60s/'
	grep -q 'dumps use at most 1024 MiB of disk' "$OUT_NAME.stderr"
	began=${EPOCHREALTIME/[.,]/}
	say_many 10 640 "$TMP/sock"
	wait_for has_dumps "$OUT_NAME" 1
	kill -STOP "$RECORDER"
	say_many 1 3600
	kill -INT "$RECORDER"
	stop_recorder CONT
	MS=$(ms_since "$began")
}

# The cooldown is there unless another one was set, and counts what it swallows.
counts_a_storm()
{
	local began dump total=0 nr=0 i

	# Else the kernel takes ten in 5 s. A message without a newline may be continued, and is
	# not to be read before the next one.
	echo on >/proc/sys/kernel/printk_devkmsg
	for i in {1..20}; do
		began=$SECONDS
		storm "$TMP/storm-$i"
		echo "$MS ms"
		# What comes at the end is told by the dump whose cooldown it is in, of 10 s.
		[ "$MS" -ge 9000 ] || break
	done
	while read -r dump; do
		[ "$(json "$dump" trigger)" = kmsg ] || continue
		total=$((total + 1 + $(json "$dump" swallowed)))
		nr=$((nr + 1))
	done < <(dumps "$OUT_NAME")
	echo "$total hits, $nr dumps, $((SECONDS - began)) s"
	[ $total = 10000 ]
	[ $nr -le $((1 + (SECONDS - began) / 10)) ]
}

refuses()
{
	local m=(perf record -M 4M -a -e cpu-clock -o "$TMP/q")

	fails 129 "unknown trigger 'pi'" "${m[@]}" --trigger pi/over=1s/
	fails 129 "unknown term 'ower'\\. Use psi/resource=" "${m[@]}" --trigger psi/ower=1s/
	fails 129 "resource=disk is none of" "${m[@]}" --trigger psi/resource=disk,over=1s/
	fails 129 "over=soon is not a time" "${m[@]}" --trigger psi/resource=io,over=soon/
	fails 129 "'over' must be a time above 0" "${m[@]}" --trigger psi/resource=io,over=3s/
	fails 129 "'some' takes no value" "${m[@]}" --trigger psi/resource=io,some=1/
	fails 129 "'some' and 'full' exclude" "${m[@]}" --trigger psi/resource=io,some,full,over=1s/
	fails 129 "measures of 'irq' only 'full'" "${m[@]}" --trigger psi/resource=irq,some,over=1s/
	fails 129 "'window' must be from" "${m[@]}" --trigger psi/resource=io,over=1s,window=20s/
	fails 129 "slash behind the terms of 'psi'" "${m[@]}" --trigger psi/resource=io
	fails 129 "slash behind the terms of 'cpu'" "${m[@]}" --trigger cpu/busy,over=9%/x
	fails 129 "takes no argument behind a colon\\. Use cpu/busy" "${m[@]}" --trigger cpu:busy
	fails 129 "over=200% is not a percentage" "${m[@]}" --trigger cpu/busy,over=200%/
	fails 129 "'busy' is missing" "${m[@]}" --trigger cpu/over=20%/
	fails 129 "'over' must be a percentage" "${m[@]}" --trigger cpu/busy/
	fails 129 "'match' is missing" "${m[@]}" --trigger kmsg
	fails 129 'is no extended regular expression' "${m[@]}" --trigger 'kmsg/match=a(/'
	fails 129 "'oom' takes nothing between slashes" "${m[@]}" --trigger oom/x/
	fails 129 "signal=WINCH is no signal" "${m[@]}" --trigger exit/signal=WINCH/
	fails 129 "signal=11x is no signal" "${m[@]}" --trigger exit/signal=11x/
	fails 129 "comm=.* is longer than the 15 bytes" "${m[@]}" \
		--trigger exit/comm=sixteen-letters-/
	fails 129 "'socket' has no terms between slashes" "${m[@]}" --trigger socket/x/
	fails 129 "unknown option 'freese'" "${m[@]}" --trigger cpu/busy,over=9%/,freese
	[ -z "$(dumps "$TMP/q")" ]
}

flight_begin
check "kmsg" again kernel_messages
if [ -n "${TEST_MACHINE:-}" ]; then
	check "a message that is read late" read_late
else
	leave_out "a message that is read late" \
		"whether the clock of messages can be read is known of the test machine alone"
fi
check "reports of others than the kernel" again believes_the_kernel
check "oom" again out_of_memory
check "exit/comm=,signal=/" again crashes
check "exit/signal=KILL/" again killed
check "exit" again died
check "cpu/busy/" again busy_cpus
if has_pressure; then
	check "psi" again pressure
	check "psi of a cgroup that goes and comes back" again pressure_in_a_cgroup
else
	leave_out "psi" "the kernel does not measure pressure"
	check "psi without pressure" fails_somehow 'does not measure pressure: boot with psi=1' \
		perf record -M 4M -a -e cpu-clock -o "$TMP/q" \
		--trigger psi/resource=cpu,some,over=1s/ -- true
fi
check "a storm is counted" counts_a_storm
check "refuses what makes no sense" refuses
[ ! -e "$TMP/figures" ] || cat "$TMP/figures"
persistent_end
