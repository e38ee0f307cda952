#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Instructions without events, base and patched: of a system call, a context switch, and
# a process that is created and exits. Guest time counts instructions (ICOUNT=1), so the
# numbers repeat to 0.02 %. Fails if patched and base differ by more than 0.1 %. For
# what is recorded, see bench-tracepoint.sh.
#
# usage: bench-instructions		on the host
#	 bench-instructions guest RUNS	in the guest; prints "CASE NUMBER" lines
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/counts.sh
. "${BASH_SOURCE[0]%/*}/counts.sh"

RUNS=${RUNS:-5}
CASES=(bare switch fork)
PROGRAM=$BUILD/vm/syscall-cost
SWITCH=$BUILD/vm/switch-cost
LIMIT=0.1	# per cent

run_case()
{
	local out=/tmp/cost
	rm -f "$out"
	case $1 in
	bare) "$PROGRAM" "$out" ;;
	# The number of page tables depends on the random memory layout.
	switch|fork) setarch -R "$SWITCH" "$1" "$out" ;;
	esac >/dev/null 2>&1
	printf '%s %s\n' "$1" "$(cat "$out")"
}

# Convert lines "VARIANT CASE NUMBER" to a table
table()
{
	awk -v limit=$LIMIT '
	{ n[$1, $2]++; sum[$1, $2] += $3; sq[$1, $2] += $3 * $3
	  if (!seen[$2]++) order[++cases] = $2 }
	function mean(v, c) { return sum[v, c] / n[v, c] }
	function dev(v, c,  m, d) {
		m = mean(v, c)
		d = n[v, c] > 1 ? (sq[v, c] - n[v, c] * m * m) / (n[v, c] - 1) : 0
		return d > 0 ? sqrt(d) : 0
	}
	END {
		printf "%-12s %22s %22s %10s\n", "case", "base", "patched", "change"
		for (i = 1; i <= cases; i++) {
			c = order[i]
			change = 100 * (mean("patched", c) / mean("base", c) - 1)
			over = change > limit || change < -limit
			printf "%-12s %12.1f +- %6.2f %12.1f +- %6.2f %+9.3f %%%s\n", c,
				mean("base", c), dev("base", c),
				mean("patched", c), dev("patched", c), change,
				over ? "  more than " limit " %" : ""
			bad += over
		}
		printf "instructions per close(-1), switch, or fork and exit; "
		printf "mean and standard deviation of %d runs\n",
			n["base", order[1]]
		exit bad > 0
	}'
}

if [ "${1-}" = guest ]; then
	run_cases "${CASES[@]}"
else
	mkdir -p "${PROGRAM%/*}"
	gcc -O2 -Wall -Werror -o "$PROGRAM" "$TOP/tools/testing/vm/syscall-cost.c"
	gcc -O2 -Wall -Werror -o "$SWITCH" "$TOP/tools/testing/vm/switch-cost.c"
	count_on_both | table
fi
