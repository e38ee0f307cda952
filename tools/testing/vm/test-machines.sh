#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A client waits for a server on another machine, and the page of both shows why.
#
# Two guests are connected by their second serial ports. See peers.py for what they do. On the
# host, perf script report incident must place the client's wait around the server's stall, within
# the error that it tells of the clocks, and must not tell a wrong order of the triggers.
#
# usage: test-machines.sh
set -uo pipefail
# shellcheck source=tools/testing/vm/lib.sh
. "${BASH_SOURCE[0]%/*}/lib.sh"
# shellcheck source=tools/testing/vm/tap.sh
. "${BASH_SOURCE[0]%/*}/tap.sh"

PEERS=$TOP/tools/testing/vm/peers.py
export OUT=$BUILD/out/machines VARIANT=patched ACCEL=single SMP=1 TIMEOUT=${TIMEOUT:-600}
export PATH=$BUILD/patched/bin:$PATH
DIR=$(mktemp -d /tmp/test-machines.XXXXXX)

# shellcheck disable=SC2317 # called by the trap
clean_up()
{
	trap - EXIT
	# A check runs in a subshell.
	[ ! -s "$DIR/server" ] || kill "$(cat "$DIR/server")" 2>/dev/null
	rm -rf "$DIR"
}

# boot NAME CHARDEV: the port is a socket that the server listens at. In a subshell: a signal is
# to reach the machine.
boot()
{
	QEMU_EXTRA="-chardev socket,id=peer,path=$DIR/socket,$2 -serial chardev:peer" \
		CMD="/usr/bin/python3 $PEERS $1 /dev/ttyS1 $OUT" \
		exec "$TOP/tools/testing/vm/vm.sh"
}

both_end()
{
	local rc=0 server

	boot server server=on,wait=off >"$DIR/server.log" 2>&1 &
	server=$!
	echo "$server" >"$DIR/server"
	# QEMU makes the socket, and listens at it at once.
	while kill -0 "$server" 2>/dev/null && [ ! -S "$DIR/socket" ]; do
		sleep 0.2
	done
	(boot client server=off) || rc=$?
	wait "$server" || rc=$?
	: >"$DIR/server"
	cat "$DIR/server.log"
	return "$rc"
}

# Of a recorder that does not tell the error of the clock, it is what the guest has measured.
tells_errors()
{
	python3 - "$OUT" <<-'END'
		import json, sys
		for name in ('client', 'server'):
		    path = '%s/%s' % (sys.argv[1], name)
		    manifest = json.load(open(path + '.json'))
		    truth = json.load(open(path + '.truth'))
		    print(name, manifest.get('clock_error'), truth)
		    manifest['host'] = name
		    if 'clock_error' not in manifest:
		        manifest['clock_error'] = truth['error']
		    json.dump(manifest, open(path + '.json', 'w'))
	END
}

# Both on the wall clock, in ns. The wait began before the stall, and ended behind it.
places_the_wait()
{
	# For the functions of the guests' kernel, by which a wait is known
	perf buildid-cache -a "$BUILD/patched/kernel/vmlinux" || return
	perf script report incident "$OUT/client" "$OUT/server" -o "$OUT/machines.html" --json \
		>"$OUT/machines.json" || return
	python3 - "$OUT" <<-'END'
		import json, sys
		told = json.load(open(sys.argv[1] + '/machines.json'))
		at, error = {}, 0
		for m in told['machines']:
		    truth = json.load(open('%s/%s.truth' % (sys.argv[1], m['name'])))
		    at[m['name']] = [ns + m['wall_clock']['offset_ns'] for ns in truth['waited']]
		    error += m['wall_clock']['error_ns']
		before = at['server'][0] - at['client'][0]
		behind = at['client'][1] - at['server'][1]
		print('wait: begins %.3f ms before the stall, ends %.3f ms behind it, +-%.3f ms' %
		      (before / 1e6, behind / 1e6, error / 1e6))
		sys.exit(not (before > -error and behind > -error and error < 100e6))
	END
}

# The server has triggered first: it did so before it answered.
tells_the_order()
{
	python3 - "$OUT/machines.json" <<-'END'
		import json, sys
		told = json.load(open(sys.argv[1]))
		[order] = told['orders']
		print(order['sentence'])
		first = told['machines'][order['first']]['name']
		sys.exit(not (first == 'server' or
		              not order['certain'] and order['distance_ns'] <= order['error_ns']))
	END
}

# The finding of the server says whom it waited for, at that time.
tells_the_cause()
{
	python3 - "$OUT" <<-'END'
		import json, sys
		told = json.load(open(sys.argv[1] + '/machines.json'))
		start, end = json.load(open(sys.argv[1] + '/server.truth'))['waited']
		found = [f for m in told['machines'] if m['name'] == 'server'
		         for f in m['verdict']['findings']]
		for f in found:
		    print(f['from'] - start, f['to'] - end, f['sentence'])
		sys.exit(not any('compactor' in f['sentence'] and
		                 f['from'] < end and f['to'] > start for f in found))
	END
}

export HOME=$DIR
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
rm -rf "$OUT"
mkdir -p "$OUT"
tap_run "a client and a server end" both_end
tap_run "the manifests tell the errors of the clocks" tells_errors
tap_run "the client's wait is around the server's stall" places_the_wait
tap_run "the order of the triggers is not told wrongly" tells_the_order
tap_run "the server's finding tells the cause" tells_the_cause
tap_end
