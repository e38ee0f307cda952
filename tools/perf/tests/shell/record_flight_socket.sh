#!/bin/bash
# perf record -M: the socket (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

# ask SOCKET REQUEST...: the answers, each a line; the longest wait is for a dump
ask()
{
	local sock=$1

	shift
	printf '%s\n' "$@" | socat -t 90 - "UNIX-CONNECT:$sock"
}

is_json()
{
	python3 -c 'import json, sys
for line in sys.stdin: assert "ok" in json.loads(line)' <<<"$1"
}

answers()
{
	local text

	[ "$(stat -c %a "$TMP/a.sock")" = 600 ]
	text=$(ask "$TMP/a.sock" help status 'dance' '' ' status ')
	echo "$text"
	is_json "$text"
	[ "$(wc -l <<<"$text")" = 5 ]
	sed -n 1p <<<"$text" | grep -q '"ok": true.*dump \[REASON\]'
	sed -n 2p <<<"$text" | grep -q "\"ok\": true, \"pid\": $RECORDER, .*\"dumps\": 0"
	sed -n 3p <<<"$text" | grep -q '"ok": false, "error": "no such request'
	sed -n 4p <<<"$text" | grep -q '"ok": false'
	sed -n 5p <<<"$text" | grep -qE '"memory": 8388608, "used": [1-9].*"cpu_time": [0-9.]+'
}

# The file is there, whole, when the answer says so.
dumps_at_request()
{
	local text

	text=$(ask "$TMP/a.sock" 'dump disk "slow"	\ now')
	echo "$text"
	is_json "$text"
	grep -q '"dump": "accepted"' <<<"$text"
	DUMP=$(sed -nE 's/.*"file": "([^"]*)".*/\1/p' <<<"$text")
	[ -s "$DUMP" ]
	opens "$DUMP"
	[ "$(json "$DUMP" trigger)" = socket ]
	grep -qF '"reason": "disk \"slow\"?\\ now"' "$DUMP.json"
	python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$DUMP.json"
	ask "$TMP/a.sock" status | grep -c '"dumps": 1, "failed": 0'
}

# Whoever asks at the same time gets the same dump, or the next one; not one each.
merges_requests()
{
	local i before

	before=$(dumps "$TMP/a" | wc -l)
	for i in {1..20}; do
		ask "$TMP/a.sock" "dump $i" >"$TMP/merged.$i" &
		echo $! >>"$TMP/merged.pids"
	done
	# shellcheck disable=SC2046 # words are wanted
	wait $(cat "$TMP/merged.pids")
	cat "$TMP"/merged.{1..20}
	[ "$(cat "$TMP"/merged.{1..20} | grep -c '"file"')" = 20 ]
	[ "$(($(dumps "$TMP/a" | wc -l) - before))" -lt 20 ]
}

# What is wrong in a line is told, and nothing else happens.
survives_what_is_wrong()
{
	python3 - "$TMP/a.sock" <<-'END'
		import os, random, socket, sys, time

		def connect():
		    s = socket.socket(socket.AF_UNIX)
		    s.connect(sys.argv[1])
		    s.settimeout(300)
		    return s

		def answers(s):
		    text = b''
		    try:
		        while (piece := s.recv(4096)):
		            text += piece
		    except ConnectionError:
		        pass
		    return text

		def said(data, want):
		    s = connect()
		    try:
		        s.sendall(data)
		        s.shutdown(socket.SHUT_WR)
		    except OSError:
		        pass
		    text = answers(s)
		    print(data[:20], text)
		    assert want in text, text

		said(b'dum', b'ends with a newline')
		said(b'dump', b'ends with a newline')
		said(b'status\0\n', b'is text')
		said(b'x' * 511 + b'\n', b'no such request')
		said(b'x' * 512, b'too long')
		said(b'y' * 1000000, b'')
		said(b'status\r\n', b'"pid"')
		said(b'', b'')
		# A request in pieces is one request.
		s = connect()
		for c in b'status\nhel':
		    s.sendall(bytes([c]))
		    time.sleep(0.02)
		s.sendall(b'p\n')
		s.shutdown(socket.SHUT_WR)
		text = answers(s)
		assert b'"pid"' in text and b'requests' in text, text
		# A client that never reads is cut off, and does not hold up the others.
		deaf = connect()
		try:
		    deaf.settimeout(20)
		    for i in range(20000):
		        deaf.sendall(b'status\n')
		    assert False, 'never cut off'
		except OSError:
		    pass
		# Noise of a known seed.
		rng = random.Random(7)
		words = [b'dump', b'status', b'help', b'\n', b' ', b'\0', b'\xff\xfe', b'"', b'\\']
		for i in range(100):
		    s = connect()
		    data = b''.join(rng.choice(words) if rng.random() < 0.7 else
		                    rng.randbytes(rng.randrange(40))
		                    for _ in range(rng.randrange(30)))
		    data = data.replace(b'dump', b'help')
		    try:
		        s.sendall(data)
		    except OSError:
		        pass
		    s.close()
		said(b'status\n', b'"pid"')
	END
	kill -0 "$RECORDER"
}

