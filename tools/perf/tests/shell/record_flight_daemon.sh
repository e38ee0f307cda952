#!/bin/bash
# perf record -M --daemon (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

UNIT=$(dirname "$0")/../../examples/flight/perf-flight.service
GUIDE=$(dirname "$0")/../../../../Documentation/admin-guide/perf/flight-recorder.rst

# start_daemon OUT OPTION...: returns when it records; sets OUT_NAME, RECORDER
start_daemon()
{
	OUT_NAME=$1
	shift
	perf record --daemon -o "$OUT_NAME" "$@" >"$OUT_NAME.terminal" 2>&1
	RECORDER=$(cat "$OUT_NAME.pid")
	echo "$RECORDER" >>"$TMP/recorders"
}

is_gone()
{
	! kill -0 "$1" 2>/dev/null
}

ask()
{
	echo "$2" | socat -t 90 - "UNIX-CONNECT:$1.sock"
}

# In its own session, with nothing of the terminal, and nobody waits for it.
detaches()
{
	local fd

	start_daemon "$TMP/a" -M 8M -e cpu-clock -F 199 -a
	cat "$TMP/a.terminal"
	kill -0 "$RECORDER"
	[ "$(ps -o sid= -p "$RECORDER" | tr -d ' ')" = "$RECORDER" ]
	for fd in 0 1 2; do
		readlink "/proc/$RECORDER/fd/$fd"
	done
	[ "$(readlink "/proc/$RECORDER/fd/0")" = /dev/null ]
	[ "$(readlink "/proc/$RECORDER/fd/1")" = "$TMP/a.log" ]
	[ "$(readlink "/proc/$RECORDER/fd/2")" = "$TMP/a.log" ]
	[ "$(stat -c %a "$TMP/a.log")" = 600 ]
}

serves()
{
	local text

	run_dead
	text=$(ask "$TMP/a" 'dump for the test')
	echo "$text"
	DUMP=$(sed -nE 's/.*"file": "([^"]*)".*/\1/p' <<<"$text")
	opens "$DUMP"
	dead_have_names "$DUMP"
	text=$(ask "$TMP/a" status)
	echo "$text"
	python3 -c 'import json, sys
s = json.loads(sys.argv[1])
assert s["dumps"] == 1 and s["memory"] == 8 << 20 and s["window"] > 0.5 and s["cpu_time"] > 0
assert s["lost"] >= 0 and s["pid"] == int(sys.argv[2])' "$text" "$(cat "$TMP/a.pid")"
	grep -q 'dump .*for the test' "$TMP/a.log"
}

prints_to()
{
	[ "/proc/$(cat "$TMP/a.pid")/fd/2" -ef "$1" ]
}

# The log is opened again, and what is in the memory stays.
rotates_its_log()
{
	local before

	before=$(ask "$TMP/a" 'dump before' | sed -nE 's/.*"file": "([^"]*)".*/\1/p')
	mv "$TMP/a.log" "$TMP/a.log.1"
	kill -HUP "$(cat "$TMP/a.pid")"
	wait_for prints_to "$TMP/a.log"
	[ "$(stat -c %a "$TMP/a.log")" = 600 ]
	DUMP=$(ask "$TMP/a" 'dump behind' | sed -nE 's/.*"file": "([^"]*)".*/\1/p')
	grep -q 'dump .*behind' "$TMP/a.log"
	not grep 'behind' "$TMP/a.log.1"
	# The first samples of both are the same ones.
	[ "$(json "$DUMP" oldest)" = "$(json "$before" oldest)" ]
	opens "$DUMP"
}

is_alone()
{
	RECORDER=$(cat "$TMP/a.pid")
	fails_somehow "already running .pid $RECORDER" \
		perf record --daemon -M 8M -e cpu-clock -a -o "$TMP/a"
	kill -0 "$RECORDER"
	[ "$(cat "$TMP/a.pid")" = "$RECORDER" ]
	fails 1 "is running .pid $RECORDER.*SIGUSR2" perf record --combine -o "$TMP/a"
	# With another name there may be another one.
	start_daemon "$TMP/b" -M 8M -e cpu-clock -F 99 -a
	kill -TERM "$RECORDER"
	wait_for is_gone "$RECORDER"
	not test -e "$TMP/b.pid"
	has_dumps "$TMP/b" 1
}

