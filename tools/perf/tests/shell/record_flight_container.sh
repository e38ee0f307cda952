#!/bin/bash
# perf record -M: in a container, with CAP_PERFMON alone (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# The container is what a runtime makes: it has namespaces of its own for mounts, pids, IPC,
# network, cgroups and the host's name, a /run of its own, a user who is not root, and of all
# capabilities those that the check names, also in the bounding set.
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

BOX_UID=43210
PARANOID=/proc/sys/kernel/perf_event_paranoid

# in_box PIDS CAPABILITIES COMMAND...: PIDS is "own" or "host", for the pid namespace
in_box()
{
	local pids=(--pid --fork --kill-child --mount-proc) caps=-all

	[ "$1" = own ] || pids=()
	[ -z "$2" ] || caps=-all,+$2
	shift 2
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount --uts --ipc --net --cgroup "${pids[@]}" -- bash -c '
		set -e
		mount -t tmpfs none /run
		mkdir -p "/run/perf/$1"
		chown "$1" "/run/perf/$1"
		cd "$3"
		export HOME=$3
		uid=$1 caps=$2
		shift 3
		exec setpriv --reuid="$uid" --regid="$uid" --clear-groups --inh-caps="$caps" \
			--ambient-caps="$caps" --bounding-set="$caps" "$@"' - \
		$BOX_UID "$caps" "$BOX" "$@"
}

# record_in_box PIDS OPTION...: in the background; sets RECORDER to a process of the host that
# ends it. The dumps are in $OUT_NAME.
record_in_box()
{
	OUT_NAME=$BOX/d
	: >"$OUT_NAME.stderr"
	in_box "$1" perfmon perf record -M 8M -F 199 -a --trigger socket -o d "${@:2}" \
		>>"$OUT_NAME.stderr" 2>&1 &
	RECORDER=$!
	echo $RECORDER >>"$TMP/recorders"
	wait_for grep -q 'flight recorder [0-9]' "$OUT_NAME.stderr" ||
		{ cat "$OUT_NAME.stderr"; return 1; }
}

# The pids of all recorders, as the host sees them
recorders()
{
	perf ctl -l --json | python3 -c '
import json, sys
print(*[r["pid"] for r in json.load(sys.stdin) if r["kind"] == "recorder"])'
}

is_one() { [[ $(recorders) =~ ^[0-9]+$ ]]; }

# take DUMP: it is the user's; a copy for perf, which as root reads no file of others
take()
{
	[ "$(stat -c %u:%a "$1")" = $BOX_UID:600 ]
	cp "$1" "$TMP/dump"
	cp "$1.json" "$TMP/dump.json"
	DUMP=$TMP/dump
}

# The host's root finds the recorder, has it make a dump, and ends it.
dump_from_host()
{
	wait_for is_one
	perf ctl --dump "$(recorders)"
	take "$(newest_dump "$OUT_NAME")"
	perf ctl --stop "$(recorders)"
	wait "$RECORDER" || true
	[ -z "$(recorders)" ]
}

# Its own tasks and those of the kernel; the rest of the host has pid 0.
records_its_own()
{
	local outside

	rm -f "$BOX"/d*
	in_box own perfmon perf record -M 1M -e cpu-clock -F 199 -a -o d -- perf test -w noploop 2
	take "$(dumps "$BOX/d")"
	opens "$DUMP"
	dead_have_names "$DUMP"

	rm -f "$BOX"/d*
	record_in_box own -e cpu-clock
	perf test -w noploop 2 &
	outside=$!
	wait "$outside"
	dump_from_host
	perf script -i "$DUMP" -F pid | sort -n | uniq -c
	perf script -i "$DUMP" -F pid >"$TMP/pids"
	lacks "^ *$outside *$" cat "$TMP/pids"
	[ "$(grep -cE '^ *0 *$' "$TMP/pids")" -gt 200 ]
}

# In the pid namespace of the host it records the host, by name.
records_the_host()
{
	local outside

	rm -f "$BOX"/d*
	record_in_box host -e cpu-clock
	perf test -w noploop 2 &
	outside=$!
	wait "$outside"
	dump_from_host
	opens "$DUMP"
	dead_have_names "$DUMP"
	[ "$(perf script -i "$DUMP" -F pid | grep -cx " *$outside *")" -gt 100 ]
}

# What one capability does not reach is refused in a sentence that says what to do.
says_what_it_takes()
{
	local was

	was=$(cat $PARANOID)
	# shellcheck disable=SC2064 # as it is now
	trap "echo $was >$PARANOID" EXIT
	echo 2 >$PARANOID
	rm -f "$BOX"/d*
	fails 255 'CAP_PERFMON' in_box own '' perf record -M 1M -e cpu-clock -a -o d true
	fails 129 'No permissions to read .*/events/sched/sched_switch' \
		in_box own perfmon perf record -M 1M -e sched:sched_switch -a -o d true
	[ -z "$(dumps "$BOX/d")" ]
}

# Within the limits of its user, and out of reach of another container with the same one
makes_sessions()
{
	fails 1 'CAP_IPC_LOCK' in_box own perfmon perf record -P box -e cpu-clock -a -m 4M
	[ -z "$(sessions)" ]
	# shellcheck disable=SC2016 # for the shell in there
	in_box own perfmon bash -ec '
		perf record -P box -e cpu-clock -F 199 -C 0 -m 16K
		taskset 1 perf test -w noploop 1
		perf record -e persistent/box/ -N -o session
		perf ctl -l
		perf ctl -d box' | tee "$TMP/said"
	grep -q "^session 'box' ended$" "$TMP/said"
	cp "$BOX/session" "$TMP/session"
	[ "$(perf script -i "$TMP/session" -F pid | wc -l)" -gt 50 ]
	[ -z "$(sessions)" ]

	in_box own perfmon perf record -P box -e cpu-clock -F 199 -C 0 -m 16K
	fails 1 'a pid namespace that it was created in, or CAP_SYS_ADMIN' \
		in_box own perfmon perf ctl -d box
	[ "$(sessions)" = box ]
	perf ctl -d box
}

flight_begin
BOX=$TMP/box
chmod 755 "$TMP"
mkdir "$BOX"
chown $BOX_UID "$BOX"
if ! unshare --mount --uts --ipc --net --cgroup --pid --fork true 2>/dev/null; then
	echo "1..0 # SKIP this kernel lacks the namespaces of a container"
	exit 2
fi
check "a container records its own tasks" records_its_own
check "a container in the host's pid namespace records the host" records_the_host
check "what CAP_PERFMON does not reach is told" says_what_it_takes
if supported; then
	check "a container makes, reads and ends a session" makes_sessions
else
	leave_out "a container makes, reads and ends a session" "no persistent events"
fi
persistent_end
