# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Common functions of the scripts of the test machine. Sourced, not run.

TOP=$(cd "${BASH_SOURCE[0]%/*}/../../.." && pwd -P)
# The series of kernels that all of this is for: 6.12, or one that has hooks in patches/. What
# is built for that one lies in a folder of its own.
BASE=${BASE:-6.12}
BUILD=$TOP/build
[ "$BASE" = 6.12 ] || BUILD+=/$BASE
export TOP BASE BUILD
JOBS=${JOBS:-$(nproc)}
# shellcheck disable=SC2034 # the sourcing scripts use it
VARIANTS=(base patched debug)

[ "$BASE" = 6.12 ] || [ -d "$TOP/patches/$BASE" ] || {
	echo "BASE=$BASE: there are 6.12$(cd "$TOP/patches" && printf ', %s' [0-9]*.[0-9]*)" >&2
	exit 2
}

say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die()
{
	say "$*"
	exit 1
}

# enough_room GIGABYTES: check that the disk has space for new files in build/.
enough_room()
{
	local free
	mkdir -p "$BUILD"
	free=$(($(df --output=avail -k "$BUILD" | tail -n1) / 1048576))
	((free >= $1)) ||
		die "only $free GB are free for $BUILD, it takes $1: make room," \
		    "or put a link to a larger disk there"
}

# hint LOG: print what to do about a common cause of a failure.
hint()
{
	if grep -qi 'no space left on device' "$1"; then
		say "the disk of $BUILD is full: make room, then run it again; what is built stays"
	elif grep -qE -e '(command )?not found$|: No such file or directory$' \
		-e 'fatal error: .*\.h: ' "$1"; then
		say "if a program or a header is missing: run 'make deps'"
	elif grep -qiE 'out of memory|killed|cannot allocate' "$1"; then
		say "the memory is short: 8 GB are needed, or fewer at a time: JOBS=1"
	fi
}

# run_logged LABEL LOG COMMAND...: print the time of the command and, if it fails, the first
# error and the end of the log. Ctrl-C ends it without a message.
run_logged()
{
	local label=$1 log=$2 start=$SECONDS next=30 pid rc=0 lines
	shift 2
	mkdir -p "${log%/*}"
	# Background jobs of a shell ignore SIGINT.
	(trap - INT; "$@") >"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		if ((SECONDS - start >= next)); then
			lines=$(wc -l <"$log")
			say "$label: $((SECONDS - start)) s, $lines steps"
			next=$((next + 30))
		fi
	done
	wait "$pid" || rc=$?
	[ $rc != 130 ] || exit 130
	if [ $rc != 0 ]; then
		tail -n 25 "$log" >&2
		grep -m1 -iE '(^|[^-_a-z])(fatal )?error[: ]' "$log" >&2 || true
		hint "$log"
		die "$label failed (status $rc); the whole log is $log"
	fi
	say "$label: done in $((SECONDS - start)) s"
}

# eventually SECONDS COMMAND...: waits until a command succeeds
eventually()
{
	local tries
	for ((tries = $1 * 5; tries > 0; tries--)); do
		! "${@:2}" || return 0
		sleep 0.2
	done
	return 1
}

# qmp_answers COMMAND...: each the name of a QMP command, and its arguments; the socket is
# $OUT/qmp
qmp_answers()
{
	local command
	{
		echo '{"execute": "qmp_capabilities"}'
		for command; do
			echo "{\"execute\": \"${command%% *}\", \"arguments\": {${command#* }}}"
		done
	} | timeout 300 socat -t 100 - "UNIX-CONNECT:$OUT/qmp"
}

qmp()
{
	qmp_answers "$@" >>"$OUT/qmp.log"
}
