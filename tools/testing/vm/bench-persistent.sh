#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Cost of persistent events: instructions of UNCLAIM, of opening an event again and of
# CLAIM; of listing and ending a session of 5,000 events, per event, in one call and one by
# one; instructions of a sample in the buffer of a session, in memory and in a region that
# survives a reset, compared with the same event in the buffer of its creator; of a context
# switch without a session, and with one of a cgroup, before and after the cgroup was removed;
# and memory of a session in addition to its buffer. Guest time counts instructions (ICOUNT=1).
# Fails if the samples, or the switches without a session and after the removal, differ by more
# than 0.02 %.
#
# perf ctl -l and perf ctl -d of a session of 5,000 events, less those of a session of one: per
# event, instructions of perf's own time and calls of ioctl(). Fails if they make more of
# these than for one event, or if perf ctl -l takes more than 20,000 instructions for each.
#
# usage: bench-persistent.sh		on the host
#	 bench-persistent.sh guest	in the guest; prints "CASE NUMBER" lines
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

RUNS=${RUNS:-5}
PROGRAM=$BUILD/vm/persistent-cost
EVENTS=5000

# ioctls_of COMMAND...
ioctls_of()
{
	perf stat -x, -e syscalls:sys_enter_ioctl -o /tmp/ioctls -- "$@" >/dev/null
	awk -F, '/sys_enter_ioctl/ { print $1 }' /tmp/ioctls
}

# of_ctl SESSION_EVENTS: what perf ctl takes, in /tmp/NR.CASE
of_ctl()
{
	ulimit -n 20000
	"$PROGRAM" make big "$1"
	# The first one finds cold caches.
	perf ctl -l >/dev/null
	"$PROGRAM" time perf ctl -l >"/tmp/$1.ctl_list"
	ioctls_of perf ctl -l >"/tmp/$1.list_ioctls"
	"$PROGRAM" time perf ctl -d big >"/tmp/$1.ctl_end"
	"$PROGRAM" make big "$1"
	ioctls_of perf ctl -d big >"/tmp/$1.end_ioctls"
}

guest()
{
	local i name
	sysctl -qw kernel.perf_event_mlock_kb=65536
	for ((i = 0; i < RUNS; i++)); do
		"$PROGRAM" "$([ $i = 0 ] && echo memory || echo)"
	done
	of_ctl 1
	of_ctl $EVENTS
	for name in ctl_list list_ioctls ctl_end end_ioctls; do
		paste "/tmp/1.$name" "/tmp/$EVENTS.$name" |
			awk -v name=$name -v nr=$EVENTS '
			{ printf "%s %.4f\n", name, ($2 - $1) / (nr - 1) }'
	done
}

# Convert lines "CASE NUMBER" to a table
table()
{
	awk '
	{ n[$1]++; sum[$1] += $2; raw[$1] = raw[$1] " " $2
	  if (n[$1] == 1) order[++cases] = $1 }
	END {
		for (i = 1; i <= cases; i++) {
			c = order[i]
			printf "%-12s %14.3f   of%s\n", c, sum[c] / n[c], raw[c]
		}
		change = 100 * (sum["persistent"] / sum["user"] - 1)
		printf "a sample into a persistent buffer: %+.4f %%\n", change
		reserved = 100 * (sum["reserved"] / sum["user"] - 1)
		printf "a sample into one that survives a reset: %+.4f %%\n", reserved
		left = 100 * (sum["gone"] / sum["switch"] - 1)
		printf "a switch with a session of a removed cgroup: %+.4f %%\n", left
		print "instructions; bytes are those of a session without its buffer"
		exit !(cases == 17 && sum["end_ioctls"] == 0 && sum["list_ioctls"] == 0 &&
		       sum["ctl_list"] < 20000 && change < 0.02 && change > -0.02 &&
		       reserved < 0.02 && reserved > -0.02 &&
		       left < 0.02 && left > -0.02)
	}'
}

if [ "${1-}" = guest ]; then
	guest
	exit
fi

mkdir -p "${PROGRAM%/*}"
gcc -O2 -Wall -Werror -isystem "$BUILD/patched/kernel/usr/include" -o "$PROGRAM" \
	"$TOP/tools/testing/vm/persistent-cost.c"
CMD="RUNS=$RUNS $TOP/tools/testing/vm/${0##*/} guest" VARIANT=patched ICOUNT=1 SMP=1 \
	ACCEL=single MEM='' APPEND='reserve_mem=8M:4096:box perf_persistent=@box' TIMEOUT=1500 \
	"$TOP/tools/testing/vm/vm.sh" | table
