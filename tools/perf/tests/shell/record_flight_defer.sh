#!/bin/bash
# perf record -M --call-graph fp,defer: user halves of call chains come later (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

CALLS=(--call-graph "fp,defer")

# A kernel without deferral has perf leave it out.
defers()
{
	perf record -q -o "$TMP/try" -e dummy "${CALLS[@]}" -- true >/dev/null 2>&1 &&
		perf evlist -v -i "$TMP/try" | grep -q defer_callchain
}

# deferred DUMP: halves that are in it, as perf script tells them
deferred()
{
	perf script -i "$1" -D 2>/dev/null | grep -c 'PERF_RECORD_CALLCHAIN_DEFERRED' || true
}

# Functions of programs are in the user halves alone.
has_user_halves()
{
	perf script -i "$1" -F comm,ip,sym 2>/dev/null >"$TMP/chains"
	grep -q ' noploop' "$TMP/chains" || { tail -n 30 "$TMP/chains"; return 1; }
}

# What has returned to user space has both halves; what sleeps in the kernel lacks one.
counts_halves()
{
	local sleeper half

	start_recorder "$TMP/a" -M 16M -a "${CALLS[@]}" -e sched:sched_switch \
		-e cpu-clock/freq=499/
	run_dead
	# It sleeps at the dump, in a switch whose user half has not come.
	sleep 60 &
	sleeper=$!
	pause 1
	dump
	kill $sleeper
	half=$(json "$DUMP" half_chains)
	echo "$(deferred "$DUMP") halves, $half missing, of $(json "$DUMP" events) samples"
	[ "$half" -gt 0 ]
	[ "$half" -lt "$(json "$DUMP" events)" ]
	[ "$(deferred "$DUMP")" -gt 0 ]
	has_user_halves "$DUMP"
	# perf verdict looks for them on its own, and sees the switches in their order.
	perf verdict --json -i "$DUMP" >"$TMP/verdict"
	grep -q "\"half_chains\": $half," "$TMP/verdict"
	not grep -q 'Not every switch' "$TMP/verdict"
	stop_recorder INT
}

# The dump of the check before: the first one of OUT
first_dump()
{
	dumps "$TMP/a" | sed -n 1p
}

# The halves of the copy can still be put together.
redacts()
{
	local before

	before=$(deferred "$(first_dump)")
	perf data redact -i "$(first_dump)" -o "$TMP/copy"
	echo "$before halves, $(deferred "$TMP/copy") in the copy"
	[ "$(deferred "$TMP/copy")" = "$before" ]
	perf verdict --json -i "$TMP/copy" >"$TMP/verdict.copy"
	[ "$(grep half_chains "$TMP/verdict.copy")" = "$(grep half_chains "$TMP/verdict")" ]
}

converts()
{
	perf data convert --to-pprof "$TMP/pprof" -i "$(first_dump)" 2>&1 | tee "$TMP/said"
	grep -q "^$(json "$(first_dump)" half_chains) samples lack" "$TMP/said"
}

# times FILE: of each task, as JSON of the page tells them. A sample that comes late has the name
# that the task had then.
times()
{
	python3 -c 'import collections, json, sys
sums = collections.Counter()
for task in json.load(open(sys.argv[1]))["tasks"]:
    for key in "switches", "on_ns", "off_ns":
        sums[task["pid"], task["tid"], key] += task[key]
for key in sorted(sums):
    print(*key, sums[key])' "$1"
}

# perf hands out a sample when its user half has come, after those of other tasks: the page has
# the same times as from samples without that half, which come in order.
page_sorts()
{
	local script

	script=$(perf --exec-path)/scripts/python/incident.py
	perf script report incident -i "$(first_dump)" --json >"$TMP/merged" 2>/dev/null
	not grep 'Not every switch' "$TMP/merged"
	grep -q 'samples lack the user half' "$TMP/merged"
	perf script --no-merge-callchains -i "$(first_dump)" -s "$script" -- \
		-i "$(first_dump)" --json 2>/dev/null |
		grep -o '{"machine".*' >"$TMP/halves"
	times "$TMP/merged" >"$TMP/times.merged"
	times "$TMP/halves" >"$TMP/times.halves"
	[ "$(wc -l <"$TMP/times.merged")" -gt 15 ]
	diff "$TMP/times.merged" "$TMP/times.halves"
}

# page_counts_halves FILE: it has no manifest; what the page tells of halves is from the records
page_counts_halves()
{
	perf script report incident -i "$1" --json >"$TMP/page.json" 2>/dev/null
	grep -q 'samples lack the user half' "$TMP/page.json"
}

# keeps_halves OUT OPTION...: wherever the records are kept until the dump
keeps_halves()
{
	start_recorder "$1" "${@:2}" -a "${CALLS[@]}" -e cpu-clock/freq=499/
	run_dead
	dump
	echo "$(deferred "$DUMP") halves, $(json "$DUMP" half_chains) missing," \
	    "of $(json "$DUMP" events) samples"
	[ "$(deferred "$DUMP")" -gt 0 ]
	[ "$(json "$DUMP" half_chains)" -lt "$(json "$DUMP" events)" ]
	has_user_halves "$DUMP"
	stop_recorder INT
}

