#!/bin/bash
# perf record -M: what goes wrong around it (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# FLIGHT_KILLS: how often it, or a child of it, is killed
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

# All that the header of each of these files points to is in it.
are_whole()
{
	python3 - "$@" <<-END
		import os, struct, sys
		for name in sys.argv[1:]:
		    size = os.path.getsize(name)
		    with open(name, 'rb') as f:
		        head = struct.unpack('<8s12Q', f.read(104))
		        data, nr = head[5] + head[6], sum(bin(x).count('1') for x in head[9:])
		        f.seek(data)
		        table = struct.unpack('<%dQ' % (2 * nr), f.read(16 * nr))
		    ends = [data] + [a + b for a, b in zip(table[::2], table[1::2])]
		    if head[0] != b'PERFILE2' or not head[6] or max(ends) > size:
		        sys.exit(name + ' is not whole')
		print(len(sys.argv) - 1, 'files are whole')
	END
}

# Whenever a child that writes a dump is killed, and every fifth time the recorder with it
# or without: each file that has a name is whole.
survives_sigkill()
{
	local i

	for ((i = 0; i < ${FLIGHT_KILLS:-50}; i++)); do
		[ -n "$RECORDER" ] || start_recorder "$TMP/p" -M 4M -e cpu-clock -F 499 -a
		kill -USR1 "$RECORDER"
		sleep "0.$(printf %03d $((RANDOM % 250)))"
		[ $((i % 10)) = 4 ] || pkill -KILL -P "$RECORDER" || true
		[ $((i % 5)) = 4 ] || continue
		kill -KILL "$RECORDER"
		wait "$RECORDER" 2>/dev/null || true
		RECORDER=
	done
	start_recorder "$TMP/p" -M 4M -e cpu-clock -F 499 -a
	run_dead
	stop_recorder INT
	are_whole "$TMP"/p.sample.*[0-9Z]
	opens "$DUMP"
	# Nothing half-written stays for ever.
	wait_for nothing_half_written "$TMP"
}

flight_begin
check "a directory that is gone" survives_a_missing_directory
check "a full disk" survives_a_full_disk
# It sets the clock of the machine.
if [ "${TEST_MACHINE:-}" = 1 ]; then
	check "clock steps" survives_clock_steps
else
	leave_out "clock steps" "this is not the test machine, whose clock may be set"
fi
check "kill -9" survives_sigkill
persistent_end
