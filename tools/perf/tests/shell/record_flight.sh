#!/bin/bash
# perf record -M: a flight recorder (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# FLIGHT_SHORT: leave out what is the same on any kernel
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

records_and_dumps()
{
	start_recorder "$TMP/a" -M 16M -e cpu-clock -F 499 -a
	run_dead
	dump
	[ "$(stat -c %a "$DUMP")" = 600 ]
	[ "$(stat -c %a "$DUMP.json")" = 600 ]
	[[ $DUMP =~ \.sample\.[0-9]{8}T[0-9]{6}\.[0-9]{3}Z$ ]]
	opens "$DUMP"
	dead_have_names "$DUMP"
	run_dead
	stop_recorder INT
	[ "$STATUS" = 130 ]
	has_dumps "$TMP/a" 2
	opens "$DUMP"
	dead_have_names "$DUMP"
}

tells_what_it_holds()
{
	local samples

	cat "$DUMP.json"
	samples=$(perf script -i "$DUMP" -F time | wc -l)
	[ "$(json "$DUMP" events)" = "$samples" ]
	[ "$(json "$DUMP" unresolved)" = 0 ]
	[ "$(json "$DUMP" trigger)" = end ]
	[ "$(json "$DUMP" schema)" = 1 ]
	[ "$(json "$DUMP" perf_version)" = "$(perf version | sed 's/^perf version //')" ]
	[ "$(json "$DUMP" boot_id)" = "$(cat /proc/sys/kernel/random/boot_id)" ]
	[ "$(json "$DUMP" bytes)" = "$(stat -c %s "$DUMP")" ]
	[ "$(grep -c '"way": "ring"' "$DUMP.json")" = "$(online_cpus | wc -l)" ]
	python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$DUMP.json"
}

# clock_error [STATUS MAXERROR]: what the kernel knows of it, in us, or nothing; sets it before
clock_error()
{
	python3 - "$@" <<-'END'
		import ctypes, sys
		class Timex(ctypes.Structure):
		    _fields_ = [('modes', ctypes.c_uint), ('offset', ctypes.c_long),
		                ('freq', ctypes.c_long), ('maxerror', ctypes.c_long),
		                ('esterror', ctypes.c_long), ('status', ctypes.c_int),
		                ('rest', ctypes.c_long * 40)]
		ADJ_MAXERROR, ADJ_STATUS, STA_UNSYNC = 4, 0x10, 0x40
		libc, timex = ctypes.CDLL(None), Timex()
		if len(sys.argv) > 2:
		    timex.modes = ADJ_STATUS | ADJ_MAXERROR
		    timex.status, timex.maxerror = int(sys.argv[1]), int(sys.argv[2])
		if libc.adjtimex(ctypes.byref(timex)) < 0:
		    sys.exit('adjtimex failed')
		if not timex.status & STA_UNSYNC:
		    print(timex.maxerror)
	END
}

# Where no daemon keeps the clock, we do for a moment.
tells_how_far_the_clock_may_be_off()
{
	local before after kept=y

	if [ -z "$(clock_error)" ]; then
		kept=n
		not grep clock_error "$DUMP.json"
		clock_error 0 2000
	fi
	before=$(clock_error)
	perf record -q -M 8M -o "$TMP/clock" -e cpu-clock -- true
	after=$(clock_error)
	[ $kept = y ] || clock_error 64 16000000
	DUMP=$(dumps "$TMP/clock")
	cat "$DUMP.json"
	# A daemon may have lowered it meanwhile.
	awk -v told="$(json "$DUMP" clock_error)" -v a="$before" -v b="$after" 'BEGIN {
		print a, told * 1e6, b
		exit a < b && (told * 1e6 < a || told * 1e6 > b)
	}'
}