# A dump at the end, and nothing left but what is worth something.
ends()
{
	local pid

	pid=$(cat "$TMP/a.pid")
	kill -TERM "$pid"
	wait_for is_gone "$pid"
	has_dumps "$TMP/a" 2
	not test -e "$TMP/a.pid"
	not test -e "$TMP/a.sock"
	opens "$(newest_dump "$TMP/a")"
}

# Pid file and socket of one that was killed, with the pid of somebody else in it.
stale_files()
{
	start_daemon "$TMP/c" -M 8M -e cpu-clock -F 99 -a
	kill -KILL "$RECORDER"
	wait_for is_gone "$RECORDER"
	[ -e "$TMP/c.pid" ]
	[ -e "$TMP/c.sock" ]
	echo $$ >"$TMP/c.pid"
	start_daemon "$TMP/c" -M 8M -e cpu-clock -F 99 -a
	ask "$TMP/c" status | grep -c "\"pid\": $RECORDER"
	ask "$TMP/c" stop | grep -c '"file"'
	wait_for is_gone "$RECORDER"
	# What they left becomes one file.
	perf record --combine -o "$TMP/c"
	opens "$TMP/c"
}

# Whoever starts it learns that it cannot begin, and why.
tells_why_not()
{
	fails_somehow 'No such file' perf record --daemon -M 8M -e cpu-clock -a -o "$TMP/none/d"
	fails_somehow 'cannot open the map .*: No such' perf record --daemon -M 8M -e cpu-clock -a \
		-o "$TMP/d" --trigger "bpf:$TMP/none"
	fails_somehow 'No persistent session' perf record --daemon -M 8M -e persistent/none/ \
		-o "$TMP/d"
	not test -e "$TMP/d.pid"
	fails_somehow 'does not support --daemon' perf record --daemon -M 8M --dry-run -a \
		-o "$TMP/d"
	fails 1 'daemon is for a flight recorder' perf record --daemon -a true
	# It is no reason not to begin the next time.
	start_daemon "$TMP/d" -M 8M -e cpu-clock -F 99 -a
	kill -TERM "$RECORDER"
	wait_for is_gone "$RECORDER"
}

# With a service manager: READY=1 when it records, STOPPING=1, nothing detached.
notifies()
{
	python3 - "$TMP" <<-'END'
		import os, signal, socket, subprocess, sys, time

		tmp = sys.argv[1]
		for address in (tmp + '/notify', '\0flight-test-%d' % os.getpid()):
		    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
		    s.settimeout(300)
		    s.bind(address)
		    env = dict(os.environ, NOTIFY_SOCKET=address.replace('\0', '@'),
		               WATCHDOG_USEC='2000000')
		    p = subprocess.Popen(['perf', 'record', '--daemon', '-M', '8M', '-a',
		                          '-e', 'cpu-clock', '-o', tmp + '/e'], env=env)
		    assert s.recv(4096) == b'READY=1'
		    assert p.poll() is None
		    assert int(open(tmp + '/e.pid').read()) == p.pid
		    # Between READY=1 and STOPPING=1 it says at least once a second that it lives.
		    begin = time.monotonic()
		    for _ in range(3):
		        assert s.recv(4096) == b'WATCHDOG=1'
		    print('three times in', time.monotonic() - begin)
		    p.send_signal(signal.SIGHUP)
		    said = [b'WATCHDOG=1']
		    while said[-1] != b'READY=1':
		        said.append(s.recv(4096))
		    assert any(text.startswith(b'RELOADING=1\nMONOTONIC_USEC=') for text in said)
		    p.send_signal(signal.SIGTERM)
		    while (text := s.recv(4096)) == b'WATCHDOG=1':
		        pass
		    assert text == b'STOPPING=1'
		    p.wait()
		    print(repr(address), p.returncode)
		    assert p.returncode in (143, -signal.SIGTERM)
		    s.close()
	END
}

as_nobody()
{
	setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$TMP/user" "$@"
}

