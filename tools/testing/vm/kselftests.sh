#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the guest: run the perf_events kselftests named, each with a time-out, and
# print their TAP. A program that dies without a verdict is a failed test.
#
# The harness runs each test in a process group of its own. timeout(1) would end its parent
# alone, and a test that hangs would hold the output open. So each program has a session of
# its own, all of which ends, and its output goes to a file.
#
# usage: kselftests PROGRAM...
#        KSELFTEST_LIMIT=SECONDS for each; KSELFTEST_DIR=where they are
set -uo pipefail
DIR=${KSELFTEST_DIR:-$BUILD/patched/selftests}
LIMIT=$((${KSELFTEST_LIMIT:-$((180 + ${TORTURE_SECS:-0}))} * ${SLACK:-1}))
bad=0
cd "$DIR" || exit 1
for prog in "$@"; do
	echo "# $prog"
	rc=0 begin=$SECONDS
	log=$(mktemp)
	# A background job ignores SIGINT; what tests signals must not.
	setsid env --default-signal=INT,QUIT "./$prog" >"$log" 2>&1 </dev/null &
	pid=$!
	# Nothing else runs meanwhile: some tests count who does.
	sleep "$LIMIT" >/dev/null 2>&1 &
	timer=$!
	wait -n "$pid" "$timer" || rc=$?
	if kill "$timer" 2>/dev/null; then
		wait "$timer"
	else
		echo "# $prog: still running after $LIMIT s"
		pkill -KILL -s "$pid"
		rc=0
		wait "$pid" || rc=$?
	fi
	# What it has left running.
	pkill -KILL -s "$pid"
	text=$(cat "$log")
	rm "$log"
	# "ok 1 name" becomes "ok 1 prog: name"; a skip keeps its reason.
	sed -E "s/^((not )?ok [0-9]+) /\1 $prog: /" <<<"$text"
	echo "# $prog took $((SECONDS - begin)) s"
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
