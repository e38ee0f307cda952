#!/bin/bash
# perf record -e persistent/NAME/ reads live sessions
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

snapshot()
{
	perf record -e "persistent/$1/" -N -o "$2" "${@:3}"
}

reads()
{
	perf test -w noploop 1
	snapshot tr "$TMP/d" 2>&1 | tee "$TMP/log"
	grep -q "samples, 0 lost) from persistent session 'tr'" "$TMP/log"
	[ "$(grep -c 'CPU [0-9]*: samples: .* window' "$TMP/log")" = "$(online_cpus | wc -l)" ]
}

has_the_real_events()
{
	"$BASE_PERF" evlist -v -i "$TMP/d" | tee "$TMP/evlist"
	grep -q '^cpu-clock: type: 1 .*write_backward: 1' "$TMP/evlist"
	grep -q '^sched:sched_switch: type: 2' "$TMP/evlist"
	grep -q '^dummy.*mmap: 1, comm: 1.*build_id: 1' "$TMP/evlist"
	not grep -q 'type: 6' "$TMP/evlist"
}

# noploop's process has exited long before the file was written.
names_the_dead()
{
	other_perf report -i "$TMP/d" --stdio -g none --no-children --sort comm,dso,sym \
		>"$TMP/report" 2>&1
	head -n 30 "$TMP/report"
	grep -qE '^ *[0-9.]+% +perf(-noploop)? +perf +\[\.\] noploop' "$TMP/report"
	grep -q 'Total Lost Samples: 0' "$TMP/report"
}

script_is_ordered()
{
	other_perf script -i "$TMP/d" -F cpu,time 2>"$TMP/err" >"$TMP/script"
	cat "$TMP/err"
	not grep -qi 'out of order\|invalid\|corrupt\|failed' "$TMP/err"
	[ -s "$TMP/script" ]
	tr -d '[]:' <"$TMP/script" | awk -v want="$(online_cpus | wc -l)" '
		{ bad = bad || $2 < t; t = $2; cpu[$1] = 1 }
		END { for (c in cpu) n++; print n, "CPUs"; exit bad || n < want }'
}

has_clock_rounds_and_build_ids()
{
	local now last

	"$BASE_PERF" report -i "$TMP/d" --header-only | tee "$TMP/header"
	grep -q 'clockid: monotonic' "$TMP/header"
	grep -q 'reference time' "$TMP/header"
	has 'PERF_RECORD_FINISHED_ROUND' other_perf report -i "$TMP/d" -D
	"$BASE_PERF" buildid-list -i "$TMP/d" | tee "$TMP/ids"
	grep -q 'kernel.kallsyms' "$TMP/ids"
	grep -q '/perf$' "$TMP/ids"
	# The last sample was taken since this script began.
	last=$(other_perf script -i "$TMP/d" -F tod 2>/dev/null | tail -n 1 | sed 's/\..*//')
	now=$(date +%s)
	echo "last sample: $last, begun at $(date -d "@$BEGUN")"
	[ "$(date -d "$last" +%s)" -ge "$BEGUN" ]
	[ "$(date -d "$last" +%s)" -le "$now" ]
}

# samples FILE CPU: one a line, with its call chain; the time comes first
samples()
{
	perf script -i "$1" -C "$2" --ns -F time,pid,event,ip 2>/dev/null | awk '
		NF == 0 { if (line) print line; line = ""; next }
		line == "" { time = $2; sub(":", "", time); line = time }
		{ for (i = 1; i <= NF; i++) line = line " " $i }
		END { if (line) print line }'
}

first_time()
{
	head -n 1 "$1" | cut -d' ' -f1
}

last_time()
{
	tail -n 1 "$1" | cut -d' ' -f1
}

# The samples that lie in the windows of both files.
common()
{
	local from to f

	from=$( (first_time "$1"; first_time "$2") | sort -n | tail -n 1)
	to=$( (last_time "$1"; last_time "$2") | sort -n | head -n 1)
	for f in "$1" "$2"; do
		awk -v from="$from" -v to="$to" '$1 >= from && $1 <= to' "$f" >"$f.common"
	done
}

