#!/bin/bash
# perf ctl lists, describes and ends persistent sessions
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"

TOOLS=$(cd "$(dirname "$0")/../../.." && pwd)

json()
{
	python3 -c "import json, sys; d = json.load(sys.stdin); $1"
}

lists_none()
{
	perf ctl -l | grep -q 'perf record -P NAME'
	[ "$(perf ctl -l --json)" = '[]' ]
}

lists()
{
	perf record -q -P ta -e cpu-clock -a
	perf record -q -P tb -e cpu-clock -C 0
	perf ctl | tee "$TMP/list"
	grep -qE '^ta +[0-9]+ +0 +[0-9,-]+ +[0-9]+ +[0-9]+ +([0-9.]+|-) +runs$' "$TMP/list"
	[ "$(awk 'NR > 1 { print $1 }' "$TMP/list" | xargs)" = 'ta tb' ]
	[ "$(perf ctl -l | awk '{ print $1, $2 }')" = "$(perf ctl | awk '{ print $1, $2 }')" ]
}

lists_json()
{
	perf ctl -l --json | json '
assert [s["name"] for s in d] == ["ta", "tb"], d
for s in d:
    assert s["nr_events"] > 0 and s["memory"] > 0 and s["owner"] == 0, s
    assert s["state"] == "runs" and s["cpus"], s'
}

describes()
{
	perf ctl -i ta | grep -q '^session ta, id [0-9]*, owner 0$'
	perf ctl -i ta --json | json '
assert d["name"] == "ta" and d["owner"] == 0
cpus = sorted({e["cpu"] for e in d["events"]})
for c in cpus:
    own = [e for e in d["events"] if e["cpu"] == c]
    assert [e["sideband"] for e in own] == [True, False], own
    assert own[1]["event"] == "cpu-clock" and own[1]["data_size"] == 512 * 1024, own'
	perf ctl -i "id=$(cat $PERSISTENT_SYSFS/sessions/ta/id)" | grep -q '^session ta,'
	fails 1 "No persistent session 'tx'. There are: ta tb" perf ctl -i tx
}

is_wrapped()
{
	perf ctl -i "$1" --json | json '
sys.exit(not all(e["wrapped"] for e in d["events"] if not e["sideband"]))'
}

# Each metric has its type, before its values, and the values of --json.
prints_metrics()
{
	perf ctl --prometheus >"$TMP/prom"
	cat "$TMP/prom"
	perf ctl --json >"$TMP/json"
	python3 - "$TMP" <<-'EOF'
	import json, re, sys
	typed, values = set(), {}
	for line in open(sys.argv[1] + "/prom"):
	    head = re.fullmatch(r"# TYPE (\w+) gauge\n", line)
	    value = re.fullmatch(r'(\w+)(?:\{session="([^"]+)"\})? ([0-9.]+)\n', line)
	    if head:
	        assert head[1] not in typed
	        typed.add(head[1])
	    elif value:
	        assert value[1] in typed
	        values[value[1], value[2]] = float(value[3])
	    else:
	        assert re.fullmatch(r"# HELP (\w+) \S.*\n", line), line
	d = json.load(open(sys.argv[1] + "/json"))
	assert values["perf_persistent_sessions", None] == len(d) == 2
	for s in d:
	    get = lambda key: values["perf_persistent_session_" + key, s["name"]]
	    assert get("events") == s["nr_events"] and get("memory_bytes") == s["memory"], s
	    assert get("running") == 1 and (s["window"] is None or get("window_seconds") >= 0), s
	EOF
	cp "$TMP/prom" "$TMP/sessions.prom"
	fails 129 'Usage: perf ctl' perf ctl --prometheus -i ta
}