is_whole_and_ordered()
{
	"$BASE_PERF" report -i "$DUMP" --header-only >"$TMP/header"
	grep -q 'clockid: monotonic' "$TMP/header"
	grep -q 'reference time' "$TMP/header"
	other_perf report -i "$DUMP" -D >"$TMP/raw" 2>/dev/null
	python3 - "$TMP/raw" <<-END
		import re, sys
		pattern = re.compile(r'(0x[0-9a-f]+) \[0x[0-9a-f]+\]: (PERF_RECORD_\w+)')
		text = open(sys.argv[1], errors='replace').read()
		records = sorted({(int(m[1], 16), m[2]) for m in pattern.finditer(text)})
		rounds = [r for r in records if r[1] == 'PERF_RECORD_FINISHED_ROUND']
		print(len(records), 'records', len(rounds), 'rounds, last', records[-1])
		sys.exit(records[-1] not in rounds)
	END
	has '^[0-9a-f]{40} .*/perf$' "$BASE_PERF" buildid-list -i "$DUMP"
	other_perf script -i "$DUMP" -F cpu,time | tr -d '[]:' |
		awk '{ if ($2 < t) bad = 1; t = $2 } END { exit bad || !NR }'
}

# A process without a sample is not worth a word: this one only sleeps.
describes_who_has_samples()
{
	local quiet

	sleep 300 &
	quiet=$!
	start_recorder "$TMP/b" -M 16M -e cpu-clock -F 199 -a
	run_dead
	dump
	kill $quiet
	other_perf script -i "$DUMP" --show-task-events --show-mmap-events >"$TMP/script"
	grep -q 'PERF_RECORD_MMAP2' "$TMP/script"
	not grep -q "PERF_RECORD_COMM.*:$quiet/" "$TMP/script"
	stop_recorder TERM
	[ "$STATUS" = 143 ]
	opens "$DUMP"
}

# A program counts its system calls while dumps are made; others close -1.
count_through_dumps()
{
	start_recorder "$1" -M 32M -m 2M -a \
		-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000000'
	rm -f "$TMP/enough" "$TMP/enough.begun"
	close_range 1000000 3000000 "$TMP/enough" &
	wait_for test -e "$TMP/enough.begun"
	for _ in 1 2 3 4; do
		dump
	done
	touch "$TMP/enough"
	wait $!
	stop_recorder INT
}

# No gap, unless the machine is so busy that the kernel had no room, and says so.
loses_nothing()
{
	local try

	for try in 1 2 3; do
		count_through_dumps "$TMP/c$try"
		[ "$(json "$DUMP" lost)" != 0 ] || break
		cat "$DUMP.json"
	done
	opens "$DUMP"
	perf script -i "$DUMP" -F trace 2>/dev/null |
		sed -nE 's/.*fd: (0x[0-9a-f]+).*/\1/p' | xargs -r printf '%d\n' | sort -n |
		awk '{ if (n++ && $1 != last + 1) { bad = 1; print last, "then", $1 } last = $1 }
		     END { print n, "numbers"; exit bad || n < 100 }'
}

# The same memory reaches back further, and says how much.
compresses()
{
	local raw stored

	start_recorder "$TMP/z" -M 2M -z -e syscalls:sys_enter_close -a -g
	close_files 40000
	stop_recorder INT
	opens "$DUMP"
	raw=$(json "$DUMP" raw)
	stored=$(json "$DUMP" stored)
	echo "$raw bytes in $stored"
	[ "$stored" -le $((2 << 20)) ]
	[ "$raw" -gt $((2 * stored)) ]
	[ "$(stat -c %s "$DUMP")" -gt $((3 << 20)) ]
	grep -qE 'reaching back [0-9.]+ times as far' "$TMP/z.stderr"
	perf script -i "$DUMP" -F comm,trace 2>/dev/null >"$TMP/script"
	grep -q 'python3.*fd: ' "$TMP/script"
	perf record -M 4M -z --dry-run -a -e cpu-clock -F 499 -o "$TMP/y" | tee "$TMP/y.out"
	grep -qE '^-z: *makes that [0-9.]+ times as long' "$TMP/y.out"
}

