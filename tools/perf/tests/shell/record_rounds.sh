#!/bin/bash
# Recordings keep the invariant of rounds (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# What perf record writes, in each of its modes, keeps the invariant of rounds
# (lib/check_rounds.sh), and the perf in $BASE_PERF, if set, prints the same of it
# byte for byte. perf lock record of perf bench sched messaging is what rounds were
# invented for. The check has to fail on a made-up recording with late events.
set -euo pipefail

PERF=${PERF:-perf}
export PERF
lib=$(cd "${BASH_SOURCE[0]%/*}/lib" && pwd -P)
dir=$(mktemp -d /tmp/perf-record-rounds.XXXXXX)
session=perf_test_rounds_$$
recorder=

cleanup()
{
	trap - EXIT
	[ -z "$recorder" ] || kill "$recorder" 2>/dev/null || true
	"$PERF" ctl -d "$session" >/dev/null 2>&1 || true
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM
cd "$dir"

fail()
{
	echo "$*"
	exit 1
}

# same_as_base FILE: printed as by the unchanged perf, if there is one; without symbols of the
# kernel, which take half a billion instructions each time
same_as_base()
{
	local perf=${BASE_PERF:-}

	[ -n "$perf" ] && [ -x "$perf" ] || return 0
	for perf in "$BASE_PERF" "$PERF"; do
		"$perf" script --kallsyms /dev/null --ns --show-task-events --show-mmap-events \
			--show-lost-events -F -sym,-symoff,-dso -i "$1" \
			>"${perf//\//_}.out" 2>"${perf//\//_}.err" ||
			fail "$perf script failed: $(tail -n 3 "${perf//\//_}.err")"
	done
	[ -s "${PERF//\//_}.out" ] || fail "nothing was printed"
	cmp "${BASE_PERF//\//_}.out" "${PERF//\//_}.out"
	cmp "${BASE_PERF//\//_}.err" "${PERF//\//_}.err"
}

# check WHAT MIN_ROUNDS FILE...
check()
{
	local what=$1 rounds=$2 file

	shift 2
	for file in "$@"; do
		"$lib/check_rounds.sh" --rounds "$rounds" "$file" >seen 2>&1 ||
			fail "$what: $(cat seen)"
		same_as_base "$file" || fail "$what: perf script differs from the base's"
		echo "$what: $(cat seen)"
	done
	rm -rf perf.data*
}

# run COMMAND: quiet unless it fails
run()
{
	"$@" >log 2>&1 || fail "$(cat log; echo "failed: $*")"
}

record()
{
	run "$PERF" record -q -B -N "$@" -- "${load[@]}"
}

"$PERF" bench internals ordered-events -o good -c 8 -r 20 -n 20 -d 200 >/dev/null
"$PERF" bench internals ordered-events -o bad -c 8 -r 20 -n 20 -L 20 >/dev/null
"$lib/check_rounds.sh" --rounds 20 good
! "$lib/check_rounds.sh" bad || fail "late events were not noticed"
! "$lib/check_rounds.sh" --rounds 21 good || fail "missing rounds were not noticed"

if ! "$PERF" record -q -e cpu-clock -o probe -- true >/dev/null 2>&1; then
	echo "skip: perf record does not work here"
	exit 2
fi

load=("$PERF" bench sched messaging -g 1 -l 10)
event=(-e cpu-clock -c 1000000)
[ ! -d /sys/kernel/tracing/events/sched ] ||
	event+=(-e sched:sched_switch -e sched:sched_wakeup)

record "${event[@]}" -a -m 4
check forward 2 perf.data
record "${event[@]}" -a --overwrite
check overwrite 1 perf.data
record "${event[@]}" -a -M 16M -m 64K
mapfile -t dumps < <(find . -name 'perf.data.sample.*' ! -name '*.json')
[ "${#dumps[@]}" = 1 ] || fail "the flight recorder left ${dumps[*]}: $(ls)"
check "flight recorder" 2 "${dumps[@]}"
record "${event[@]}" -a --threads=cpu
check "one file for each CPU" 0 perf.data

# Dumps of buffers that are written on.
"$PERF" record -v -B -N "${event[@]}" -a --overwrite --switch-output=signal -m 256K >log 2>&1 &
recorder=$!
for _ in {1..3000}; do
	! grep -q "mmap size" log || break
	sleep 0.1
done
sleep 1
for i in 1 2; do
	"${load[@]}" >/dev/null
	kill -USR2 "$recorder"
	for _ in {1..3000}; do
		[ "$(find . -name 'perf.data.2*' | wc -l)" -lt "$i" ] || break
		sleep 0.1
	done
done
kill -INT "$recorder"
wait "$recorder" || true
recorder=
dumps=(perf.data.2*)
[ "${#dumps[@]}" -ge 2 ] || fail "only ${dumps[*]}: $(cat log)"
check "dumps of overwrite" 1 "${dumps[@]}"

if [ -d /sys/kernel/tracing/events/lock ]; then
	run "$PERF" lock record -o perf.data -- "${load[@]}"
	check "perf lock" 1 perf.data
fi

if [ -e /sys/bus/event_source/devices/persistent/type ]; then
	run "$PERF" record -P "$session" -e cpu-clock -c 1000000 -a -m 256K
	"${load[@]}" >/dev/null
	run "$PERF" record -e "persistent/$session/" -o perf.data
	check "persistent, what is there" 1 perf.data
	run "$PERF" record -e "persistent/$session/" -o perf.data -- "${load[@]}"
	check "persistent, and what comes" 2 perf.data
fi
