#!/bin/bash
# perf record -M and -P: the cgroup of each sample (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

# One is there before perf starts, one comes while it records.
BEFORE=record-cgroups-before
AFTER=record-cgroups-after

# Removed when the check that makes them has ended
make_before()
{
	trap 'rmdir "/sys/fs/cgroup/$BEFORE" "/sys/fs/cgroup/$AFTER" 2>/dev/null || true' EXIT
	mkdir "/sys/fs/cgroup/$BEFORE"
}

# Each exec is a sample.
exec_in_both()
{
	local cgroup

	mkdir "/sys/fs/cgroup/$AFTER"
	for cgroup in "$BEFORE" "$AFTER"; do
		# shellcheck disable=SC2016 # for that shell
		sh -c 'echo $$ >"$0/cgroup.procs"; exec true' "/sys/fs/cgroup/$cgroup"
	done
}

# A kernel without CONFIG_FHANDLE does not tell the ids of cgroups that exist.
names_both()
{
	other_perf script -i "$1" -F comm,cgroup >"$TMP/cgroups"
	cat "$TMP/cgroups"
	grep -qx " *true */$AFTER *" "$TMP/cgroups"
	[ -z "$HANDLES" ] || grep -qx " *true */$BEFORE *" "$TMP/cgroups"
}

# nr_with_cgroup FILE: of the events that were asked for
nr_with_cgroup()
{
	"$BASE_PERF" evlist -v -i "$1" | grep '^sched:' | grep -c 'sample_type: [^,]*CGROUP'
}

flight_recorder_names_them()
{
	make_before
	start_recorder "$TMP/flight" -M 16M -a -e sched:sched_process_exec "$@"
	exec_in_both
	dump
	names_both "$DUMP"
	stop_recorder TERM
}

flight_recorder_leaves_them_out()
{
	start_recorder "$TMP/without" -M 16M -a -e sched:sched_process_exec --no-all-cgroups
	dump
	"$BASE_PERF" evlist -v -i "$DUMP" | grep sched_process_exec
	[ "$(nr_with_cgroup "$DUMP" || true)" = 0 ]
	stop_recorder TERM
}

# read_session NAME
read_session()
{
	perf record -q -e "persistent/$1/" -N -o "$TMP/$1"
}

session_names_them()
{
	trap 'perf ctl -d cg; rmdir "/sys/fs/cgroup/$BEFORE" "/sys/fs/cgroup/$AFTER" || true' EXIT
	mkdir "/sys/fs/cgroup/$BEFORE"
	perf record -q -P cg -a -e sched:sched_process_exec
	exec_in_both
	read_session cg
	names_both "$TMP/cg"
}

# What comes later is as the session is.
session_adds()
{
	local option=$1 nr=$2

	# shellcheck disable=SC2086 # an option, or none
	perf record -q -P cg -a $option -e sched:sched_process_exec
	trap 'perf ctl -d cg' EXIT
	perf record -q -P cg --add -a -e sched:sched_process_exit
	true
	read_session cg
	"$BASE_PERF" evlist -v -i "$TMP/cg"
	[ "$("$BASE_PERF" evlist -i "$TMP/cg" | grep -c '^sched:')" = 2 ]
	[ "$(nr_with_cgroup "$TMP/cg" || true)" = "$nr" ]
}

flight_begin
if [ ! -w /sys/fs/cgroup/cgroup.procs ]; then
	echo "1..0 # SKIP no cgroup can be made"
	exit 2
fi
# Until a controller was given to a child for the first time, as systemd does, perf_event counts
# the tasks of all cgroups of version 2 as the root's.
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || true
if ! perf record -q --all-cgroups -e dummy -o "$TMP/probe" true >/dev/null 2>&1; then
	echo "1..0 # SKIP the kernel does not sample the cgroup"
	exit 2
fi
HANDLES=$(perf script -i "$TMP/probe" --show-cgroup-events | grep PERF_RECORD_CGROUP || true)
check "a flight recorder names the cgroup of each sample" flight_recorder_names_them
check "a flight recorder that overwrites does" flight_recorder_names_them --overwrite
check "a flight recorder leaves it out" flight_recorder_leaves_them_out
if supported; then
	check "a persistent session names the cgroup of each sample" session_names_them
	check "what is added to a session has the cgroup" session_adds "" 2
	check "what is added to a session without it has none" session_adds --no-all-cgroups 0
else
	for name in "a persistent session names the cgroup of each sample" \
			"what is added to a session has the cgroup" \
			"what is added to a session without it has none"; do
		leave_out "$name" "this kernel has no persistent events"
	done
fi
persistent_end
