#!/bin/bash
# Fuzzed recordings to redact
# SPDX-License-Identifier: GPL-2.0
#
# Builds the libFuzzer target redact.c in tests/fuzz, and runs it for FUZZ_SECONDS (20 is the
# default), but for at least FUZZ_RUNS recordings (300); see lib/fuzz.sh. It begins with the
# recordings of lib/recording.py.
set -euo pipefail
# shellcheck source=lib/fuzz.sh
. "$(dirname "$0")/lib/fuzz.sh"

recording=$(realpath "$(dirname "$0")/lib/recording.py")
tools=${TOOLS:-$(cd "${BASH_SOURCE[0]%/*}/../../.." && pwd -P)}
perf=$tools/perf
redact=$perf/util/redact

if [ ! -e "$tools/lib/zalloc.c" ]; then
	echo "skip: TOOLS does not name the tools of a kernel tree"
	exit 2
fi

fuzz_begin redact-fuzz
zstd=()
if echo '#include <zstd.h>' | "$CLANG" -E - >/dev/null 2>&1; then
	zstd=(-DHAVE_ZSTD_SUPPORT -lzstd)
fi
fuzz_build redact -I"$perf/util" -I"$perf" \
	-I"$tools/include" -I"$tools/arch/x86/include/uapi" -I"$tools/include/uapi" \
	-I"$tools/arch/x86/include" -I"$tools/lib" -I"$tools/lib/perf/include" \
	"$perf/tests/fuzz/redact.c" \
	"$redact"/{words,formats,raw,known,sample,code,events,records,features,stream}.c \
	"$redact"/recording.c \
	"$perf"/util/sample-layout.c \
	"$tools"/lib/{ctype,rbtree,string,vsprintf,zalloc,hweight}.c "${zstd[@]}"
corpus=${FUZZ_CORPUS:-$FUZZ_DIR/corpus}/redact
mkdir -p "$corpus"
for kind in make make-readable make-old make-packed make-packed2 make-newer; do
	python3 "$recording" $kind "$FUZZ_DIR/$kind"
	cp "$FUZZ_DIR/$kind" "$corpus"
done
fuzz_run redact "${FUZZ_RUNS:-300}" -max_len=32768 -len_control=0
