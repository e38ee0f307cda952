#!/bin/bash
# perf record --overwrite describes the processes that are in a dump
# SPDX-License-Identifier: GPL-2.0
#
# A dump names the programs that ran, those that have exited among them, and maps
# their code, also of a child that has its maps from a parent who slept. Of processes
# that slept all the while it says nothing.
set -euo pipefail

if [ "$(id -u)" != 0 ]; then
	echo "skip: all CPUs are recorded by root"
	exit 2
fi
dir=$(mktemp -d /tmp/perf-dump-tasks.XXXXXX)
sleepers=()
pids=()

# shellcheck disable=SC2317 # called by the trap
clean_up()
{
	trap - EXIT
	kill "${sleepers[@]}" "${pids[@]}" 2>/dev/null || true
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 1' INT TERM
cd "$dir"

fail()
{
	echo "$*"
	tail -n 20 log named tasks 2>/dev/null || true
	exit 1
}

# wait_for PATTERN FILE...
wait_for()
{
	for _ in {1..3000}; do
		! grep -qs "$@" || return 0
		sleep 0.1
	done
	fail "no '$1'"
}

for _ in {1..20}; do
	sleep 1000 >/dev/null 2>&1 &
	sleepers+=($!)
done
perf record -vvv --overwrite --switch-output=signal -m 1M -a -e cpu-clock -F 199 -o data \
	>log 2>&1 &
recorder=$!
pids+=("$recorder")
wait_for 'perf record has started' log

perf test -w noploop 1 >/dev/null 2>&1
# Without exec: code and name are its parent's, which then sleeps.
bash -c '(for ((i = 0; i < 300000; i++)); do :; done
	echo "finished $BASHPID" >child; exec sleep 1000) & wait' >/dev/null 2>&1 &
pids+=($!)
wait_for finished child
pids+=("$(cut -d ' ' -f 2 child)")
kill -USR2 "$recorder"
wait_for 'perf record: Dump' log
kill -INT "$recorder"
wait "$recorder" || true

dump=$(find . -name 'data.2*' | sort | head -n 1)
perf script -i "$dump" --show-task-events 2>/dev/null | grep PERF_RECORD_COMM >tasks ||
	fail "no task is described"
for pid in "${sleepers[@]}"; do
	! grep -q ":$pid/$pid" tasks || fail "sleep, pid $pid, is described"
done
perf report -i "$dump" --stdio --sort comm,dso,sym >named 2>/dev/null
grep -qE '% +perf(-noploop)? +perf +\[\.\] noploop' named || fail "noploop is not named"
grep -qE '% +bash +bash ' named || fail "the child of the sleeping bash has no maps"
for file in data.2*; do
	n=$(perf script -i "$file" --show-task-events 2>/dev/null | grep -c RECORD_COMM || true)
	echo "$file describes $n threads"
done
