# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What benchmarks share that count instructions (ICOUNT=1). Sourced, not run; wants lib.sh,
# run_case NAME, and RUNS.

# In the guest: run_case NAME, RUNS times for each NAME. The first run is discarded: caches
# and pages are cold.
run_cases()
{
	local name i
	for name; do
		[ -n "$name" ] || continue
		run_case "$name" >/dev/null
		for ((i = 0; i < RUNS; i++)); do
			run_case "$name"
		done
	done
}

# On the host: what this script prints as "guest" on the base, then on the patched kernel,
# with the variant in front of each line. FLAVOUR=_preempt: of base_preempt and patched_preempt,
# which are built if they are not there.
count_on_both()
{
	local variant
	for variant in base patched; do
		CMD="VARIANT=$variant RUNS=$RUNS $TOP/tools/testing/vm/${0##*/} guest" \
			VARIANT=$variant${FLAVOUR-} ICOUNT=1 SMP=1 ACCEL=single TIMEOUT=900 \
			"$TOP/tools/testing/vm/vm.sh" | sed "s/^/$variant /"
	done
}

# On the host: build what FLAVOUR asks for.
build_flavour()
{
	[ -n "${FLAVOUR-}" ] || return 0
	"$TOP/tools/testing/vm/build.sh" kernel "base$FLAVOUR" "patched$FLAVOUR" >&2
	"$TOP/tools/testing/vm/build.sh" perf "base$FLAVOUR" "patched$FLAVOUR" >&2
}
