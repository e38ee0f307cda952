#!/bin/bash
# Fuzzed images of dead machines
# SPDX-License-Identifier: GPL-2.0
#
# Builds the libFuzzer target blackbox.c in tests/fuzz, and runs it for FUZZ_SECONDS (20 is
# the default), but for at least FUZZ_RUNS images (300); see lib/fuzz.sh. The first of them are
# of random bytes, as many as an image takes: libFuzzer would start with a few bytes, and images
# without damage.
set -euo pipefail
# shellcheck source=lib/fuzz.sh
. "$(dirname "$0")/lib/fuzz.sh"

tools=${TOOLS:-$(cd "${BASH_SOURCE[0]%/*}/../../.." && pwd -P)}
perf=$tools/perf
blackbox=$perf/util/blackbox

if [ ! -e "$tools/lib/zalloc.c" ]; then
	echo "skip: TOOLS does not name the tools of a kernel tree"
	exit 2
fi

# put_seeds DIR: the same ones in each run
put_seeds()
{
	local seed

	mkdir -p "$1"
	for seed in {1..48}; do
		LC_ALL=C awk -v seed="$seed" 'BEGIN {
			srand(seed)
			for (i = 0; i < 2048; i++)
				printf "%c", int(256 * rand())
		}' >"$1/random-$seed"
	done
}

fuzz_begin blackbox-fuzz
fuzz_build blackbox -I"$perf/tests" -I"$perf/util" -I"$perf" \
	-I"$tools/include" -I"$tools/arch/x86/include/uapi" -I"$tools/include/uapi" \
	-I"$tools/arch/x86/include" -I"$tools/lib" -I"$tools/lib/perf/include" \
	"$perf/tests/fuzz/blackbox.c" \
	"$blackbox"/{crc32,record,cut,image,memory,assemble,find,names,recording}.c \
	"$blackbox"/{formats,perfdata,messages,manifest}.c \
	"$perf"/util/{json-writer,sample-layout,hashmap}.c "$perf/util/flight/dump/part.c" \
	"$tools"/lib/{ctype,rbtree,string,vsprintf,zalloc,hweight}.c
put_seeds "${FUZZ_CORPUS:-$FUZZ_DIR/corpus}/blackbox"
fuzz_run blackbox "${FUZZ_RUNS:-300}" -len_control=0
