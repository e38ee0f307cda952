#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run shell tests of perf (tools/perf/tests/shell/NAME.sh) with the patched perf
# first on PATH and the perf of the base in BASE_PERF, on the host or in a guest.
#
# usage: perf-shell-tests NAME...
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

export PATH=$BUILD/patched/bin:$PATH
export BASE_PERF=$BUILD/base/bin/perf
export TOOLS_INCLUDE=$BUILD/base/src/tools/include
export TOOLS=$BUILD/patched/src/tools
for name in "$@"; do
	tap_run "perf shell: $name" "$TOP/tools/perf/tests/shell/$name.sh"
done
tap_end
