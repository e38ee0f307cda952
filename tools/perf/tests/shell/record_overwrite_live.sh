#!/bin/bash
# perf record --overwrite loses nothing (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# A program numbers its system calls. Every dump of 'perf record --overwrite
# --switch-output' must hold them without a gap, and each dump must go on where
# the one before ended, unless perf says that the buffer was overwritten in
# between; whatever asks for them: a signal, the time, or an event.
set -euo pipefail

skip() {
	echo "skip: $*"
	exit 2
}

DIR=$(mktemp -d /tmp/__perf_test.overwrite.XXXXX)
recorder=
writer=

cleanup() {
	trap - EXIT
	[ -z "$writer" ] || kill "$writer" 2>/dev/null || true
	[ -z "$recorder" ] || kill "$recorder" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$DIR"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

build_writer() {
	cat >"$DIR/writer.c" <<-END
		#include <unistd.h>

		int main(void)
		{
			volatile int i;
			int fd = 1000000;

			for (;;) {
				close(fd++);
				for (i = 0; i < 10000; i++)
					;
			}
		}
	END
	cc -O1 -o "$DIR/writer" "$DIR/writer.c" 2>/dev/null
}

# The numbers in a dump, oldest first. The program's start closes files, too.
numbers() {
	perf script -i "$1" --comm writer -F trace 2>/dev/null |
		sed -nE 's/.*fd: (0x[0-9a-f]+).*/\1/p' | xargs -r printf '%d\n' |
		awk '$1 >= 1000000'
}

dumps() {
	grep -c '^\[ perf record: Dump ' "$DIR/log" || true
}

# ask OPTION: for a dump, and wait for it
ask() {
	local before
	before=$(dumps)
	case $1 in
	*=signal) kill -USR2 $recorder ;;
	# It is looked for on the CPUs that are recorded.
	*-event=*) taskset -c "$cpu" sync "$DIR/writer" ;;
	esac
	for _ in {1..600}; do
		[ "$(dumps)" -le "$before" ] || break
		sleep 0.1
	done
}

# record OPTION SIZE DUMPS: OPTION says what makes it take dumps
record() {
	local n
	rm -f "$DIR"/data*
	perf record -v --overwrite "$1" -m "$2" -C "$cpu" \
		-e syscalls:sys_enter_close -o "$DIR/data" >"$DIR/log" 2>&1 &
	recorder=$!
	for _ in {1..600}; do
		sleep 0.1
		grep -q 'mmap size' "$DIR/log" && break
	done
	taskset -c "$cpu" "$DIR/writer" &
	writer=$!
	sleep 0.5
	for ((n = 0; n < $3; n++)); do
		ask "$1"
	done
	sleep 0.2
	kill -INT $recorder
	wait $recorder || true
	recorder=
	kill $writer
	wait $writer 2>/dev/null || true
	writer=
}

# check DUMPS FOLLOWED: so many dumps, of which so many go on where the one before ended
# Dumps are named by their time; perf's reports are in the same order.
check() {
	local dump report strict last=0 n=0 followed=0 lines
	grep "overwrite buffer of CPU $cpu:" "$DIR/log" >"$DIR/reports" || true
	for dump in "$DIR"/data.[0-9]*; do
		n=$((n + 1))
		report=$(sed -n "${n}p" "$DIR/reports")
		strict=1
		! grep -q 'gap of [1-9]' <<<"$report" || strict=0
		numbers "$dump" >"$DIR/numbers"
		lines=$(wc -l <"$DIR/numbers")
		[ "$lines" -gt 0 ] || continue
		if ! awk -v last="$last" -v strict="$strict" '
		     NR > 1 && $1 != prev + 1 { printf "%d after %d\n", $1, prev; bad = 1 }
		     NR == 1 && last && strict && $1 != last + 1 {
			printf "begins with %d, the one before ended with %d\n", $1, last
			bad = 1
		     }
		     { prev = $1 }
		     END { exit bad }' "$DIR/numbers"; then
			echo "dump $n: events are missing ($report)"
			return 1
		fi
		[ "$last" = 0 ] || followed=$((followed + strict))
		last=$(tail -n1 "$DIR/numbers")
		echo "dump $n: $lines numbers; ${report#*: }"
	done
	if [ "$n" -lt "$1" ] || [ "$followed" -lt "$2" ]; then
		echo "only $n dumps, $followed that follow one another"
		return 1
	fi
	if grep -q 'read by pause' "$DIR/log"; then
		echo "a buffer was paused"
		return 1
	fi
}

[ "$(id -u)" = 0 ] || skip "needs root"
[ -d /sys/kernel/tracing/events/syscalls/sys_enter_close ] ||
	[ -d /sys/kernel/debug/tracing/events/syscalls/sys_enter_close ] ||
	skip "no tracepoint syscalls:sys_enter_close"
cpu=$(taskset -pc $$ | sed -E 's/.*[:,-] *([0-9]+)$/\1/')
build_writer || skip "no C compiler"
record --switch-output=signal 4M 6
check 5 2
# In a second a fast machine writes more than the buffer holds.
record --switch-output=1s 256K 2
check 2 0
record --switch-output-event=syscalls:sys_enter_fsync 256K 2
check 2 0