two_readers_see_the_same()
{
	local cpu i

	snapshot tr "$TMP/r1" 2>/dev/null &
	snapshot tr "$TMP/r2" 2>/dev/null
	wait $!
	for cpu in $(online_cpus); do
		for i in 1 2; do
			samples "$TMP/r$i" "$cpu" >"$TMP/r$i.$cpu"
		done
		common "$TMP/r1.$cpu" "$TMP/r2.$cpu"
		wc -l "$TMP/r1.$cpu" "$TMP/r1.$cpu.common"
		head -n 3 "$TMP/r1.$cpu.common"
		[ "$(wc -l <"$TMP/r1.$cpu.common")" -gt 100 ]
		cmp "$TMP/r1.$cpu.common" "$TMP/r2.$cpu.common"
	done
}

reads_by_id()
{
	local id

	id=$(cat $PERSISTENT_SYSFS/sessions/tr/id)
	snapshot "config=$id" "$TMP/id" 2>&1 | grep "session 'tr'"
	snapshot "config=$(printf 0x%x "$id")" "$TMP/id" 2>&1 | grep "session 'tr'"
}

reads_some_cpus()
{
	snapshot tr "$TMP/c" -C 0 2>/dev/null
	[ "$(other_perf script -i "$TMP/c" -F cpu 2>/dev/null | sort -u | tr -d ' []')" = 000 ]
	perf record -q -P tz -e cpu-clock -C 1
	fails 1 'no events on CPUs 0' perf record -e persistent/tz/ -C 0 -o "$TMP/z"
	perf ctl -d tz
	[ ! -e "$TMP/z" ]
}

# What is of the session itself, not of its buffers.
session_of()
{
	perf ctl -i "$1" --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
for e in d["events"]:
    for key in "oldest", "newest", "wrapped":
        e.pop(key, None)
print(d)'
}

# changes_nothing [COMMAND...]: a second reader, after the command, finds all that the first one
# found, from where its window begins.
changes_nothing()
{
	local before cpu i

	before=$(session_of tr)
	snapshot tr "$TMP/x1" 2>/dev/null
	"${@:-true}"
	snapshot tr "$TMP/x2" 2>/dev/null
	[ "$(session_of tr)" = "$before" ]
	for cpu in $(online_cpus); do
		for i in 1 2; do
			samples "$TMP/x$i" "$cpu" >"$TMP/x$i.$cpu"
		done
		common "$TMP/x1.$cpu" "$TMP/x2.$cpu"
		wc -l "$TMP/x1.$cpu" "$TMP/x1.$cpu.common" "$TMP/x2.$cpu"
		[ "$(wc -l <"$TMP/x1.$cpu.common")" -gt 100 ]
		cmp "$TMP/x1.$cpu.common" "$TMP/x2.$cpu.common"
		# It went on recording.
		[ "$(last_time "$TMP/x1.$cpu")" != "$(last_time "$TMP/x2.$cpu")" ]
	done
}

# not_counted ERROR [OPTION...]: perf stat of 6.12 runs its command, that of 7.3 fails before
not_counted()
{
	local error=$1 text rc=0

	shift
	text=$("$BASE_PERF" stat "$@" -e persistent/tr/ touch "$TMP/counted" 2>&1) || rc=$?
	printf '%s\n' "$text"
	if [ $rc = 0 ]; then
		grep -qE '<not supported> +persistent/tr/' <<<"$text"
		rm "$TMP/counted"
	else
		[ $rc = 1 ]
		grep -qx 'No supported events found.' <<<"$text"
		grep -qE "$error" <<<"$text"
		[ ! -e "$TMP/counted" ]
	fi
}

# One from before there were sessions: as perf_persistent.rst says
older_perf()
{
	has '^ *persistent/tr/ .*Kernel PMU event' "$BASE_PERF" list
	not_counted 'persistent/tr/.* in per-thread mode'
	not_counted 'persistent/tr/.*Invalid argument' -a
	fails 255 'persistent/tr/.* in per-thread mode' "$BASE_PERF" record -e persistent/tr/ \
		-o "$TMP/b" touch "$TMP/ran"
	fails 255 'Invalid argument.*persistent/tr/|persistent/tr/.*Invalid argument' \
		"$BASE_PERF" record -a -e persistent/tr/ -o "$TMP/b" touch "$TMP/ran"
	[ ! -e "$TMP/ran" ]
	[ ! -s "$TMP/b" ]
}

