#!/bin/bash
# perf ctl --prometheus: the metrics of flight recorders (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

answers_on() { echo help | socat -t 300 - "UNIX-CONNECT:$1" | grep -q '"ok": true'; }

# A recorder in a directory of its own; the names of both need quoting, also for socat,
# which is given a link; and they are not UTF-8.
prints_metrics_of_recorders()
{
	local recorder i dir=$TMP/$'a "dir" \\ of \xc3\xbc \xff names'
	local name=$'"rec\\ord\xfe\xc3\xb6er"'

	has '^perf_flight_recorders 0$' perf ctl --prometheus
	lacks 'perf_flight_window' perf ctl --prometheus
	mkdir "$dir"
	cd "$dir"
	ln -s "$name.sock" sock
	perf record -M 8M -e cpu-clock -F 99 -a --trigger socket -o "$name" >/dev/null 2>&1 &
	recorder=$!
	for ((i = 0; i < 3000; i++)); do
		! answers_on sock 2>/dev/null || break
		pause 0.2
	done
	echo dump | socat -t 300 - UNIX-CONNECT:sock | grep '"file"'
	echo status | socat -t 300 - UNIX-CONNECT:sock >"$TMP/before"
	perf ctl --prometheus >"$TMP/prom"
	echo status | socat -t 300 - UNIX-CONNECT:sock >"$TMP/after"
	cat "$TMP/before" "$TMP/prom"
	python3 - "$TMP" "$dir/$name" $recorder <<-'EOF'
	import json, os, re, sys
	before, after = [json.load(open(sys.argv[1] + "/" + f, encoding="utf-8"))
	                 for f in ("before", "after")]
	name = os.fsencode(sys.argv[2]).decode("utf-8", "replace")
	quoted = name.replace("\\", "\\\\").replace('"', '\\"')
	labels = '{out="' + quoted + '",pid="' + sys.argv[3] + '"} '
	names = {"uptime": "uptime_seconds", "window": "window_seconds",
	         "memory": "memory_limit_bytes", "dumps": "dumps_total",
	         "failed": "dumps_failed_total", "swallowed": "triggers_swallowed_total",
	         "lost": "lost_events_total", "given_up": "given_up_bytes_total",
	         "cpu_time": "cpu_seconds_total", "cpu_time_dumps": "dump_cpu_seconds_total"}
	text = open(sys.argv[1] + "/prom", encoding="utf-8").read()
	assert "\nperf_flight_recorders 1\n" in text
	assert before["dumps"] == 1 and before["memory"] == 8 << 20
	for key, name in names.items():
	    value = re.search("^perf_flight_" + name + re.escape(labels) + "([0-9.]+)$", text, re.M)
	    assert value, name
	    assert before[key] <= float(value[1]) <= after[key], (key, value[1])
	assert "perf_flight_writing" + labels + "0\n" in text
	EOF
	cp "$TMP/prom" "$TMP/recorders.prom"
	# Another user does not see the recorder.
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --prometheus |
		grep -cx 'perf_flight_recorders 0'
	kill $recorder
	wait $recorder || true
	has '^perf_flight_recorders 0$' perf ctl --prometheus
}

