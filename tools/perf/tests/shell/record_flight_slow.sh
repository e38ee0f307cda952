#!/bin/bash
# perf record -M: a disk that hangs (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# The files of the recorder, and its messages, are on a file system that is held up for
# FLIGHT_HOLD seconds in each step of what the recorder writes, while there is load. With less
# than 10 seconds, some of the steps are left out.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

HOLD=${FLIGHT_HOLD:-10}
# The memory of the recorder in MiB, and the pause of the load in s: see load(). Each dump is
# read, which takes most of the time.
SIZE=16 PAUSE=0.025
# Steps that are held, of a dump and of its manifest, in their order: the file, its name, its
# manifest, old dumps, the correction, OUT.auxiliary.
STEPS="create write fsync link readdir unlink rename lookup"
MANIFEST_STEPS="create write rename"
if [ "$HOLD" -lt 10 ]; then
	SIZE=4 PAUSE=0.1
	STEPS="create fsync unlink rename" MANIFEST_STEPS=write
fi

slow_cleanup()
{
	trap - EXIT
	rm -f "$TMP/control"
	umount -l "$TMP/slow" 2>/dev/null || true
	flight_cleanup
}

# mount_slow: at $TMP/slow
mount_slow()
{
	mkdir -p "$TMP/slow"
	: >"$TMP/control"
	python3 "$FLIGHT_LIB/slow_fs.py" "$TMP/slow" "$TMP/control" >>"$TMP/said" 2>&1 &
	echo $! >>"$TMP/recorders"
	wait_for grep -q mounted "$TMP/said" || { cat "$TMP/said"; return 1; }
}

# hold OPERATION [TEXT]: the next one, or the next at a file with TEXT in its name; until release,
# or the end of the check
hold()
{
	trap 'rm -f "$TMP/control"' EXIT
	: >"$TMP/said"
	echo "$1" 10000 "${@:2}" >"$TMP/control"
}

# release OPERATION: after that, nothing is held up.
release()
{
	rm "$TMP/control"
	wait_for grep -q "held $1" "$TMP/said"
}

is_asked()
{
	echo status | timeout 60 socat -t 60 - "UNIX-CONNECT:$TMP/sock" | grep '"ok": true'
}

