#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: run the perf_events kselftests named, each with a time-out, and
# print their TAP. A program that dies without a verdict is a failed test.
#
# usage: kselftests PROGRAM...
set -uo pipefail
DIR=$TOP/build/patched/selftests
LIMIT=$((${KSELFTEST_LIMIT:-$((180 + ${TORTURE_SECS:-0}))} * ${SLACK:-1}))
bad=0
cd "$DIR" || exit 1
for prog in "$@"; do
	echo "# $prog"
	rc=0
	text=$(timeout -k 5 "$LIMIT" "./$prog" 2>&1 </dev/null) || rc=$?
	# "ok 1 name" becomes "ok 1 prog: name"; a skip keeps its reason.
	sed -E "s/^((not )?ok [0-9]+) /\1 $prog: /" <<<"$text"
	case $rc in
	0) ;;
	4)
		# Skipped as a whole; the harness has said so test by test, or not at all.
		grep -qE '^ok [0-9]+' <<<"$text" ||
			echo "ok 1 $prog # SKIP $(tail -n1 <<<"$text")"
		;;
	*)
		bad=1
		grep -qE '^not ok [0-9]+' <<<"$text" ||
			echo "not ok 1 $prog: ended with status $rc"
		;;
	esac
done
exit $bad
