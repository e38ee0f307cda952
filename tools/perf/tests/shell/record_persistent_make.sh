#!/bin/bash
# perf record -P makes persistent sessions, all or nothing
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

makes_and_tells()
{
	local text

	text=$(perf record -P tm -e cpu-clock,sched:sched_switch -a 2>&1)
	grep -q "persistent session 'tm' (id [0-9]*): recording cpu-clock, sched:" <<<"$text"
	grep -q ' KiB of memory' <<<"$text"
	grep -q 'perf record -e persistent/tm/' <<<"$text"
	grep -q 'perf ctl -d tm' <<<"$text"
}

is_listed()
{
	[ "$(sessions)" = tm ]
	has '^tm ' perf ctl -l
	has 'persistent/tm/' perf list pmu
}

has_two_buffers_per_cpu()
{
	local cpu

	for cpu in $(online_cpus); do
		has "^ *$cpu +0 +0 +128 .*dummy.*\(side-band\)" perf ctl -i tm
		has "^ *$cpu +1 +1 +512 .*cpu-clock" perf ctl -i tm
		has "^ *$cpu +2 +1 +512 .*sched:sched_switch" perf ctl -i tm
	done
	# sysfs counts the header pages as well.
	[ "$(cat $PERSISTENT_SYSFS/sessions/tm/memory)" = \
	  $(($(online_cpus | wc -l) * (512 + 128 + 2 * $(getconf PAGESIZE) / 1024) * 1024)) ]
}

newest()
{
	perf record -e persistent/tm/ -N -o "$TMP/n" >/dev/null 2>&1
	perf script -i "$TMP/n" -F time 2>/dev/null | tail -n 1 | tr -d ' :'
}

outlives_its_maker()
{
	local first second

	not pgrep -f 'perf record -P tm'
	first=$(newest)
	perf bench sched pipe -l 100 >/dev/null
	second=$(newest)
	echo "newest sample at $first, later at $second"
	awk -v a="$first" -v b="$second" 'BEGIN { exit !(a > 0 && b > a) }'
}

taken_name_is_refused()
{
	local id

	id=$(cat $PERSISTENT_SYSFS/sessions/tm/id)
	fails 1 '--add .*--replace' perf record -P tm -e cpu-clock -a
	[ "$(cat $PERSISTENT_SYSFS/sessions/tm/id)" = "$id" ]
	[ "$(sessions)" = tm ]
}

adds()
{
	local cpus before

	cpus=$(online_cpus | wc -l)
	before=$(cat $PERSISTENT_SYSFS/sessions/tm/nr_events)
	perf record -P tm --add -e sched:sched_process_exit -a 2>&1 | tee "$TMP/added.log"
	grep -q 'per CPU 512 KiB for samples)' "$TMP/added.log"
	# No second side-band event, and no word of one.
	lacks side-band cat "$TMP/added.log"
	[ "$(cat $PERSISTENT_SYSFS/sessions/tm/nr_events)" = $((before + cpus)) ]
	/bin/true
	perf record -e persistent/tm/ -N -o "$TMP/added" 2>/dev/null
	has sched_process_exit perf script -i "$TMP/added" -F event
	fails 1 'without --add' perf record -P tnone --add -e cpu-clock -a
	[ "$(sessions)" = tm ]
}

replaces()
{
	local id

	id=$(cat $PERSISTENT_SYSFS/sessions/tm/id)
	perf record -P tm --replace -e cpu-clock -m 64K -a
	[ "$(cat $PERSISTENT_SYSFS/sessions/tm/id)" -gt "$id" ]
	has '^ *0 +1 +1 +64 .*cpu-clock' perf ctl -i tm
	lacks sched perf ctl -i tm
}

# The new events cannot be opened: the old ones go on.
failed_replace_keeps_the_old()
{
	local id

	id=$(cat $PERSISTENT_SYSFS/sessions/tm/id)
	fails 1 'CPU 4095 is not online' perf record -P tm --replace -e cpu-clock -C 0,4095
	[ "$(cat $PERSISTENT_SYSFS/sessions/tm/id)" = "$id" ]
}

