#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run a command; if it takes too long, a flight recorder writes a dump of what was before:
#
#	deadline.sh blackbox 10m /usr/local/bin/backup --all
#
# If this script is killed, so is the command, and nothing stays armed.
#
# usage: deadline.sh RECORDER TIME COMMAND...
#   RECORDER  its name, pid, directory or socket, as perf ctl takes it
#   PERF      the perf to use
set -eu

recorder=$1 time=$2
shift 2
# A word of at most 64 characters; a reason is the rest of a line that must not be long.
id=$(basename "$1" | tr -cd 'A-Za-z0-9._-' | cut -c1-50).$$
reason=$(printf '%.200s' "$*" | tr '\n\r' '  ')

# shellcheck disable=SC2317 # called by the trap
disarm()
{
	"${PERF:-perf}" ctl --disarm="$id" "$recorder" || true
}

# The command may not have begun yet.
# shellcheck disable=SC2317 # called by the trap
stop()
{
	if [ -n "${!-}" ]; then
		kill "$!" 2>/dev/null || true
	else
		exit 143
	fi
}

trap disarm EXIT
trap stop HUP INT TERM
# The command runs, whether or not it is watched.
"${PERF:-perf}" ctl --arm="$id" --in="$time" --reason="$reason" "$recorder" || true
# In the background, as a shell runs no trap while it waits for a command in the foreground.
exec 3<&0
"$@" <&3 3<&- &
while :; do
	status=0
	wait "$!" || status=$?
	# A trap ends the wait, too.
	kill -0 "$!" 2>/dev/null || break
done
exit "$status"
