#!/bin/bash
# perf record -M: what it leaves on disk (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

# dump_next: as dump(), where dumps go while others come
dump_next()
{
	local newest

	newest=$(dumps "$OUT_NAME" | tail -n1)
	kill -USR1 "$RECORDER"
	wait_for has_newer "$newest"
	DUMP=$(dumps "$OUT_NAME" | tail -n1)
}

has_newer()
{
	[ "$(dumps "$OUT_NAME" | tail -n1)" != "$1" ]
}

has_only()
{
	[ "$(dumps "$1" | wc -l)" = "$2" ] && [ "$(samples_of "$1" | wc -l)" = "$2" ]
}

samples_of()
{
	find "$(dirname "$1")" -name "$(basename "$1").sample.*" ! -name '*.json'
}

# Those of earlier runs go first; what only looks like a dump stays.
bounds_files()
{
	local first i

	start_recorder "$TMP/a" -M 4M -e cpu-clock -F 99 -a
	dump_next
	first=$DUMP
	dump_next
	stop_recorder INT
	has_only "$TMP/a" 3
	for i in a.sample a.sample.mine a.sample.20200101T000000.000Z.mine \
		 aa.sample.20200101T000000.000Z \
		 a.sample.20200101T000000.000; do
		echo mine >"$TMP/$i"
	done
	start_recorder "$TMP/a" -M 4M -e cpu-clock -F 99 -a --max-files 3
	dump_next
	wait_for test ! -e "$first"
	not test -e "$first.json"
	dump_next
	dump_next
	dump_next
	opens "$DUMP"
	stop_recorder INT
	opens "$DUMP"
	[ "$(dumps "$TMP/a" | wc -l)" = 3 ]
	grep -l mine "$TMP"/a* | wc -l | grep -qx 5
}

# Whatever their number; the newest one stays even if it alone is too large.
bounds_disk()
{
	local i size

	start_recorder "$TMP/b" -M 4M -e cpu-clock -F 99 -a --max-disk 1M
	for i in 1 2 3; do
		dump_next
	done
	# One of a run before, larger than all that may stay.
	dd if=/dev/zero of="$TMP/b.sample.20200101T000000.000Z" bs=1M count=4 status=none
	: >"$TMP/b.sample.20200101T000000.000Z.json"
	dump_next
	wait_for test ! -e "$TMP/b.sample.20200101T000000.000Z"
	opens "$DUMP"
	stop_recorder INT
	size=$(find "$TMP" -name 'b.sample.*' -printf '%s\n' | awk '{ n += $1 } END { print n }')
	echo "$size bytes"
	[ "$size" -le $((1 << 20)) ] || has_only "$TMP/b" 1
}

# What is the newest is not asked of its size.
keeps_the_newest()
{
	start_recorder "$TMP/c" -M 16M -e syscalls:sys_enter_close -a -g --max-disk 1M
	close_files 20000
	dump_next
	[ "$(stat -c %s "$DUMP")" -gt $((1 << 20)) ]
	wait_for grep -q 'more than --max-disk allows' "$TMP/c.stderr"
	opens "$DUMP"
	stop_recorder INT
	opens "$DUMP"
}

# With the file's name; a failure is told, one that hangs holds nobody up.
runs_a_command()
{
	# shellcheck disable=SC2016 # for the shell that runs it
	start_recorder "$TMP/d e" -M 4M -e cpu-clock -F 99 -a \
		--on-dump "sh -c 'test -s \"\$2\" && echo \"\$1:\$2\" >>\"$TMP/told\"' \
			   sh \"an argument\""
	dump_next
	wait_for grep -qxF "an argument:$DUMP" "$TMP/told"
	stop_recorder INT
	wait_for grep -qxF "an argument:$DUMP" "$TMP/told"

	start_recorder "$TMP/f" -M 4M -e cpu-clock -F 99 -a --on-dump 'exit 3;'
	dump_next
	wait_for grep -q 'on-dump failed with status 3: exit 3' "$TMP/f.stderr"
	dump_next
	opens "$DUMP"
	stop_recorder INT

	start_recorder "$TMP/g" -M 4M -e cpu-clock -F 99 -a --on-dump \
		"echo \$\$ >>'$TMP/recorders'; sleep 600; :"
	dump_next
	dump_next
	stop_recorder INT
	opens "$DUMP"
	[ "$(dumps "$TMP/g" | wc -l)" = 3 ]

	STATUS=0
	# shellcheck disable=SC2016 # for the shell that runs it
	perf record -M 4M -o "$TMP/h" -e cpu-clock --on-dump "sleep 1; false" -- \
		sh -c 'kill -USR1 $PPID; sleep 2; exit 7' || STATUS=$?
	[ "$STATUS" = 7 ]
}

refuses()
{
	fails 1 'max-files is for a flight recorder' perf record --max-files 3 -a true
	fails 1 'max-disk is for a flight recorder' perf record --max-disk 3M -a true
	fails 1 'on-dump is for a flight recorder' perf record --on-dump true -a true
	fails 129 'max-disk 3: a size' perf record -M 4M --max-disk 3 -a
}

flight_begin
check "max-files, those of earlier runs as well" bounds_files
check "max-disk" bounds_disk
check "the newest dump stays" keeps_the_newest
check "on-dump" runs_a_command
check "refuses what makes no sense" refuses
persistent_end