of_a_session()
{
	perf record -q -P deferred -a "${CALLS[@]}" -e cpu-clock -F 499 -m 1M
	start_recorder "$TMP/b" -M 16M -e persistent/deferred/
	run_dead
	dump
	echo "$(deferred "$DUMP") halves, $(json "$DUMP" half_chains) missing"
	[ "$(deferred "$DUMP")" -gt 0 ]
	[ -n "$(json "$DUMP" half_chains)" ]
	has_user_halves "$DUMP"
	stop_recorder INT
	perf ctl -d deferred
}

# missing FILE: samples of a recording whose user half is not in it
missing()
{
	perf verdict --json -i "$1" | sed 's/.*"half_chains": \([0-9]*\).*/\1/; t; d' |
		grep . || echo 0
}

# samples FILE: how many there are
samples()
{
	perf script -i "$1" -F time 2>/dev/null | wc -l
}

# read_session NAME FILE [OPTION...]: as it is
read_session()
{
	perf record -q -e "persistent/$1/" -o "$2" "${@:3}"
}

# reaches_behind NAME NS: all samples of all CPUs are from after this time
reaches_behind()
{
	perf ctl -i "$1" --json | python3 -c 'import json, sys
events = [e for e in json.load(sys.stdin)["events"]
          if e["buffer"] == e["index"] and not e["sideband"] and not e["halves"]]
sys.exit(not events or any(e.get("oldest", 0) < int(sys.argv[1]) for e in events))' "$2"
}

nanoseconds()
{
	python3 -c 'import time; print(time.monotonic_ns())'
}

# wrap NAME ROUNDS: all CPUs are busy until the samples of each were overwritten so often
wrap()
{
	local cpu i rc=0 loads=()

	for cpu in $(online_cpus); do
		taskset -c "$cpu" perf test -w noploop 300 &
		loads+=($!)
	done
	for ((i = 0; i < $2 && rc == 0; i++)); do
		wait_for reaches_behind "$1" "$(nanoseconds)" || rc=1
	done
	kill "${loads[@]}"
	return $rc
}

# gone_is_named FILE: what has exited long ago
gone_is_named()
{
	perf script -i "$1" --show-mmap-events --show-task-events -F comm,pid 2>/dev/null \
		>"$TMP/named"
	grep -q 'PERF_RECORD_MMAP2.*/gone-true$' "$TMP/named"
	grep -q 'PERF_RECORD_COMM.* gone-true:' "$TMP/named"
}

# The halves are where the samples are: they leave the names alone, and reach back as far.
halves_evict_no_names()
{
	local all lack

	perf record -q -P long -a "${CALLS[@]}" -e cpu-clock -F 999 -m 256K
	cp /bin/true "$TMP/gone-true"
	"$TMP/gone-true"
	wrap long 3
	read_session long "$TMP/long"
	all=$(samples "$TMP/long") lack=$(missing "$TMP/long")
	perf ctl -i long
	echo "$lack of $all samples lack their half"
	[ "$all" -gt 100 ]
	[ $((lack * 20)) -lt "$all" ]
	gone_is_named "$TMP/long"
	# The event of the halves was not sampled.
	[ "$(perf report -i "$TMP/long" --stdio -g none 2>/dev/null |
		sed -n 's/^# Samples: .* of event //p')" = "'cpu-clock'" ]
	perf ctl -d long
}

# halves_events NAME: how many events take the halves
halves_events()
{
	perf ctl -i "$1" | grep -c '(user halves)$' || true
}

halves_of_added_events()
{
	local cpus

	cpus=$(online_cpus | wc -l)
	perf record -q -P plain -a -e cpu-clock -F 99 -m 256K
	[ "$(halves_events plain)" = 0 ]
	perf record -q -P plain --add -a "${CALLS[@]}" -e cpu-clock -F 499 -m 1M
	[ "$(halves_events plain)" = "$cpus" ]
	run_dead
	read_session plain "$TMP/plain"
	[ "$(deferred "$TMP/plain")" -gt 0 ]
	has_user_halves "$TMP/plain"
	# The session has an event that takes the halves, and each of them is there once.
	perf record -q -P plain --add -a "${CALLS[@]}" -e task-clock -F 99 -m 256K
	[ "$(halves_events plain)" = "$cpus" ]
	perf ctl -d plain
}

halves_of_tasks()
{
	local load

	perf test -w noploop 300 &
	load=$!
	perf record -q -P tasks -p $load "$@" "${CALLS[@]}" -e cpu-clock -F 499 -m 1M
	pause 2
	read_session tasks "$TMP/tasks"
	kill $load
	perf ctl -d tasks
	echo "$(missing "$TMP/tasks") of $(samples "$TMP/tasks") samples lack their half"
	[ $(($(missing "$TMP/tasks") * 20)) -lt "$(samples "$TMP/tasks")" ]
	has_user_halves "$TMP/tasks"
}

