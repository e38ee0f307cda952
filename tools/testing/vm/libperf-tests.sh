#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: libperf's own test of snapshots, static and shared, and its
# example program. The tests after it in the same program need a hardware PMU,
# so that the program's own verdict does not count.
set -euo pipefail
# shellcheck source=tools/testing/vm/tap.sh
. "$TOP/tools/testing/vm/tap.sh"
DIR=$TOP/build/patched/libperf

test_snapshot()
{
	local text
	text=$(LD_LIBRARY_PATH=$DIR "$DIR/$1" -v 2>&1) || true
	echo "$text"
	grep -A5 'running .*test-snapshot.c' <<<"$text" | grep -q '^OK$'
}

# Three passes over two CPUs, by the way that is the first to be tried.
test_example()
{
	local text
	text=$("$DIR/example-snapshot")
	echo "$text"
	[ "$(grep -cE '^buffer [01]: [0-9]+ switches .* a gap of 0 bytes, read by ioctl$' \
		<<<"$text")" = 6 ]
}

tap_run 'libperf: snapshots (static)' test_snapshot tests-static
tap_run 'libperf: snapshots (shared)' test_snapshot tests-shared
tap_run 'libperf: the example program' test_example
tap_end