# The recorder answers, and reads its buffers, while the disk hangs for HOLD seconds or more.
answers_while_held()
{
	local begin ms

	wait_for grep -q "holding $1" "$TMP/said"
	begin=${EPOCHREALTIME/[.,]/}
	is_asked
	ms=$(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
	echo "status in $ms ms"
	ms=$((HOLD * 1000 - ms))
	[ $ms -le 0 ] || pause "$((ms / 1000)).$(printf '%03d' $((ms % 1000)))"
	release "$1"
}

# numbers DUMP: are those that were counted up in it without a gap?
numbers()
{
	perf script -i "$1" -F trace 2>/dev/null | python3 -c '
import re, sys
numbers = [int(x, 16) for x in re.findall(r"fd: 0x([0-9a-f]+)", sys.stdin.read())]
gaps = sum(b != a + 1 for a, b in zip(numbers, numbers[1:]))
print(len(numbers), "numbers", gaps, "gaps")
sys.exit(gaps or len(numbers) < 100)'
}

# loses_nothing OPERATION [TEXT]: it hangs in a dump, or in what follows it
loses_nothing()
{
	local before

	before=$(newest_dump "$OUT_NAME")
	hold "$@"
	kill -USR1 "$RECORDER"
	# In the cooldown of 1 s: the manifest is corrected later. One that comes before the dump
	# begins is in its manifest.
	for _ in 1 2 3 4; do
		sleep 0.2
		kill -USR1 "$RECORDER"
	done
	answers_while_held "$1"
	wait_for is_newer "$before"
	DUMP=$(newest_dump "$OUT_NAME")
	[ "$(json "$DUMP" lost)" = 0 ]
	[ "$(json "$DUMP" given_up)" = 0 ]
	numbers "$DUMP"
	sleep 2
}

is_newer()
{
	[ "$(newest_dump "$OUT_NAME")" != "$1" ]
}

# On one CPU, until $TMP/enough is there. At most 2000 records of less than 100 bytes are made
# in a second: 2 MB while the disk is held for 10 s, half of the reserve of 16 MiB; or 500, and
# 200 KB in 4 s, a fifth of the reserve of 4 MiB. More than the reserve would have to cost a dump
# its oldest records. See ring-memory.c.
load()
{
	taskset -c "$(online_cpus | tail -n1)" \
		python3 "$FLIGHT_LIB/close_files.py" 1000000 900000000 "$TMP/enough" "$PAUSE" &
	echo $! >>"$TMP/recorders"
}

# has_nice PID VALUE
has_nice()
{
	[ "$(sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f17)" = "$2" ]
}

# Its children are killed first if there is no memory, and hold nothing of the recorder's. They
# and the recorder do not wait for busy tasks until the dump is complete.
children_are_modest()
{
	local child files

	hold fsync
	kill -USR1 "$RECORDER"
	wait_for grep -q 'holding fsync' "$TMP/said"
	child=$(pgrep -P "$RECORDER" | head -n1)
	has_nice "$child" -10
	has_nice "$RECORDER" -10
	files=$(ls -l "/proc/$child/fd")
	grep -cx 1000 "/proc/$child/oom_score_adj"
	not grep -E 'perf_event|socket:' <<<"$files"
	release fsync
	wait_for has_nice "$RECORDER" "$(nice)"
	sleep 2
}

# is_killed PID: SIGKILL is pending
is_killed()
{
	awk '/^(SigPnd|ShdPnd):/ && substr($2, length($2) - 2, 1) ~ /[13579bdf]/ { found = 1 }
		END { exit !found }' "/proc/$1/status"
}

# A child that hangs is given up, the dump is tried again, and nothing is left of the first.
gives_up()
{
	local before

	start_recorder "$TMP/slow/t" -M 4M -a -e cpu-clock -F 199 --dump-timeout 5s
	hold fsync
	kill -USR1 "$RECORDER"
	wait_for grep -q 'holding fsync' "$TMP/said"
	# It is killed after 5 s, and given up 2 s later: there is another one. Its messages are
	# for the same disk.
	wait_for is_killed "$(pgrep -P "$RECORDER" | head -n1)"
	wait_for has_more_children 1
	# The file system answers again: what was to be said is said.
	rm "$TMP/control"
	wait_for grep -q 'did not finish in 5 s and was killed' "$OUT_NAME.stderr"
	wait_for grep -q 'is tried again' "$OUT_NAME.stderr"
	: >"$TMP/control"
	wait_for has_dumps "$OUT_NAME" 1
	before=$(newest_dump "$OUT_NAME")
	kill -USR1 "$RECORDER"
	wait_for is_newer "$before"
	stop_recorder INT
	opens "$DUMP"
	wait_for nothing_half_written
}

# A child looks for dumps that are too old, and removes them.
expires_while_held()
{
	# Not too old before it is seen, on a slow machine
	start_recorder "$TMP/slow/e" -M 4M -a -e cpu-clock -F 199 --max-dump-age 15s \
		--trigger signal --trigger "socket:$TMP/sock"
	dump
	hold unlink .sample.
	answers_while_held unlink
	wait_for has_no_dumps
	stop_recorder INT
}

can_limit_memory()
{
	mount_cgroups
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
} 2>/dev/null

# A recorder with as much memory as the guide says: twice SIZE, and 128 MiB
start_limited()
{
	make_cgroup "flight-$1"
	echo 160M >"$CGROUP/memory.max"
	[ ! -e "$CGROUP/memory.swap.max" ] || echo 0 >"$CGROUP/memory.swap.max"
	echo "$BASHPID" >"$CGROUP/cgroup.procs"
	start_recorder "$TMP/slow/$1" -M 16M -a -e 'raw_syscalls:*' \
		--trigger signal --trigger "socket:$TMP/sock"
	echo "$BASHPID" >/sys/fs/cgroup/cgroup.procs
}

# How many have been killed for memory
killed_for_memory()
{
	awk '$1 == "oom_kill" { print $2 }' "$CGROUP/memory.events"
}

is_full()
{
	[ "$(json "$DUMP" raw)" -gt $((12 << 20)) ]
}

# calls_system FILE: 2000 calls, and a pause, until FILE is there
calls_system()
{
	while [ ! -e "$1" ]; do
		dd if=/dev/zero of=/dev/null bs=1 count=1000 2>/dev/null
		pause 0.1
	done
}

# The memory is full, and dumps are written while more is recorded than can be kept.
keeps_to_its_memory()
{
	local i loads=()

	start_limited memory
	for i in 1 2; do
		calls_system "$TMP/no-more" &
		loads+=($!)
		echo $! >>"$TMP/recorders"
	done
	for ((i = 0; i < 60; i++)); do
		dump
		! is_full || break
	done
	for i in 1 2 3; do
		dump
		is_full
	done
	touch "$TMP/no-more"
	wait "${loads[@]}"
	stop_recorder INT
	grep . "$CGROUP"/memory.{peak,events}
	[ "$(killed_for_memory)" = 0 ]
	opens "$DUMP"
}

# What is killed first for memory is the child, and then whoever has more than the recorder.
loses_a_child_for_memory()
{
	local child

	start_limited oom
	hold fsync
	kill -USR1 "$RECORDER"
	wait_for grep -q 'holding fsync' "$TMP/said"
	child=$(pgrep -P "$RECORDER" | head -n1)
	inside python3 -c 'b = b"1" * (1 << 29)' &
	not wait $!
	grep . "$CGROUP"/memory.{peak,events}
	dmesg | grep 'Killed process' | tail -n 4
	[ "$(killed_for_memory)" = 2 ] || dmesg | grep -A50 'invoked oom-killer' | tail -n 160
	[ "$(killed_for_memory)" = 2 ]
	grep -E 'State|VmRSS|SigPnd|ShdPnd' "/proc/$child/status"
	is_asked
	rm "$TMP/control"
	wait_for grep -q 'died: was it killed for lack of memory' "$OUT_NAME.stderr"
	: >"$TMP/control"
	wait_for has_dumps "$OUT_NAME" 1
	cat "$OUT_NAME.stderr"
	stop_recorder INT
	opens "$DUMP"
	wait_for nothing_half_written
}

# The files that the dumps need are copied to the same disk, each time anew.
archives_while_held()
{
	local step steps=(mkdir 'rename .symbols')

	[ "$HOLD" -lt 10 ] || steps+=('create .elf' 'link elf' symlink)
	start_recorder "$TMP/slow/r" -M "$((2 * SIZE))M" -a -g -e syscalls:sys_enter_close \
		--filter 'fd >= 1000000 && fd < 2000000000' --max-files 2 --archive \
		--trigger signal,cooldown=1s --trigger "socket:$TMP/sock"
	dump
	for step in "${steps[@]}"; do
		echo "$step"
		# Of a hit that was late for the cooldown there is one more dump.
		wait_for all_are_archived
		sleep 2
		rm -r "$TMP/slow/perf-symbols"
		# shellcheck disable=SC2086 # two words
		loses_nothing $step
	done
	wait_for has_symbols "$DUMP"
	stop_recorder INT
	find "$TMP/slow/perf-symbols" -name elf | grep -c .
}

has_symbols()
{
	[ -s "$1.symbols" ]
}

writes_nothing()
{
	is_asked | grep '"writing": false'
}

all_are_archived()
{
	local dump

	for dump in $(dumps "$OUT_NAME"); do
		has_symbols "$dump" || return
	done
	writes_nothing
}

has_no_dumps()
{
	[ -z "$(dumps "$OUT_NAME")" ]
}

# The recorder of a session writes OUT.auxiliary as well.
reads_a_session()
{
	local step

	perf record -q -P slow -m 1M -a -e syscalls:sys_enter_close \
		--filter 'fd >= 1000000 && fd < 2000000000'
	start_recorder "$TMP/slow/s" -M "$((SIZE + 16))M" -e persistent/slow/ --max-files 2 \
		--trigger signal,cooldown=1s --trigger "socket:$TMP/sock"
	dump
	sleep 2
	for step in 'write .auxiliary' 'rename .auxiliary' 'fsync .json'; do
		echo "$step"
		# shellcheck disable=SC2086 # two words
		loses_nothing $step
	done
	stop_recorder INT
	perf ctl -d slow
}

has_children()
{
	[ "$(pgrep -cP "$RECORDER")" = "$1" ]
}

has_more_children()
{
	[ "$(pgrep -cP "$RECORDER")" -gt "$1" ]
}

# Four children that do not die: no fifth one, and the recorder goes on, answers, and ends.
goes_on_with_four()
{
	# What it says at the end is not to wait for that disk.
	perf record -o "$TMP/slow/u" -M 4M -a -e cpu-clock -F 199 --dump-timeout 1s \
		--trigger signal --trigger "socket:$TMP/sock" >"$TMP/u.stderr" 2>&1 &
	RECORDER=$!
	echo "$RECORDER" >>"$TMP/recorders"
	wait_for grep -q 'flight recorder [0-9]' "$TMP/u.stderr"
	echo hang >"$TMP/control"
	kill -USR1 "$RECORDER"
	wait_for has_children 4
	sleep 6
	has_children 4
	is_asked
	kill -INT "$RECORDER"
	wait_for is_gone "$RECORDER"
	grep 'The last dump was not written: 4 children hang' "$TMP/u.stderr"
	: >"$TMP/control"
}

# There is room for the data of a dump, and none for its manifest: an old dump goes.
makes_room_for_manifest()
{
	local oldest

	start_recorder "$TMP/slow/m" -M 4M -a -e cpu-clock -F 199
	dump
	oldest=$DUMP
	echo "write ENOSPC .json" >"$TMP/control"
	kill -USR1 "$RECORDER"
	wait_for grep -q "The disk is full: removed the old dump $oldest" "$OUT_NAME.stderr"
	[ ! -e "$oldest" ] && [ ! -e "$oldest.json" ]
	wait_for has_dumps "$OUT_NAME" 1
	DUMP=$(dumps "$OUT_NAME")
	json "$DUMP" bytes
	not grep 'could not be written' "$OUT_NAME.stderr"
	stop_recorder INT
	opens "$DUMP"
}

nothing_half_written()
{
	[ -z "$(find "$TMP/slow" -name '.*.tmp')" ]
}

prints_to()
{
	[ "/proc/$RECORDER/fd/2" -ef "$1" ]
}

# The log is opened by a child: the recorder answers while it cannot be opened.
rotates_while_held()
{
	perf record --daemon -M 4M -a -e cpu-clock -F 199 -o "$TMP/slow/d" \
		--trigger "socket:$TMP/sock"
	RECORDER=$(cat "$TMP/slow/d.pid")
	echo "$RECORDER" >>"$TMP/recorders"
	mv "$TMP/slow/d.log" "$TMP/slow/d.log.1"
	hold create
	kill -HUP "$RECORDER"
	answers_while_held create
	wait_for prints_to "$TMP/slow/d.log"
	# A further signal is not forgotten while it hangs.
	mv "$TMP/slow/d.log" "$TMP/slow/d.log.2"
	hold create
	kill -HUP "$RECORDER"
	wait_for grep -q 'holding create' "$TMP/said"
	is_asked
	kill -HUP "$RECORDER"
	is_asked
	rm "$TMP/control"
	wait_for prints_to "$TMP/slow/d.log"
	: >"$TMP/control"
	echo stop | socat -t 90 - "UNIX-CONNECT:$TMP/sock"
	wait_for is_gone "$RECORDER"
}

is_gone()
{
	! kill -0 "$1" 2>/dev/null
}

# A service manager would kill it for its watchdog, or for taking too long to stop.
asks_for_time()
{
	hold fsync
	python3 - "$TMP" <<-'END'
		import os, signal, socket, subprocess, sys, time

		tmp = sys.argv[1]
		s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		s.settimeout(300)
		s.bind(tmp + '/notify')
		env = dict(os.environ, NOTIFY_SOCKET=tmp + '/notify', WATCHDOG_USEC='2000000')
		p = subprocess.Popen(['perf', 'record', '--daemon', '-M', '4M', '-a', '-e',
		                      'cpu-clock', '-F', '199', '-o', tmp + '/slow/n',
		                      '--trigger', 'socket:' + tmp + '/sock'], env=env)
		assert s.recv(4096) == b'READY=1'
		p.send_signal(signal.SIGTERM)
		while (text := s.recv(4096)) == b'WATCHDOG=1':
		    pass
		assert text == b'STOPPING=1', text
		while 'holding fsync' not in open(tmp + '/said').read():
		    time.sleep(0.1)
		# One may have come before.
		s.settimeout(60)
		said = [s.recv(4096) for i in range(4)]
		os.unlink(tmp + '/control')
		p.wait(300)
		s.setblocking(False)
		try:
		    while True:
		        said.append(s.recv(4096))
		except BlockingIOError:
		    pass
		print(len(said), 'times', said[0], p.returncode)
		assert set(said) == {b'EXTEND_TIMEOUT_USEC=21000000\nWATCHDOG=1'}
		assert p.returncode in (143, -signal.SIGTERM)
	END
	wait_for grep -q 'held fsync' "$TMP/said"
	[ -n "$(dumps "$TMP/slow/n")" ]
}

flight_begin
if [ ! -e /dev/fuse ]; then
	echo "1..0 # SKIP needs FUSE"
	exit 2
fi
trap slow_cleanup EXIT
mount_slow
load
start_recorder "$TMP/slow/a" -M "${SIZE}M" -a -e syscalls:sys_enter_close \
	--filter 'fd >= 1000000 && fd < 2000000000' --max-files 2 \
	--trigger signal,cooldown=1s --trigger "socket:$TMP/sock"
dump
# The next one is not to be in the cooldown.
sleep 2
dump
sleep 2
for op in $STEPS; do
	check "nothing is lost in $op" loses_nothing "$op"
done
for op in $MANIFEST_STEPS; do
	check "nothing is lost in $op of a manifest" loses_nothing "$op" .json
done
check "children are modest" children_are_modest
stop_recorder INT
check "nothing is lost by the archive" archives_while_held
if supported; then
	check "nothing is lost of a session" reads_a_session
fi
touch "$TMP/enough"
check "a log that cannot be opened yet" rotates_while_held
check "the service manager is asked for time" asks_for_time
check "a child that hangs" gives_up
if can_limit_memory; then
	check "the memory of a unit" keeps_to_its_memory
	check "a child that is killed for memory" loses_a_child_for_memory
else
	leave_out "the memory of a unit" "no memory controller of cgroup v2"
	leave_out "a child that is killed for memory" "no memory controller of cgroup v2"
fi
check "old dumps that cannot be removed yet" expires_while_held
check "no room for a manifest" makes_room_for_manifest
check "four children that hang" goes_on_with_four
persistent_end