# fake_recorders DIR: entries that look like recorders and are none. The first two say
# the same, each on two sockets, as if in containers; others tell lies, or trickle, or say
# nothing. The last is another user's, with more sockets than are asked, and with what is no
# socket.
fake_recorders()
{
	python3 - "$1" record >"$1/said" 2>&1 <<-'EOF' &
	import os, select, socket, sys, time
	os.chdir(sys.argv[1])
	begin = b'{"ok": true, "pid": 1, "out": '
	lies = [b'x', b'nan', b'-1', b'1e999', b'01', b'.5', b'1.', b'0x1', b'trueish', b'9' * 400,
	        b'"1"', b'1\n# TYPE x y', b'']
	answers = [[begin + b'"/srv/blackbox", "uptime": 7, "writing": true}\n'] * 2] * 2
	answers += [[begin + b'"/lie", "uptime": ' + lie + b', "dumps": 3}\n'] for lie in lies]
	answers += [[begin + b'"/\xff\xc3(\xed\xa0\x80\\q\\u12"\xf8, "dumps": 3}\n'],
	            [begin + b'[", "dumps": 3}\n'], [begin + b'"/end\\\n'], [b'\0\n'], [begin],
	            [b''],
	            [None], [b''] * 600]
	os.makedirs("/run/perf/0", 0o700, exist_ok=True)
	os.mkdir("/run/perf/65534", 0o700)
	os.chown("/run/perf/65534", 65534, 65534)
	for i, texts in enumerate(answers):
	    if os.fork():
	        continue
	    name, file = "fake.%d" % i, open("pid.%d" % i, "w")
	    os.chdir("/run/perf/%d" % (65534 if len(texts) > 2 else 0))
	    if len(texts) > 2:
	        os.setuid(65534)
	        os.mkfifo("fifo")
	        os.symlink("/dev/zero", "link")
	        os.mkdir("dir")
	    servers = {}
	    for k, text in enumerate(texts):
	        server = socket.socket(socket.AF_UNIX)
	        server.bind("%s.%d" % (name, k))
	        server.listen(64)
	        servers[server] = text
	    print(os.getpid(), file=file, flush=True)
	    clients = []
	    while True:
	        ready = select.select(servers, [], [], 0.3)[0]
	        for server in ready:
	            client = server.accept()[0]
	            clients.append(client)
	            try:
	                client.send(servers[server] or b"")
	            except OSError:
	                pass
	        # A byte now and then, from who is asked for all of it.
	        if texts == [None] and not ready:
	            for client in clients:
	                try:
	                    client.send(b"{")
	                except OSError:
	                    clients.remove(client)
	                    break
	os._exit(0)
	EOF
	wait_for_files "$1"
}

wait_for_files()
{
	for _ in {1..3000}; do
		[ "$(find "$1" -name 'pid.*' -size +0 | wc -l)" -lt 23 ] || return 0
		pause 0.2
	done
	cat "$1/said"
	return 1
}

# What others say can neither spoil the metrics of a recorder nor hold them up; and none are
# there twice.
survives_fake_recorders()
{
	local recorder pid status=0 began took

	mkdir "$TMP/fakes"
	fake_recorders "$TMP/fakes"
	# As if in a container: there it is number 1.
	unshare --pid --fork --kill-child --mount-proc perf record -M 8M -e cpu-clock -F 99 -a \
		--trigger "socket:$TMP/real.sock" -o "$TMP/real" >/dev/null 2>&1 &
	recorder=$!
	for _ in {1..3000}; do
		! answers_on "$TMP/real.sock" 2>/dev/null || break
		pause 0.2
	done
	pid=$(pgrep -P $recorder -x perf)
	began=$(date +%s%N)
	perf ctl --prometheus >"$TMP/fakes.prom" 2>"$TMP/fakes.said" || status=$?
	took=$((($(date +%s%N) - began) / 1000000))
	echo "status $status, $took ms"
	kill "$pid"
	wait $recorder || true
	cat "$TMP"/fakes/pid.* | xargs kill -KILL || true
	rm -rf /run/perf/0/fake.* /run/perf/65534
	cat "$TMP/fakes.said"
	cat -v "$TMP/fakes.prom" | grep -v '^#'
	[ $status = 0 ]
	[ "$(grep -c 'Some flight recorders may be missing: user 65534 has more than 64 entries' \
		"$TMP/fakes.said")" = 1 ]
	# FIND_S and ANSWER_S, and a busy machine; without them, hours.
	[ $took -lt 120000 ]
	python3 - "$TMP" "$pid" <<-'EOF'
	import re, sys
	text = open(sys.argv[1] + "/fakes.prom", encoding="utf-8").read()
	fake = [open("%s/fakes/pid.%d" % (sys.argv[1], i)).read().strip() for i in range(2)]
	series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if line[0] != "#"]
	assert len(series) == len(set(series)), series
	for line in text.splitlines():
	    assert re.fullmatch(r'# (HELP|TYPE) .+|\w+(\{.*\})? [0-9]+(\.[0-9]+)?', line), line
	real = '{out="%s/real",pid="%s"} ' % tuple(sys.argv[1:])
	for name in "uptime_seconds", "memory_limit_bytes", "dumps_total", "cpu_seconds_total":
	    assert "\nperf_flight_" + name + real in text, name
	for pid in fake:
	    assert 'uptime_seconds{out="/srv/blackbox",pid="%s"} 7\n' % pid in text, pid
	    assert 'writing{out="/srv/blackbox",pid="%s"} 1\n' % pid in text, pid
	# Of a lie the rest is told.
	assert text.count('dumps_total{out="/lie"') == 12
	assert 'uptime_seconds{out="/lie"' not in text
	assert '{out="/\ufffd\ufffd(\ufffd\ufffd\ufffd?q?u12",' in text
	EOF
}

