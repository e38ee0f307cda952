#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The recorder, sessions and perf ctl on a machine with 16 CPUs, and what each step costs at 2, 4,
# 8 and 16: guest instructions. What grows with the number of CPUs alone costs twice as much more
# from 8 to 16 as it does from 4 to 8; what grows with its square, four times as much.
#
# Builds the variant patched_preempt, whose kernel knows 64 CPUs. SeaBIOS has no MP table for them:
# where it does not fit into 600 bytes, there is none.
# usage: test-many-cpus.sh
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

TEST=$BUILD/patched/src/tools/perf/tests/shell/record_flight_cpus.sh
export OUT=$BUILD/out/many-cpus VARIANT=patched_preempt ACCEL=single MEM=4G APPEND=''
export TIMEOUT=$((600 * ${SLACK:-1}))

boot()
{
	CMD="PATH=$BUILD/patched/bin:\$PATH $2 $TEST" SMP=$1 "$TOP/tools/testing/vm/vm.sh"
}

costs()
{
	local cpus

	rm -f "$OUT/costs"
	for cpus in 2 4 8 16; do
		ICOUNT=1 boot $cpus "FLIGHT_COSTS=$OUT/costs" || return
	done
	sort -k2,2 -s "$OUT/costs"
}

# Lines of a table: the step, its costs, and how much more the last doubling cost
grows_with_the_cpus()
{
	awk '
	{ ns[$2, $1] = $3; steps[$2] }
	END {
		for (step in steps) {
			more = ns[step, 8] - ns[step, 4]
			ratio = more > 0 ? (ns[step, 16] - ns[step, 8]) / more : 0
			bad += ratio > 3
			printf "%-9s %12d %12d %12d %12d   %.2f\n", step, ns[step, 2],
			       ns[step, 4], ns[step, 8], ns[step, 16], ratio
			n++
		}
		exit bad || n != 7
	}' "$OUT/costs"
}

mkdir -p "$OUT"
"$TOP/tools/testing/vm/build.sh" kernel patched_preempt || die "patched_preempt does not build"
boot 16 '' | tee "$OUT/tap" | grep -v '^1\.\.'
TAP_N=$(grep -cE '^(not )?ok ' "$OUT/tap") TAP_BAD=$(grep -c '^not ok ' "$OUT/tap")
tap_run "steps are measured at 2, 4, 8 and 16 CPUs" costs
tap_run "nothing is quadratic in the number of CPUs" grows_with_the_cpus
grows_with_the_cpus | sed 's/^/# /'
tap_end
