#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Is each call of our kernel code that can fail for want of memory, or at memory of the
# user's, made to fail by persistent_faults? Prints a table, and TAP. In the guest, on a
# kernel with fault injection.
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

main()
{
	local watcher
	# From the beginning: the log holds what came before as well, which has no faults.
	cat /dev/kmsg >"$WORK/log" &
	watcher=$!
	PERSISTENT_FAULTS_VERBOSE=2 PERSISTENT_MODULE=$EVENTS/tests/persistent_module.ko \
		timeout 900 "$TOP/build/patched/selftests/persistent_faults" >"$WORK/tap" 2>&1
	tap_ok $? "each fault is survived, and leaves nothing"
	sed 's/^\([^#]\)/# \1/' "$WORK/tap"
	sleep 1
	kill "$watcher"
	[ ! -d "${OUT:-}" ] || cp "$WORK/log" "$OUT/fault-sites.kmsg"
	tap_run_shown "each call that can fail was made to fail" \
		"${BASH_SOURCE[0]%.sh}.py" "$WORK/log" \
		"$EVENTS"/persistent*.o "$EVENTS"/rb_snapshot.o
	tap_end
}

# As tap_run, with what is printed in any case.
tap_run_shown()
{
	local name=$1 rc=0
	shift
	"$@" 2>&1 | sed 's/^/# /' || rc=$?
	tap_ok $rc "$name"
}

main