# Far more passes through than there is room for. The program is forked on one CPU and
# begins on another one, whose buffer is read before.
forgets_the_oldest()
{
	start_recorder "$TMP/d" -M 2M -e syscalls:sys_enter_close -a -g
	# shellcheck disable=SC2016 # for that shell, which forks as it has more to do
	taskset -c "$(online_cpus | tail -n1)" sh -c 'taskset -c "$@"; exit' sh \
		"$(online_cpus | head -n1)" python3 "$FLIGHT_LIB/close_files.py" 1000000 1024999
	stop_recorder INT
	opens "$DUMP"
	[ "$(stat -c %s "$DUMP")" -le $((3 << 20)) ]
	perf script -i "$DUMP" -F comm,trace >"$TMP/script" 2>/dev/null
	not grep -q 'fd: 0x000f4240' "$TMP/script"
	grep -q 'python3.*fd: ' "$TMP/script"
	# Its name and maps came when the program began, which has long gone.
	grep -E '"(lost|unresolved)"' "$DUMP.json"
	grep -q '"lost": [1-9]' "$DUMP.json" || [ "$(json "$DUMP" unresolved)" = 0 ]
}

records_a_command()
{
	STATUS=0
	perf record -M 4M -o "$TMP/e" -e cpu-clock -F 499 -- perf test -w noploop 1 \
		2>"$TMP/e.stderr" || STATUS=$?
	cat "$TMP/e.stderr"
	[ "$STATUS" = 0 ]
	DUMP=$(newest_dump "$TMP/e")
	opens "$DUMP"
	dead_have_names "$DUMP"
	STATUS=0
	perf record -M 4M -o "$TMP/f" -a -e cpu-clock -- sh -c 'exit 7' 2>/dev/null || STATUS=$?
	[ "$STATUS" = 7 ]
	has_dumps "$TMP/f" 1
}

records_a_process()
{
	local pid

	perf test -w noploop 600 &
	pid=$!
	start_recorder "$TMP/g" -M 4M -e cpu-clock -F 199 -p $pid
	dump_has_samples
	kill $pid
	# It ends when there is nothing left to record.
	wait "$RECORDER"
	RECORDER=
}

dump_has_samples()
{
	local i

	for ((i = 0; i < 100; i++)); do
		dump
		[ "$(json "$DUMP" events)" -lt 10 ] || return 0
		sleep 0.2
	done
	return 1
}

stops()
{
	start_recorder "$TMP/h" -M 4M -e cpu-clock -F 199 -a --trigger signal,action=stop
	kill -USR1 "$RECORDER"
	wait "$RECORDER"
	RECORDER=
	DUMP=$(dumps "$TMP/h")
	[ "$(json "$DUMP" action)" = stop ]
	opens "$DUMP"
}

delays()
{
	records_in_delay "$TMP/i" -M 4M -e cpu-clock -F 499 -a
}

# A storm makes one dump, which says how many triggers it stands for.
cools_down()
{
	local i first

	start_recorder "$TMP/j" -M 4M -e cpu-clock -F 199 -a --trigger signal,cooldown=1h
	dump
	first=$DUMP
	for i in 1 2 3 4 5; do
		kill -USR1 "$RECORDER"
		sleep 0.2
	done
	has_dumps "$TMP/j" 1
	not has_dumps "$TMP/j" 2
	stop_recorder INT
	[ "$(json "$first" swallowed)" -ge 1 ]
	[ "$(json "$first" swallowed)" -le 5 ]
	has_dumps "$TMP/j" 2
}

freezes()
{
	start_recorder "$TMP/k" -M 4M -e cpu-clock -F 199 -a --trigger signal,freeze
	run_dead
	dump
	dead_have_names "$DUMP"
	run_dead
	dump
	opens "$DUMP"
	stop_recorder INT
	# Samples go on after it: the last dump reaches further than the first one.
	[ "$(json "$DUMP" newest | cut -d. -f1)" -gt \
	  "$(json "$(dumps "$TMP/k" | sed -n 1p)" newest | cut -d. -f1)" ]
}

