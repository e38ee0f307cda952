#!/bin/bash
# perf record -M: what goes wrong around it (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# FLIGHT_KILLS: how often it is killed
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

# A dump that cannot be written is told, leaves nothing, and harms nothing.
survives_a_missing_directory()
{
	mkdir "$TMP/gone"
	start_recorder "$TMP/gone/m" -M 4M -e cpu-clock -F 199 -a
	exec 5<"$TMP/gone/m.stderr"
	rm -r "$TMP/gone"
	kill -USR1 "$RECORDER"
	wait_for grep -q 'could not be written: No such file' /proc/self/fd/5
	mkdir "$TMP/gone"
	dump
	opens "$DUMP"
	stop_recorder INT
	exec 5<&-
}

nothing_half_written()
{
	[ -z "$(find "$1" -name '.*.tmp')" ]
}

survives_a_full_disk()
{
	mkdir "$TMP/full"
	mount -t tmpfs -o size=256k none "$TMP/full"
	start_recorder "$TMP/full/n" -M 8M -e syscalls:sys_enter_close -a -g
	close_files 10000
	kill -USR1 "$RECORDER"
	wait_for grep -q 'could not be written: No space' "$TMP/full/n.stderr"
	not has_dumps "$TMP/full/n" 1
	wait_for nothing_half_written "$TMP/full"
	mount -o remount,size=64m "$TMP/full"
	dump
	opens "$DUMP"
	stop_recorder INT
	umount "$TMP/full"
}

# Names are of the wall clock, times are not.
survives_clock_steps()
{
	local now

	now=$(date +%s)
	start_recorder "$TMP/o" -M 4M -e cpu-clock -F 199 -a
	run_dead
	dump
	date -s "@$((now - 86400))" >/dev/null
	dump_any 2
	date -s "@$((now + 86400 * 365))" >/dev/null
	dump_any 3
	date -s "@$((now + 60))" >/dev/null
	stop_recorder INT
	has_dumps "$TMP/o" 4
	for DUMP in $(dumps "$TMP/o"); do
		opens "$DUMP"
		[ "$(json "$DUMP" window | cut -d. -f1)" -lt 600 ]
	done
}

dump_any()
{
	kill -USR1 "$RECORDER"
	wait_for has_dumps "$OUT_NAME" "$1"
}

# Whenever it is killed: each file that has a name is whole.
survives_sigkill()
{
	local i file

	for ((i = 0; i < ${FLIGHT_KILLS:-6}; i++)); do
		start_recorder "$TMP/p" -M 4M -e cpu-clock -F 499 -a
		kill -USR1 "$RECORDER"
		sleep "0.$((RANDOM % 1000 + 1000))"
		# The child may go on, or die as well.
		[ $((i % 2)) = 0 ] || pkill -KILL -P "$RECORDER" || true
		kill -KILL "$RECORDER"
		wait "$RECORDER" 2>/dev/null || true
	done
	start_recorder "$TMP/p" -M 4M -e cpu-clock -F 499 -a
	run_dead
	stop_recorder INT
	for file in "$TMP"/p.sample.*Z; do
		opens "$file"
	done
	# Nothing half-written stays for ever.
	nothing_half_written "$TMP"
}

flight_begin
check "a directory that is gone" survives_a_missing_directory
check "a full disk" survives_a_full_disk
check "clock steps" survives_clock_steps
check "kill -9" survives_sigkill
persistent_end
