#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests of LBR call stacks see what they are for: on the base's lbr.c, unchanged, the
# stacks of per-task events are whole, and those of system-wide events are short.
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"
LOG=$BUILD/kunit/base-lbr.tap

# verdicts CASE: "ok" or "not ok" of each processor's case
verdicts()
{
	sed -nE "/# Subtest: $1\$/,/# $1: pass/s/^ *((not )?ok) [0-9]+ .*/\1/p" "$LOG" | head -5
}

all()
{
	local text
	text=$(verdicts "$1")
	echo "$1: ${text//$'\n'/, }"
	[ "$(wc -l <<<"$text")" = 5 ] && [ "$(sort -u <<<"$text")" = "$2" ]
}

wide_is_short()
{
	local got want
	while read -r got want; do
		echo "$got entries, $want expected"
		[ "$got" -lt "$want" ] || return 1
	done < <(grep '# lbr_wide: .*entries' "$LOG" |
		sed -nE 's/.*: ([0-9]+) entries, ([0-9]+) expected.*/\1 \2/p' | tee "$LOG.short")
	[ "$(wc -l <"$LOG.short")" = 5 ]
}

"$TOP/tools/testing/vm/kunit.sh" base-lbr >"$LOG" || true
tap_run "base: per-task stacks are whole on all processors" all lbr_per_task ok
tap_run "base: system-wide stacks are not, on any" all lbr_wide "not ok"
tap_run "base: because they are shorter" wide_is_short
tap_end
