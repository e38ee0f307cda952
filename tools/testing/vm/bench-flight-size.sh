#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the flight recorder costs on a machine of 512 CPUs and 100,000 processes: the
# synthetic buffers and records of 'perf bench internals flight-size'. The base has no like
# of it. Fails if a line is above its limit.
#
# usage: bench-flight-size.sh [OPTION...]	of perf bench
set -euo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

"$TOP/tools/testing/vm/build.sh" perf patched
"$BUILD/patched/bin/perf" bench internals flight-size "$@" | awk '
	function limit(what, pattern, value, most) {
		if ($0 !~ what || !match($0, pattern))
			return
		value = substr($0, RSTART)
		sub(/^[^0-9]*/, "", value)
		checked++
		if (value + 0 > most) {
			bad++
			$0 = $0 "  more than " most
		}
	}
	{
		limit("pass, nothing new", ": [0-9.]+ usec", "", 3)
		limit("window of the session", ": [0-9.]+ msec", "", 200)
		limit("fork: ", ": [0-9.]+ msec", "", 2)
		limit("with the fork", "child [0-9.]+ msec", "", 5)
		limit("memory meanwhile", ": [0-9.]+ of the size", "", 1.3)
		limit("divided among", "cgroups [0-9.]+ nsec", "", 150)
		limit(" records, .* usec for each", ", [0-9.]+ usec", "", 2)
		limit("the longest", "longest [0-9.]+ msec", "", 20)
		limit("bytes per map as counted", ": [0-9.]+ bytes", "", 40)
		print
	}
	END {
		if (checked < 10)
			print "bench-flight-size: only " checked " lines have a limit"
		exit bad > 0 || checked < 10
	}'