# It sleeps on CPU 0, and returns to user space on CPU 1.
run_migrant()
{
	local migrant

	cp "$(command -v sleep)" "$TMP/migrant"
	taskset -c 0 "$TMP/migrant" 2 &
	migrant=$!
	pause 1
	taskset -pc 1 $migrant >/dev/null
	wait $migrant
}

# CPU 1 is not sampled, and has a buffer for the halves alone, which holds those of others, too.
evicted_halves_are_counted()
{
	local before

	perf record -P evicted -C 0 "${CALLS[@]}" -e sched:sched_switch \
		--filter 'prev_comm == "migrant"' -m 256K 2>&1 |
		grep -c ', 128 KiB for user halves where nothing is sampled) \]$'
	has '^ *1 +[0-9]+ +[0-9]+ +128 .*\(user halves\)' perf ctl -i evicted
	run_migrant
	read_session evicted "$TMP/whole"
	before=$(missing "$TMP/whole")
	echo "$before of $(samples "$TMP/whole") samples lack their half"
	[ "$(samples "$TMP/whole")" -gt "$before" ]
	# Those of CPU 1 are of samples of CPU 0.
	read_session evicted "$TMP/cpu0" -C 0
	[ "$(missing "$TMP/cpu0")" = "$before" ]
	perf record -q -P others -C 1 "${CALLS[@]}" -e cpu-clock -F 999 -m 256K
	wrap_halves evicted "$(nanoseconds)"
	perf ctl -d others
	read_session evicted "$TMP/evicted"
	echo "$(missing "$TMP/evicted") of $(samples "$TMP/evicted"), later"
	[ "$(samples "$TMP/evicted")" = "$(samples "$TMP/whole")" ]
	[ "$(missing "$TMP/evicted")" -gt "$before" ]
	# A dump counts them as well.
	start_recorder "$TMP/e" -M 16M -e persistent/evicted/
	dump
	[ "$(json "$DUMP" half_chains)" = "$(missing "$TMP/evicted")" ]
	stop_recorder INT
	perf ctl -d evicted
	page_counts_halves "$TMP/evicted"
}

# halves_reach_behind NAME NS: those of CPU 1
halves_reach_behind()
{
	perf ctl -i "$1" --json | python3 -c 'import json, sys
sys.exit(not any(e["halves"] and e["cpu"] == 1 and e.get("oldest", 0) > int(sys.argv[1])
                 for e in json.load(sys.stdin)["events"]))' "$2"
}

wrap_halves()
{
	local load rc=0

	taskset -c 1 perf test -w noploop 300 &
	load=$!
	wait_for halves_reach_behind "$@" || rc=1
	kill $load
	return $rc
}

# make_without_cpu1 OPTION...: then it comes, and joins
make_without_cpu1()
{
	local online=/sys/devices/system/cpu/cpu1/online rc=0

	echo 0 >$online
	perf record -q -P joined "$@" "${CALLS[@]}" -e cpu-clock -F 499 -m 256K || rc=1
	echo 1 >$online
	perf ctl --join-cpu=1 joined
	return $rc
}

# A CPU that comes later has the halves in the buffer of its samples, or in a small one.
joined_cpu_has_halves()
{
	make_without_cpu1 -a
	has '^ *1 +0 +0 +256 .* runs +cpu-clock' perf ctl -i joined
	has '^ *1 +1 +0 +256 .* runs +dummy.*\(user halves\)' perf ctl -i joined
	has '^ *1 +2 +2 +128 .* runs +dummy.*\(side-band\)' perf ctl -i joined
	taskset -c 1 perf test -w noploop 1
	read_session joined "$TMP/joined"
	has_user_halves "$TMP/joined"
	perf ctl -d joined
	make_without_cpu1 -C 0
	has '^ *1 +0 +0 +128 .* runs +dummy.*\(user halves\)' perf ctl -i joined
	has '^ *1 +1 +1 +128 .* runs +dummy.*\(side-band\)' perf ctl -i joined
	perf ctl -d joined
}

flight_begin
if ! defers; then
	leave_out "deferred call chains" "this kernel does not defer them"
	persistent_end
	exit 2
fi
check "halves that are missing are counted" counts_halves
check "a redacted copy keeps the halves" redacts
check "conversions have whole chains" converts
check "the page has the records in order" page_sorts
check "in the kernel's buffers" keeps_halves "$TMP/o" -M 16M --overwrite
check "with a share for each cgroup" keeps_halves "$TMP/f" -M 16M --fair cgroup
if supported; then
	check "of a session" of_a_session
	check "halves evict no names" halves_evict_no_names
	check "of added events" halves_of_added_events
	check "of tasks" halves_of_tasks
	check "of threads with buffers of their own" halves_of_tasks --per-thread
	check "halves that were evicted are counted" evicted_halves_are_counted
	if [ -e /sys/devices/system/cpu/cpu2 ]; then
		check "of a CPU that joins" joined_cpu_has_halves
	else
		leave_out "of a CPU that joins" "this machine has two CPUs"
	fi
else
	leave_out "of a session" "this kernel has no persistent events"
fi
persistent_end