# 200 who connect and say nothing, and one who asks; then far more than there is room for.
survives_many()
{
	python3 - "$TMP/a.sock" <<-'END'
		import resource, socket, sys

		resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

		def connect():
		    s = socket.socket(socket.AF_UNIX)
		    # Blocking: the queue of those that were not accepted yet may be full.
		    s.connect(sys.argv[1])
		    s.settimeout(300)
		    return s

		silent = [connect() for _ in range(200)]
		for s in silent[::2]:
		    s.sendall(b'stat')
		s = connect()
		s.sendall(b'status\n')
		assert b'"pid"' in s.recv(4096)
		# The silent ones are still there, and served.
		for s in silent:
		    s.sendall(b'us\n')
		assert all(b'"pid"' in s.recv(4096) for s in silent[::2])
		more = [connect() for _ in range(400)]
		s = connect()
		s.sendall(b'status\n')
		assert b'"pid"' in s.recv(4096)
		# Those that were silent longest have been told to go.
		gone = 0
		for s in silent[1::2]:
		    try:
		        text = b''
		        while (piece := s.recv(4096)):
		            text += piece
		        gone += b'silent longest' in text
		    except ConnectionError:
		        gone += 1
		print(gone, 'gone')
		assert gone == 100
	END
	kill -0 "$RECORDER"
}

# All at the same time, again and again: each is answered. The time says something on an idle
# machine alone, so it is only printed.
answers_64_clients()
{
	timeout 120 python3 - "$TMP/a.sock" <<-'END'
		import json, socket, sys, time

		clients = [socket.socket(socket.AF_UNIX) for _ in range(64)]
		for c in clients:
		    c.settimeout(60)
		    c.connect(sys.argv[1])
		waits = []
		for _ in range(10):
		    start = time.monotonic()
		    for c in clients:
		        c.sendall(b'status\n')
		    for c in clients:
		        line = b''
		        while not line.endswith(b'\n'):
		            line += c.recv(4096)
		        answer = json.loads(line)
		        assert answer['ok'] and answer['lost'] >= 0, answer
		        waits.append(time.monotonic() - start)
		waits.sort()
		print('640 answers, each to one of 64 clients: half of them within %.1f ms, '
		      'all within %.1f ms' % (waits[320] * 1000, waits[-1] * 1000))
	END
}

# Samples go on while somebody keeps the socket busy.
records_meanwhile()
{
	local first

	python3 - "$TMP/a.sock" <<-'END' &
		import socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		while True:
		    s.sendall(b'status\n' * 10)
		    answers = 0
		    while answers < 10:
		        answer = s.recv(1 << 20)
		        assert answer
		        answers += answer.count(b'\n')
	END
	first=$!
	echo $first >>"$TMP/recorders"
	run_dead
	dump
	kill $first
	opens "$DUMP"
	dead_have_names "$DUMP"
}

# Root and the recorder's user; a group, if the socket is shared with it.
knows_its_peers()
{
	local text

	chmod 755 "$TMP"
	chmod 666 "$TMP/a.sock"
	text=$(refused_nobody "$TMP/a.sock")
	echo "$text"
	grep -q '"ok": false.*another user' <<<"$text"
	chgrp nogroup "$TMP/a.sock"
	chmod 660 "$TMP/a.sock"
	as_nobody "$TMP/a.sock" | grep -c '"pid"'
	chgrp 0 "$TMP/a.sock"
	chmod 666 "$TMP/a.sock"
	refused_nobody "$TMP/a.sock" | grep -c 'another user'
	chmod 600 "$TMP/a.sock"
	not as_nobody "$TMP/a.sock"
}

# A client that is refused learns so before it has asked anything.
refused_nobody()
{
	nobody socat -u "UNIX-CONNECT:$1" - 2>&1
}

as_nobody()
{
	echo status | nobody socat -t 90 - "UNIX-CONNECT:$1" 2>&1
}

nobody()
{
	setpriv --reuid nobody --regid nogroup --clear-groups "$@"
}