promtool_agrees()
{
	local file

	for file in "$TMP"/*.prom; do
		promtool check metrics <"$file"
	done
}

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

# The samples' times, as perf script has them: the list's window is between the first
# and the last; it grows while the buffers are not full; and one that was overwritten
# does not reach back as far.
tells_the_window()
{
	local n

	# One page holds less than a second.
	perf record -q -P tv -e cpu-clock -F 99 -m 4K -C 0
	for _ in {1..60}; do
		perf test -w noploop 1
		! is_wrapped tv || break
	done
	is_wrapped tv
	perf ctl -l --json >"$TMP/before"
	perf record -e persistent/tv/ -N -o "$TMP/tv" 2>/dev/null
	perf ctl -l --json >"$TMP/after"
	perf script -i "$TMP/tv" --ns -F time 2>/dev/null | tr -d ' :' >"$TMP/times"
	n=$(wc -l <"$TMP/times")
	echo "$n samples, $(head -n 1 "$TMP/times") .. $(tail -n 1 "$TMP/times")"
	python3 - "$TMP" <<-'EOF'
	import json, sys
	tmp = sys.argv[1]
	times = [int(t.replace(".", "")) for t in open(tmp + "/times").read().split()]
	before, after = [next(s for s in json.load(open(tmp + "/" + f)) if s["name"] == "tv")
	                 for f in ("before", "after")]
	print(before, after)
	for s in before, after:
	    assert abs(s["window"] - (s["newest"] - s["oldest"]) / 1e9) < 0.001, s
	    assert s["newest"] > s["oldest"] > 0, s
	assert before["oldest"] <= times[0] <= after["oldest"], times[0]
	assert before["newest"] <= times[-1] <= after["newest"], times[-1]
	EOF
	perf ctl -i tv | awk '$NF == "cpu-clock" { exit !($5 > 0) }'
	perf ctl -d tv
}

# opens_of COMMAND...: prints its calls of perf_event_open(); its output is in $TMP/list
opens_of()
{
	perf stat -x, -e syscalls:sys_enter_perf_event_open -o "$TMP/opens" -- "$@" >"$TMP/list"
	awk -F, '/perf_event_open/ { print $1 }' "$TMP/opens"
}

# The events of a CPU share a buffer. What the list shows of the window needs one of them.
opens_buffers_alone()
{
	local one three

	perf record -q -P tw -e cpu-clock -C 0
	perf test -w noploop 1
	one=$(opens_of perf ctl -l)
	perf record -q -P tw --replace -e cpu-clock -e task-clock,page-faults -C 0
	perf test -w noploop 1
	three=$(opens_of perf ctl -l)
	echo "opened: $one with one event, $three with three"
	grep -qE '^tw +[0-9]+ +0 +[0-9,-]+ +[0-9]+ +[0-9]+ +[0-9]+\.[0-9]+ +runs$' "$TMP/list"
	[ "$one" -gt 0 ]
	[ "$three" = "$one" ]
	perf ctl -d tw
}

strangers_see_names_alone()
{
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl -l | tee "$TMP/list"
	grep -qE '^ta +[0-9]+ +- +- +- +- +- +-$' "$TMP/list"
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --json | json '
s = d[0]
assert s["name"] == "ta" and s["cpus"] is None and s["memory"] is None, s
assert s["window"] is None and "oldest" not in s, s'
	# In the metrics what is not known is left out: it is not 0.
	setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --prometheus >"$TMP/prom"
	grep -qx 'perf_persistent_sessions 2' "$TMP/prom"
	lacks '{session=' cat "$TMP/prom"
	fails 1 'No permission' setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl -i ta
}

ends_several()
{
	perf record -q -P tc -e cpu-clock -C 0
	perf ctl -d ta tc
	[ "$(sessions)" = tb ]
}

# It ends at once, also for those who read it: they keep what they have, and with it
# the memory, and -d says who they are.
names_the_readers()
{
	local reader text

	perf record -q -P tr -e cpu-clock -C 0
	mkfifo "$TMP/go"
	perf record -e persistent/tr/ -o "$TMP/tr" -- cat "$TMP/go" >/dev/null 2>&1 &
	reader=$!
	for _ in {1..3000}; do
		! pgrep -P $reader -x cat >/dev/null || break
		pause 0.2
	done
	text=$(perf ctl -d tr)
	echo "$text"
	lacks '^tr$' sessions
	timeout 300 sh -c "echo >'$TMP/go'"
	wait $reader
	grep -q "^session 'tr' ended; .* these processes have closed it: $reader (perf)$" <<<"$text"
	has . perf script -i "$TMP/tr" -F time
	perf record -q -P tr -e cpu-clock -C 0
	[ "$(perf ctl -d tr)" = "session 'tr' ended" ]
}

nr_opens()
{
	perf stat -x, -o "$TMP/opens" -e syscalls:sys_enter_perf_event_open -- "$@" >/dev/null
	sed -n 's/,.*sys_enter_perf_event_open.*//p' "$TMP/opens"
}

