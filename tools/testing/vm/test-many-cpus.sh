#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The recorder, sessions and perf ctl on a machine with 64 CPUs, and what each step costs at 8, 16,
# 32 and 64: guest instructions. What grows with the number of CPUs alone costs twice as much more
# from 32 to 64 as it does from 16 to 32; what grows with its square, four times as much.
#
# Builds the variant patched_preempt, whose kernel knows 64 CPUs and takes them from ACPI.
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
	for cpus in 8 16 32 64; do
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
			more = ns[step, 32] - ns[step, 16]
			last = ns[step, 64] - ns[step, 32]
			ratio = more > 0 ? last / more : 99
			bad += ratio > 2.5
			printf "%-9s %12d %12d %12d %12d   %.2f\n", step, ns[step, 8],
			       ns[step, 16], ns[step, 32], ns[step, 64], ratio
			n++
		}
		exit bad || n != 7
	}' "$OUT/costs"
}

mkdir -p "$OUT"
"$TOP/tools/testing/vm/build.sh" kernel patched_preempt || die "patched_preempt does not build"
rc=0
boot 64 '' >"$OUT/tap" || rc=$?
grep -v '^1\.\.' "$OUT/tap"
TAP_N=$(grep -cE '^(not )?ok ' "$OUT/tap") TAP_BAD=$(grep -c '^not ok ' "$OUT/tap")
tap_ok $rc "a machine with 64 CPUs runs all of it"
tap_run "steps are measured at 8, 16, 32 and 64 CPUs" costs
grows_with_the_cpus | sed 's/^/# /'
tap_run "nothing is quadratic in the number of CPUs" grows_with_the_cpus
tap_end
