#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What per-task PMU data costs, with the test PMU of the kselftests:
#
#  - opening and closing a system-wide event beside 10, 1,000 and 10,000 threads that
#    sleep; beside it the eager way, which allocates for each thread when it is opened.
#    Fails where 10,000 cost more than 1.2 times what 10 do.
#  - the memory of 10,000 threads that sleep and 100 that run, both ways. Fails where it
#    is more than 10 % above that of the tasks that run.
#  - a context switch without an event, with a per-task and with a system-wide one, base
#    beside patched. Fails where a per-task event costs more than on the base, or a
#    system-wide one more than the per-task one, which saves and restores as well.
#
# Guest time counts instructions (ICOUNT=1).
#
# usage: bench-ctx-data.sh		on the host
#	 bench-ctx-data.sh guest WHAT	in the guest; prints "CASE NUMBER..." lines
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

RUNS=${RUNS:-3}
PROGRAM=$BUILD/vm/ctx-data-cost
MODULE=perf_test_pmu
EAGER=/sys/module/$MODULE/parameters/eager

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
	for ((i = 0; i < RUNS; i++)); do
		for n in 10 1000 10000; do
			echo 0 >$EAGER
			"$PROGRAM" open $n
			echo 1 >$EAGER
			"$PROGRAM" open $n | sed 's/^/eager-/'
		done
	done
	echo 0 >$EAGER
	"$PROGRAM" memory 10000 100 | grep -v '^eager'
	echo 1 >$EAGER
	"$PROGRAM" memory 10000 100 | grep '^eager'
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
		runs = n[p, "open-10"]
		printf "%-24s %20s %20s\n", "system-wide event", "lazy", "eager"
		for (i = 10; i <= 10000; i *= i == 10 ? 100 : 10)
			for (w = 0; w < 2; w++) {
				c = (w ? "close-" : "open-") i
				printf "%-5s %6d threads     %12.0f +- %5.0f %12.0f +- %5.0f\n",
					w ? "close" : "open", i, mean(p, c), dev(p, c),
					mean(p, "eager-" c), dev(p, "eager-" c)
			}
		ratio = mean(p, "open-10000") / mean(p, "open-10")
		printf "open, 10000 threads to 10: %.3f, eager %.3f\n", ratio,
			mean(p, "eager-open-10000") / mean(p, "eager-open-10")
		check(ratio < 1.2 && ratio > 0, "opening beside 10000 threads")

		object = mean(p, "object")
		ran = mean(p, "lazy-bytes") / (100 * object)
		printf "%d bytes for 100 running threads of 10100 (%.3f of 100 objects of %d), " \
			"eager %d\n", mean(p, "lazy-bytes"), ran, object, mean(p, "eager-bytes")
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

measure()
{
	local variant
	for variant in base patched; do
		CMD="$TOP/tools/testing/vm/${0##*/} guest $variant" VARIANT=$variant ICOUNT=1 \
			SMP=1 MEM=3G ACCEL=single TIMEOUT=900 PASS_ENV=RUNS \
			"$TOP/tools/testing/vm/vm.sh" | sed "s/^/$variant /"
	done
}

export RUNS
if [ "${1-}" = guest ]; then
	guest "$2"
else
	mkdir -p "${PROGRAM%/*}"
	gcc -O2 -Wall -Werror -o "$PROGRAM" "$TOP/tools/testing/vm/ctx-data-cost.c" -lpthread
	measure | table
fi