# CAP_PERFMON is all it takes to record everybody; without it, one's own tasks.
without_root()
{
	local text

	chmod 755 "$TMP"
	mkdir "$TMP/user"
	chown nobody "$TMP/user"
	OUT_NAME=$TMP/user/f
	setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps +perfmon \
		--ambient-caps +perfmon env HOME="$TMP/user" \
		perf record --daemon -M 4M -a -e cpu-clock -F 199 -o "$OUT_NAME"
	RECORDER=$(cat "$OUT_NAME.pid")
	echo "$RECORDER" >>"$TMP/recorders"
	grep -E '^(Uid|CapEff)' "/proc/$RECORDER/status"
	run_dead
	text=$(echo dump | as_nobody socat -t 90 - "UNIX-CONNECT:$OUT_NAME.sock")
	echo "$text"
	DUMP=$(sed -nE 's/.*"file": "([^"]*)".*/\1/p' <<<"$text")
	[ "$(stat -c '%U %a' "$DUMP")" = 'nobody 600' ]
	# perf reads files of others only if told to: these are copies.
	cp "$DUMP" "$TMP/f.dump"
	opens "$TMP/f.dump"
	dead_have_names "$TMP/f.dump"
	ask "$OUT_NAME" stop | grep -c '"file"'
	wait_for is_gone "$RECORDER"
	as_nobody perf record --combine -o "$OUT_NAME"
	cp "$OUT_NAME" "$TMP/f.combined"
	opens "$TMP/f.combined"

	if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 1 ]; then
		fails_somehow 'perf_event_paranoid' as_nobody \
			perf record -M 4M -a -e cpu-clock -o "$TMP/user/g"
	fi
	as_nobody perf record -M 4M -e cpu-clock:u -o "$TMP/user/h" -- perf test -w noploop 1
	cp "$(dumps "$TMP/user/h")" "$TMP/h.dump"
	dead_have_names "$TMP/h.dump"
}

# quick COMMAND...: a recorder of nobody by that, and what is in the registry then
quick()
{
	as_nobody "$@" perf record -M 4M -e cpu-clock:u --trigger "socket:$TMP/user/q.sock" \
		-o "$TMP/user/q" -- sh -c "
			for i in \$(seq 600); do
				[ ! -S $TMP/user/q.sock ] || break
				sleep 0.1
			done
			sleep 1
			ls -ld $TMP/user/xdg/perf/* /run/perf/*/*
			true" 2>&1
}

# $RUNTIME_DIRECTORY as systemd sets it, then $XDG_RUNTIME_DIR, then /run/perf/UID.
registers_users()
{
	local text

	chmod 755 "$TMP"
	mkdir -p "$TMP/user"
	chown nobody "$TMP/user"
	text=$(quick env)
	echo "$text"
	grep -c "will not find this recorder (/run/perf/65534: No such file or directory)" \
		<<<"$text"
	install -d -m 700 -o nobody /run/perf/65534 /run/perf/unit "$TMP/user/xdg"
	quick env | tee "$TMP/said"
	grep -cE 'srw-------.* /run/perf/65534/q\.[0-9]+$' "$TMP/said"
	quick env XDG_RUNTIME_DIR="$TMP/user/xdg" | tee "$TMP/said"
	grep -cE "srw-------.* $TMP/user/xdg/perf/q\.[0-9]+\$" "$TMP/said"
	[ "$(stat -c '%a %U' "$TMP/user/xdg/perf")" = '700 nobody' ]
	quick env XDG_RUNTIME_DIR="$TMP/user/xdg" RUNTIME_DIRECTORY=/run/foo:/run/perf/unit |
		tee "$TMP/said"
	grep -cE 'srw-------.* /run/perf/unit/q\.[0-9]+$' "$TMP/said"
	[ -z "$(find /run/perf/unit /run/perf/65534 "$TMP/user/xdg" -type s)" ]
	# Others may write to it: the next one is taken.
	chmod 777 "$TMP/user/xdg"
	quick env XDG_RUNTIME_DIR="$TMP/user/xdg" | tee "$TMP/said"
	grep -cE 'srw-------.* /run/perf/65534/q\.[0-9]+$' "$TMP/said"
	chmod 700 "$TMP/user/xdg"
}

