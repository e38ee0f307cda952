#!/bin/bash
# perf record -M: dumps with random faults (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# One dump after the other, each with a fault that is drawn at random: a disk that is full,
# returns errors or hangs, no memory, no processes, a child or the recorder that is killed, a
# clock that is set, a CPU that goes and comes back. lib/check_dumps.py reads each file that
# has a name.
#
# FLIGHT_DUMPS: how many; FLIGHT_SEED: what is drawn, printed at the start
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

DUMPS=${FLIGHT_DUMPS:-30}
SEED=${FLIGHT_SEED:-$RANDOM}
# In s. The disk hangs for a shorter or a longer time. A busy machine is not a disk that hangs.
DUMP_TIMEOUT=8
DIRS=(full slow)
COMMON=(none kill_child no_processes no_memory clock_step hotplug kill_recorder)
declare -A ONLY_AT=([full]="full_disk full_disk full_disk" [slow]="errors errors hangs")
EVENTS=(-e cpu-clock/freq=9/ -e syscalls:sys_enter_close
	--filter 'fd >= 1000000 && fd < 2000000000')

dumps_cleanup()
{
	trap - EXIT
	rm -f "$TMP/control"
	umount -l "$TMP/slow" 2>/dev/null || true
	flight_cleanup
}

# The disk that becomes full, and the one that hangs and fails
mount_disks()
{
	mkdir "$TMP/full" "$TMP/slow"
	mount -t tmpfs -o size=24m none "$TMP/full"
	: >"$TMP/control"
	python3 "$FLIGHT_LIB/slow_fs.py" "$TMP/slow" "$TMP/control" >>"$TMP/said" 2>&1 &
	echo $! >>"$TMP/recorders"
	wait_for grep -q mounted "$TMP/said" || { cat "$TMP/said"; return 1; }
}

# Numbers that are counted up, on a CPU that stays
load()
{
	taskset -c 0 python3 "$FLIGHT_LIB/close_files.py" 1000000 1900000000 "$TMP/enough" 0.5 &
	echo $! >>"$TMP/recorders"
}

# random N: sets R to 0 ... N - 1. Not in a subshell, which would draw others.
random()
{
	R=$(((RANDOM * 32768 + RANDOM) % $1))
}

# wait_at_random MS: shorter than that
wait_at_random()
{
	random "$1"
	pause "$(printf '%d.%03d' $((R / 1000)) $((R % 1000)))"
}

# The time of the records, in 1/100 s
read_clock()
{
	read -r NOW _ </proc/uptime
	NOW=${NOW/.}
}

# In a cgroup of its own, and with something to record
begin_recorder()
{
	start_recorder "$TMP/$DISK/d" -M 1M --max-age 6s -a "${EVENTS[@]}" \
		--dump-timeout "${DUMP_TIMEOUT}s"
	echo "$RECORDER" >"$CGROUP/cgroup.procs"
	pause 1
}