keeps_young_ones()
{
	start_recorder "$TMP/l" -M 4M -e cpu-clock -F 99 -a --max-age 1s
	run_dead
	sleep 5
	dump
	cat "$DUMP.json"
	[ "$(json "$DUMP" window_asked)" = 1.000000000 ]
	# The machine may be slow; but not by the whole time before.
	[ "$(json "$DUMP" window | cut -d. -f1)" -lt 5 ]
	stop_recorder INT
}

refuses()
{
	local m=(perf record -M 4M -a -e cpu-clock -o "$TMP/q")

	fails 1 'switch-output.*not work with -M' "${m[@]}" --switch-output=signal
	fails 1 'threads.*not work with -M' "${m[@]}" --threads
	fails 1 'mmap-flush does not work with -M' "${m[@]}" --mmap-flush=64K
	fails 1 '-M with --overwrite does not support -m' "${m[@]}" --overwrite -m 64K
	fails 1 'cannot write to a pipe' perf record -M 4M -a -e cpu-clock -o -
	fails 1 'AUX area tracing.*not work with -M' "${m[@]}" -m 4,16
	if supported; then
		fails 1 '-P does not work with -M' perf record -M 4M -P x -e cpu-clock -a
	fi
	fails 129 'size of at least 1M' perf record -M 4 -a true
	fails 129 'size of at least 1M' perf record -M much -a true
	fails 1 'not enough for the buffers' "${m[@]}" -m 4M
	fails 1 'give its memory with -M' perf record --max-age 1s -a true
	fails 1 'give its memory with -M' perf record --trigger signal -a true
	fails 1 'does not run a command' "${m[@]}" --dry-run true
	fails 129 "unknown trigger 'moon': use signal" "${m[@]}" --trigger moon
	fails 129 "unknown action 'jump'" "${m[@]}" --trigger signal,action=jump
	fails 129 "unknown option 'when=now'" "${m[@]}" --trigger signal,when=now
	fails 129 'delay=soon is not a time' "${m[@]}" --trigger signal,delay=soon
	fails 129 'takes no argument after a colon' "${m[@]}" --trigger signal:9
	fails 129 'given only once' "${m[@]}" --trigger signal --trigger signal,freeze
	fails 129 "'freeze' and 'delay' exclude" "${m[@]}" --trigger signal,freeze,delay=1s
	fails 129 'max-age old: invalid time' "${m[@]}" --max-age old
	[ -z "$(dumps "$TMP/q")" ]
}

bpf_programs()
{
	names_bpf -M 8M -e cpu-clock -F 499 -a
}

# Once, and in words, on a kernel that is not ours; not a word on ours.
says_what_is_missing()
{
	if supported; then
		not grep -q 'this kernel has no' "$TMP/a.stderr"
	else
		[ "$(grep -c 'this kernel has no persistent events' "$TMP/a.stderr")" = 1 ]
	fi
}

status_of()
{
	sed -nE "s/^$1:\s+([0-9]+) kB/\1/p" "/proc/$RECORDER/status"
}

# The bound of its memory holds whatever passes through (KiB).
memory_is_bounded()
{
	local before peak

	# What the dynamic linker took before main() is given back, and not counted; all
	# that comes then is.
	start_recorder "$TMP/r" -M 4M -m 128K -e syscalls:sys_enter_close -a -g
	before=$(status_of VmRSS)
	peak=$(status_of VmHWM)
	echo "start: at most $peak KiB"
	[ "$peak" -lt $(((4 + 48) << 10)) ]
	close_files 40000
	dump
	peak=$(status_of VmHWM)
	echo "memory: $before KiB at the start, $(status_of VmRSS) KiB now, at most $peak KiB"
	[ "$(status_of VmRSS)" -gt $((before + 1000)) ]
	[ "$peak" -lt $(((4 + 48) << 10)) ]
	stop_recorder INT
}

# Samples go with the recorder, and nobody needs to know their tasks.
keeps_no_auxiliary_file()
{
	start_recorder "$TMP/s" -M 4M -e cpu-clock -F 199 -a
	dump
	stop_recorder INT
	has_dumps "$TMP/s" 2
	not test -e "$TMP/s.auxiliary"
}