# It may lock memory while it runs, but not leave it locked.
without_ipc_lock()
{
	# shellcheck disable=SC2016 # for the inner shell
	setpriv --bounding-set=-ipc_lock --inh-caps=-all \
		sh -c 'ulimit -l unlimited; exec "$@"' sh "$@"
}

# The kernel refuses at the last step: nothing is made, ended or added.
refused_at_the_end()
{
	local id before

	id=$(cat $PERSISTENT_SYSFS/sessions/tm/id)
	before=$(cat $PERSISTENT_SYSFS/sessions/tm/nr_events)
	fails 1 'mlock_kb' without_ipc_lock perf record -P tu -m 4M -e cpu-clock -a
	fails 1 'was not replaced' \
		without_ipc_lock perf record -P tm --replace -m 4M -e cpu-clock -a
	fails 1 'mlock_kb' without_ipc_lock perf record -P tm --add -m 4M -e cs,cpu-clock -a
	[ "$(sessions)" = tm ]
	[ "$(cat $PERSISTENT_SYSFS/sessions/tm/id)" = "$id" ]
	[ "$(cat $PERSISTENT_SYSFS/sessions/tm/nr_events)" = "$before" ]
	perf record -e persistent/tm/ -N -o "$TMP/u" 2>/dev/null
}

adds_with_the_same_clock()
{
	fails 1 'clock of the persistent session' \
		perf record -P tm --add -k monotonic_raw -e cs -a
}

side_band_is_of_all_cpus()
{
	local cpu

	perf record -P tc -e cpu-clock -C 0
	for cpu in $(online_cpus); do
		has "^ *$cpu .*side-band" perf ctl -i tc
	done
	[ "$(perf ctl -i tc | grep -c 'cpu-clock')" = 1 ]
	perf ctl -d tc
}

# One CPU is offline: no session, not on the other CPUs either.
all_or_nothing()
{
	local online=/sys/devices/system/cpu/cpu1/online rc=0

	[ -w $online ] || { echo "CPU 1 cannot go offline"; return 1; }
	echo 0 >$online
	fails 1 'CPU 1 is not online' perf record -P tn -e cpu-clock -C 0,1 || rc=1
	echo 1 >$online
	[ $rc = 0 ]
	lacks tn sessions
}

# A CPU that was not there when the session was made comes in later, with side-band.
adds_a_cpu()
{
	local online=/sys/devices/system/cpu/cpu1/online

	[ -w $online ] || { echo "CPU 1 cannot go offline"; return 1; }
	echo 0 >$online
	perf record -P th -e cpu-clock -a || touch "$TMP/failed"
	echo 1 >$online
	[ ! -e "$TMP/failed" ]
	lacks '^ *1 ' perf ctl -i th
	perf record -P th --add -C 1 -e cpu-clock
	has '^ *1 +0 +0 +128 .*side-band' perf ctl -i th
	has '^ *1 +1 +1 +512 .*cpu-clock' perf ctl -i th
	taskset -c 1 perf test -w noploop 1
	perf record -e persistent/th/ -N -o "$TMP/th" 2>/dev/null
	has '^ *perf(-noploop)? .*001' perf script -i "$TMP/th" -F comm,cpu
	perf ctl -d th
}

# However many samples come, who ran is known: their records are in a buffer of their own.
bursts_keep_the_side_band()
{
	cp /bin/true "$TMP/early-bird"
	perf record -q -P tb -m 4K -e cpu-clock -F 999 -a
	"$TMP/early-bird"
	# One page holds no 100 samples.
	perf test -w noploop 2
	perf ctl -i tb --json >"$TMP/tb.json"
	python3 - "$TMP/tb.json" <<-'EOF'
	import json, sys
	d = json.load(open(sys.argv[1]))["events"]
	print(d)
	assert any(e["wrapped"] for e in d if not e["sideband"])
	# On a CPU where nothing was started it is empty.
	assert not any(e["wrapped"] for e in d if e["sideband"] and "oldest" in e)
	EOF
	perf record -e persistent/tb/ -N -o "$TMP/tb" 2>/dev/null
	has 'COMM exec: early-bird' perf script -i "$TMP/tb" --show-task-events
	perf ctl -d tb
}

