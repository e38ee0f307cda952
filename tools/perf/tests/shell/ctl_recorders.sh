#!/bin/bash
# perf ctl: the remote control of flight recorders, and deadlines (exclusive)
# SPDX-License-Identifier: GPL-2.0
set -euo pipefail
# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"

EXAMPLE=$(dirname "$0")/../../examples/flight
TOOLS=$(cd "$(dirname "$0")/../../.." && pwd)
DOC=$(cd "$(dirname "$0")/../../Documentation" 2>/dev/null && pwd) || DOC=

nr_dumps()
{
	dumps "$1" | wc -l
}

# In a directory of its own, with a name that is relative.
start_relative()
{
	mkdir -p "$TMP/$1"
	cd "$TMP/$1"
	start_recorder "$2" -M 4M -e cpu-clock -F 99 -a --trigger socket "${@:3}"
	cd - >/dev/null
}

# The file has that name, is whole, and has the reason.
dumps_to()
{
	local file

	file=$(perf ctl --dump="$1" --reason='disk "slow"')
	echo "$1: $file"
	[ "$(dirname "$file")" = "$TMP/one" ]
	[ -s "$file" ]
	opens "$file"
	grep -qF '"reason": "disk \"slow\"",' "$file.json"
}

dumps_by_name_pid_and_directory()
{
	local pid target

	start_relative one box
	pid=$RECORDER
	start_relative two other
	for target in box "$pid" "$TMP/one" "$TMP/one/" "$TMP/one/box" "$TMP/one/box.sock"; do
		dumps_to "$target"
	done
	cd "$TMP/one"
	dumps_to .
	dumps_to box.sock
	dumps_to ../one
	[ "$(nr_dumps "$TMP/one/box")" = 9 ]
	[ "$(nr_dumps "$TMP/two/other")" = 0 ]
	# As a word behind the option, and several of them.
	[ "$(perf ctl --dump box other | wc -l)" = 2 ]
	[ "$(nr_dumps "$TMP/two/other")" = 1 ]
}

lists_sessions_and_recorders()
{
	perf ctl | tee "$TMP/list"
	grep -qE '^RECORDER +PID ' "$TMP/list"
	grep -qE "^box +[0-9]+ +[0-9.]+ .* $TMP/one/box\$" "$TMP/list"
	grep -qE "^other +[0-9]+ +[0-9.]+ .* $TMP/two/other\$" "$TMP/list"
	lacks 'No persistent sessions' perf ctl
	perf ctl --json | tee "$TMP/json"
	python3 - "$TMP" <<-'END'
		import json, sys
		d = json.load(open(sys.argv[1] + "/json"))
		names = sorted(r["name"] for r in d if r["kind"] == "recorder")
		assert names == ["box", "other"], d
		for r in d:
		    assert r["memory"] == 4 << 20 and r["pid"] > 1 and r["uptime"] > 0, r
	END
}

# Two fit: none is asked, and both are named.
asks_no_one_of_several()
{
	local one two before

	one=$(nr_dumps "$TMP/one/box") two=$(nr_dumps "$TMP/two/other")
	fails 1 'There are 2 flight recorders.*pid: [0-9]+ \(.*\), [0-9]+ \(.*\)\.$' perf ctl --dump
	fails 1 'There are 2.*one/box' perf ctl --dump
	fails 1 'There are 2.*two/other' perf ctl --dump
	fails 1 "No flight recorder 'bo'\\. There are: .*one/box" perf ctl --stop=bo
	fails 1 'No flight recorder' perf ctl --status=1
	fails 1 'No flight recorder' perf ctl --dump="$TMP"
	[ "$(nr_dumps "$TMP/one/box") $(nr_dumps "$TMP/two/other")" = "$one $two" ]
	# Nobody else may ask, nor is told.
	before=$(perf ctl --status=box --json)
	fails 1 'There are: none' setpriv --reuid=65534 --clear-groups --inh-caps=-all \
		perf ctl --stop=box
	[ -n "$before" ] && perf ctl --status=box
}