# Two events, one of them a tracepoint, with call chains: sets DUMP.
dump_two_events()
{
	start_recorder "$TMP/x" -M 8M -e cpu-clock -F 199 -e sched:sched_switch -a -g
	run_dead
	dump
	stop_recorder INT
	DUMP=$(dumps "$TMP/x" | sed -n 1p)
	[ "$(json "$DUMP" events)" -gt 100 ]
	"$BASE_PERF" script -i "$DUMP" >"$TMP/text" 2>/dev/null
}

# As speedscope's importer reads it (src/import/linux-tools-perf.ts): blocks with an empty
# line between them; what is not like that is passed over there, and must not be, but the
# last switch of a task that is gone so far that it has no id: -1 is none there.
speedscope_reads_all()
{
	python3 - "$TMP/text" "$(json "$DUMP" events)" <<-'END'
		import collections, re, sys
		text = open(sys.argv[1], errors='replace').read().rstrip('\n')
		types, frames, bad = collections.Counter(), 0, []
		for block in text.split('\n\n'):
		    first, *lines = block.split('\n')
		    time = re.search(r'\s+(\d+\.\d+):\s+', first)
		    gone = re.match(r':-1 +-1 .*: sched:sched_switch: .*'
		                    r'(prev_state=|\[\d+\] )[XZ] ==> ', first)
		    if not re.match(r'(\S.+?)\s+(\d+)(?:/?(\d+))?\s+', first) and not gone or \
		            not time:
		        bad.append(first)
		    kind = re.search(r'(\S+):\s*$', first)
		    types[kind[1] if kind else ''] += 1
		    # A file's name may have spaces, "(deleted)" for one: such a frame is lost.
		    bad += [l for l in lines if not re.match(r'\s+(\w+)\s*(.+) \((\S*)\)', l) and
		            not re.match(r'\s+[0-9a-f]+ .+ \(.* .*\)$', l)]
		    frames += len(lines)
		print(types, frames, 'frames', bad[:3])
		sys.exit(bool(bad) or sum(types.values()) != int(sys.argv[2]) or not frames or
		         set(types) != {'cpu-clock', ''} or
		         text.count(' cpu-clock: \n') != types['cpu-clock'])
	END
}

# gecko.py takes neither tracepoints nor call chains without any symbol.
gecko_holds_all()
{
	local scripts

	scripts=$(perf --exec-path)/scripts/python
	perf script -i "$DUMP" -s "$scripts/gecko.py" -- --save-only "$TMP/gecko"
	python3 - "$TMP" <<-'END'
		import json, re, sys
		want = 0
		for block in open(sys.argv[1] + '/text', errors='replace').read().split('\n\n'):
		    first, *lines = block.strip('\n').split('\n')
		    if re.search(r' cpu-clock: *$', first):
		        want += not lines or any(' [unknown] (' not in l for l in lines)
		    elif re.search(r' cpu-clock: ', first):
		        want += 1
		threads = json.load(open(sys.argv[1] + '/gecko'))['threads']
		got = sum(len(t['samples']['data']) for t in threads)
		print(got, 'of', want, 'samples,', len(threads), 'threads')
		sys.exit(got != want or not want)
	END
}

# Read back, if there is what reads it; else by the size of the streams.
ctf_holds_all()
{
	local want reader bytes

	want=$(json "$DUMP" events)
	perf data convert -i "$DUMP" --to-ctf "$TMP/ctf"
	[ -s "$TMP/ctf/metadata" ]
	reader=$(type -P babeltrace || type -P babeltrace2) || true
	if [ -z "$reader" ]; then
		bytes=$(cat "$TMP"/ctf/perf_stream_* | wc -c)
		echo "$bytes bytes of $want events"
		# Each has an address, two tasks, an id, a period, and a time.
		[ "$bytes" -ge $((want * 40)) ]
		return
	fi
	"$reader" --clock-seconds "$TMP/ctf" >"$TMP/events" 2>"$TMP/complaints"
	echo "$(wc -l <"$TMP/events") of $want events; $(cat "$TMP/complaints")"
	[ "$(wc -l <"$TMP/events")" = "$want" ]
	perf script -i "$DUMP" --ns -F time 2>/dev/null | sed -E 's/^ *([0-9.]+):.*/\1/' |
		sort >"$TMP/times"
	sed -E 's/^\[ *([0-9.]+)\].*/\1/' "$TMP/events" | sort | diff "$TMP/times" -
	[ "$(grep -c ' cpu-clock: ' "$TMP/events")" = "$(grep -c ' cpu-clock: ' "$TMP/text")" ]
}

