#!/bin/bash
# perf record -M: triggers at waits (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# For each kind a wait that it is hit by, and others that it must not be hit by: too short, or
# of another task. It is hit while the wait lasts, once. FLIGHT_TIMES: how often, see
# lib/flight_hits.sh. FLIGHT_IRQOFF=only: interrupts that are off, alone. FLIGHT_SKIPS=only: a
# kernel that skips BPF programs at system calls, alone.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/flight_hits.sh
. "$(dirname "$0")/lib/flight_hits.sh"
# shellcheck source=lib/stall.sh
. "$(dirname "$0")/lib/stall.sh"

M=(-M 4M -e cpu-clock -F 199 -a)

latency_cleanup()
{
	trap - EXIT
	rm -f "$TMP/control"
	umount -l "$TMP/disk/slow" 2>/dev/null || true
	rmdir /sys/fs/cgroup/flight-latency 2>/dev/null || true
	flight_cleanup
}

waits()
{
	python3 "$FLIGHT_LIB/waits.py" "$@"
}

# waits_less MS NAME...: than a wait that is a hit
waits_less()
{
	local said

	said=$(waits "${@:2}")
	echo "$said"
	said=${said##*at once }
	stood_still "${said% ms}" "$1"
}

# For the recorder, and the thread that walks
# shellcheck disable=SC2034 # for lib/flight_hits.sh
QUIET=1

# hit_victim KIND PATTERN THRESHOLD: there is one dump, of that reason
hit_victim()
{
	hit "$1"
	grep -qE "\"reason\": \"victim \\([0-9]+\\) $2: " "$DUMP.json"
	grep -q '"trigger_comm": "victim"' "$DUMP.json"
	grep -qE '"trigger_pid": [0-9]+' "$DUMP.json"
	grep -q '"unit": "us"' "$DUMP.json"
	[ "$(sed -nE 's/^  "threshold": ([0-9]+),/\1/p' "$DUMP.json")" = "$3" ]
	[ "$(sed -nE 's/^  "value": ([0-9]+),/\1/p' "$DUMP.json")" -ge "$3" ]
	[ "$(json "$DUMP" swallowed)" = 0 ]
	# All of the wait is in the window.
	awk "BEGIN { exit !($(json "$DUMP" oldest) < $(json "$DUMP" trigger_time) - $3 / 1e6) }"
}

for_a_cpu()
{
	start runq 'latency/runq,over=400ms,comm=victim/'
	waits_less 400 victim queue 0.02
	waits other queue 0.9
	quiet
	waits victim queue 0.9
	hit_victim latency '(is waiting|waited) for a CPU' 400000
	end 1
}

off_the_cpu()
{
	start offcpu 'latency/offcpu,over=500ms,comm=victim/'
	waits_less 500 victim sleep 0.02 20
	waits other sleep 1.2
	quiet
	python3 "$FLIGHT_LIB/waits.py" victim sleep 60 &
	victim=$!
	wait_for has_dumps "$OUT_NAME" 1
	# It is hit while it lasts, and not again when it ends.
	kill -0 $victim
	hit_victim latency 'is off the CPU' 500000
	grep -q "\"trigger_pid\": $victim,\$" "$DUMP.json"
	kill -TERM $victim
	wait $victim || true
	sleep 1
	end 1
}

# sleeps_in CGROUP: and that is a hit, once the recorder knows the cgroup
sleeps_in()
{
	# shellcheck disable=SC2016 # for the shell in there
	sh -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$1" \
		python3 "$FLIGHT_LIB/waits.py" victim sleep 1.2
	has_dumps "$OUT_NAME" 1
}

# A task of a cgroup, and of one of the same name that is made later. The cooldown is that of the
# one hit that is wanted.
in_a_cgroup()
{
	local below=flight-latency$POD_CGROUP

	CGROUP=/sys/fs/cgroup/flight-latency
	mount_cgroups
	mkdir -p "/sys/fs/cgroup/$below"
	run_container
	start cgroup 'latency/offcpu,over=400ms,cgroup=flight-latency/' 1h
	waits victim sleep 1.2
	quiet
	find "$CGROUP" -depth -type d -exec rmdir {} \;
	mkdir -p "/sys/fs/cgroup/$below"
	wait_for sleeps_in "/sys/fs/cgroup/$below"
	hit_victim latency '(is|was) off the CPU' 400000
	names_container "/$below"
	end 1
	find "$CGROUP" -depth -type d -exec rmdir {} \;
}

# Not among the dumps, where 'find' would wait for it.
mount_slow()
{
	mkdir -p "$TMP/disk/slow"
	: >"$TMP/control"
	python3 "$FLIGHT_LIB/slow_fs.py" "$TMP/disk/slow" "$TMP/control" >>"$TMP/said" 2>&1 &
	echo $! >>"$TMP/recorders"
	wait_for grep -q mounted "$TMP/said" || { cat "$TMP/said"; return 1; }
}

# A disk holds up fsync until the dump is there.
in_a_syscall()
{
	start syscall 'syscall/name=fsync,over=500ms/'
	waits_less 500 victim fsync "$TMP/disk/slow/quiet"
	waits victim sleep 1.2
	quiet
	: >"$TMP/said"
	echo "fsync 60" >"$TMP/control"
	python3 "$FLIGHT_LIB/waits.py" victim fsync "$TMP/disk/slow/held" &
	victim=$!
	wait_for has_dumps "$OUT_NAME" 1
	# The dump has not waited for the disk.
	not grep 'held fsync' "$TMP/said"
	rm "$TMP/control"
	wait $victim
	grep 'held fsync' "$TMP/said"
	hit_victim syscall 'is in fsync' 500000
	end 1
}

# The recorder has not seen when it entered the call.
from_before()
{
	[ "${FLIGHT_QUIET-}" != only ] || return 0
	: >"$TMP/said"
	echo "fsync 60" >"$TMP/control"
	python3 "$FLIGHT_LIB/waits.py" victim fsync "$TMP/disk/slow/before" &
	victim=$!
	wait_for in_call $victim 74 82
	start before 'syscall/name=fsync,over=500ms,comm=victim/'
	hit syscall
	grep -qE "\"victim \($victim\) is in fsync: at least [0-9]+ us, over 500000 us\"" "$DUMP.json"
	rm "$TMP/control"
	wait $victim
	sleep 1
	end 1
}

# in_call PID NUMBER...: the task is in one of these system calls
in_call()
{
	local number rest

	read -r number rest <"/proc/$1/syscall" && [[ " ${*:2} " == *" $number "* ]]
}

# A task whose end of a call was not seen. The trigger takes the one of execve() for that of
# another call, if the program is for i386.
has_left()
{
	start left 'syscall/name=execve,over=300ms,comm=victim/'
	python3 "$FLIGHT_LIB/waits.py" before exec32 "$TMP/victim" &
	victim=$!
	# 29 is pause() there.
	wait_for in_call $victim 29
	[ "$(cat "/proc/$victim/comm")" = victim ]
	sleep 1
	quiet
	kill $victim
	wait $victim || true
	end 0
}

runs_32_bit()
{
	[ "$(uname -m)" = x86_64 ] || return 1
	timeout 2 python3 "$FLIGHT_LIB/waits.py" before exec32 "$TMP/victim" 2>/dev/null
	[ $? = 124 ]
}

# Tasks that are preempted in the programs, which then are skipped for the others of this CPU. A
# call whose end was skipped is no hit, and one whose beginning was skipped is one.
are_skipped()
{
	local cpu others=() i

	cpu=$(($(nproc) - 1))
	start skips 'syscall/name=fsync,over=1s,comm=victim/'
	for _ in 1 2 3; do
		taskset -c "$cpu" python3 "$FLIGHT_LIB/waits.py" idle getpid &
		others+=($!)
	done
	taskset -c "$cpu" python3 "$FLIGHT_LIB/waits.py" other fsync "$TMP/disk/slow/loop" 100000 &
	others+=($!)
	printf '%s\n' "${others[@]}" >>"$TMP/recorders"
	taskset -c "$cpu" python3 "$FLIGHT_LIB/waits.py" victim fsync "$TMP/disk/slow/skips" 15 1.6
	quiet
	: >"$TMP/said"
	kill "${others[3]}"
	wait "${others[3]}" || true
	echo "fsync 60" >"$TMP/control"
	taskset -c "$cpu" python3 "$FLIGHT_LIB/waits.py" victim fsync "$TMP/disk/slow/held" &
	victim=$!
	hit_victim syscall 'is in fsync' 1000000
	grep -E '"reason": ".* skipped: [1-9][0-9]*",$' "$DUMP.json"
	rm "$TMP/control"
	kill "${others[@]:0:3}"
	wait $victim
	end 1
}

# Waits that end before a walk sees them are hits, too. Their number is exact.
counts_a_storm()
{
	local began=$SECONDS dump total=0 nr=0 call=poll

	[ "$(uname -m)" != aarch64 ] || call=ppoll
	start_recorder "$TMP/storm" "${M[@]}" \
		--trigger "syscall/name=$call,over=2ms,comm=storm/,cooldown=2s"
	waits storm poll 3 100 100
	wait_for has_dumps "$OUT_NAME" 1
	sleep 3
	stop_recorder INT
	while read -r dump; do
		[ "$(json "$dump" trigger)" = syscall ] || continue
		total=$((total + 1 + $(json "$dump" swallowed)))
		nr=$((nr + 1))
	done < <(dumps "$OUT_NAME")
	echo "$total hits, $nr dumps, $((SECONDS - began)) s"
	[ $total = 10000 ]
	[ $nr -le $((1 + (SECONDS - began) / 2)) ]
}

# The recorder waits most of the time, and so does the process that writes a dump.
leaves_itself_out()
{
	start self 'latency/offcpu,over=20ms,comm=perf/'
	quiet
	kill -USR1 "$RECORDER"
	wait_for has_dumps "$OUT_NAME" 1
	sleep 1
	end 1
}

irqs_are_watched()
{
	[ -e /sys/kernel/tracing/events/preemptirq/irq_disable ] ||
	[ -e /sys/kernel/debug/tracing/events/preemptirq/irq_disable ]
}

# The time for which a busy host does not run the guest counts as well.
irqs_off()
{
	start irqoff 'latency/irqoff,over=3s/'
	stall short irqs 300
	quiet
	stall spinner irqs 4000
	hit latency
	grep -qE '"reason": "interrupts were off on CPU 1 in spinner \([0-9]+\): ' "$DUMP.json"
	grep -q '"trigger_comm": "spinner"' "$DUMP.json"
	[ "$(json "$DUMP" threshold)" = 3000000 ]
	[ "$(json "$DUMP" value)" -ge 4000000 ]
	end 1
}

check_irqoff()
{
	if ! irqs_are_watched; then
		check "latency/irqoff/ without its tracepoints" \
			fails_somehow 'preemptirq:irq_disable, .* CONFIG_PREEMPTIRQ_TRACEPOINTS' \
			perf record "${M[@]}" -o "$TMP/q" --trigger latency/irqoff,over=1ms/ -- true
	elif may_stall; then
		insmod "$PERF_STALL"
		check "latency/irqoff/" again irqs_off
		rmmod perf_stall
	else
		leave_out "latency/irqoff/" "a CPU is stalled in the test machine alone"
	fi
}

needs_permission()
{
	fails_somehow 'no permission to load BPF programs: be root, or set the capabilities' \
		setpriv --reuid=65534 --clear-groups perf record -M 4M -e cpu-clock -o "$TMP/q" \
		--trigger latency/runq,over=1s/ -- true
}

refuses()
{
	local m=(perf record -M 4M -a -e cpu-clock -o "$TMP/q")

	fails 129 "unknown term 'runk'\\. Use latency/runq" "${m[@]}" \
		--trigger latency/runk,over=1s/
	fails 129 "one of 'runq', 'offcpu' and 'irqoff'" "${m[@]}" --trigger latency/over=1s/
	fails 129 "one of 'runq', 'offcpu' and 'irqoff'" "${m[@]}" \
		--trigger latency/runq,offcpu,over=1s/
	fails 129 "over=soon is not a time" "${m[@]}" --trigger latency/runq,over=soon/
	fails 129 "'over' of 'runq' must be a time of at least 0.1ms" "${m[@]}" \
		--trigger latency/runq/
	fails 129 "'over' of 'offcpu' must be a time of at least 1ms" "${m[@]}" \
		--trigger latency/offcpu,over=0.5ms/
	fails 129 "'comm' is not for 'irqoff'" "${m[@]}" --trigger latency/irqoff,over=1s,comm=x/
	fails 129 "comm=.* is longer than the 15 bytes" "${m[@]}" \
		--trigger latency/runq,over=1s,comm=sixteen-letters-/
	fails 129 "'name' is missing" "${m[@]}" --trigger syscall/over=1s/
	fails 129 "name=fsink is no system call" "${m[@]}" --trigger syscall/name=fsink,over=1s/
	fails 129 "'over' must be a time" "${m[@]}" --trigger syscall/name=fsync/
	fails 129 "slash behind the terms of 'syscall'" "${m[@]}" --trigger syscall/name=fsync
	[ -z "$(dumps "$TMP/q")" ]
}

flight_begin
trap latency_cleanup EXIT
if ! perf version --build-options 2>/dev/null | grep -q 'bpf_skeletons: \[ on'; then
	leave_out "waits" "this perf was built without BPF skeletons"
	check "without BPF skeletons" fails_somehow 'was built without BPF skeletons' \
		perf record "${M[@]}" -o "$TMP/q" --trigger latency/runq,over=1s/ -- true
elif [ "${FLIGHT_SKIPS-}" = only ]; then
	mount_slow
	check "programs are skipped" again are_skipped
	persistent_end
	exit
elif [ "${FLIGHT_IRQOFF-}" = only ]; then
	check_irqoff
	[ ! -e "$TMP/figures" ] || cat "$TMP/figures"
	persistent_end
	exit
elif [ ! -e /sys/kernel/btf/vmlinux ]; then
	leave_out "waits" "the kernel has no BTF"
	check "without BTF" fails_somehow 'the kernel has no BTF .* CONFIG_DEBUG_INFO_BTF' \
		perf record "${M[@]}" -o "$TMP/q" --trigger latency/runq,over=1s/ -- true
else
	mount_slow
	check "latency/runq/" again for_a_cpu
	check "latency/offcpu/" again off_the_cpu
	check "latency/offcpu,cgroup=/" again in_a_cgroup
	check "syscall/name=fsync/" again in_a_syscall
	check "a call from before" again from_before
	if runs_32_bit; then
		check "a call that was left" again has_left
	else
		leave_out "a call that was left" "this kernel runs no program for i386"
	fi
	check "a storm is counted" counts_a_storm
	check "the recorder is left out" leaves_itself_out
	check "not as root" needs_permission
fi
check_irqoff
check "refuses what makes no sense" refuses
[ ! -e "$TMP/figures" ] || cat "$TMP/figures"
persistent_end
