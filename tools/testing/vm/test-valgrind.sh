#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run perf record -P, perf ctl, reading a session, and flight recorders that dump and
# combine under valgrind: no invalid access, no use of uninitialized memory, no leak. A BPF
# program is loaded, so that perf describes it. Runs in the guest; on a host without our
# kernel, only the recorders. Prints TAP.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
# shellcheck source=tools/perf/tests/shell/lib/flight.sh
. "$TOP/tools/perf/tests/shell/lib/flight.sh"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/valgrind.XXXXXX")
PERF=$(command -v perf)
export HOME=$WORK
cd "$WORK" || exit 1

# A forked process has a log of its own.
under_valgrind()
{
	exec valgrind -q --error-exitcode=99 --leak-check=full --num-callers=20 \
		--errors-for-leak-kinds=definite --show-leak-kinds=definite \
		--log-file=log.%p "$PERF" "$@"
}

# No error, except that valgrind does not know PERF_EVENT_IOC_CLAIM, which has no argument.
# This message has three lines.
said_nothing()
{
	local f rc=0
	for f in log.*; do
		sed -i '/Warning: noted but unhandled ioctl 0x2421 /,+2d' "$f"
		[ ! -s "$f" ] || { head -n 40 "$f"; rc=1; }
	done
	rm -f log.*
	return $rc
}

clean()
{
	local rc=0
	(under_valgrind "$@") || rc=$?
	said_nothing && return $rc
}

wait_until()
{
	local i
	for ((i = 0; i < 3000; i++)); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	return 1
}

has_files()
{
	compgen -G "$1"
}

# flight_recorder OUT OPTION...: a dump, another one at the end, and combine both
flight_recorder()
{
	local out=$1 pid rc=0
	shift
	(under_valgrind record "$@" -o "$out") 2>stderr &
	pid=$!
	wait_until grep -q 'flight recorder [0-9]' stderr || { cat stderr; return 1; }
	perf test -w noploop 1
	kill -USR1 $pid
	wait_until has_files "$out.sample.*.json" || { cat stderr; return 1; }
	kill -USR2 $pid
	wait $pid || rc=$?
	cat stderr
	said_nothing && [ $rc = 0 ] && [ -s "$out" ]
}

# recorder NAME OUT OPTION...
recorder()
{
	tap_run "$1" flight_recorder "${@:2}"
	tap_run "$1: what was combined has samples" has_samples "$2"
}

# Check that its output is a recording.
has_samples()
{
	[ "$(perf script -i "$1" -F time | wc -l)" -gt 0 ]
}

# shellcheck disable=SC2317 # called by the trap
clean_up()
{
	pkill -KILL -P "$bpf"
	rm -rf "$WORK"
}

sessions()
{
	tap_run "perf record -P" clean record -P vg -e cpu-clock -F 99 -a -m 64K
	tap_run "perf ctl -l" clean ctl -l
	tap_run "perf ctl -l --json" clean ctl -l --json
	tap_run "perf ctl -i" clean ctl -i vg
	tap_run "perf record -e persistent/" clean record -e persistent/vg/ -N -o vg.data
	tap_run "what was read has samples" has_samples vg.data
	recorder "perf record -M, of a session" session -M 8M -e persistent/vg/
	tap_run "perf ctl -d" clean ctl -d vg
}

run_bpf 3600 60 2>/dev/null &
bpf=$!
trap clean_up EXIT
if ! command -v valgrind >/dev/null; then
	tap_skip "perf under valgrind" "valgrind is not installed"
	tap_end
	exit
fi
if [ -e /sys/bus/event_source/devices/persistent ]; then
	sessions
else
	tap_skip "sessions" "this kernel has none"
fi
recorder "perf record -M" memory -M 4M -a -e cpu-clock -F 99 -g
recorder "perf record -M -z" packed -M 4M -z --max-age 60s -a -e cpu-clock -F 99 -g
recorder "perf record -M --overwrite" overwrite -M 4M --overwrite -a -e cpu-clock -F 99
tap_end
