#!/bin/bash
# perf record -M --fair cgroup: a loud cgroup leaves the others their share (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# A record is a getppid(). A quiet cgroup makes CALLS of them, and a loud one 100 times as
# many beside it. The quiet one needs less than its share of 4 MiB, so nothing of it may be
# missing.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

ROUNDS=5
CALLS=1000
case $(uname -m) in
x86_64)	GETPPID=110 ;;
*)	GETPPID=173 ;;
esac
EVENT=(-a -e raw_syscalls:sys_enter --filter "id == $GETPPID")

# Below a directory that nothing else has. Removed when the test ends
begin_cgroups()
{
	mount_cgroups
	if [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
		echo "1..0 # SKIP the test makes cgroups of version 2 in /sys/fs/cgroup"
		exit 2
	fi
	# perf_event follows once another controller is enabled.
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
	ROOT=$(mktemp -d /sys/fs/cgroup/flight-fair.XXXXXX)
	echo "$ROOT" >>"$TMP/made-cgroups"
	echo +cpu >"$ROOT/cgroup.subtree_control" 2>/dev/null || true
	ROOT=${ROOT#/sys/fs/cgroup/}
}

# call NAME NR: getppid() by a process in a cgroup
call()
{
	make_cgroup "$ROOT/$1"
	inside python3 -c '
import os, sys
for i in range(int(sys.argv[1])):
    os.getppid()' "$2"
}

# record_all OUT FUNCTION: a dump of all that the function makes. If the machine stands still, the
# kernel's buffers overflow: then it is tried again.
record_all()
{
	local try

	for try in 1 2 3; do
		start_recorder "$1-$try" -M 4M --fair cgroup "${EVENT[@]}"
		"$2"
		dump
		[ "$(json "$DUMP" lost)" != 0 ] || return 0
		[ $try = 3 ] || stop_recorder TERM
	done
}

make_records()
{
	local i

	for ((i = 0; i < ROUNDS; i++)); do
		call quiet $CALLS
		call loud $((100 * CALLS))
	done
}

# number_of NAME: samples of a cgroup in DUMP
number_of()
{
	perf script -i "$DUMP" -F cgroup | grep -c "/$1 *$" || true
}

# share NAME MEMBER: what the manifest of DUMP says of a cgroup
share()
{
	python3 -c '
import json, sys
shares = [c for c in json.load(open(sys.argv[1]))["cgroups"]
          if c.get("path", "").endswith("/" + sys.argv[2])]
assert len(shares) == 1, shares
print(shares[0][sys.argv[3]])' "$DUMP.json" "$@"
}

without_it_the_quiet_one_is_lost()
{
	start_recorder "$TMP/without" -M 4M "${EVENT[@]}"
	make_records
	dump
	opens "$DUMP"
	stop_recorder TERM
	echo "$(number_of quiet) of $((ROUNDS * CALLS)) records are left without --fair"
	[ "$(number_of quiet)" -lt $((ROUNDS * CALLS / 2)) ]
	not grep -e cgroups -e complete_since "$DUMP.json"
}

with_it_it_keeps_all()
{
	local kept

	record_all "$TMP/with" make_records
	opens "$DUMP"
	kept=$(number_of quiet)
	echo "$kept of $((ROUNDS * CALLS)) records are left with --fair," \
		"$(number_of loud) of the loud"
	[ "$kept" -ge $((ROUNDS * CALLS * 9 / 10)) ]
	[ "$(number_of loud)" -gt $((2 * CALLS)) ]
	[ "$(share quiet events)" = "$kept" ]
	[ "$(json "$DUMP" unresolved)" = 0 ]
	# All of its processes are gone.
	[ "$(perf script -i "$DUMP" -F comm,cgroup | grep -c "^ *python3 .*/quiet *$")" \
		-ge $((ROUNDS * CALLS * 9 / 10)) ]
	tells_since_when
	stop_recorder TERM
}

# What there is of the loud one is later than that, and the verdict warns.
tells_since_when()
{
	local loud

	loud=$(share loud complete_since)
	echo "complete: quiet since $(share quiet complete_since), loud since $loud"
	[ "$(share quiet complete_since)" = 0.0 ]
	[ "$(json "$DUMP" complete_since)" = "$(grep '/loud"' "$DUMP.json" |
		sed -E 's/.*"complete_since": ([0-9.]*).*/\1/')" ]
	perf script -i "$DUMP" --ns -F time,cgroup | grep '/loud *$' |
		python3 -c '
import sys
times = [float(line.split(":")[0]) for line in sys.stdin]
assert min(times) > float(sys.argv[1]) - 1e-6, min(times)
assert min(times) < float(sys.argv[1]) + 1, min(times)' "$loud"
	perf verdict -i "$DUMP" | grep 'Records of some cgroups are missing before'
}

# The one that comes last would take all.
call_some()
{
	local i

	for ((i = 0; i < NR; i++)); do
		call "some-$i" 60000
	done
}

# divides_evenly NR: each has at least 90 % of an equal share.
divides_evenly()
{
	local NR=$1

	record_all "$TMP/$1" call_some
	stop_recorder TERM
	grep complete_since "$DUMP.json"
	# The common queue has a share as well.
	python3 -c '
import json, sys
manifest, nr = json.load(open(sys.argv[1])), int(sys.argv[2])
shares = manifest["cgroups"]
sizes = [c["bytes"] for c in shares if "/some-" in c.get("path", "")]
share = manifest["stored"] / (len(shares) + 1)
print("%d cgroups: from %d to %d bytes; a share is %d" % (nr, min(sizes), max(sizes), share))
assert len(sizes) == nr and min(sizes) > 0.9 * share and min(sizes) > 0.9 * max(sizes)
' "$DUMP.json" "$1"
}

refuses_what_does_not_go_with_it()
{
	local what=(perf record -o "$TMP/bad" -a -e cpu-clock)

	fails 129 'Use --fair cgroup' "${what[@]}" -M 4M --fair task
	fails 1 '--fair is for a flight recorder' "${what[@]}" --fair cgroup true
	fails 1 'overwrite, .*omit one' "${what[@]}" -M 4M --fair cgroup --overwrite
	fails 1 'leaves the cgroups out' "${what[@]}" -M 4M --fair cgroup --no-all-cgroups
	if perf version --build-options | grep -q 'zstd: .*on'; then
		fails 1 '-z, .*omit one' "${what[@]}" -M 4M --fair cgroup -z
	fi
	lacks . find "$TMP" -name 'bad*'
}

# Its buffers have samples of those as well whose cgroup was not asked for.
needs_the_cgroup_of_a_session()
{
	trap 'perf ctl -d fair' EXIT
	perf record -q -P fair --no-all-cgroups -a -e sched:sched_process_exec
	fails 1 'make it with --all-cgroups' \
		perf record -M 16M --fair cgroup -e persistent/fair/ -o "$TMP/session"
}

flight_begin
echo TAP version 13
if ! perf record -q --all-cgroups -e dummy -o "$TMP/probe" true >/dev/null 2>&1; then
	echo "1..0 # SKIP the kernel does not sample the cgroup"
	exit 2
fi
begin_cgroups
check "without --fair, a loud cgroup takes the memory" without_it_the_quiet_one_is_lost
check "with it, a quiet one keeps its records" with_it_it_keeps_all
check "3 cgroups have equal shares" divides_evenly 3
check "12 cgroups have equal shares" divides_evenly 12
check "other words and options are refused" refuses_what_does_not_go_with_it
if supported; then
	check "a session without cgroups is refused" needs_the_cgroup_of_a_session
else
	leave_out "a session without cgroups is refused" "this kernel has no persistent events"
fi
persistent_end
