#!/bin/bash
# perf record -M --call-graph fp,defer: user halves of call chains come later (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

CALLS=(--call-graph "fp,defer")

# A kernel without deferral has perf leave it out.
defers()
{
	perf record -q -o "$TMP/try" -e dummy "${CALLS[@]}" -- true >/dev/null 2>&1 &&
		perf evlist -v -i "$TMP/try" | grep -q defer_callchain
}

# deferred DUMP: halves that are in it, as perf script tells them
deferred()
{
	perf script -i "$1" -D 2>/dev/null | grep -c 'PERF_RECORD_CALLCHAIN_DEFERRED' || true
}

# Functions of programs are in the user halves alone.
has_user_halves()
{
	perf script -i "$1" -F comm,ip,sym 2>/dev/null >"$TMP/chains"
	grep -q ' noploop' "$TMP/chains" || { tail -n 30 "$TMP/chains"; return 1; }
}

# What has returned to user space has both halves; what sleeps in the kernel lacks one.
counts_halves()
{
	local sleeper half

	start_recorder "$TMP/a" -M 16M -a "${CALLS[@]}" -e sched:sched_switch \
		-e cpu-clock/freq=499/
	run_dead
	# It sleeps at the dump, in a switch whose user half has not come.
	sleep 60 &
	sleeper=$!
	pause 1
	dump
	kill $sleeper
	half=$(json "$DUMP" half_chains)
	echo "$(deferred "$DUMP") halves, $half missing, of $(json "$DUMP" events) samples"
	[ "$half" -gt 0 ]
	[ "$half" -lt "$(json "$DUMP" events)" ]
	[ "$(deferred "$DUMP")" -gt 0 ]
	has_user_halves "$DUMP"
	# perf verdict looks for them on its own, and sees the switches in their order.
	perf verdict --json -i "$DUMP" >"$TMP/verdict"
	grep -q "\"half_chains\": $half," "$TMP/verdict"
	not grep -q 'Not every switch' "$TMP/verdict"
	stop_recorder INT
}

# The dump of the check before: the first one of OUT
first_dump()
{
	dumps "$TMP/a" | sed -n 1p
}

# The halves of the copy can still be put together.
redacts()
{
	local before

	before=$(deferred "$(first_dump)")
	perf data redact -i "$(first_dump)" -o "$TMP/copy"
	echo "$before halves, $(deferred "$TMP/copy") in the copy"
	[ "$(deferred "$TMP/copy")" = "$before" ]
	perf verdict --json -i "$TMP/copy" >"$TMP/verdict.copy"
	[ "$(grep half_chains "$TMP/verdict.copy")" = "$(grep half_chains "$TMP/verdict")" ]
}

converts()
{
	perf data convert --to-pprof "$TMP/pprof" -i "$(first_dump)" 2>&1 | tee "$TMP/said"
	grep -q "^$(json "$(first_dump)" half_chains) samples lack" "$TMP/said"
}

# times FILE: of each task, as JSON of the page tells them. A sample that comes late has the name
# that the task had then.
times()
{
	python3 -c 'import collections, json, sys
sums = collections.Counter()
for task in json.load(open(sys.argv[1]))["tasks"]:
    for key in "switches", "on_ns", "off_ns":
        sums[task["pid"], task["tid"], key] += task[key]
for key in sorted(sums):
    print(*key, sums[key])' "$1"
}

# perf hands out a sample when its user half has come, after those of other tasks: the page has
# the same times as from samples without that half, which come in order.
page_sorts()
{
	local script

	script=$(perf --exec-path)/scripts/python/incident.py
	perf script report incident -i "$(first_dump)" --json >"$TMP/merged" 2>/dev/null
	not grep 'Not every switch' "$TMP/merged"
	grep -q 'samples lack the user half' "$TMP/merged"
	perf script --no-merge-callchains -i "$(first_dump)" -s "$script" -- \
		-i "$(first_dump)" --json 2>/dev/null |
		grep -o '{"machine".*' >"$TMP/halves"
	times "$TMP/merged" >"$TMP/times.merged"
	times "$TMP/halves" >"$TMP/times.halves"
	[ "$(wc -l <"$TMP/times.merged")" -gt 15 ]
	diff "$TMP/times.merged" "$TMP/times.halves"
}

# A recording of the session has no manifest: what the page tells of halves is from the records.
page_counts_halves()
{
	perf record -q -e persistent/deferred/ -o "$TMP/plain" -- sleep 1
	perf script report incident -i "$TMP/plain" --json >"$TMP/plain.json" 2>/dev/null
	perf verdict --json -i "$TMP/plain" >"$TMP/verdict.plain"
	grep -q half_chains "$TMP/verdict.plain"
	grep -q 'samples lack the user half' "$TMP/plain.json"
}

# keeps_halves OUT OPTION...: wherever the records are kept until the dump
keeps_halves()
{
	start_recorder "$1" "${@:2}" -a "${CALLS[@]}" -e cpu-clock/freq=499/
	run_dead
	dump
	echo "$(deferred "$DUMP") halves, $(json "$DUMP" half_chains) missing," \
	    "of $(json "$DUMP" events) samples"
	[ "$(deferred "$DUMP")" -gt 0 ]
	[ "$(json "$DUMP" half_chains)" -lt "$(json "$DUMP" events)" ]
	has_user_halves "$DUMP"
	stop_recorder INT
}

of_a_session()
{
	perf record -q -P deferred -a "${CALLS[@]}" -e cpu-clock -F 499 -m 1M
	start_recorder "$TMP/b" -M 16M -e persistent/deferred/
	run_dead
	dump
	echo "$(deferred "$DUMP") halves, $(json "$DUMP" half_chains) missing"
	[ "$(deferred "$DUMP")" -gt 0 ]
	[ -n "$(json "$DUMP" half_chains)" ]
	has_user_halves "$DUMP"
	stop_recorder INT
	page_counts_halves
	perf ctl -d deferred
}

flight_begin
if ! defers; then
	leave_out "deferred call chains" "this kernel does not defer them"
	persistent_end
	exit 2
fi
check "halves that are missing are counted" counts_halves
check "a redacted copy keeps the halves" redacts
check "conversions have whole chains" converts
check "the page has the records in order" page_sorts
check "in the kernel's buffers" keeps_halves "$TMP/o" -M 16M --overwrite
check "with a share for each cgroup" keeps_halves "$TMP/f" -M 16M --fair cgroup
if supported; then
	check "of a session" of_a_session
else
	leave_out "of a session" "this kernel has no persistent events"
fi
persistent_end