# start_user VARIABLE: a daemon of nobody, with CAP_PERFMON
start_user()
{
	setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps +perfmon \
		--ambient-caps +perfmon env HOME="$TMP/user" "$1" \
		perf record --daemon -M 4M -a -e cpu-clock -F 99 -o "$TMP/user/r"
	RECORDER=$(cat "$TMP/user/r.pid")
	echo "$RECORDER" >>"$TMP/recorders"
}

counts()
{
	perf ctl --prometheus | grep -x "perf_flight_recorders $1"
}

# The user, and root, find it where it is; other users do not.
finds_users()
{
	local variable

	# As a unit with DynamicUser; then in a session: root looks below /run/user.
	install -d -m 700 -o nobody /run/user/65534 /run/perf/unit
	for variable in RUNTIME_DIRECTORY=/run/perf/unit XDG_RUNTIME_DIR=/run/user/65534; do
		start_user "$variable"
		counts 1
		as_nobody perf ctl --prometheus | grep -x 'perf_flight_recorders 1'
		setpriv --reuid 12345 --regid 12345 --clear-groups perf ctl --prometheus |
			grep -x 'perf_flight_recorders 0'
		kill -TERM "$RECORDER"
		wait_for is_gone "$RECORDER"
		counts 0
	done
	[ -z "$(find /run/perf /run/user/65534 -type s)" ]
	rm -rf /run/user/65534 /run/perf/65534 /run/perf/unit
}

verifies_the_unit()
{
	sed "s|/usr/bin/perf|$(command -v perf)|" "$UNIT" >"$TMP/perf-flight.service"
	# Its man page need not be installed.
	systemd-analyze verify --man=no "$TMP/perf-flight.service"
}

# What the guide adds to it, for dumps that are uploaded.
verifies_the_drop_in()
{
	mkdir "$TMP/perf-flight.service.d"
	awk '/systemctl edit perf-flight/ { f = 1 }
		f && sub(/^    /, "") { print; within = 1; next }
		within && /./ { exit }' "$GUIDE" |
		sed "s|/usr/bin/perf-flight|$(command -v perf)|" |
		tee "$TMP/perf-flight.service.d/upload.conf"
	grep -c -- --on-dump "$TMP/perf-flight.service.d/upload.conf"
	systemd-analyze verify --man=no "$TMP/perf-flight.service"
}

# The log cannot be opened again, and the old one is a full pipe that is not read. The message
# about that waits for its reader. The recorder does not.
waits_for_no_log()
{
	local fifo text

	mkfifo "$TMP/w.log"
	exec {fifo}<>"$TMP/w.log"
	start_daemon "$TMP/w" -M 8M -e cpu-clock -F 199 -a
	dd if=/dev/zero of="$TMP/w.log" oflag=nonblock bs=4096 count=1000 2>/dev/null || true
	rm "$TMP/w.log"
	mkdir "$TMP/w.log"
	kill -HUP "$RECORDER"
	text=$(echo dump | timeout 60 socat -t 60 - "UNIX-CONNECT:$TMP/w.sock")
	echo "$text"
	grep -c '"file"' <<<"$text"
	timeout 60 sed -n '/Messages go to the old file/q0' <&$fifo
	exec {fifo}>&-
	rmdir "$TMP/w.log"
	kill -TERM "$RECORDER"
	wait_for is_gone "$RECORDER"
}

flight_begin
check "detaches when it records" detaches
check "dump and status on its socket" serves
check "opens its log again at SIGHUP" rotates_its_log
check "a log that cannot be opened does not hold it up" waits_for_no_log
check "a second one is refused" is_alone
check "SIGTERM ends it" ends
check "stale pid file and socket" stale_files
check "tells why it cannot begin" tells_why_not
check "the protocol of Type=notify" notifies
check "a user without root, with CAP_PERFMON and without" without_root
check "users are in the registry" registers_users
check "perf ctl finds users" finds_users
if command -v systemd-analyze >/dev/null; then
	check "the systemd unit" verifies_the_unit
else
	leave_out "the systemd unit" "no systemd-analyze"
fi
if [ -e "$GUIDE" ] && command -v systemd-analyze >/dev/null; then
	check "the systemd unit with the drop-in of the guide" verifies_the_drop_in
else
	leave_out "the systemd unit with the drop-in of the guide" "no guide, or no systemd-analyze"
fi
persistent_end