tells_what_it_would_do()
{
	perf record -M 64M --dry-run -a -e cpu-clock -F 199 -o "$TMP/t" | tee "$TMP/t.out"
	grep -q '^events:.*cpu-clock' "$TMP/t.out"
	[ "$(grep -c '^memory: *65536 KiB' "$TMP/t.out")" = 1 ]
	grep -qE '^window: *about [1-9][0-9]+ s' "$TMP/t.out"
	[ -z "$(find "$TMP" -name 't.*' ! -name t.out)" ]
}

# Buffers that are as large as it gets with CPUs that are online; four times as many are
# present.
counts_cpus_online()
{
	local nr size

	nr=$(online_cpus | wc -l)
	size=$((2 * nr))M
	echo "0-$((4 * nr - 1))" >"$TMP/present"
	# shellcheck disable=SC2016 # for that shell
	unshare -m sh -c 'mount --bind "$0" /sys/devices/system/cpu/present && exec "$@"' \
		"$TMP/present" perf record -M $size -m 512K --dry-run -a -e cpu-clock -o "$TMP/u" |
		tee "$TMP/u.out"
	grep -q "^kernel's buffers: $nr of " "$TMP/u.out"
	fails 1 "not enough for the buffers of $nr CPUs" \
		perf record -M $size -m 1M --dry-run -a -e cpu-clock -o "$TMP/u"
}

flight_begin
check "records, dumps at SIGUSR1 and at the end; the dead have names" records_and_dumps
DUMP=$(newest_dump "$TMP/a")
check "the manifest tells what a dump holds" tells_what_it_holds
check "the manifest tells how far the clock may be off" tells_how_far_the_clock_may_be_off
check "a dump is whole, ordered, with clock and build-ids" is_whole_and_ordered
check "dumps lose nothing" loses_nothing
if [ -z "${FLIGHT_SHORT-}" ]; then
	check "only tasks with samples are described" describes_who_has_samples
	check "the oldest goes first, names stay" forgets_the_oldest
	check "compresses" compresses
	check "records a command, and ends with its status" records_a_command
	check "records a process, and ends with it" records_a_process
	check "action=stop ends it" stops
	check "delay keeps recording" delays
	check "cooldown makes one dump of a storm" cools_down
	check "freeze" freezes
	check "max-age" keeps_young_ones
	check_bpf_programs
	check "a dump of two events for those who read others' formats" dump_two_events
	DUMP=$(dumps "$TMP/x" | sed -n 1p)
	check "speedscope reads all samples" speedscope_reads_all
	if perf version --build-options | grep -qE 'libpython: \[ on'; then
		check "gecko holds all samples" gecko_holds_all
	else
		leave_out "gecko holds all samples" "perf was built without libpython"
	fi
	if { perf data convert --to-ctf "$TMP/none" -i "$TMP/none" 2>&1 || true; } |
			grep -q 'not compiled\|built without'; then
		leave_out "CTF holds all samples" "perf was built without libbabeltrace"
	else
		check "CTF holds all samples" ctf_holds_all
	fi
fi
check "no auxiliary file" keeps_no_auxiliary_file
check "dry-run" tells_what_it_would_do
check "dry-run counts the CPUs that are online" counts_cpus_online
check "memory stays within its bound" memory_is_bounded
check "says what the kernel lacks" says_what_is_missing
check "refuses options that do not work together" refuses
persistent_end
