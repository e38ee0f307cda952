#!/bin/bash
# Flight recorder: fuzzed requests, parts to combine, and ring buffers
# SPDX-License-Identifier: GPL-2.0
#
# Builds the libFuzzer targets flight-socket.c, flight-combine.c and snapshot.c in
# tests/fuzz, and runs each for FUZZ_SECONDS (20 is the default); see lib/fuzz.sh. FUZZ_RUNS: so
# many runs of flight-socket at least.
set -euo pipefail
# shellcheck source=lib/fuzz.sh
. "$(dirname "$0")/lib/fuzz.sh"

tools=${TOOLS:-$(cd "${BASH_SOURCE[0]%/*}/../../.." && pwd -P)}
perf=$tools/perf

if [ ! -e "$tools/lib/zalloc.c" ]; then
	echo "skip: TOOLS does not name the tools of a kernel tree"
	exit 2
fi

# build NAME FILE...: of util/flight
build()
{
	local name=$1 flight=$perf/util/flight

	shift
	fuzz_build "$name" -I"$flight" -I"$perf/util" -I"$perf" \
		-I"$tools/include" -I"$tools/arch/x86/include/uapi" -I"$tools/include/uapi" \
		-I"$tools/arch/x86/include" -I"$tools/lib" -I"$tools/lib/api" \
		-I"$tools/lib/perf/include" \
		"$perf/tests/fuzz/$name.c" "${@/#/$flight/}" \
		"$tools"/lib/{ctype,rbtree,string,vsprintf,zalloc}.c -lm
}

fuzz_begin flight-fuzz
build flight-socket \
	trigger/{triggers,hit,cause,deadline,terms,kmsg,cpu,latency,syscall,psi,exit}.c \
	registry.c ../persistent/run-dir.c ../clockid.c ../json-writer.c \
	../../../lib/api/{debug,fs/fs,fs/cgroup}.c
build flight-combine dump/{combine,part,files,symbol-store}.c ../clockid.c ../json-reader.c \
	../json-writer.c ../sample-layout.c ../strlist.c ../rblist.c
fuzz_build snapshot -I"$tools/include/uapi" -I"$tools/lib/perf/include" -I"$tools/include" \
	"$perf/tests/fuzz/snapshot.c"
fuzz_run flight-socket "${FUZZ_RUNS:-1000}" -len_control=0
fuzz_run flight-combine 300 -len_control=0
fuzz_run snapshot 300 -len_control=0