takes_filters_and_clocks()
{
	perf record -P tf -e sched:sched_process_exec --filter 'filename ~ "*/true"' -a
	/bin/true
	/bin/false || true
	perf record -e persistent/tf/ -N -o "$TMP/f" 2>/dev/null
	has true perf script -i "$TMP/f" -F comm
	lacks false perf script -i "$TMP/f" -F comm
	has 'clockid: 1' perf evlist -v -i "$TMP/f"
	perf record -P tf --replace -k monotonic_raw -e cpu-clock -a
	perf record -e persistent/tf/ -N -o "$TMP/f" 2>/dev/null
	has 'clockid: 4' perf evlist -v -i "$TMP/f"
	perf ctl -d tf
}

is_quiet()
{
	[ -z "$(perf record -q -P tq -e cpu-clock -a 2>&1)" ]
	perf ctl -d tq
}

# Without CAP_PERFMON: none by default, then under names of their own.
users_have_their_own_names()
{
	users_may_make 0
	fails 1 'CAP_PERFMON' as_user perf record -P tn -m 64K -e cpu-clock:u -C 0
	echo 2 >/proc/sys/kernel/perf_persistent_max
	as_user perf record -P tn -m 64K -e cpu-clock:u -C 0 2>&1 | tee "$TMP/tn"
	grep -F "persistent session 'u65534.tn'" "$TMP/tn"
	grep -F 'perf record -e persistent/u65534.tn/' "$TMP/tn"
	as_user perf ctl -i tn
	as_user perf ctl -i u65534.tn | grep 'owner 65534'
	fails 1 'already exists' as_user perf record -P tn -m 64K -e cpu-clock:u -C 0
	as_user perf record -q -P tn --add -m 64K -e cpu-clock:u -C 0

	# Root's is another, and the user's stays.
	perf record -q -P tn -e cpu-clock -C 0
	sessions | grep -x tn
	perf ctl -l | grep '^u65534.tn '
	as_user perf record -q -P tn --replace -m 64K -e cpu-clock:u -C 0
	as_user perf ctl -d u65534.tn
	perf ctl -d tn
	sessions | not grep -q tn
}

leaves_no_memory()
{
	local before after kib

	sessions | xargs -r perf ctl -d
	sleep 2
	before=$(used_kib)
	kib=$((16384 * $(online_cpus | wc -l)))
	for _ in 1 2 3 4; do
		perf record -q -P tl -m 16M -e cpu-clock -F 199 -a
		perf ctl -d tl
	done
	# What others use moves by some hundred KiB.
	after=$(used_kib $((before + 2048)))
	echo "in use: $before KiB, after 4 sessions of $kib KiB each: $after KiB"
	[ "$after" -le $((before + 2048)) ]
	[ -z "$(sessions)" ]
}

persistent_begin
check "makes a session, and tells what it made and how to read it" makes_and_tells
check "the session is listed by sysfs, perf ctl and perf list" is_listed
check "each CPU has a sample buffer that its events share, and one for side-band" \
	has_two_buffers_per_cpu
check "the session goes on recording when its maker has exited" outlives_its_maker
check "a name that is taken is refused, and the session stays" taken_name_is_refused
check "--add adds events, and needs a session" adds
check "--replace ends the session and makes it anew" replaces
check "--replace that cannot open its events keeps the old session" failed_replace_keeps_the_old
check "what the kernel refuses at the last step changes nothing" refused_at_the_end
check "--add with another clock is refused" adds_with_the_same_clock
check "with -C the side-band is still of all CPUs" side_band_is_of_all_cpus
check "an event that fails on one CPU leaves no session" all_or_nothing
check "--add -C N brings in a CPU that was not there" adds_a_cpu
check "a burst of samples does not evict the side-band" bursts_keep_the_side_band
check "filters and clocks belong to the session" takes_filters_and_clocks
check "-q prints nothing" is_quiet
check "users without CAP_PERFMON have names of their own, and as many as allowed" \
	users_have_their_own_names
check "sessions that ended leave no memory behind" leaves_no_memory
persistent_end