# At the next disk, with the faults that are to be met there
begin_life()
{
	LIFE=$((LIFE + 1))
	DISK=${DIRS[LIFE % ${#DIRS[@]}]}
	rm -f "$TMP/numbers"
	begin_recorder
	# shellcheck disable=SC2206 # words
	FAULTS=("${COMMON[@]}" ${ONLY_AT[$DISK]})
}

# One of the faults that are left, or else the end of this recorder; sets FAULT
draw()
{
	local last=$((${#FAULTS[@]} - 1))

	if [ $last -lt 0 ]; then
		FAULT=end
		return
	fi
	random ${#FAULTS[@]}
	FAULT=${FAULTS[R]}
	FAULTS[R]=${FAULTS[last]}
	unset "FAULTS[last]"
}

is_alive()
{
	[ -e "/proc/$RECORDER/exe" ]
}

# A dump for which one has asked since then is complete.
is_answered()
{
	local file time part

	is_alive || { echo "the recorder has died"; return 0; }
	for file in "$TMP/$DISK"/d.sample.*.json; do
		[ -e "$file" ] || continue
		time=$(json "${file%.json}" trigger_time)
		part=${time#*.}
		time=${time%.*}${part:0:2}
		[ "$time" -lt "$ASKED" ] || return 0
	done
	return 1
}

ask()
{
	read_clock
	ASKED=$NOW
	kill -USR1 "$RECORDER"
}

# says PATTERN: in this round
says()
{
	wait_for grep -qE "$1" "$OUT_NAME.stderr"
}

# Faults. Each of them asks for a dump, and ends before the dump is waited for.

fault_none()
{
	ask
}

fault_kill_child()
{
	ask
	wait_at_random 300
	pkill -KILL -P "$RECORDER" || true
}

refused_forks()
{
	awk '/^max/ { print $2 }' "$CGROUP/pids.events"
}

refuses_more()
{
	[ "$(refused_forks)" -gt "$1" ]
}

fault_no_processes()
{
	local before

	before=$(refused_forks)
	echo 0 >"$CGROUP/pids.max"
	ask
	wait_for refuses_more "$before"
	echo max >"$CGROUP/pids.max"
	says 'could not be begun: Resource temporarily unavailable'
}

# For what the child asks for, there is none; the recorder has what it needs.
fault_no_memory()
{
	local kib

	kib=$(awk '/^VmSize/ { print $2 }' "/proc/$RECORDER/status")
	prlimit --pid "$RECORDER" --as=$(((kib + 64) * 1024)):
	ask
	says 'no memory for a dump|Cannot allocate memory'
	prlimit --pid "$RECORDER" --as=unlimited:
}

fault_clock_step()
{
	local step

	random 2000000
	step=$((R - 1000000))
	date -s "@$((EPOCHSECONDS + step))" >/dev/null
	ask
	wait_at_random 1000
	date -s "@$((EPOCHSECONDS - step))" >/dev/null
}

fault_hotplug()
{
	local online behind

	online=/sys/devices/system/cpu/cpu$(online_cpus | tail -n1)/online
	[ -e "$online" ] || { ask; return 0; }
	echo 0 >"$online"
	random 2
	behind=$R
	[ "$behind" = 1 ] || ask
	wait_at_random 500
	echo 1 >"$online"
	[ "$behind" = 0 ] || ask
}

# There is room for a part of the dump, or for the dump and not for its manifest.
fault_full_disk()
{
	local free room

	free=$(($(stat -f -c '%a * %S' "$TMP/full")))
	random 2
	if [ "$R" = 0 ]; then
		random "$LAST_SIZE"
		room=$R
	else
		random 6
		room=$(((LAST_SIZE / 4096 + R - 2) * 4096))
	fi
	head -c $((free - room)) /dev/zero >"$TMP/full/other"
	ask
	wait_at_random 1500
	rm "$TMP/full/other"
}

# The next of these operations, or one that follows it, returns an error.
fault_errors()
{
	local operations=(create write fsync flush link) operation

	random ${#operations[@]}
	operation=${operations[R]}
	random 3
	echo "$operation EIO $R" >"$TMP/control"
	ask
	wait_at_random 1500
	: >"$TMP/control"
}

fault_hangs()
{
	local operations=(create write fsync link lookup) operation

	random ${#operations[@]}
	operation=${operations[R]}
	random $((DUMP_TIMEOUT * 3 / 2))
	: >"$TMP/said"
	echo "$operation $R" >"$TMP/control"
	ask
}

# The next one starts although a child may still write, and removes what is left of it.
fault_kill_recorder()
{
	local child

	kill -USR1 "$RECORDER"
	wait_at_random 300
	child=$(pgrep -P "$RECORDER" || true)
	random 2
	# shellcheck disable=SC2086 # words
	[ "$R" = 0 ] || [ -z "$child" ] || kill -KILL $child || true
	kill -KILL "$RECORDER"
	wait "$RECORDER" 2>/dev/null || true
	begin_recorder
	# shellcheck disable=SC2086 # words
	wait_for are_gone $child
	[ -z "$(files)" ] || read_files
	rm -f "$TMP/numbers"
	ask
}

are_gone()
{
	local pid

	for pid; do
		is_gone "$pid" || return 1
	done
}

fault_end()
{
	stop_recorder INT
	echo "ended with status $STATUS"
	[ "$STATUS" = 130 ]
	read_files
	begin_life
	ask
}

files()
{
	find "$TMP/full" "$TMP/slow" -name 'd.sample.*[0-9Z]'
}

# Those that have their names; they go when they have been read.
read_files()
{
	local files

	files=$(files)
	[ -n "$files" ] || { echo "there is no dump"; cat "$OUT_NAME.stderr"; return 1; }
	# shellcheck disable=SC2086 # words
	LAST_FAULTS=$(tail -n2 "$TMP/faults") \
		python3 "$FLIGHT_LIB/check_dumps.py" "$TMP/numbers" $files
	LAST_SIZE=$(stat -c %s "${files%%$'\n'*}")
	# shellcheck disable=SC2086 # words
	rm -f $files
	find "$TMP/full" "$TMP/slow" -name 'd.sample.*.json' -delete
}

# A round ends when the recorder is well again.
round()
{
	: >"$OUT_NAME.stderr"
	draw
	echo "round $1: $FAULT"
	echo "$FAULT" >>"$TMP/faults"
	"fault_$FAULT"
	wait_for is_answered
	is_alive
	read_files
}

nothing_half_written()
{
	[ -z "$(find "$TMP/full" "$TMP/slow" -name '.*.tmp')" ]
}

dumps_with_faults()
{
	local i

	# In this shell, as others draw other numbers.
	RANDOM=$SEED
	LIFE=0
	LAST_SIZE=500000
	begin_life
	for ((i = 1; i <= DUMPS; i++)); do
		round "$i"
		[ $((i % 10)) != 0 ] || echo "# $i dumps" >&6
	done
	stop_recorder INT
	echo "ended with status $STATUS"
	[ "$STATUS" = 130 ]
	read_files
	nothing_half_written
}

flight_begin
if [ "${TEST_MACHINE:-}" != 1 ] || [ ! -e /dev/fuse ]; then
	echo "1..0 # SKIP sets the clock and takes CPUs offline: for the test machine alone"
	exit 2
fi
trap dumps_cleanup EXIT
exec 6>&1
echo "# FLIGHT_SEED=$SEED FLIGHT_DUMPS=$DUMPS"
make_cgroup flight_dumps
echo +pids >/sys/fs/cgroup/cgroup.subtree_control
mount_disks
load
check "$DUMPS dumps with random faults" dumps_with_faults
sort "$TMP/faults" | uniq -c | sed 's/^/#/'
persistent_end
