#!/bin/bash
# perf record -M: what passes through in days leaves no error of memory
# SPDX-License-Identifier: GPL-2.0
#
# In a short form, under valgrind. FLIGHT_BULK_MIB=N: N MiB, as fast as they pass.
set -euo pipefail

TEST='Flight recorder: what passes'
LOG=$(mktemp "${TMPDIR:-/tmp}/flight.XXXXXX")
trap 'rm -f "$LOG"' EXIT

if [ -n "${FLIGHT_BULK_MIB-}" ]; then
	perf test -F -v "$TEST" 2>&1 | tee "$LOG"
elif command -v valgrind >/dev/null; then
	# A longer list of what was freed would look as if memory grew.
	valgrind -q --error-exitcode=9 --freelist-vol=1000000 \
		"$(command -v perf)" test -F -v "$TEST" 2>&1 | tee "$LOG"
	# Not a word of valgrind's, whose lines begin with its pid.
	if grep -qE '^==[0-9]+==' "$LOG"; then
		exit 1
	fi
else
	echo "skip: valgrind is missing"
	exit 2
fi
if grep -q 'FAILED' "$LOG" || ! grep -q ': Ok' "$LOG"; then
	exit 1
fi
