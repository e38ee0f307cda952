#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A shell test of perf (tools/perf/tests/shell/NAME.sh) in two parts: it records in a guest, and
# reads the recordings on the host, which is ten times faster than the guest.
#
# usage: record-and-read NAME [VARIANT]
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"

NAME=$1
VARIANT=${2:-patched}
TEST=$TOP/tools/perf/tests/shell/$NAME.sh
export OUT=${OUT:-$BUILD/out/$NAME} VARIANT SLACK=${SLACK:-5}
# perf maps the file that it writes, and 9p cannot: the guest copies it. Programs that were
# recorded have the same path on both.
DIR=$(mktemp -d /tmp/record-and-read.XXXXXX)
trap 'rm -rf "$DIR" "$OUT/recordings"' EXIT
rm -rf "$OUT/recordings"
mkdir -p "$OUT"
RECORD="SLACK=$SLACK RECORD_TO=$DIR INCIDENT=$BUILD/patched/selftests/incident $TEST"
CMD="rc=0; $RECORD || rc=\$?; cp -a $DIR $OUT/recordings; exit \$rc" TIMEOUT=$((400 * SLACK)) \
	"$TOP/tools/testing/vm/vm.sh" || exit
cp -a "$OUT/recordings/." "$DIR"
PATH=$BUILD/patched/bin:$PATH READ_FROM=$DIR "$TEST"
