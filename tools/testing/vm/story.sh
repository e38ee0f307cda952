#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The story of 'make run', in the test machine: a session survives the SIGKILL of all
# processes that created it, is opened again by its name, and shows the function in which a
# program spent its time that has exited.
#
# Each step is checked. If a check fails, the story ends with status 1. The files stay in
# $OUT.
set -euo pipefail
# shellcheck source=tools/perf/tests/shell/lib/persistent.sh
. "$TOP/tools/perf/tests/shell/lib/persistent.sh"
# shellcheck source=tools/testing/vm/story-hot.sh
. "$TOP/tools/testing/vm/story-hot.sh"

export SESSION=blackbox
SYSFS=/sys/bus/event_source/devices/persistent
DATA=/tmp/$SESSION.data
export HOME=/tmp

# The work of the recorder and its children. It runs until it is killed.
# shellcheck disable=SC2317 # runs in a shell of its own
recorder()
{
	perf record -P "$SESSION" -e cpu-clock/freq=999/,sched:sched_switch -g -a -m 8M
	perf bench sched messaging -g 2 -l 200
	"$HOT" 3 &
	echo $! >/tmp/hot.pid
	for _ in 1 2 3; do
		gzip -c "$BUILD"/patched/src/kernel/events/*.c >/tmp/real-files.gz
	done
	wait $!
	touch /tmp/hot-has-exited
	while :; do
		gzip -c "$BUILD"/patched/src/kernel/events/*.c >/tmp/real-files.gz
	done
}

make_and_kill()
{
	local group seconds=0

	rm -f /tmp/hot-has-exited
	setsid bash -c "$(declare -f recorder); recorder" &
	group=$!
	until [ -e /tmp/hot-has-exited ]; do
		kill -0 $group 2>/dev/null || fail "the recorder ended by itself"
		sleep 0.5
		seconds=$((seconds + 1))
		[ $seconds -lt 240 ] || fail "the workload does not end"
	done
	sleep 1
	echo
	echo "the program with the hot function, pid $(cat /tmp/hot.pid), has exited"
	echo "SIGKILL to the recorder, its shell and its workload: process group $group"
	kill -KILL -- -$group
	wait $group 2>/dev/null || true
	! pgrep -g $group >/dev/null || fail "somebody survived SIGKILL"
	[ ! -e "/proc/$(cat /tmp/hot.pid)" ] || fail "the program still lives"
}

list_sessions()
{
	show perf ctl -l
	perf ctl -l | grep -q "^$SESSION " || fail "the session is gone with its maker"
	echo
	show perf ctl -i $SESSION
	echo
	printf '$ perf list | grep persistent\n'
	perf list 2>/dev/null | grep "persistent/$SESSION/" || fail "perf list does not know it"
}

snapshot()
{
	show perf record -e persistent/$SESSION/ -N -o "$DATA" 2>&1 | tee /tmp/snapshot.log
	grep -q ' 0 lost)' /tmp/snapshot.log || fail "events were lost"
}

summary()
{
	local percent

	percent=$(hot_percent "$OUT/$SESSION.report")
	printf 'The dead program:  pid %s, %s() of story-hot: %s %% of all cpu-clock samples\n' \
		"$(cat /tmp/hot.pid)" $HOT_FUNCTION "$percent"
	sed -n 's/^\[ perf record: \(CPU .*\): samples: \(.*\) ]$/Window of \1:   \2/p' \
		/tmp/snapshot.log
	sed -n 's/.*(\(.*\) samples, \(.*\) lost).*/Samples:           \1, lost: \2/p' \
		/tmp/snapshot.log
	cp "$DATA" "$OUT"
	echo "Recording:         $OUT/$SESSION.data ($(stat -c %s "$DATA") bytes)"
}

end_session()
{
	local memory after

	memory=$(($(cat $SYSFS/sessions/$SESSION/memory) / 1024))
	show perf ctl -d $SESSION
	show perf ctl -l
	[ -z "$(ls $SYSFS/sessions)" ] || fail "sysfs still lists a session"
	[ -z "$(ls $SYSFS/events)" ] || fail "sysfs still lists an event"
	# Per-CPU page lists and slabs vary by up to 12 MiB, so the session is larger than that.
	after=$(used_kib $((used_before + memory)))
	[ "$after" -le $((used_before + memory)) ] ||
		fail "$((after - used_before)) KiB more in use than before, the session had $memory"
	echo "sysfs is empty; the session had $memory KiB;" \
	     "memory in use: $used_before KiB before, $after KiB now"
}

main()
{
	# Before any large program has run.
	used_before=$(used_kib)
	echo "Linux $(uname -r), $(nproc) CPUs, $(perf --version)"
	# Sampling is slow in an emulator. Prevent the kernel from reducing the rate.
	echo 0 >/proc/sys/kernel/perf_cpu_time_max_percent
	chapter "1. A recorder makes the session '$SESSION', works, and is killed"
	make_and_kill
	chapter "2. A new process: which sessions are there?"
	list_sessions
	chapter "3. Read it, live"
	snapshot
	chapter "4. What happened before? (the first lines)"
	show_report "$DATA" "$OUT/$SESSION.report" 20
	chapter "5. End it"
	end_session
	chapter "Report"
	summary
}

main