# Whatever the number of events, one file is opened.
ends_in_one_call()
{
	perf record -q -P td -e cpu-clock -a
	[ "$(nr_opens perf ctl -d td)" = 1 ]
	lacks '^td$' sessions
}

# A kernel without the file of a session says that there is no such event.
ends_on_an_older_kernel()
{
	cat >"$TMP/older.c" <<-'EOF'
	#include <errno.h>
	#include <stdarg.h>
	#include <dlfcn.h>
	#include <sys/syscall.h>
	#include <linux/perf_event.h>

	long syscall(long nr, ...)
	{
		static long (*next)(long nr, ...);
		struct perf_event_attr *attr;
		long arg[6];
		va_list ap;

		va_start(ap, nr);
		for (int i = 0; i < 6; i++)
			arg[i] = va_arg(ap, long);
		va_end(ap);
		attr = (void *)arg[0];
		if (nr == __NR_perf_event_open && attr->type == 6 && !~attr->config1) {
			errno = ENOENT;
			return -1;
		}
		if (!next)
			next = dlsym(RTLD_NEXT, "syscall");
		return next(nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	}
	EOF
	gcc -D_GNU_SOURCE -Wall -shared -fPIC -o "$TMP/older.so" "$TMP/older.c" -ldl
	perf record -q -P td -e cpu-clock -a
	perf test -w noploop 1
	LD_PRELOAD=$TMP/older.so perf ctl -l | grep -E '^td .* [0-9]+\.[0-9]+ +runs$'
	fails 1 'this kernel cannot freeze' env LD_PRELOAD="$TMP/older.so" perf ctl --freeze td
	LD_PRELOAD=$TMP/older.so perf ctl -d td | grep -qx "session 'td' ended"
	lacks '^td$' sessions
}

newest() { perf ctl -i "$1" --json | json 'print(max(e.get("newest", 0) for e in d["events"]))'; }

freezes()
{
	local before

	perf ctl --freeze ta | grep -q "^session 'ta' frozen; "
	perf ctl -l | grep -qE '^ta .* frozen$'
	perf ctl -l | grep -qE '^tb .* runs$'
	perf ctl -i ta | grep -q ' frozen  *cpu-clock'
	fails 1 "'ta' is frozen already" perf ctl --freeze ta
	before=$(newest ta)
	perf test -w noploop 1
	[ "$before" = "$(newest ta)" ]
	perf record -e persistent/ta/ -o "$TMP/frozen" 2>/dev/null
	has . perf script -i "$TMP/frozen" -F time
	fails 1 'No permission to thaw' \
		setpriv --reuid=65534 --clear-groups --inh-caps=-all perf ctl --thaw ta
	perf ctl --thaw ta | grep -qx "session 'ta' goes on"
	fails 1 "'ta' is running already" perf ctl --thaw ta
	perf ctl -l | grep -qE '^ta .* runs$'
	perf test -w noploop 1
	[ "$before" -lt "$(newest ta)" ]
	fails 1 "No persistent session 'tx'" perf ctl --freeze tx
}

# It is not an event that can be counted: what to do is said.
is_not_counted()
{
	local text

	text=$(not perf stat -e persistent/ta/ true 2>&1)
	grep -q 'Read it: perf record -e persistent/ta/' <<<"$text"
}

# complete WORD...: what bash would offer for the last of them
complete_words()
{
	# shellcheck disable=SC2034 # for the script that is sourced
	bash -c '
		. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
		_perf
		printf "%s\n" "${COMPREPLY[@]}"' "$TOOLS/perf/perf-completion.sh" "$@" |
		sort | xargs
}

completes_names()
{
	[ "$(complete_words perf ctl -d t)" = 'ta tb' ]
	[ "$(complete_words perf ctl -d ta t)" = 'ta tb' ]
	[ "$(complete_words perf ctl -i '')" = 'ta tb' ]
	[ "$(complete_words perf ctl --freeze t)" = 'ta tb' ]
	[ "$(complete_words perf ctl --js)" = --json ]
	[ "$(complete_words perf ctl --tha)" = --thaw ]
	[ "$(complete_words perf record --add -P tb)" = tb ]
	complete_words perf record -e persistent/t | grep -q persistent/ta/
	complete_words perf ct | grep -qw ctl
}

# A wrong name among them does not keep the others.
ends_the_others()
{
	fails 1 "No persistent session 'tx'" perf ctl -d tx tb
	[ -z "$(sessions)" ]
	[ -z "$(ls $PERSISTENT_SYSFS/events)" ]
}

usage()
{
	fails 129 'Usage: perf ctl' perf ctl -d
	fails 129 'Usage: perf ctl' perf ctl -l -d ta
	fails 129 'Usage: perf ctl' perf ctl --freeze
	fails 129 'Usage: perf ctl' perf ctl --freeze --thaw ta
	fails 129 'Usage: perf ctl' perf ctl --thaw --json ta
	fails 129 'Usage: perf ctl' perf ctl ta
}

# A man page with the files that it includes.
man_page()
{
	local page=$1 line

	while IFS= read -r line; do
		case $line in
		include::*"[]")
			line=${line#include::}
			cat "${page%/*}/${line%"[]"}"
			;;
		*)
			printf '%s\n' "$line"
			;;
		esac
	done <"$page"
}