tells_the_status()
{
	perf ctl --status=other | tee "$TMP/status"
	grep -qE "^recorder other, pid [0-9]+, files $TMP/two/other\\.\\*\$" "$TMP/status"
	grep -qE '^  dumps +1$' "$TMP/status"
	grep -qE '^  armed +0$' "$TMP/status"
	perf ctl --status=other --json |
		python3 -c 'import json, sys; d = json.load(sys.stdin); assert d["dumps"] == 1'
}

# Nobody may have waited for it.
has_ended()
{
	local state

	state=$(ps -o state= -p "$1") || true
	[ -z "$state" ] || [ "$state" = Z ]
}

# The process is gone, and its last dump there, when the command returns.
stops()
{
	local file pid hogs=()

	pid=$(perf ctl --json | python3 -c 'import json, sys
print([r["pid"] for r in json.load(sys.stdin) if r["name"] == "box"][0])')
	file=$(perf ctl --stop=box)
	echo "$file"
	has_ended "$pid"
	opens "$file"
	[ "$(json "$file" action)" = stop ]
	[ "$(newest_dump "$TMP/one/box")" = "$file" ]
	# Now there is only one, and it needs no name. Others hold it up when it combines.
	perf ctl --dump
	for _ in 1 2 3 4; do
		perf test -w noploop 1000 >/dev/null 2>&1 &
		hogs+=($!)
	done
	# shellcheck disable=SC2064 # those that there are now
	trap "kill ${hogs[*]}" EXIT
	file=$(perf ctl --combine)
	[ -s "$file" ]
	kill "${hogs[@]}"
	trap - EXIT
	[ "$file" = "$TMP/two/other" ]
	opens "$file"
	[ "$(nr_dumps "$TMP/two/other")" = 0 ]
	fails 1 'No flight recorder was found. There are: none' perf ctl --dump
}

tells_of_the_cooldown()
{
	start_recorder "$TMP/cool" -M 4M -e cpu-clock -F 99 -a --trigger socket,cooldown=1h
	perf ctl --dump=cool
	fails 1 'cooldown after the last one is not over' perf ctl --dump=cool
	[ "$(nr_dumps "$TMP/cool")" = 1 ]
	# It ends all the same, and while somebody waits for a dump of it.
	perf ctl --stop=cool
}

# What one is meant for is told where the other was.
tells_sessions_from_recorders()
{
	supported || return 0
	perf record -q -P sess -e cpu-clock -C 0
	start_recorder "$TMP/rec" -M 4M -e cpu-clock -F 99 -a --trigger socket
	fails 1 "'rec' is a flight recorder" perf ctl -d rec
	fails 1 "'rec' is a flight recorder" perf ctl -i rec
	fails 1 "'sess' is a persistent session" perf ctl --dump=sess
	perf ctl --status=sess | grep -q '^session sess,'
	perf ctl | tee "$TMP/list"
	[ "$(awk '{ print $1 }' "$TMP/list" | xargs)" = 'NAME sess RECORDER rec' ]
	perf ctl --stop=rec
	perf ctl -d sess
}

# What another process says cannot control a terminal.
prints_no_escapes()
{
	python3 - "$TMP" >/dev/null 2>&1 <<-'END' &
		import os, socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.bind("/run/perf/0/fake.1")
		s.listen(8)
		open(sys.argv[1] + "/fake", "w").close()
		answer = (b'{"ok": true, "pid": 1, "out": "/f\x1b[2J\xc2\x9b\\u001bake", '
		          b'"file": "\x1b]0;x\\u0007", "dumps": 1}\n')
		while True:
		    c = s.accept()[0]
		    try:
		        while c.recv(64):
		            c.send(answer * 2)
		    except OSError:
		        pass
	END
	echo $! >>"$TMP/recorders"
	wait_for test -e "$TMP/fake"
	{
		perf ctl --dump="$!" || true
		perf ctl --status="$!"
		perf ctl --status="$!" --json
		perf ctl --dump=nobody || true
		perf ctl
	} >"$TMP/said" 2>&1
	kill -KILL $!
	rm /run/perf/0/fake.1
	cat -v "$TMP/said"
	grep -q 'ake' "$TMP/said"
	not grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2\x9b' "$TMP/said"
}

# Any user can say that he is the recorder that root asks for. Root names him by his pid.
takes_no_name_of_other_users()
{
	mkdir -p /run/user/1234/perf
	chown -R 1234 /run/user/1234
	chmod -R 700 /run/user/1234
	python3 - "$TMP/one/fake" >/dev/null 2>&1 <<-'END' &
		import json, os, socket, sys
		os.setgroups([])
		os.setuid(1234)
		s = socket.socket(socket.AF_UNIX)
		s.bind("/run/user/1234/perf/fake.1")
		s.listen(8)
		while True:
		    c = s.accept()[0]
		    while c.recv(64):
		        answer = {"ok": True, "pid": 1, "out": sys.argv[1]}
		        c.send(json.dumps(answer).encode() + b"\n")
	END
	echo $! >>"$TMP/recorders"
	wait_for test -S /run/user/1234/perf/fake.1
	for target in fake "$TMP/one/fake" "$TMP/one"; do
		fails 1 "No flight recorder '$target'.*$! .*user 1234" perf ctl --status="$target"
	done
	fails 1 'No flight recorder was found.*user 1234' perf ctl --status
	perf ctl --status="$!"
	kill -KILL $!
	rm -r /run/user/1234
}

# Root of a container without a user namespace has root's uid, and a /run of its own. He is
# not the one who takes the name of a recorder, or makes a request without a target ambiguous.
takes_no_name_of_containers()
{
	local pid target

	start_recorder "$TMP/real" -M 4M -e cpu-clock -F 99 -a --trigger socket
	# shellcheck disable=SC2016 # for the shell in there
	unshare --mount sh -c 'mount -t tmpfs none /run && mkdir -p -m 700 /run/perf/0 &&
		exec python3 - "$@"' - "$TMP/fake" "$TMP/contained" >/dev/null 2>&1 <<-'END' &
		import json, os, socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.bind("/run/perf/0/fake.1")
		s.listen(8)
		open(sys.argv[2], "w").close()
		while True:
		    c = s.accept()[0]
		    while c.recv(64):
		        answer = {"ok": True, "pid": 1, "out": sys.argv[1]}
		        c.send(json.dumps(answer).encode() + b"\n")
	END
	pid=$!
	echo "$pid" >>"$TMP/recorders"
	wait_for test -e "$TMP/contained"
	for target in fake "$TMP/fake"; do
		fails 1 "No flight recorder '$target'.*$pid " perf ctl --status="$target"
	done
	# The directory is that of both.
	perf ctl --status="$TMP" | grep "^recorder real, "
	perf ctl --status | grep '^recorder real, '
	perf ctl --status="$pid" | grep '^recorder fake, '
	perf ctl --stop
	fails 1 "No flight recorder was found.*$pid " perf ctl --status
	kill -KILL "$pid"
}

# Nor does one that says nothing hold up a request to another: it is not asked.
waits_for_no_other_users()
{
	local silent

	mkdir -p /run/user/1234/perf
	chown -R 1234 /run/user/1234
	chmod -R 700 /run/user/1234
	python3 - 3>"$TMP/asked" >/dev/null 2>&1 <<-'END' &
		import os, socket
		os.setgroups([])
		os.setuid(1234)
		s = socket.socket(socket.AF_UNIX)
		s.bind("/run/user/1234/perf/silent.1")
		s.listen(8)
		while True:
		    c = s.accept()[0]
		    while text := c.recv(64):
		        os.write(3, text)
	END
	echo $! >>"$TMP/recorders"
	wait_for test -S /run/user/1234/perf/silent.1
	silent=$!
	start_recorder "$TMP/q" -M 1M -e cpu-clock -F 99 -a --trigger socket
	perf ctl --arm=quick --in=1h q
	perf ctl --disarm=quick q
	perf ctl --status="$RECORDER"
	[ ! -s "$TMP/asked" ]
	# It would have told.
	echo status | socat -t 0 - UNIX-CONNECT:/run/user/1234/perf/silent.1
	wait_for grep -qx status "$TMP/asked"
	stop_recorder KILL
	kill -KILL "$silent"
	rm -r /run/user/1234
}

# A dump that does not come in time is an error.
waits_no_longer_than_asked()
{
	fails 129 'Usage: perf ctl' perf ctl --status --timeout=1s
	fails 1 'timeout=soon is not a time' perf ctl --dump --timeout=soon
	start_recorder "$TMP/slow" -M 4M -e cpu-clock -F 99 -a --trigger socket,delay=1h
	fails 1 'has accepted the request, but its dump is not complete after 1 s' \
		perf ctl --dump=slow --timeout=1s
	perf ctl --status=slow --json | grep -qF '"dump_delay": 3600'
	stop_recorder KILL
}

# What is told at once is what happens, amid the ends of cooldowns.
tells_each_of_its_dump()
{
	start_recorder "$TMP/often" -M 1M -e cpu-clock -F 99 -a --trigger socket,cooldown=200ms
	talk "$TMP/often.sock" <<-'END'
		told = {"accepted": 0, "merged": 0, "swallowed": 0}
		files = 0
		def ask():
		    global files
		    c.write("dump\n")
		    c.flush()
		    while "dump" not in (answer := json.loads(c.readline())):
		        assert answer["file"]
		        files += 1
		    told[answer["dump"]] += 1
		while told["accepted"] < 30:
		    # The second one does not wait for the first dump, which may take longer
		    # than the cooldown.
		    ask()
		    ask()
		    while files < told["accepted"]:
		        assert json.loads(c.readline())["file"]
		        files += 1
		print(told)
		assert told["swallowed"] > 0, told
	END
	stop_recorder INT
}

# Others that connect do not push out one that waits.
keeps_who_waits()
{
	mkdir "$TMP/fs"
	python3 "$FLIGHT_LIB/slow_fs.py" "$TMP/fs" "$TMP/control" >"$TMP/said" 2>&1 &
	echo $! >>"$TMP/recorders"
	wait_for grep -q mounted "$TMP/said"
	start_recorder "$TMP/fs/w" -M 1M -e cpu-clock -F 99 -a --trigger "socket:$TMP/w.sock"
	echo 'write 1000' >"$TMP/control"
	SAID=$TMP/said CONTROL=$TMP/control talk "$TMP/w.sock" <<-'END'
		assert say("dump")["dump"] == "accepted"
		while "holding write" not in open(os.environ["SAID"]).read():
		    time.sleep(0.1)
		others = [connect() for i in range(300)]
		assert say("status", c=others[-1][1])["writing"]
		os.unlink(os.environ["CONTROL"])
		assert json.loads(c.readline())["file"]
	END
	stop_recorder KILL
	umount "$TMP/fs"
}

usage()
{
	fails 129 'Usage: perf ctl' perf ctl --dump --stop
	fails 129 'Usage: perf ctl' perf ctl --dump -d x
	fails 129 'Usage: perf ctl' perf ctl --arm=x
	fails 129 'Usage: perf ctl' perf ctl --disarm=x --in=1s
	fails 129 'Usage: perf ctl' perf ctl --stop --reason=x
	fails 129 'Usage: perf ctl' perf ctl --prometheus --dump
	fails 1 'a reason is one line' perf ctl --dump --reason=$'a\nstop'
	fails 1 "'a b' is no name of a deadline" perf ctl --arm='a b' --in=1s
	fails 1 'is not a time.*500ms' perf ctl --arm=a --in=
	fails 1 'too long' perf ctl --dump --reason="$(printf 'x%.0s' {1..600})"
}

completes()
{
	local complete

	# shellcheck disable=SC2016 # for the shell in there
	complete='. "$0"; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*"
		COMP_POINT=${#COMP_LINE}; _perf; printf "%s\n" "${COMPREPLY[@]}"'
	start_recorder "$TMP/complete" -M 4M -e cpu-clock -F 99 -a --trigger socket
	bash -c "$complete" "$TOOLS/perf/perf-completion.sh" perf ctl --dump com | grep -x complete
	bash -c "$complete" "$TOOLS/perf/perf-completion.sh" perf ctl --sto | grep -x -e --stop
	perf ctl --stop
}

# Deadlines

# talk SOCKET SCRIPT: a client in Python; c is the connection, say() a request and its answer
talk()
{
	{
		cat <<-'END'
			import json, os, socket, sys, time
			def connect():
			    s = socket.socket(socket.AF_UNIX)
			    s.connect(sys.argv[1])
			    s.settimeout(120)
			    return s, s.makefile("rw")
			sock, c = connect()
			def say(request, ok=True, c=c):
			    c.write(request + "\n")
			    c.flush()
			    answer = json.loads(c.readline())
			    assert answer["ok"] == ok, (request, answer)
			    return answer
		END
		cat
	} | timeout 250 python3 - "$1"
}

misses_a_deadline()
{
	local before

	start_recorder "$TMP/d" -M 4M -e cpu-clock -F 199 -a --trigger socket \
		--trigger deadline,cooldown=0
	talk "$TMP/d.sock" <<-'END'
		before = time.monotonic()
		assert say("arm job-1 100ms cart of 3 items")["arm"] == "accepted"
		open("/tmp/armed", "w").write("%.6f %.6f" % (before, time.monotonic()))
		while say("status")["armed"]:
		    time.sleep(0.1)
		assert "it has passed" in say("disarm job-1", ok=False)["error"]
	END
	wait_for has_dumps "$TMP/d" 1
	DUMP=$(dumps "$TMP/d")
	cat "$DUMP.json"
	[ "$(json "$DUMP" trigger)" = deadline ]
	grep -q '"reason": "deadline job-1 of 100 ms passed: cart of 3 items"' "$DUMP.json"
	grep -qx '  "threshold": 100,' "$DUMP.json"
	grep -qx '  "unit": "ms",' "$DUMP.json"
	# The time of the trigger is that of the deadline, on the clock of the records.
	awk -v at="$(json "$DUMP" trigger_time)" '
		{ print at - $1, at - $2; exit !(at >= $1 + 0.099 && at <= $2 + 0.101) }' /tmp/armed
	rm /tmp/armed
	opens "$DUMP"
	before=$(nr_dumps "$TMP/d")
	[ "$before" = 1 ]
}

# In time, given another time, withdrawn by the end of the connection: no dump.
keeps_deadlines()
{
	local passed

	PASSED=$TMP/passed talk "$TMP/d.sock" <<-'END'
		for i in range(50):
		    say("arm step 60s")
		    say("disarm step")
		# If the machine stands still in between, it passes, which is a dump.
		passed = 0
		while True:
		    name = "again-%d" % passed
		    before = time.monotonic()
		    assert say("arm %s 2s" % name)["arm"] == "accepted"
		    time.sleep(0.25)
		    if say("arm %s 60s" % name)["arm"] == "again":
		        break
		    assert time.monotonic() - before > 1.5
		    say("disarm " + name)
		    passed += 1
		    while say("status")["dumps"] < 1 + passed:
		        time.sleep(0.1)
		open(os.environ["PASSED"], "w").write(str(passed))
		for i in range(10):
		    time.sleep(0.25)
		    assert say("arm %s 60s" % name)["arm"] == "again"
		assert say("status")["armed"] == 1
		# Its name is its own: another connection neither sees nor replaces it.
		s2, c2 = connect()
		say("disarm " + name, ok=False, c=c2)
		assert say("arm %s 60s" % name, c=c2)["arm"] == "accepted"
		assert say("status")["armed"] == 2
		say("disarm " + name)
		say("disarm " + name, ok=False)
		assert say("status")["armed"] == 1
		say("arm gone 60s", c=c2)
		before = time.monotonic()
		c2.close()
		s2.close()
		while say("status")["armed"]:
		    time.sleep(0.01)
		assert time.monotonic() - before < 50
		say("arm gone-2 60s")
	END
	FLIGHT_WAIT=50 wait_for none_armed d
	passed=$(cat "$TMP/passed")
	[ "$(nr_dumps "$TMP/d")" = $((1 + passed)) ]
	while has_dumps "$TMP/d" 2; do
		rm "$(newest_dump "$TMP/d")"{,.json}
	done
}

# What was sent in time counts, however late it is read, and behind whatever else.
hears_in_time()
{
	local before

	before=$(nr_dumps "$TMP/d")
	talk "$TMP/d.sock" <<-'END'
		import signal
		pid = say("status")["pid"]

		# The recorder is stopped from before the request until its deadline has passed.
		def while_stopped(limit, request, new=False):
		    say("arm late %dms" % limit)
		    os.kill(pid, signal.SIGSTOP)
		    begin = time.monotonic()
		    sock2, file = connect() if new else (sock, c)
		    file.write(request)
		    file.flush()
		    time.sleep(max(0, begin + 2 * limit / 1000 - time.monotonic()))
		    os.kill(pid, signal.SIGCONT)
		    return sock2, file

		# How long it takes to ask, on a busy machine too: the deadline is far from it.
		begin = time.monotonic()
		say("arm late 1h")
		os.kill(pid, signal.SIGSTOP)
		os.kill(pid, signal.SIGCONT)
		say("disarm late")
		limit = max(500, 20000 * (time.monotonic() - begin))
		others = "".join("disarm other-%d\n" % i for i in range(100))
		while_stopped(limit, others + "disarm late\n")
		answers = [json.loads(c.readline())["ok"] for i in range(101)]
		assert answers == [False] * 100 + [True], answers
		assert say("status")["armed"] == 0
		# So does what comes over a connection that it has not seen yet.
		say("keep")
		sock2, c2 = while_stopped(limit, "disarm late\n", new=True)
		assert json.loads(c2.readline())["ok"]
	END
	sleep 0.5
	[ "$(nr_dumps "$TMP/d")" = "$before" ]
}

# perf ctl --arm is gone when the deadline passes.
keeps_what_it_is_asked_to()
{
	perf ctl --arm=backup --in=300ms --reason='too slow' d
	wait_for has_dumps "$TMP/d" 2
	grep -q '"reason": "deadline backup of 300 ms passed: too slow"' \
		"$(newest_dump "$TMP/d").json"
	perf ctl --arm=backup --in=1h d
	perf ctl --status=d | grep -qE '^  armed +1$'
	perf ctl --disarm=backup d
	fails 1 'refuses: no deadline of that name' perf ctl --disarm=backup d
	fails 1 'refuses: arm wants a time such as' perf ctl --arm=backup --in=soon d
	[ "$(nr_dumps "$TMP/d")" = 2 ]
}

tells_what_is_wrong()
{
	talk "$TMP/d.sock" <<-'END'
		def wrong(request, want):
		    error = say(request, ok=False)["error"]
		    assert want in error, (request, error)
		wrong("arm", "name of 1 to 64")
		wrong("arm x", "time such as")
		wrong("arm x y", "time such as")
		wrong("arm x -1s", "time such as")
		wrong("arm x nan", "time such as")
		wrong("arm x 1e300", "time such as")
		wrong("arm " + "x" * 65 + " 1s", "name of 1 to 64")
		wrong("arm \xe4 1s", "name of 1 to 64")
		wrong("disarm", "disarm ID")
		wrong("disarm a b", "disarm ID")
		say("arm " + "x" * 64 + " 1h")
		say("disarm " + "x" * 64)
		assert say("status")["armed"] == 0
		assert any("arm ID TIME" in r for r in say("help")["requests"])
	END
}

# 10,000 at a time; one passes, and it is that one. Then 10,000 pass at once: one dump, and
# each of the others is counted.
arms_10000()
{
	talk "$TMP/d.sock" <<-'END'
		def many(requests):
		    # In pieces: an answer that does not fit into the socket ends the connection.
		    for i in range(0, len(requests), 100):
		        c.write("".join(requests[i:i + 100]))
		        c.flush()
		        for _ in requests[i:i + 100]:
		            answer = json.loads(c.readline())
		            assert answer["ok"], answer
		start = time.monotonic()
		many(["arm n%d 1h\n" % i for i in range(10000)])
		assert say("status")["armed"] == 10000
		print("10,000 armed in %.2f s" % (time.monotonic() - start))
		say("arm n4711 50ms the one")
		while say("status")["armed"] != 9999:
		    time.sleep(0.05)
		start = time.monotonic()
		many(["disarm n%d\n" % i for i in range(10000) if i != 4711])
		assert say("status")["armed"] == 0
		print("9,999 disarmed in %.2f s" % (time.monotonic() - start))
		# There is an end to it.
		many(["arm n%d 1h\n" % i for i in range(16384)])
		assert "too many" in say("arm more 1h", ok=False)["error"]
	END
	wait_for has_dumps "$TMP/d" 3
	grep -q '"reason": "deadline n4711 of 50 ms passed: the one"' \
		"$(newest_dump "$TMP/d").json"
	# With the connection all of them have gone.
	wait_for none_armed d
	sleep 0.5
	[ "$(nr_dumps "$TMP/d")" = 3 ]
	perf ctl --stop=d
}

none_armed()
{
	perf ctl --status="$1" | grep -qE '^  armed +0$'
}

# All that fires by itself has a cooldown. Two dumps at most, and not one hit is forgotten.
counts_a_storm()
{
	local first

	start_recorder "$TMP/e" -M 4M -e cpu-clock -F 199 -a --trigger socket \
		--trigger deadline,cooldown=1h
	talk "$TMP/e.sock" <<-'END'
		nr = 0
		for i in range(100):
		    c.write("".join("arm n%d-%d 1ms\n" % (i, k) for k in range(100)))
		    c.flush()
		    for _ in range(100):
		        nr += json.loads(c.readline())["arm"] == "accepted"
		assert nr == 10000
		while say("status")["armed"]:
		    time.sleep(0.05)
	END
	wait_for has_dumps "$TMP/e" 1
	first=$(dumps "$TMP/e")
	perf ctl --stop=e
	json "$first" swallowed
	[ "$(json "$first" swallowed)" = 9999 ]
	[ "$(nr_dumps "$TMP/e")" = 2 ]
}

bounds_by_itself()
{
	perf record -M 4M -e cpu-clock -C 0 --trigger socket -o "$TMP/f" -- true 2>&1 |
		tee "$TMP/said"
	grep -q 'dumps use at most 1024 MiB of disk' "$TMP/said"
	fails_somehow 'deadlines are armed on a socket: add --trigger socket' \
		perf record -M 4M -e cpu-clock -C 0 --trigger deadline -o "$TMP/f" -- true
}

# If the script is killed, its command ends, and its deadline is disarmed.
leaves_nothing()
{
	local pid rc=0

	# shellcheck disable=SC2016 # it is the inner shell's to expand
	"$EXAMPLE/deadline.sh" x 60 sh -c 'echo $$ >"$1"; exec sleep 60' sh "$TMP/command" &
	pid=$!
	wait_for test -s "$TMP/command"
	fails_somehow '' none_armed x
	kill "$pid"
	wait "$pid" || rc=$?
	[ $rc = 143 ]
	none_armed x
	fails_somehow '' kill -0 "$(cat "$TMP/command")"
	# What a command reads is left to it.
	echo text | "$EXAMPLE/deadline.sh" x 60 cat | grep -q '^text$'
}

# takes_its_time: 20 steps with a deadline of 200 ms each; it is 20 ms that they pause
takes_its_time()
{
	local began=${EPOCHREALTIME/[.,]/} ms

	"$TMP/deadline" "$TMP/x.sock" 20 0
	ms=$(((${EPOCHREALTIME/[.,]/} - began) / 1000))
	echo "20 steps in $ms ms"
	[ $ms -lt 220 ]
}

# has_reason PATTERN: a dump has it
has_reason()
{
	grep -q "\"reason\": \"$1" "$TMP"/x.sample.*.json
}

start_for_examples()
{
	start_recorder "$TMP/x" -M 4M -e cpu-clock -F 199 -a --trigger socket \
		--trigger deadline,cooldown=0
}

examples_work()
{
	make -s -C "$EXAMPLE" OUTPUT="$TMP" "$TMP/deadline" 2>&1
	start_for_examples
	for _ in {1..20}; do
		! takes_its_time || break
		# The machine stood still: a deadline may have passed.
		stop_recorder INT
		rm -f "$TMP"/x.sample.*
		start_for_examples
	done
	"$EXAMPLE/deadline.py" "$TMP/x.sock" quick 60 true
	"$EXAMPLE/deadline.sh" x 60 true
	fails 7 '' "$EXAMPLE/deadline.sh" x 60 sh -c 'exit 7'
	wait_for none_armed x
	[ "$(nr_dumps "$TMP/x")" = 0 ]
	"$TMP/deadline" "$TMP/x.sock" 20 10
	wait_for has_reason 'deadline step-10 of 200 ms passed: of the example"'
	"$EXAMPLE/deadline.py" "$TMP/x.sock" long 0.1 sleep 1
	wait_for has_reason 'deadline long of 100 ms passed: sleep"'
	"$EXAMPLE/deadline.sh" x 100ms sleep 1
	wait_for has_reason 'deadline sleep\.[0-9]* of 100 ms passed: sleep 1"'
	# A long command, of two lines.
	"$EXAMPLE/deadline.sh" x 100ms sh -c 'sleep 1' "$(printf 'word%.0s ' {1..1000})" \
		$'two\nlines'
	wait_for has_reason 'deadline sh\.[0-9]* of 100 ms passed: sh -c sleep 1 word word'
	leaves_nothing
	# Without a recorder the program runs.
	perf ctl --stop
	"$TMP/deadline" "$TMP/x.sock" 3 0
	"$EXAMPLE/deadline.py" "$TMP/x.sock" none 60 true
	"$EXAMPLE/deadline.sh" x 60 true
}

flight_begin
check "--dump by name, pid, directory and socket" dumps_by_name_pid_and_directory
check "the list has sessions and recorders" lists_sessions_and_recorders
check "a target that several fit" asks_no_one_of_several
check "--status" tells_the_status
check "--stop and --combine wait for the end" stops
check "a dump that the cooldown swallows" tells_of_the_cooldown
check "sessions and recorders are told apart" tells_sessions_from_recorders
check "answers control no terminal" prints_no_escapes
check "other users take no names" takes_no_name_of_other_users
check "containers take no names" takes_no_name_of_containers
check "other users hold no request up" waits_for_no_other_users
check "a dump that takes too long" waits_no_longer_than_asked
check "each is told of its dump" tells_each_of_its_dump
if [ -e /dev/fuse ]; then
	check "who waits stays connected" keeps_who_waits
else
	leave_out "who waits stays connected" "no /dev/fuse"
fi
check "wrong usage is told" usage
if [ -e "$TOOLS/perf/perf-completion.sh" ]; then
	check "the shell completes the names of recorders" completes
else
	leave_out "the shell completes the names of recorders" "no sources of perf"
fi
check "a deadline that is missed" misses_a_deadline
check "deadlines that are kept" keeps_deadlines
check "a recorder that is late hears what came in time" hears_in_time
check "--arm and --disarm" keeps_what_it_is_asked_to
check "what is wrong with a deadline is told" tells_what_is_wrong
check "10,000 deadlines" arms_10000
check "a storm of deadlines is counted" counts_a_storm
check "what fires by itself is bounded on the disk" bounds_by_itself
if [ -e "$EXAMPLE/Makefile" ] && command -v gcc make >/dev/null; then
	check "the clients in C, Python and shell" examples_work
else
	leave_out "the clients in C, Python and shell" "no examples, or no compiler"
fi
if [ -e "$DOC/perf-record.txt" ] && command -v socat >/dev/null && supported; then
	check "the examples of perf-record(1) work" man_examples_work "$DOC/perf-record.txt"
else
	leave_out "the examples of perf-record(1) work" "no sources of perf, socat or sessions"
fi
persistent_end
