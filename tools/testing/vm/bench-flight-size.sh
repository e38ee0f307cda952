#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the flight recorder costs on a machine of 512 CPUs and 100,000 processes: the
# synthetic buffers and records of 'perf bench internals flight-size'. The base has no like
# of it.
#
# usage: bench-flight-size.sh [OPTION...]	of perf bench
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

"$TOP/tools/testing/vm/build.sh" perf patched
exec "$BUILD/patched/bin/perf" bench internals flight-size "$@"
