# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests of the flight recorder share. Sourced, not run; wants
# lib/persistent.sh for check() and its like.

# A perf that knows nothing of the flight recorder, to open what it writes.
BASE_PERF=${BASE_PERF:-perf}
RECORDER=

# shellcheck disable=SC2317 # called by the trap
flight_cleanup()
{
	trap - EXIT
	# Checks run in subshells: what one of them left behind is listed.
	xargs -r kill -KILL <"$TMP/recorders" 2>/dev/null || true
	if mountpoint -q "$TMP/full"; then
		umount "$TMP/full"
	fi
	rm -rf "$TMP"
}

flight_begin()
{
	if [ "$(id -u)" != 0 ]; then
		echo "1..0 # SKIP recording all CPUs takes root"
		exit 2
	fi
	TMP=$(mktemp -d "${TMPDIR:-/tmp}/flight.XXXXXX")
	: >"$TMP/recorders"
	export HOME=$TMP
	trap flight_cleanup EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

# wait_for COMMAND...: at most a minute and a half; FLIGHT_WAIT: tenths of seconds
wait_for()
{
	local i

	for ((i = 0; i < ${FLIGHT_WAIT:-900}; i++)); do
		if "$@" >/dev/null 2>&1; then
			return 0
		fi
		sleep 0.1
	done
	echo "waited in vain for: $*"
	return 1
}

# start_recorder OUT OPTION...: in the background, ready for triggers
start_recorder()
{
	OUT_NAME=$1
	shift
	# Not to be taken for ready by what the one before has said.
	: >"$OUT_NAME.stderr"
	perf record -o "$OUT_NAME" "$@" >>"$OUT_NAME.stderr" 2>&1 &
	RECORDER=$!
	echo $RECORDER >>"$TMP/recorders"
	wait_for grep -q 'flight recorder [0-9]' "$OUT_NAME.stderr" ||
		{ cat "$OUT_NAME.stderr"; return 1; }
}

# The dumps of OUT, oldest first; a manifest comes behind its dump.
dumps()
{
	find "$(dirname "$1")" -maxdepth 1 -name "$(basename "$1").sample.*.json" |
		sort | sed 's/\.json$//'
}

has_dumps()
{
	[ "$(dumps "$1" | wc -l)" -ge "$2" ]
}

# dump: ask for one, and wait for it; sets DUMP
# shellcheck disable=SC2034 # for the scripts that source this
dump()
{
	local before

	before=$(dumps "$OUT_NAME" | wc -l)
	kill -USR1 "$RECORDER"
	wait_for has_dumps "$OUT_NAME" $((before + 1))
	DUMP=$(dumps "$OUT_NAME" | tail -n1)
}

# stop_recorder SIGNAL: sets STATUS, and DUMP to the last one
# shellcheck disable=SC2034 # for the scripts that source this
stop_recorder()
{
	kill -"$1" "$RECORDER"
	STATUS=0
	wait "$RECORDER" || STATUS=$?
	RECORDER=
	DUMP=$(dumps "$OUT_NAME" | tail -n1)
}

# json FILE KEY: a number or a string of a manifest
json()
{
	sed -nE "s/^  \"$2\": \"?([^\"]*)\"?,$/\1/p" "$1.json"
}

# opens DUMP: stock perf reads all of it, and does not complain but for lost events
# and for a /proc that took too long to read, which are the machine's
opens()
{
	local said

	said=$("$BASE_PERF" script -i "$1" -F comm,pid,time 2>&1 >"$TMP/opened") || {
		echo "$said"
		return 1
	}
	said=$(sed -E '/^Warning:$/d; /^Processed [0-9]+ events and lost /d; /^Check IO/d; /^$/d;
		/map information files? for pre-existing/,/--proc-map-timeout/d' \
		<<<"$said")
	if [ -n "$said" ]; then
		echo "$said"
		return 1
	fi
	[ -s "$TMP/opened" ]
}

# Runs a hot loop in a process of its own, whose name and symbol nobody else has.
run_dead()
{
	perf test -w noploop 1
}

dead_have_names()
{
	"$BASE_PERF" report -i "$1" --stdio -g none --no-children --sort comm,dso,sym \
		>"$TMP/report" 2>&1
	sed -n '/^#/d; 1,40p' "$TMP/report"
	grep -qE '^ *[0-9.]+% +perf +perf +\[\.\] noploop' "$TMP/report"
}

# close_range FIRST LAST: system calls that are told apart by their numbers, not faster
# than anybody can read
close_range()
{
	python3 - "$1" "$2" <<-END
		import os, sys, time
		for fd in range(int(sys.argv[1]), int(sys.argv[2]) + 1):
		    try:
		        os.close(fd)
		    except OSError:
		        pass
		    if fd % 100 == 0:
		        time.sleep(0.005)
	END
}

# close_files N: as many of them
close_files()
{
	close_range 1000000 $((999999 + $1))
}

# fails_somehow PATTERN COMMAND...: it ends with some error, and says why
fails_somehow()
{
	local pattern=$1 text

	shift
	if text=$("$@" 2>&1); then
		echo "it should fail: $*"
		return 1
	fi
	printf '%s\n' "$text"
	grep -qE -e "$pattern" <<<"$text" || { echo "no '$pattern' in that: $*"; return 1; }
}