# The path is the user's; a socket left by a killed recorder is in nobody's way.
takes_a_path()
{
	start_recorder "$TMP/b" -M 8M -e cpu-clock -F 99 -a --trigger "socket:$TMP/b path"
	ask "$TMP/b path" status | grep -c '"pid"'
	fails_somehow 'Address already in use by another' perf record -M 8M -e cpu-clock -a \
		-o "$TMP/c" --trigger "socket:$TMP/b path"
	ask "$TMP/b path" status | grep -c '"pid"'
	kill -KILL "$RECORDER"
	wait "$RECORDER" 2>/dev/null || true
	[ -S "$TMP/b path" ]
	start_recorder "$TMP/b" -M 8M -e cpu-clock -F 99 -a --trigger "socket:$TMP/b path"
	ask "$TMP/b path" status | grep -c '"pid"'
	stop_recorder INT
	not test -e "$TMP/b path"
	: >"$TMP/file"
	fails_somehow 'Cannot create the socket' perf record -M 8M -e cpu-clock -a -o "$TMP/c" \
		--trigger "socket:$TMP/file"
	[ -f "$TMP/file" ]
	fails 129 'requires the path' perf record -M 8M -a -o "$TMP/c" --trigger socket:
	fails_somehow 'too long for a socket' perf record -M 8M -e cpu-clock -a -o "$TMP/c" \
		--trigger "socket:$TMP/$(printf 'x%.0s' {1..120})"
}

# A cooldown swallows dumps, not the end.
cools_down_and_stops()
{
	local text first

	start_recorder "$TMP/d" -M 8M -e cpu-clock -F 99 -a \
		--trigger socket,cooldown=1h --trigger signal
	ask "$TMP/d.sock" dump | grep -c '"file"'
	first=$(dumps "$TMP/d")
	ask "$TMP/d.sock" dump "dump 2" "dump 3" | grep -c '"dump": "swallowed"' | grep -cx 3
	ask "$TMP/d.sock" status | grep -c '"dumps": 1, "failed": 0, "swallowed": 3'
	text=$(ask "$TMP/d.sock" stop)
	echo "$text"
	grep -q '"stop": "accepted"' <<<"$text"
	grep -q '"file"' <<<"$text"
	wait "$RECORDER"
	RECORDER=
	[ "$(json "$first" swallowed)" = 3 ]
	[ "$(dumps "$TMP/d" | wc -l)" = 2 ]
	DUMP=$(newest_dump "$TMP/d")
	[ "$(json "$DUMP" action)" = stop ]
	opens "$DUMP"
	not test -e "$TMP/d.sock"
}

# metric OUT PID: perf ctl finds it, under that name
metric()
{
	perf ctl --prometheus | tee "$TMP/prom" |
		grep -F "perf_flight_uptime_seconds{out=\"$1\",pid=\"$2\"} "
}

is_registered()
{
	local entry=/run/perf/0/a.$RECORDER

	ls -la /run/perf /run/perf/0
	[ "$(stat -c '%a %u %F' /run/perf)" = '755 0 directory' ]
	[ "$(stat -c '%a %u %F' /run/perf/0)" = '700 0 directory' ]
	[ "$(stat -c '%a %u %F' "$entry")" = '600 0 socket' ]
	ask "$entry" status | grep -c "\"pid\": $RECORDER"
	metric "$TMP/a" "$RECORDER"
}

is_registered_no_more()
{
	[ -z "$(ls /run/perf/0)" ]
	perf ctl --prometheus | grep -x 'perf_flight_recorders 0'
}

# What a recorder that was killed leaves is removed by root's perf ctl, and by the next
# recorder; not what may not listen yet.
removes_stale_entries()
{
	local entry other

	start_recorder "$TMP/s" -M 8M -e cpu-clock -F 99 -a --trigger socket
	entry=/run/perf/0/s.$RECORDER
	kill -KILL "$RECORDER"
	wait "$RECORDER" 2>/dev/null || true
	[ -S "$entry" ]
	touch -h -d '1 minute' "$entry"
	perf ctl --prometheus | grep -x 'perf_flight_recorders 0'
	[ -S "$entry" ]
	touch -h -d '1 minute ago' "$entry"
	nobody perf ctl --prometheus | grep -x 'perf_flight_recorders 0'
	[ -S "$entry" ]
	perf ctl --prometheus | grep -x 'perf_flight_recorders 0'
	[ ! -e "$entry" ]
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$entry"
	touch -h -d '1 minute ago' "$entry"
	# It is not alone: that one stays.
	start_recorder "$TMP/t" -M 8M -e cpu-clock -F 99 -a --trigger socket
	other=/run/perf/0/t.$RECORDER
	perf record -q -M 8M -e cpu-clock -C 0 --trigger socket -o "$TMP/u" -- true
	[ ! -e "$entry" ]
	[ -S "$other" ]
	stop_recorder INT
	is_registered_no_more
}

