#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Is each call of our kernel code that can fail for want of memory, or at memory of the
# user's, made to fail by persistent_faults, or perf_ctx_data? Prints a table, and TAP. In
# the guest, on a kernel with fault injection.
#
# get_user() and put_user() take no injected fault: persistent_errors and rb_reserved pass
# addresses that fault.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

EVENTS=$BUILD/${VARIANT:-debug}/kernel/kernel/events
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# survives PROGRAM ARGUMENT...: of the kselftests
survives()
{
	local program=$1
	shift
	PERSISTENT_MODULE=$BUILD/${VARIANT:-debug}/test_modules/persistent_module.ko \
		TEST_PMU_MODULE=$BUILD/${VARIANT:-debug}/test_modules/perf_test_pmu.ko \
		timeout 900 "$BUILD/patched/selftests/$program" "$@" >"$WORK/tap" 2>&1
	tap_ok $? "each fault is survived, and leaves nothing: $program $*"
	sed 's/^\([^#]\)/# \1/' "$WORK/tap"
}

# Of what was hit so far: the log is read while it is written.
all_were_hit()
{
	sleep 1
	"${BASH_SOURCE[0]%.sh}.py" "$WORK/log" "$EVENTS"/persistent/*.o "$EVENTS"/rb_*.o \
		"$EVENTS"/ctx_data.o >"$WORK/table" 2>&1
}

# What checks the kernel (debug objects, the stacks that KASAN keeps) allocates as well, now
# and then, and takes the fault of a call of ours: what was missed is tried again.
main()
{
	local watcher round hit=1 part=()
	# From the beginning: the log holds what came before as well, which has no faults.
	cat /dev/kmsg >"$WORK/log" &
	watcher=$!
	export PERSISTENT_FAULTS_VERBOSE=2
	for ((round = 1; round <= 5; round++)); do
		survives perf_ctx_data -t open_fails
		survives persistent_faults "${part[@]}"
		part=(-t each_fails_once)
		all_were_hit && hit=0 && break
	done
	kill "$watcher"
	[ ! -d "${OUT:-}" ] || cp "$WORK/log" "$OUT/fault-sites.kmsg"
	sed 's/^/# /' "$WORK/table"
	tap_ok $hit "each call that can fail was made to fail"
	echo "# rounds: $round"
	tap_end
}

main
