#!/bin/bash
# a flight recorder of a large machine, small
# SPDX-License-Identifier: GPL-2.0
#
# 'perf bench internals flight-size' compares what it reads with what it wrote, and fails if
# that differs. Times are not checked here: other programs may run.
set -euo pipefail

LOG=$(mktemp "${TMPDIR:-/tmp}/flight.XXXXXX")
trap 'rm -f "$LOG"' EXIT

perf bench internals flight-size -c 16 -b 4 -n 500 -l 5 -r 64 -p 2000 -m 50 >"$LOG"
cat "$LOG"
# What is new alone takes memory: 500 records of 40 bytes. And a map takes 40 bytes.
awk '/memory for the copies/ { exit !($5 < 64) }' "$LOG"
awk '/bytes per map/ { exit !($2 <= 40) }' "$LOG"
# A reserve of a quarter, and two segments.
awk '/memory meanwhile/ { exit !($3 <= 1.3) }' "$LOG"
grep -q 'processes that are gone' "$LOG"