# The tracepoint cannot go while it is recorded, and the file knows its fields when it has.
tracepoints_that_go()
{
	local events=/sys/kernel/tracing/kprobe_events

	[ -e $events ] || mount -t tracefs none /sys/kernel/tracing
	echo 'p:persistent/opened do_sys_openat2 dfd=%di:s32' >>$events
	perf record -q -P tp -e persistent:opened -a
	cat /dev/null
	not sh -c "echo -:persistent/opened >>$events"
	snapshot tp "$TMP/tp" 2>/dev/null
	perf ctl -d tp
	echo -:persistent/opened >>$events
	not grep -q opened $events
	has 'persistent:opened: .*dfd=-100' other_perf script -i "$TMP/tp" -F comm,event,trace
}

# What was there before the command, and what came while it ran.
reads_until_a_command_ends()
{
	local rc=0

	perf record -q -P tw -e cpu-clock -m 4M -a
	perf test -w noploop 1
	snapshot tw "$TMP/w" -- sh -c 'exec perf test -w thloop 1' 2>&1 | tee "$TMP/log"
	other_perf report -i "$TMP/w" --stdio -g none --no-children --sort sym \
		>"$TMP/report" 2>/dev/null
	grep -q '\] noploop' "$TMP/report"
	grep -q '\] test_loop' "$TMP/report"
	# Nothing twice.
	other_perf script -i "$TMP/w" --ns -F cpu,time,event 2>/dev/null >"$TMP/script"
	[ -z "$(sort "$TMP/script" | uniq -d)" ]
	snapshot tw "$TMP/w" -- sh -c 'exit 7' 2>/dev/null || rc=$?
	[ $rc = 7 ]
	rm -f "$TMP/w"
	fails 1 'No such file' perf record -e persistent/tw/ -N -o "$TMP/w" -- "$TMP/nothing"
	[ ! -e "$TMP/w" ]
	perf ctl -d tw
}

refuses_strangers()
{
	chmod 711 "$TMP"
	fails 1 'No permission' setpriv --reuid=65534 --clear-groups --inh-caps=-all \
		perf record -e persistent/tr/ -o "$TMP/s"
	fails 1 'No permission' setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl -d tr
	sessions | grep -q '^tr$'
}

kills()
{
	snapshot tr "$TMP/k" --kill 2>&1 | grep "persistent session 'tr' ended"
	has . other_perf script -i "$TMP/k" -F time
	lacks '^tr$' sessions
	fails 1 "No persistent session 'tr'" perf record -e persistent/tr/ -o "$TMP/none"
	[ ! -e "$TMP/none" ]
}

# The file cannot be written: then the session must not end.
kills_only_what_is_saved()
{
	perf record -q -P tk -e cpu-clock -a
	fails 1 . perf record -e persistent/tk/ -o "$TMP/no/such/dir" --kill
	sessions | grep -q '^tk$'
	perf ctl -d tk
}

# The disk is full when the file's last part is written.
kills_only_what_is_saved_whole()
{
	local size

	perf record -q -P tk -m 64K -e sched:sched_switch,cpu-clock -a
	snapshot tk "$TMP/full" 2>/dev/null
	size=$("$BASE_PERF" report -i "$TMP/full" --header-only | awk '/feat offset/ { print $NF }')
	mkdir "$TMP/small"
	mount -t tmpfs -o "size=$((size + 16384))" none "$TMP/small"
	fails 1 . perf record -e persistent/tk/ -o "$TMP/small/d" --kill || touch "$TMP/failed"
	umount "$TMP/small"
	[ ! -e "$TMP/failed" ]
	sessions | grep -q '^tk$'
	perf ctl -d tk
}

# The file cannot be written: the command, which waits to be started, ends. A session is
# described once, before its records, also where the tail of the file is asked for.
gives_up_before_a_command()
{
	local rc=0

	mkdir "$TMP/full"
	mount -t tmpfs -o size=4k none "$TMP/full"
	timeout -k 5 300 perf record -q -e persistent/tr/ -o "$TMP/full/f" -- sleep 100000 ||
		rc=$?
	umount "$TMP/full"
	[ $rc != 0 ] && [ $rc != 124 ] && [ $rc != 137 ]
	perf record -q --tail-synthesize -e persistent/tr/ -o "$TMP/tail"
	has . perf script -i "$TMP/tail" -F time
}

