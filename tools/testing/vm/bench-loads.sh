#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# By how much recording slows real loads down, base and patched: messages between processes, a
# pipe, and a compile, with all switches and with all system calls recorded. Guest time counts
# instructions (ICOUNT=1), on one CPU, so it has all that recording takes: the events, and perf
# record that reads them. perf record does not record itself (--exclude-perf): each of its passes
# would make records for the next one, as many on both kernels. Fails if recording slows a load
# down by more than half of what it does on the base, beyond two standard errors: a load that
# hardly switches is slowed down by less than its runs differ.
#
# usage: bench-loads		on the host
#	 bench-loads guest	in the guest; prints "LOAD:EVENT NUMBER" lines
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/counts.sh
. "${BASH_SOURCE[0]%/*}/counts.sh"

RUNS=${RUNS:-5}
LOADS=(messaging pipe compile)
EVENTS=(none sched:sched_switch 'raw_syscalls:*')

load()
{
	case $1 in
	messaging) perf bench sched messaging -g 1 -l 300 ;;
	pipe) perf bench sched pipe -l 10000 ;;
	compile) gcc -O2 -c -o /tmp/load.o /tmp/load.c ;;
	esac
}

# Nanoseconds that CPU 0, the only one, has run tasks. Idle time is left out: the clock runs at
# any speed while the guest waits for files of the host.
busy_ns()
{
	local name rest ns
	while read -r name _ _ _ _ _ _ ns rest; do
		[ "$name" = cpu0 ] && break
	done </proc/schedstat
	printf '%s\n' "$ns"
}

# What the CPU did from the start of a load to its end, in us. perf record starts before it
# and ends after it.
timed_load()
{
	local before after
	before=$(busy_ns)
	load "$1"
	after=$(busy_ns)
	printf '%s\n' $(((after - before) / 1000)) >/tmp/load.time
}

run_case()
{
	local name=${1%%:*} event=${1#*:}
	rm -f /tmp/load.time
	if [ "$event" = none ]; then
		timed_load "$name"
	else
		perf record -q -a -e "$event" --exclude-perf -o /dev/null -- "$0" load "$name"
	fi >/tmp/load.log 2>&1 || { cat /tmp/load.log >&2; die "$1 failed"; }
	printf '%s %s\n' "$1" "$(cat /tmp/load.time)"
}

guest()
{
	local name event cases=()
	cp "$TOP/tools/testing/vm/init.c" /tmp/load.c
	for name in "${LOADS[@]}"; do
		for event in "${EVENTS[@]}"; do
			cases+=("$name:$event")
		done
	done
	run_cases "${cases[@]}"
}

# Convert lines "VARIANT LOAD:EVENT NUMBER" to a table
table()
{
	awk '
	{ n[$1, $2]++; sum[$1, $2] += $3; sq[$1, $2] += $3 * $3
	  if (!seen[$2]++) order[++cases] = $2 }
	function mean(v, c) { return n[v, c] ? sum[v, c] / n[v, c] : 0 }
	function dev(v, c,  m, d) {
		m = mean(v, c)
		d = n[v, c] > 1 ? (sq[v, c] - n[v, c] * m * m) / (n[v, c] - 1) : 0
		return d > 0 ? sqrt(d) : 0
	}
	# Percent beyond the load alone
	function slower(v, c,  none) {
		none = mean(v, substr(c, 1, index(c, ":")) "none")
		return 100 * (mean(v, c) / none - 1)
	}
	# Variance of slower(), from the spread of the runs
	function error(v, c,  base) {
		base = substr(c, 1, index(c, ":")) "none"
		return (dev(v, c) ^ 2 + dev(v, base) ^ 2) / n[v, c] * (100 / mean(v, base)) ^ 2
	}
	END {
		printf "%-26s %18s %18s %7s\n", "load:recorded", "base", "patched", "of base"
		for (i = 1; i <= cases; i++) {
			c = order[i]
			if (c ~ /:none$/) {
				printf "%-26s %12.1f +-%3.1f %12.1f +-%3.1f  %s\n", c,
					mean("base", c) / 1e3, dev("base", c) / 1e3,
					mean("patched", c) / 1e3, dev("patched", c) / 1e3,
					"million instructions"
				continue
			}
			b = slower("base", c); p = slower("patched", c)
			far = p - b / 2 > 2 * sqrt(error("patched", c) + error("base", c) / 4)
			printf "%-26s %16.2f %% %16.2f %% %7.2f%s\n", c, b, p, p / b,
				(p <= b / 2 ? "" : far ? "  more than 0.5" : "  not certain")
			bad += far
		}
		printf "slowdown in percent of the load alone; mean of %d runs\n",
			n["patched", order[1]]
		exit bad > 0
	}'
}

case ${1-} in
guest) guest ;;
load) timed_load "$2" ;;
*) count_on_both | tee "$BUILD/vm/loads.counts" | table ;;
esac