# serve DIR PATH [USER]: a recorder of that name that is none, and writes to DIR/asked what it
# is asked; the socket belongs to USER
serve()
{
	cat >"$TMP/serve.py" <<-'EOF'
	import os, socket, sys
	server = socket.socket(socket.AF_UNIX)
	server.bind(sys.argv[2])
	server.listen(64)
	if len(sys.argv) > 3:
	    os.chown(sys.argv[2], int(sys.argv[3]), int(sys.argv[3]))
	open(sys.argv[1] + "/served", "w").close()
	while True:
	    client = server.accept()[0]
	    try:
	        asked = client.recv(64)
	        if asked:
	            open(sys.argv[1] + "/asked", "ab").write(asked)
	            client.send(b'{"ok": true, "pid": 1, "out": "/served", "dumps": 7}\n')
	    except OSError:
	        pass
	EOF
	python3 "$TMP/serve.py" "$@" &
	SERVERS+=("$!")
	is_served "$1"
}

is_served()
{
	for _ in {1..600}; do
		[ ! -e "$1/served" ] || return 0
		pause 0.2
	done
	return 1
}

end_servers()
{
	kill -KILL "${SERVERS[@]}" 2>/dev/null || true
	rm -rf /run/perf/65534 /run/perf/link
}

# What is in a directory counts for its owner alone: a socket that another user listens on, or
# that belongs to another, is not asked, nor is what others may write to, or is a link.
believes_owners_alone()
{
	local dir

	SERVERS=()
	trap end_servers EXIT
	for dir in peer owner mode link good; do
		mkdir "$TMP/$dir"
	done
	chmod 755 "$TMP"
	mkdir -p /run/perf/0
	install -d -m 700 -o 65534 -g 65534 /run/perf/65534
	serve "$TMP/peer" /run/perf/65534/peer 65534
	serve "$TMP/owner" /run/perf/65534/owner
	install -d -m 700 "$TMP/there"
	serve "$TMP/link" "$TMP/there/linked"
	ln -s "$TMP/there" /run/perf/link
	has '^perf_flight_recorders 0$' perf ctl --prometheus
	for dir in peer owner link; do
		[ ! -e "$TMP/$dir/asked" ] || { echo "$dir was asked"; return 1; }
	done
	# Names that cannot be entries count against the limit of a directory, too.
	touch /run/perf/65534/.{1..70}
	perf ctl --prometheus 2>&1 |
		grep -c 'Some flight recorders may be missing: user 65534 has more than 64 entries'
	# The same, as it is to be.
	rm -rf /run/perf/link
	serve "$TMP/good" /run/perf/0/good
	has '^perf_flight_dumps_total{out="/served",pid="[0-9]+"} 7$' perf ctl --prometheus
	[ "$(cat "$TMP/good/asked")" = status ]
	chmod 770 /run/perf/0
	has '^perf_flight_recorders 0$' perf ctl --prometheus
	chmod 700 /run/perf/0
	rm /run/perf/0/good
}

answer_again()
{
	rm -f "$TMP/hold"
	umount -l /run/user/65534/perf 2>/dev/null || true
	rmdir /run/user/65534/perf /run/user/65534
	kill -KILL "${SERVERS[@]}" 2>/dev/null || true
	rm -rf /run/perf/0/good
}

