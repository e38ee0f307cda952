#!/bin/bash
# perf top reads overwrite buffers and persistent sessions live
# SPDX-License-Identifier: GPL-2.0
#
# What begins after perf top did is named: for that its map and its name must not
# be lost. What came before is not shown.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

# top OPTIONS: until it shows a program that begins after it did
top()
{
	local hot='' keys=$TMP/keys pid i

	# Its input must not end, or perf top asks for keys all the time.
	rm -f "$keys"
	mkfifo "$keys"
	# With more threads it dies now and then, at its start, and so does base's: they
	# sort the list of files while others add to it.
	stdbuf -oL perf top --stdio -d 1 -E 20 --num-thread-synthesize 1 "$@" \
		<>"$keys" >"$TMP/top" 2>"$TMP/err" &
	pid=$!
	for i in {1..600}; do
		! shows noploop || break
		kill -0 "$pid" || break
		# The first lines are there: from now on
		if [ -z "$hot" ] && grep -q PerfTop "$TMP/top"; then
			perf test -w noploop 100 >/dev/null 2>&1 &
			hot=$!
		fi
		sleep 0.5
	done
	echo "after $((i / 2)) s"
	[ -z "$hot" ] || kill "$hot" || true
	kill -INT "$pid" || true
	wait "$pid" || true
	tail -n 25 "$TMP/top" "$TMP/err"
	shows noploop
}

shows()
{
	grep -qE "[0-9.]+% +perf +\\[\\.\\] $1" "$TMP/top"
}

overwrite_top()
{
	top -e cpu-clock -F 499 --overwrite
}

# Base pauses and resumes each buffer ten times a second.
never_pauses()
{
	local keys=$TMP/keys pid i

	[ -p "$keys" ] || mkfifo "$keys"
	rm -f "$TMP/trace"
	strace -f -e trace=ioctl -o "$TMP/trace" perf top --stdio -d 1 \
		--num-thread-synthesize 1 -e cpu-clock -F 99 --overwrite \
		<>"$keys" >"$TMP/top" 2>"$TMP/err" &
	pid=$!
	for i in {1..600}; do
		! grep -qs PERF_EVENT_IOC_ENABLE "$TMP/trace" || break
		sleep 0.5
	done
	echo "after $((i / 2)) s"
	sleep 3
	# strace holds a signal back, perf top gets it.
	pkill -INT -P "$pid" || true
	wait "$pid" || true
	grep -c PERF_EVENT_IOC_ENABLE "$TMP/trace"
	not grep PERF_EVENT_IOC_PAUSE_OUTPUT "$TMP/trace"
}

make_session()
{
	perf record -P top -e cpu-clock -F 499 -a
}

session_top()
{
	perf test -w sqrtloop 1
	top -e persistent/top/
	not shows sqrtloop
	not grep -q 'were overwritten' "$TMP/err"
}

session_goes_on()
{
	[ "$(sessions)" = top ]
	perf record -e persistent/top/ -N -o "$TMP/d"
	has 'sqrtloop' perf report -i "$TMP/d" --stdio --sort sym
	has 'noploop' perf report -i "$TMP/d" --stdio --sort sym
}

session_by_id()
{
	top -e "persistent/config=$(cat "$PERSISTENT_SYSFS/sessions/top/id")/"
}

refuses()
{
	fails 254 'No persistent session' perf top --stdio -e persistent/other/
	fails 234 '^-F cannot be changed' perf top --stdio -e persistent/top/ -F 99
	fails 234 '^-C cannot be changed' perf top --stdio -e persistent/top/ -C 0
	fails 234 '^-u does not work' perf top --stdio -e persistent/top/ -u root
	fails 234 'together with other events' perf top --stdio -e persistent/top/ -e cpu-clock
}

persistent_begin
check "perf top --overwrite names what begins later" overwrite_top
if command -v strace >/dev/null; then
	check "perf top --overwrite pauses no buffer" never_pauses
else
	leave_out "perf top --overwrite pauses no buffer" "no strace"
fi
check "a session is made" make_session
check "perf top -e persistent/NAME/ shows what it records from now on" session_top
check "the session goes on, with all that it holds" session_goes_on
check "perf top -e persistent/config=ID/" session_by_id
check "what cannot be shown is refused" refuses
persistent_end