# The examples of a man page are commands that work, one after the other.
examples_work()
{
	local page=$1 from=$2 line

	cd "$TMP"
	# A flight recorder among them does not outlive them.
	trap 'find . -name "*.pid" -exec cat {} + | xargs -r kill' EXIT
	man_page "$page" | sed -n "/^$from\$/,/^SEE ALSO/s/^  \\\$ //p" >examples
	[ -s examples ]
	while read -r line; do
		echo "\$ $line"
		sh -c "$line" </dev/null
	done <examples
	sessions | xargs -r perf ctl -d
}

# The program of a document compiles without a warning, and does what is said there.
program_works()
{
	local rst=$1 cpu

	sed -n '/^The program, .*::$/,/^[^ ]*=$/s/^    //p' "$rst" >"$TMP/example.c"
	gcc -Wall -Wextra -Werror -I"$TOOLS/include/uapi" -o "$TMP/example" "$TMP/example.c"
	"$TMP/example" make td
	has '^td ' perf ctl -l
	perf test -w noploop 1
	"$TMP/example" read td | tee "$TMP/list"
	for cpu in $(online_cpus); do
		grep -qE "^CPU $cpu, event 0: [1-9][0-9]* samples, [0-9]+ other records" "$TMP/list"
	done
	# Another reader finds the same: no fewer samples, later.
	perf record -e persistent/td/ -N -o "$TMP/td" 2>/dev/null
	perf script -i "$TMP/td" -F time 2>/dev/null | awk -v list="$TMP/list" '
		BEGIN { while ((getline <list) > 0) { sub(/.*: /, ""); want += $1 } }
		END { print NR, "samples, before", want; exit !(want > 0 && NR >= want) }'
	"$TMP/example" freeze td | grep -qE "^frozen, all buffers within [0-9]+ us$"
	perf ctl -l | grep -qE '^td .* frozen$'
	"$TMP/example" list td | tee "$TMP/list"
	for cpu in $(online_cpus); do
		grep -qE "^CPU $cpu, event 0, buffer 0: state 0x8$" "$TMP/list"
	done
	"$TMP/example" read td | grep -q intact
	"$TMP/example" thaw td
	"$TMP/example" list td | grep -q 'state 0x0$'
	[ "$(nr_opens "$TMP/example" end td)" = 1 ]
	[ -z "$(sessions)" ]
	not "$TMP/example" read td
}

