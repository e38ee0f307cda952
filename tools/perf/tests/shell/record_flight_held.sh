#!/bin/bash
# perf record -M: a CPU that is held up (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# A record has its time before it is in the buffer. Its writer is held up in between, by
# test_modules/persistent_window.ko, whose path is in PERSISTENT_WINDOW, while the
# recorder makes pass after pass. Not even then may a dump promise too much. It is held up
# for 300 ms, and a try in which that was longer does not count: see round_group__ends().
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

WINDOW=/sys/module/persistent_window/parameters

flight_window_cleanup()
{
	trap - EXIT
	rmmod persistent_window 2>/dev/null || true
	flight_cleanup
}

# Without a fork, which takes long here.
is_waiting()
{
	local waiting

	read -r waiting <$WINDOW/waiting
	[ "$waiting" = 1 ]
}

# Passes that find something each, while the writer is held up; false if it went on.
make_passes()
{
	local i _

	for ((i = 0; i < 6; i++)); do
		exec 6</dev/null
		exec 6<&-
		kill -USR1 "$RECORDER"
		read -rt 0.01 -u 7 _ || true
	done
	is_waiting
}

# hold_up CPU: one who closes a file there, once, when there is a line to read
hold_up()
{
	local program

	program=$(cat <<-END
		import os, sys
		open('/proc/self/comm', 'w').write('held-up')
		print('ready', flush=True)
		sys.stdin.readline()
		try:
		    os.close(1000000)
		except OSError:
		    pass
	END
	)
	exec taskset -c "$1" python3 -c "$program" 2>&1
}

# try_once: 300 ms, and not much longer; false if the machine was too slow for that
try_once()
{
	local begin end

	: >"$TMP/ready"
	hold_up "$1" <&8 >"$TMP/ready" &
	echo $! >>"$TMP/recorders"
	wait_for grep -q ready "$TMP/ready" || { cat "$TMP/ready"; return 1; }
	begin=${EPOCHREALTIME/[.,]/}
	echo 1 >$WINDOW/armed
	echo >&8
	while ! is_waiting && kill -0 $!; do
		:
	done
	make_passes || begin=0
	while is_waiting; do
		:
	done
	end=${EPOCHREALTIME/[.,]/}
	wait $!
	echo "$(((end - begin) / 1000)) ms"
	[ $((end - begin)) -lt 450000 ]
}

promises_no_more_than_it_holds()
{
	local first last tries

	first=$(online_cpus | head -n1)
	last=$(online_cpus | tail -n1)
	taskset -cp "$first" "$BASHPID" >/dev/null
	mkfifo "$TMP/never" "$TMP/go"
	exec 7<>"$TMP/never" 8<>"$TMP/go"
	echo 300000 >$WINDOW/wait_us
	echo held-up:perf_output_end >$WINDOW/left
	for ((tries = 1; tries <= 50; tries++)); do
		start_recorder "$TMP/h$tries" -M 4M -e syscalls:sys_enter_close -a \
			--trigger signal,delay=60s
		if try_once "$last"; then
			break
		fi
		stop_recorder KILL
	done
	echo "$tries tries"
	[ "$tries" -le 50 ]
	stop_recorder INT
	perf script -i "$DUMP" -F comm,trace | grep 'held-up.*f4240'
	opens "$DUMP"
}

if [ -z "${PERSISTENT_WINDOW:-}" ]; then
	echo "1..0 # SKIP PERSISTENT_WINDOW is not the path of the module"
	exit 2
fi
flight_begin
if [ "$(online_cpus | wc -l)" -lt 2 ]; then
	echo "1..0 # SKIP needs two CPUs"
	exit 2
fi
trap flight_window_cleanup EXIT
insmod "$PERSISTENT_WINDOW"
check "a writer that is held up" promises_no_more_than_it_holds
persistent_end
