#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run libperf's test of snapshots, static and shared, and its example program, in the
# guest. Later tests of the same program need a hardware PMU, so the exit status of the
# program is ignored.
set -euo pipefail
# shellcheck source=tools/testing/vm/tap.sh
. "$TOP/tools/testing/vm/tap.sh"
DIR=$BUILD/patched/libperf

test_snapshot()
{
	local text
	text=$(LD_LIBRARY_PATH=$DIR "$DIR/$1" -v 2>&1) || true
	echo "$text"
	grep -A5 'running .*test-snapshot.c' <<<"$text" | grep -q '^OK$'
}

# Three passes over two CPUs, with the method that is tried first.
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