# A file system of a user, where entries are looked for, does not answer. What was found before
# is printed, and no program waits for the output of a process that hangs.
survives_a_file_system_that_hangs()
{
	local began took

	SERVERS=()
	trap answer_again EXIT
	mkdir -p /run/user "$TMP/hangs"
	install -d -m 700 /run/perf/0
	install -d -m 700 -o 65534 /run/user/65534 /run/user/65534/perf
	echo opendir 1000 >"$TMP/hold"
	python3 "$(dirname "$0")/lib/slow_fs.py" /run/user/65534/perf "$TMP/hold" \
		>"$TMP/hangs/said" 2>&1 &
	SERVERS+=("$!")
	serve "$TMP/hangs" /run/perf/0/good
	for _ in {1..600}; do
		! grep -q mounted "$TMP/hangs/said" || break
		pause 0.2
	done
	began=$(date +%s%N)
	perf ctl --prometheus 2>&1 | cat >"$TMP/hangs/prom"
	took=$((($(date +%s%N) - began) / 1000000))
	grep -v '^#' "$TMP/hangs/prom"
	echo "$took ms"
	grep -x 'holding opendir' "$TMP/hangs/said"
	grep -c 'Some flight recorders may be missing: a file system .* does not answer' \
		"$TMP/hangs/prom"
	grep -cE '^perf_flight_dumps_total\{out="/served",pid="[0-9]+"\} 7$' "$TMP/hangs/prom"
	[ $took -lt 60000 ]
	lacks '^held opendir' cat "$TMP/hangs/said"
}

# as_container COMMAND...: with a /run of its own
as_container()
{
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount --pid --fork --kill-child --mount-proc \
		sh -c 'mount -t tmpfs none /run && exec "$@"' - "$@" &
	CONTAINERS+=("$!")
}

end_containers()
{
	local pid

	for pid in "${CONTAINERS[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
}

# Two of the same image: nothing but the pid tells them from each other.
finds_those_in_containers()
{
	local pid

	CONTAINERS=()
	trap end_containers EXIT
	for _ in 1 2; do
		as_container perf record -M 8M -e cpu-clock -F 99 -a --trigger socket \
			-o /run/blackbox >/dev/null 2>&1
	done
	for _ in {1..600}; do
		! perf ctl --prometheus 2>&1 | grep -x 'perf_flight_recorders 2' || break
		pause 0.2
	done
	perf ctl --prometheus >"$TMP/containers.prom"
	grep uptime "$TMP/containers.prom"
	for pid in "${CONTAINERS[@]}"; do
		pid=$(pgrep -P "$pid" -x perf)
		grep "^perf_flight_uptime_seconds{out=\"/run/blackbox\",pid=\"$pid\"} " \
			"$TMP/containers.prom"
	done
	has '^perf_flight_recorders 0$' \
		setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --prometheus
}

# A mount namespace of a user without privileges: what is his is found, but he cannot make
# root ask, or remove, what is root's, by mounting it where entries are.
believes_no_mounts()
{
	local holder

	SERVERS=()
	trap end_servers EXIT
	mkdir "$TMP/victim" "$TMP/seen" "$TMP/mine"
	chmod 755 "$TMP" "$TMP/victim"
	chown 65534 "$TMP/mine"
	serve "$TMP/seen" "$TMP/victim/daemon"
	python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \
		"$TMP/victim/stale"
	touch -h -d '1 hour ago' "$TMP/victim/stale"
	# shellcheck disable=SC2016 # for the shell in there
	outside_chroot setpriv --reuid=65534 --clear-groups --inh-caps=-all \
		unshare --user --map-root-user --mount sh -c '
			mount -t tmpfs none /run && mkdir -p /run/perf/0 /run/perf/me &&
			chmod 700 /run/perf/me && mount --bind "$1/victim" /run/perf/0 &&
			exec python3 "$1/serve.py" "$1/mine" /run/perf/me/mine' - "$TMP" &
	holder=$!
	SERVERS+=("$holder")
	is_served "$TMP/mine"
	[ -S "/proc/$holder/root/run/perf/0/daemon" ]
	has "^perf_flight_dumps_total.*pid=\"$holder\"} 7\$" perf ctl --prometheus
	[ "$(cat "$TMP/mine/asked")" = status ]
	[ ! -e "$TMP/seen/asked" ]
	[ -S "$TMP/victim/stale" ]
}

persistent_begin
if ! command -v socat >/dev/null; then
	echo "1..0 # SKIP no socat"
	exit 2
fi
check "a recorder's status" prints_metrics_of_recorders
check "what only looks like a recorder" survives_fake_recorders
check "a socket of others than the directory's owner is not asked" believes_owners_alone
if [ -e /dev/fuse ]; then
	check "a file system that hangs" survives_a_file_system_that_hangs
else
	leave_out "a file system that hangs" "needs FUSE"
fi
check "recorders in containers" finds_those_in_containers
check "no mounts of users are believed" believes_no_mounts
check_metrics
persistent_end
