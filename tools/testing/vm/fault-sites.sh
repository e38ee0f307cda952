#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Is each call of our kernel code that can fail for want of memory, or at memory of the
# user's, made to fail by blackbox_faults, persistent_faults, or perf_ctx_data? Prints a table,
# and TAP. Boots a kernel with fault injection, which has a region for a black box.
#
# usage: fault-sites.sh		on the host
#	 fault-sites.sh guest	in the guest
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

export VARIANT=${VARIANT:-debug}
EVENTS=$BUILD/$VARIANT/kernel/kernel/events

# survives PROGRAM ARGUMENT...: of the kselftests
survives()
{
	local program=$1
	shift
	PERSISTENT_MODULE=$BUILD/$VARIANT/test_modules/persistent_module.ko \
		TEST_PMU_MODULE=$BUILD/$VARIANT/test_modules/perf_test_pmu.ko \
		timeout 900 "$BUILD/patched/selftests/$program" "$@" >"$WORK/tap" 2>&1
	tap_ok $? "each fault is survived, and leaves nothing: $program $*"
	sed 's/^\([^#]\)/# \1/' "$WORK/tap"
}

# Of what was hit so far: the log is read while it is written.
all_were_hit()
{
	sleep 1
	"${BASH_SOURCE[0]%.sh}.py" "$WORK/log" "$EVENTS"/persistent/*.o "$EVENTS"/rb_*.o \
		"$EVENTS"/ctx_data.o "$EVENTS"/ctx_data_node.o >"$WORK/table" 2>&1
}

# What checks the kernel (debug objects, the stacks that KASAN keeps) allocates as well, now
# and then, and takes the fault of a call of ours: what was missed is tried again. But some
# memory is allocated once since the boot: blackbox_faults makes the first session.
guest()
{
	local watcher round hit=1 part=() notes=()
	WORK=$(mktemp -d)
	trap 'rm -rf "$WORK"' EXIT
	# From the beginning: the log holds what came before as well, which has no faults.
	cat /dev/kmsg >"$WORK/log" &
	watcher=$!
	export PERSISTENT_FAULTS_VERBOSE=2
	for ((round = 1; round <= 10; round++)); do
		survives blackbox_faults "${notes[@]}"
		survives perf_ctx_data -t open_fails
		survives persistent_faults "${part[@]}"
		part=(-t each_fails_once) notes=(-f notes)
		all_were_hit && hit=0 && break
		sed -n '/: [0-9]* not hit$/s/^/# /p' "$WORK/table"
	done
	kill "$watcher"
	[ ! -d "${OUT:-}" ] || cp "$WORK/log" "$OUT/fault-sites.kmsg"
	sed 's/^/# /' "$WORK/table"
	tap_ok $hit "each call that can fail was made to fail"
	echo "# rounds: $round"
	tap_end
}

host()
{
	CMD="$TOP/tools/testing/vm/${0##*/} guest" SMP=2 ACCEL=single ICOUNT='' \
		APPEND='reserve_mem=2M:4096:box perf_persistent=@box' \
		TIMEOUT=$((${TIMEOUT:-4000} * ${SLACK:-1})) exec "$TOP/tools/testing/vm/vm.sh"
}

if [ "${1-}" = guest ]; then
	guest
else
	host
fi
