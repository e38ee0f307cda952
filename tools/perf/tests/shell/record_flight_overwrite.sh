#!/bin/bash
# perf record -M --overwrite: a flight recorder in the kernel's buffers (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

ordered()
{
	other_perf script -i "$1" -F cpu,time 2>/dev/null | tr -d '[]:' |
		awk '{ if ($2 < t) bad = 1; t = $2 } END { exit bad || !NR }'
}

records_and_dumps()
{
	start_recorder "$TMP/a" -M 16M --overwrite -e cpu-clock -F 499 -a
	not grep -q Miscounted "$TMP/a.stderr"
	run_dead
	dump
	opens "$DUMP"
	ordered "$DUMP"
	dead_have_names "$DUMP"
	cat "$DUMP.json"
	[ "$(json "$DUMP" unresolved)" = 0 ]
	[ "$(grep -cE '"way": "(ioctl|hop)"' "$DUMP.json")" = "$(online_cpus | wc -l)" ]
	run_dead
	stop_recorder INT
	[ "$STATUS" = 130 ]
	has_dumps "$TMP/a" 2
	opens "$DUMP"
	dead_have_names "$DUMP"
}

# Nothing is missing between what was there first and the trigger.
has_no_gap()
{
	start_recorder "$TMP/b" -M 32M --overwrite -a \
		-e syscalls:sys_enter_close --filter 'fd >= 1000000 && fd < 2000000000'
	close_files 5000
	dump
	opens "$DUMP"
	perf script -i "$DUMP" -F trace 2>/dev/null |
		sed -nE 's/.*fd: (0x[0-9a-f]+).*/\1/p' | xargs -r printf '%d\n' |
		awk '{ if ($1 != 1000000 + n) bad = 1; n++ }
		     END { print n, "numbers"; exit bad || n != 5000 }'
	stop_recorder INT
}

# However much is recorded: perf itself reads the side-band alone.
leaves_samples_in_the_kernel()
{
	start_recorder "$TMP/c" -M 4M --overwrite -e syscalls:sys_enter_close -a -g
	# On one CPU: two buffers may have room for all.
	(taskset -pc 0 "$BASHPID" >/dev/null && close_files 25000)
	dump
	opens "$DUMP"
	echo "perf kept $(json "$DUMP" raw) bytes, for a dump of $(stat -c %s "$DUMP")"
	[ $((5 * $(json "$DUMP" raw))) -lt "$(stat -c %s "$DUMP")" ]
	# The oldest were overwritten, by 2 MiB for each CPU.
	perf script -i "$DUMP" -F trace 2>/dev/null >"$TMP/script"
	not grep -q 'fd: 0x000f4240' "$TMP/script"
	[ "$(stat -c %s "$DUMP")" -lt $((6 << 20)) ]
	stop_recorder INT
}

delays_and_freezes()
{
	records_in_delay "$TMP/d" -M 8M --overwrite -e cpu-clock -F 499 -a
	start_recorder "$TMP/e" -M 8M --overwrite -e cpu-clock -F 499 -a --trigger signal,freeze
	run_dead
	dump
	dead_have_names "$DUMP"
	stop_recorder INT
	opens "$DUMP"
}

records_a_command()
{
	perf record -M 8M --overwrite -e cpu-clock -F 499 -o "$TMP/f" -- perf test -w noploop 1
	DUMP=$(dumps "$TMP/f")
	opens "$DUMP"
	dead_have_names "$DUMP"
	perf record -M 8M --overwrite --dry-run -a -e cpu-clock -F 499 -o "$TMP/t" |
		tee "$TMP/t.out"
	grep -qE '^window: *about [1-9][0-9]* s for the busiest CPU' "$TMP/t.out"
}

as_a_daemon()
{
	serves_as_daemon "$TMP/g" -M 16M --overwrite -e cpu-clock -F 499 -a
}

bpf_programs()
{
	names_bpf -M 8M --overwrite -e cpu-clock -F 499 -a
}

flight_begin
check "records, and dumps what is in the kernel's buffers" records_and_dumps
check "dumps have no gap" has_no_gap
check "samples are left in the kernel" leaves_samples_in_the_kernel
check "delay and freeze" delays_and_freezes
check "records a command, and measures" records_a_command
check "a daemon, with triggers, that combines its dumps" as_a_daemon
check_bpf_programs
persistent_end
