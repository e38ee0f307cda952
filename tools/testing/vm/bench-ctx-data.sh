#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What per-task PMU data costs, with the test PMU of the kselftests:
#
#  - opening and closing a system-wide event beside 10, 1,000 and 10,000 threads that
#    sleep. Fails where 10,000 cost more than 1.2 times what 10 do.
#  - the longest exit of a task on one CPU while another opens and closes such events
#    beside 10,000 threads. Fails where that is more than 3 times what it is beside 10: the
#    longest of many varies.
#  - the memory of 10,000 threads that sleep and 100 that run. Fails where it is more than
#    10 % above that of the tasks that run.
#
#    Beside these three the same of a walk that allocates for each thread when the event is
#    opened, on the same kernel, see eager_data.h: in the order of Linux 6.16 (restart), and
#    as far as that can be mended (walk).
#
#  - a context switch without an event, with a per-task and with a system-wide one, base
#    beside patched. Fails where a per-task event costs more than on the base, or a
#    system-wide one more than the per-task one, which saves and restores as well.
#
# Guest time counts instructions (ICOUNT=1).
#
# usage: bench-ctx-data.sh		on the host
#	 bench-ctx-data.sh guest|guest_exit VARIANT	in the guest; prints "CASE NUMBER" lines
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

RUNS=${RUNS:-3}
PROGRAM=$BUILD/vm/ctx-data-cost
MODULE=perf_test_pmu
EAGER=/sys/module/$MODULE/parameters/eager
WAYS=(lazy restart walk)

guest()
{
	local i which n
	insmod "$BUILD/$1/test_modules/$MODULE.ko"
	for ((i = 0; i < RUNS; i++)); do
		for which in none task wide; do
			"$PROGRAM" switch $which
		done
	done
	[ "$1" != base ] || return 0
	for n in 10 1000 10000; do
		each_way open $n
	done
	each_way memory 10000 100
}

# each_way open|exit THREADS, each_way memory THREADS RUNNING: with the kernel's data, with
# the two walks
each_way()
{
	local mode i rounds=()
	for mode in 0 1 2; do
		# The hooks of the kernel's data are disabled a second after the last event.
		sleep 2
		echo $mode >"$EAGER"
		case $1 in
		open) rounds=(20) ;;
		exit) rounds=(5) ;;
		esac
		# Time grows with the square of the threads, and hardly varies.
		[[ $1 == memory || $mode != 1 || $2 != 10000 ]] || rounds=(1)
		for ((i = 0; i < RUNS; i++)); do
			"$PROGRAM" "$@" "${rounds[@]}" | sed "s/^/${WAYS[mode]}-/"
		done
	done
	echo 0 >"$EAGER"
}

# Of two CPUs
guest_exit()
{
	local n
	insmod "$BUILD/$1/test_modules/$MODULE.ko"
	for n in 10 10000; do
		each_way exit $n
	done
}

# Lines "VARIANT CASE NUMBER" to tables
table()
{
	awk '
	{ n[$1, $2]++; sum[$1, $2] += $3; sq[$1, $2] += $3 * $3 }
	function mean(v, c) { return n[v, c] ? sum[v, c] / n[v, c] : 0 }
	function dev(v, c,  m, d) {
		m = mean(v, c)
		d = n[v, c] > 1 ? (sq[v, c] - n[v, c] * m * m) / (n[v, c] - 1) : 0
		return d > 0 ? sqrt(d) : 0
	}
	function check(good, what) {
		if (!good) {
			print "too much: " what
			bad = 1
		}
	}
	END {
		p = "patched"
		runs = n[p, "lazy-open-10"]
		printf "%-24s", "system-wide event"
		for (w = 1; w <= split("lazy restart walk", ways); w++)
			printf " %22s", ways[w]
		print ""
		for (i = 1; i <= split("open close exit", cases); i++)
			for (t = 10; t <= 10000; t *= t == 10 ? 100 : 10) {
				c = cases[i] "-" t
				if (!n[p, "lazy-" c])
					continue
				printf "%-5s %6d threads     ", cases[i], t
				for (w = 1; w <= 3; w++)
					printf " %12.0f +- %6.0f", mean(p, ways[w] "-" c),
						dev(p, ways[w] "-" c)
				print ""
			}
		for (i = 1; i <= 3; i += 2) {
			c = cases[i]
			printf "%s, 10000 threads to 10:", c
			for (w = 1; w <= 3; w++) {
				of = ways[w] "-" c
				ratio[w] = mean(p, of "-10000") / mean(p, of "-10")
				printf " %s %.3f", ways[w], ratio[w]
			}
			print ""
			check(ratio[1] < (c == "open" ? 1.2 : 3) && ratio[1] > 0,
			      c " beside 10000 threads")
		}

		object = mean(p, "lazy-object")
		ran = mean(p, "lazy-bytes") / (100 * object)
		printf "memory, 100 running threads of 10100:"
		for (w = 1; w <= 3; w++)
			printf " %s %d", ways[w], mean(p, ways[w] "-bytes")
		printf " (lazy: %.3f of 100 objects of %d)\n", ran, object
		check(ran >= 1 && ran < 1.1, "memory")

		printf "%-24s %20s %20s %9s\n", "context switch", "base", "patched", "change"
		for (i = 1; i <= split("none task wide", cases); i++) {
			c = "switch-" cases[i]
			printf "%-24s %12.1f +- %5.1f %12.1f +- %5.1f %+9.1f\n", cases[i],
				mean("base", c), dev("base", c), mean(p, c), dev(p, c),
				mean(p, c) - mean("base", c)
		}
		check(mean(p, "switch-task") <= 1.0002 * mean("base", "switch-task"),
		      "a switch with a per-task event")
		check(mean(p, "switch-wide") > 0 &&
		      mean(p, "switch-wide") <= mean(p, "switch-task"),
		      "a switch with a system-wide event")
		printf "instructions, mean and standard deviation of %d runs\n", runs
		exit bad || !runs
	}'
}

# boot VARIANT SMP WHAT: "guest" or "guest_exit" there
boot()
{
	CMD="$TOP/tools/testing/vm/${0##*/} $3 $1" VARIANT=$1 ICOUNT=1 SMP=$2 MEM=3G \
		ACCEL=single TIMEOUT=1800 PASS_ENV=RUNS "$TOP/tools/testing/vm/vm.sh" |
		sed "s/^/$1 /"
}

measure()
{
	boot base 1 guest
	boot patched 1 guest
	boot patched 2 guest_exit
}

export RUNS
if [[ ${1-} == guest* ]]; then
	"$1" "$2"
else
	mkdir -p "${PROGRAM%/*}"
	gcc -O2 -Wall -Werror -o "$PROGRAM" "$TOP/tools/testing/vm/ctx-data-cost.c" -lpthread
	measure | table
fi