DOC=$(cd "$(dirname "$0")/../../Documentation" 2>/dev/null && pwd) || DOC=

persistent_begin
check "without sessions it says how to make one" lists_none
check "-l lists the sessions" lists
check "-l --json is JSON" lists_json
check "--prometheus prints metrics" prints_metrics
if command -v socat >/dev/null; then
	check "--prometheus prints the metrics of flight recorders" prints_metrics_of_recorders
	check "--prometheus survives what only looks like a recorder" survives_fake_recorders
	check "--prometheus asks no socket of others than the directory's owner" \
		believes_owners_alone
	if [ -e /dev/fuse ]; then
		check "--prometheus survives a file system that hangs" \
			survives_a_file_system_that_hangs
	else
		leave_out "--prometheus survives a file system that hangs" "needs FUSE"
	fi
	check "--prometheus finds recorders in containers" finds_those_in_containers
	check "--prometheus believes no mounts of users" believes_no_mounts
else
	leave_out "--prometheus prints the metrics of flight recorders" "no socat"
	leave_out "--prometheus survives what only looks like a recorder" "no socat"
fi
# Debian's promtool is more than the rest of this test needs.
if command -v promtool >/dev/null; then
	check "promtool takes the metrics" promtool_agrees
else
	leave_out "promtool takes the metrics" "no promtool"
fi
check "-i describes the events of a session" describes
check "-l, -i and --json tell from when to when the samples are" tells_the_window
check "-l opens one event of each buffer" opens_buffers_alone
check "of others' sessions one sees the names alone" strangers_see_names_alone
if [ -e "$TOOLS/perf/perf-completion.sh" ]; then
	check "the shell completes the names of sessions" completes_names
else
	leave_out "the shell completes the names of sessions" "no sources of perf"
fi
check "--freeze keeps a session as it is, --thaw lets it go on" freezes
check "perf stat says why a session cannot be counted" is_not_counted
check "-d ends a session in one call" ends_in_one_call
check "-d ends a session of an older kernel event by event" ends_on_an_older_kernel
check "-d ends several sessions" ends_several
check "-d says who still holds the memory" names_the_readers
check "-d ends the others if one cannot be ended" ends_the_others
check "wrong usage is told" usage
if [ -e "$DOC/perf-ctl.txt" ]; then
	check "the examples of perf-ctl(1) work" examples_work "$DOC/perf-ctl.txt" EXAMPLES
	if command -v socat >/dev/null; then
		check "the examples of perf-record(1) work" examples_work "$DOC/perf-record.txt" \
			EXAMPLES
	else
		leave_out "the examples of perf-record(1) work" "no socat"
	fi
else
	leave_out "the examples of perf-ctl(1) and perf-record(1) work" "no sources of perf"
fi
RST=$TOOLS/../Documentation/userspace-api/perf_persistent.rst
if [ -e "$RST" ] && command -v gcc >/dev/null; then
	check "the program of perf_persistent.rst compiles and works" program_works "$RST"
else
	leave_out "the program of perf_persistent.rst compiles and works" "no sources, or no gcc"
fi
persistent_end