# Two of the same name, in different directories.
tells_them_apart()
{
	local first

	mkdir "$TMP/1" "$TMP/2"
	start_recorder "$TMP/1/box" -M 8M -e cpu-clock -F 99 -a --trigger socket
	first=$RECORDER
	start_recorder "$TMP/2/box" -M 8M -e cpu-clock -F 99 -a --trigger socket
	metric "$TMP/1/box" "$first"
	metric "$TMP/2/box" "$RECORDER"
	grep -x 'perf_flight_recorders 2' "$TMP/prom"
	stop_recorder INT
	perf ctl --prometheus | grep -x 'perf_flight_recorders 1'
	kill -INT "$first"
	wait "$first" || true
}

# refuses REASON: a recorder records, and says why perf ctl will not find it
refuses()
{
	perf record -M 8M -e cpu-clock -C 0 --trigger "socket:$TMP/v.sock" -o "$TMP/v" -- true \
		2>&1 | tee "$TMP/said"
	grep -cE "will not find this recorder \\($1\\), whose socket is $TMP/v.sock" "$TMP/said"
	grep -c 'flight recorder [0-9]' "$TMP/said"
}

# Directories that are not its own are not taken; nothing is written elsewhere.
takes_no_foreign_directory()
{
	mkdir "$TMP/elsewhere"
	rmdir /run/perf/0
	ln -s "$TMP/elsewhere" /run/perf/0
	refuses '/run/perf/0: Not a directory'
	rm /run/perf/0
	: >/run/perf/0
	refuses '/run/perf/0: Not a directory'
	rm /run/perf/0
	install -d -m 700 -o nobody /run/perf/0
	refuses '/run/perf/0: others may write to it'
	chown root /run/perf/0
	chmod 770 /run/perf/0
	refuses '/run/perf/0: others may write to it'
	chmod 700 /run/perf/0
	chmod 777 /run/perf
	refuses '/run/perf/0: others may write to it'
	chmod 755 /run/perf
	mv /run/perf "$TMP/moved"
	ln -s "$TMP/elsewhere" /run/perf
	refuses '/run/perf/0: Not a directory'
	rm /run/perf
	mv "$TMP/moved" /run/perf
	[ -z "$(ls "$TMP/elsewhere")" ]
}

# A link under its name is neither followed nor replaced.
follows_no_link()
{
	: >"$TMP/w.stderr"
	OUT_NAME=$TMP/w
	# shellcheck disable=SC2016 # its own pid
	sh -c 'ln -s "$1/target" "/run/perf/0/w.$$"; exec perf record -M 8M -e cpu-clock -F 99 -a \
		--trigger socket -o "$1/w"' - "$TMP" 2>>"$TMP/w.stderr" &
	RECORDER=$!
	echo $RECORDER >>"$TMP/recorders"
	wait_for grep -q 'flight recorder [0-9]' "$OUT_NAME.stderr"
	[ -S "/run/perf/0/w.$RECORDER.1" ]
	[ -L "/run/perf/0/w.$RECORDER" ]
	[ ! -e "$TMP/target" ]
	metric "$TMP/w" "$RECORDER"
	stop_recorder INT
	rm /run/perf/0/w.*
	is_registered_no_more
}

flight_begin
start_recorder "$TMP/a" -M 8M -e cpu-clock -F 199 -a --trigger socket --trigger signal
check "requests are answered" answers
check "it is in the registry" is_registered
check "dump, with the file's name when it is complete" dumps_at_request
check "requests at the same time are merged" merges_requests
check "malformed, partial, oversized, slow and deaf" survives_what_is_wrong
check "200 connections, and more" survives_many
check "64 clients at once" answers_64_clients
check "recording goes on meanwhile" records_meanwhile
check "peers" knows_its_peers
check "the same recorder all the time" kill -0 "$RECORDER"
stop_recorder INT
check "it has left the registry" is_registered_no_more
check "stale entries of the registry" removes_stale_entries
check "two of the same name" tells_them_apart
check "foreign directories in place of the registry" takes_no_foreign_directory
check "a link in place of an entry" follows_no_link
check "socket:PATH" takes_a_path
check "cooldown, stop" cools_down_and_stops
persistent_end
