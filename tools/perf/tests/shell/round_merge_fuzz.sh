#!/bin/bash
# Round merge: fuzzed operations keep the order
# SPDX-License-Identifier: GPL-2.0
#
# Builds the libFuzzer target tests/fuzz/round-merge.c, and runs it for FUZZ_SECONDS
# (20 is the default); see lib/fuzz.sh.
set -euo pipefail
# shellcheck source=lib/fuzz.sh
. "$(dirname "$0")/lib/fuzz.sh"

tools=$(cd "${BASH_SOURCE[0]%/*}/../../.." && pwd -P)
include=${TOOLS_INCLUDE:-$tools/include}

if [ ! -e "$include/linux/list.h" ]; then
	echo "skip: TOOLS_INCLUDE does not name the tools/include of a kernel tree"
	exit 2
fi
fuzz_begin round-merge-fuzz
fuzz_build round-merge -I"$include" -I"$tools/perf/util" -I"$tools/perf/tests" \
	"$tools/perf/tests/fuzz/round-merge.c" "$tools/perf/util/round-merge.c"
fuzz_run round-merge 1000
