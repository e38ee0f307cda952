# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the suites of a fleet share: servers of Debian's packages, out of build/fleet, as
# processes of nobody on 127.0.0.1 with their data in a directory of the suite. Sourced.
#
# Started by root, a suite starts itself again as nobody with CAP_PERFMON, in a mount
# namespace in which it has a name and a shell, for sshd, and the tree is at a place that nobody
# can reach; in a network namespace, as the ports of some servers are fixed; and in a pid
# namespace, in which nothing outlives it. Started by a user, it runs as this user.

# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/../lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/../tap.sh"

EXAMPLES=$TOP/tools/perf/examples/flight
# shellcheck disable=SC2034 # the sourcing scripts use it
UPLOAD=$EXAMPLES/upload-dump.sh
DEBIAN=$BUILD/fleet
# Where Debian's programs find what they need. Others' python3 must not read it.
DEBIAN_ENV=(
	PYTHONPATH="$DEBIAN/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1
	LD_LIBRARY_PATH="$DEBIAN/usr/lib/x86_64-linux-gnu"
)
SERVERS=()

# Give up the whole suite, with a reason that says what to do.
skip_all()
{
	echo "1..0 # SKIP $*"
	exit 0
}

# shellcheck disable=SC2317 # called by the trap
fleet_cleanup()
{
	trap - EXIT
	# Some were started in subshells: those are listed.
	exec 2>/dev/null
	[ ! -e "$TMP/pids" ] || xargs -r kill -KILL <"$TMP/pids"
	rm -rf "$TMP"
}

# as_nobody ARGUMENT...: this script again. $TMP stays after a kill; the trap of root removes it.
as_nobody()
{
	TMP=$(mktemp -d "${TMPDIR:-/tmp}/fleet.XXXXXX")
	trap 'rm -rf "$TMP"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mkdir "$TMP/tree" "$TMP/data"
	chown nobody: "$TMP" "$TMP/data"
	# The account nobody is locked, for sshd.
	sed "1i fleet:x:65534:65534::$TMP/data:/bin/sh" /etc/passwd >"$TMP/passwd"
	chmod 644 "$TMP/passwd"
	# shellcheck disable=SC2016 # for the shell that runs it
	FLEET_TMP=$TMP FLEET_ROOT=$TOP unshare --mount --net --pid --fork \
		--kill-child --mount-proc -- sh -c '
		ip link set lo up &&
		mount --bind "$FLEET_ROOT" "$FLEET_TMP/tree" &&
		mount --bind "$FLEET_TMP/passwd" /etc/passwd &&
		{ [ -e /usr/share/prometheus/alertmanager ] || mount -t overlay none -o \
			"lowerdir=$FLEET_TMP/tree/build/fleet/usr/share:/usr/share" /usr/share; } &&
		exec setpriv --reuid=65534 --regid=65534 --clear-groups \
			--inh-caps=-all,+perfmon --ambient-caps=-all,+perfmon -- "$@"' \
		sh "$BASH" "$TMP/tree/${0#"$TOP"/}" "$@"
}

# fleet_begin ARGUMENT...: of the suite. Sets TMP, which is removed at the end.
fleet_begin()
{
	local rc=0
	[ -d "$DEBIAN" ] ||
		skip_all "its programs are not here: run 'TOP=$TOP tools/testing/vm/deps.sh fleet'"
	[ -x "$BUILD/patched/bin/perf" ] ||
		skip_all "no perf in build/patched/bin: run 'make build/patched/bin/perf'"
	if [ "$(id -u)" = 0 ]; then
		as_nobody "$@" || rc=$?
		exit $rc
	fi
	if [ -n "${FLEET_TMP-}" ]; then
		TMP=$FLEET_TMP/data
		trap fleet_cleanup EXIT
	else
		TMP=$(mktemp -d "${TMPDIR:-/tmp}/fleet.XXXXXX")
		trap fleet_cleanup EXIT
	fi
	trap 'exit 130' INT
	trap 'exit 143' TERM
	# What this machine sets for stores of its own is not for these: rclone 1.60 does not
	# start with AWS_CA_BUNDLE.
	unset "${!AWS_@}" "${!RCLONE_@}" http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
	: >"$TMP/pids"
	export HOME=$TMP XDG_RUNTIME_DIR=$TMP/run
	mkdir -p "$TMP/bin" "$TMP/run"
	chmod 700 "$TMP/run"
	wrap aws clush rclone amtool promtool
	ln -s "$BUILD/patched/bin/perf" "$TMP/bin/perf"
	export PATH=$TMP/bin:$PATH
}

# wrap NAME...: Debian's program in PATH
wrap()
{
	local name python
	for name in "$@"; do
		python=
		! head -c 99 "$DEBIAN/usr/bin/$name" | grep -aq '^#!.*python3' ||
			python=/usr/bin/python3
		cat >"$TMP/bin/$name" <<-END
			#!/bin/sh
			exec env ${DEBIAN_ENV[*]@Q} $python "$DEBIAN/usr/bin/$name" "\$@"
		END
		chmod +x "$TMP/bin/$name"
	done
}

# free_ports N: sets PORTS, in the order in which they are to be used
free_ports()
{
	# shellcheck disable=SC2034 # the sourcing scripts use it
	mapfile -t PORTS < <(python3 -c '
import socket, sys
s = [socket.socket() for i in range(int(sys.argv[1]))]
for x in s:
    x.bind(("127.0.0.1", 0))
for x in s:
    print(x.getsockname()[1])' "$1")
}

# wait_for COMMAND...: a minute on an idle machine
wait_for()
{
	local end=$((SECONDS + 60 * ${SLACK:-5}))
	until "$@" >/dev/null 2>&1; do
		if ((SECONDS >= end)); then
			echo "waited in vain for: $*"
			return 1
		fi
		sleep 0.2
	done
}

# listens PORT
listens()
{
	(: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# serve NAME COMMAND...: a program in the background, with its output in $TMP/NAME.log; sets SERVER
serve()
{
	local name=$1
	shift
	"$@" >>"$TMP/$name.log" 2>&1 </dev/null &
	SERVER=$!
	SERVERS+=("$SERVER")
	echo "$SERVER" >>"$TMP/pids"
}

# end_server PID: and wait for its end, also in a subshell
end_server()
{
	kill "$1" 2>/dev/null || return 0
	wait_for not_there "$1"
}

not_there()
{
	! kill -0 "$1" 2>/dev/null
}