# A device would be lost, with /dev as with this link.
removes_only_its_file()
{
	: >"$TMP/file"
	ln -s file "$TMP/link"
	fails 1 'No such file' perf record -e persistent/tr/ -N -o "$TMP/link" -- "$TMP/nothing"
	[ -L "$TMP/link" ]
}

ids_are_numbers()
{
	local id

	id=$(cat $PERSISTENT_SYSFS/sessions/tr/id)
	fails 1 'No persistent session' perf ctl -d "id=${id}x"
	fails 1 'No persistent session' perf ctl -d id=
	sessions | grep -q '^tr$'
}

has_bpf_programs()
{
	grep -lq '^prog_type' "/proc/$1"/fdinfo/*
}

# As on each machine with systemd
names_bpf_programs()
{
	local tracer

	# It ends with SIGINT alone, which a shell ignores for what runs in the background.
	perf lock contention -ab >"$TMP/tracer" 2>&1 &
	tracer=$!
	for _ in $(seq 300); do
		! has_bpf_programs $tracer || break
		pause 0.2
	done
	has_bpf_programs $tracer || { cat "$TMP/tracer"; return 1; }
	perf record -N -e persistent/tr/ -o "$TMP/bpf.data"
	kill -KILL $tracer
	wait $tracer || true
	perf script -i "$TMP/bpf.data" --show-bpf-events >"$TMP/bpf.text"
	grep -c 'PERF_RECORD_KSYMBOL.* bpf_prog_' "$TMP/bpf.text"
	grep -c PERF_RECORD_BPF_EVENT "$TMP/bpf.text"
}

# Whoever reads a session that somebody ends has all of it, or a sentence.
ends_while_it_is_read()
{
	local rc i

	for i in 1 3 5; do
		perf record -q -P te -e cpu-clock,sched:sched_switch -a
		(sleep "0.$i"; exec perf ctl -d te) &
		rc=0
		snapshot te "$TMP/e" >"$TMP/log" 2>&1 || rc=$?
		wait $! || return 1
		cat "$TMP/log"
		if [ $rc = 0 ]; then
			other_perf script -i "$TMP/e" >/dev/null 2>"$TMP/err" || return 1
			not grep -qi 'failed to process' "$TMP/err"
		else
			grep -q "session 'te'" "$TMP/log"
		fi
		lacks '^te$' sessions
	done
}

persistent_begin
BEGUN=$(date +%s)
perf record -q -P tr -e cpu-clock/freq=999/,sched:sched_switch -g -m 1M -a
check "a snapshot is taken without losing an event, and tells the window of each CPU" reads
check "the file holds the attributes of the real events" has_the_real_events
check "another perf names the functions of a process that has exited" names_the_dead
check "another perf's script prints all CPUs, in order" script_is_ordered
check "clock reference, rounds and build-ids are in the file" has_clock_rounds_and_build_ids
check "two readers at once see the same records" two_readers_see_the_same
check "a session is found by its id" reads_by_id
check "-C reads the samples of these CPUs alone" reads_some_cpus
check "reading changes nothing" changes_nothing
if [ "$BASE_PERF" != perf ]; then
	check "an older perf lists a session, and can neither read nor end it" \
		changes_nothing older_perf
else
	leave_out "an older perf lists a session" "BASE_PERF does not name one"
fi
check "a session's tracepoint stays, and a file does without it" tracepoints_that_go
check "with a command: what is there, and what comes until it ends" reads_until_a_command_ends
check "perf does not wait for a command that was not started" gives_up_before_a_command
check "a failure removes the file it made, and nothing else" removes_only_its_file
check "an id is a number to its end" ids_are_numbers
check "a session that ends while it is read" ends_while_it_is_read
if perf version --build-options | grep 'bpf_skeletons: \[ on' >/dev/null; then
	check "BPF programs have names" names_bpf_programs
else
	leave_out "BPF programs have names" "this perf was built without BPF skeletons"
fi
check "neither reading nor ending is for strangers" refuses_strangers
check "--kill ends the session" kills
check "--kill does not end a session that could not be saved" kills_only_what_is_saved
check "--kill does not end a session whose file is incomplete" kills_only_what_is_saved_whole
persistent_end
