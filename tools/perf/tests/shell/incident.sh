#!/bin/bash
# perf script report incident (exclusive)
# SPDX-License-Identifier: GPL-2.0
#
# The figures that perf script report incident tells of a dump are those of perf script, perf
# report and perf sched timehist. Prints TAP.
set -e

# shellcheck source=lib/persistent.sh
. "$(dirname "$0")/lib/persistent.sh"
# shellcheck source=lib/flight.sh
. "$(dirname "$0")/lib/flight.sh"
# shellcheck source=lib/on_disk.sh
. "$(dirname "$0")/lib/on_disk.sh"
# shellcheck source=lib/apart.sh
. "$(dirname "$0")/lib/apart.sh"

# incident OPTION...: the figures, in $TMP/figures
incident()
{
	perf script report incident --json "$@" >"$TMP/figures" 2>"$TMP/incident.stderr" || {
		cat "$TMP/incident.stderr"
		return 1
	}
	head -c 2000 "$TMP/figures"
}

# figure EXPRESSION: of the figures f, in Python
figure()
{
	python3 -c 'import json, sys
f = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$TMP/figures" "$1"
}

# All that is read afterwards, see lib/apart.sh
record_all()
{
	start_recorder "$TMP/a" -M 32M -m 2M -e cpu-clock/freq=499/ \
		-e sched:sched_switch,sched:sched_waking -g -a
	run_dead
	dump
	stop_recorder INT
	dumps "$TMP/a" | sed -n 1p >"$TMP/dump"
	uname -n >"$TMP/host"
	cat /proc/sys/kernel/random/boot_id >"$TMP/boot"
	# The kernel has no room.
	perf record -o "$TMP/lost" -m 1 -g -a -e raw_syscalls:sys_enter -- \
		dd if=/dev/zero of=/dev/null bs=1 count=20000
	# Without -F and -g, with other events, without samples
	perf record -o "$TMP/b" -a -e sched:sched_process_exec -- true
	perf record -o "$TMP/c" -F 99 -a -e cpu-clock,sched:sched_switch -- true
	perf record -o "$TMP/d" -a -e dummy -- true
	# Bytes that are no UTF-8, and what a terminal would obey, in the name of a task
	# shellcheck disable=SC2016 # for the inner shell
	perf record -o "$TMP/names" -g -a -e cpu-clock/freq=499/ -e sched:sched_switch -- bash -c '
		printf "caf\\303" >/proc/$$/comm
		(printf "\\033[2Jx\\001" >/proc/$BASHPID/comm
			for ((i = 0; i < 20000; i++)); do :; done)
		for ((i = 0; i < 20000; i++)); do :; done'
	# Of a program that is gone
	make_victim "$TMP/victim"
	perf record -N -o "$TMP/gone" -e cpu-clock/freq=499/ -- "$TMP/victim"
	rm "$TMP/victim"
	# Of one task, without the CPU, or without the switches of others
	perf record -o "$TMP/e" -e cpu-clock -- true
	perf script record incident -o "$TMP/f" -- \
		sh -c 'for i in 1 2 3 4 5; do sleep 0.1; done'
	perf record -q -a --all-cgroups -o "$TMP/g" -e cpu-clock/freq=499/ -- sleep 0.5
	# Samples of tasks after the record of their exit
	# shellcheck disable=SC2016 # for the inner shell
	perf record -q -a -g -o "$TMP/exits.data" -e cpu-clock/freq=4999/ -- \
		sh -c 'for i in $(seq 60); do /bin/true; done'
	# Switches as the kernel's own records
	# shellcheck disable=SC2016 # for the inner shell
	perf record -q -a -e cpu-clock/freq=99/ --switch-events -o "$TMP/told" -- \
		sh -c 'for i in $(seq 20); do sleep 0.01; done'
	perf record -o - -e cpu-clock -- true >"$TMP/pipe"
	# At the same time as two machines would, and one without times of the wall clock
	perf record -q -a -k monotonic -o "$TMP/client" -e cpu-clock/freq=499/ -- sleep 1 &
	perf record -q -a -k monotonic -o "$TMP/server" -e cpu-clock/freq=499/ -- sleep 1
	wait $!
	write_manifest client 0.3 0.05
	write_manifest server 0.5 0.051
	# A program below a home directory, a manifest that tells of it
	mkdir -p "$TMP/home/hushuser/secret"
	cp "$(type -P bash)" "$TMP/home/hushuser/secret/worker"
	perf record -o "$TMP/h" -e cpu-clock/freq=499/ -g -- "$TMP/home/hushuser/secret/worker" \
		-c 'for ((i = 0; i < 20000; i++)); do :; done'
	printf '{ "host": "hushhost", "boot_id": "hushboot", "trigger": "event", "reason": "%s",
		"messages": [ "[ 1.000000] hushed hushhost", "[ 1.000001] the last" ] }' \
		"hushhush $TMP/home/hushuser/secret/worker" >"$TMP/h.json"
	ls -l "$TMP"
}

# write_manifest NAME AFTER ERROR: it was triggered so many seconds after its first record
write_manifest()
{
	perf script -i "$TMP/$1" --ns -F time | awk -v name="$1" -v after="$2" -v error="$3" '
		NR == 1 {
			split($1, at, /[.:]/)
			printf "{ \"host\": \"%s\", \"boot_id\": \"%s\", ", name, name
			printf "\"trigger\": \"event\", "
			printf "\"trigger_time\": %.9f, ", at[1] + ("0." at[2]) + after
			printf "\"clock_error\": %s }\n", error
			exit
		}' >"$TMP/$1.json"
}

reads_a_dump()
{
	incident -i "$DUMP" -o "$TMP/page.html"
	cat "$TMP/incident.stderr"
	[ "$(figure '"noploop" in [r["name"] for r in f["functions"]]')" = True ]
	[ -s "$TMP/page.html" ]
	[ "$(stat -c %a "$TMP/page.html")" = 600 ]
}

# told OPTION: which of the words the page and the summary have
told()
{
	local word

	perf script report incident -i "$TMP/h" -o "$TMP/h.html" ${1:+"$1"} >"$TMP/h.summary" \
		2>"$TMP/err"
	for word in hushuser secret hushhost hushboot hushhush hushed worker; do
		! cat "$TMP/h.html" "$TMP/h.summary" | grep -qF "$word" || printf '%s ' "$word"
	done
}

redacts()
{
	[ "$(told '')" = 'hushuser secret hushhost hushboot hushhush hushed worker ' ]
	[ "$(told --redact)" = 'hushhost hushboot worker ' ]
	grep -qF '/home/-/worker' "$TMP/h.summary"
	grep -qF 'Left out by --redact: args, home.' "$TMP/h.html"
	incident -i "$TMP/h"
	figure 'sorted(r["self"] for r in f["functions"])' >"$TMP/expected"
	incident -i "$TMP/h" --redact
	figure 'sorted(r["self"] for r in f["functions"])' | cmp - "$TMP/expected"
	not grep -E "hushuser|secret|hushhush|hushed" "$TMP/figures"
	[ "$(told --redact=home)" = 'hushhost hushboot hushhush worker ' ]
	[ "$(told --redact=host,args)" = 'hushuser secret worker ' ]
	[ "$(told --redact=all)" = 'worker ' ]
	fails_somehow "'home,me': use args, home" \
		perf script report incident -i "$TMP/h" --redact=home,me
}

# Findings name containers and pods.
redacts_containers()
{
	local perf word
	perf=$(type -P perf)

	# It runs the perf that it finds beside the scripts.
	mkdir "$TMP/exec"
	ln -s "$(perf --exec-path)"/* "$TMP/exec"
	cat >"$TMP/exec/perf" <<-END
		#!/bin/sh
		[ "\$1" != verdict ] || exec cat "$TMP/named.json"
		exec "$perf" "\$@"
	END
	chmod +x "$TMP/exec/perf"
	cat >"$TMP/named.json" <<-'END'
		{ "notes": [], "missing": [], "changes": [], "findings": [ {
		  "sentence": "worker waited", "confidence": "certain", "from": 1, "to": 2,
		  "containers": [ "worker: container hushname of pod hushpod" ], "chain": [],
		  "victims": [ { "comm": "worker", "tid": 1, "container": "c0ffee",
		    "container_name": "hushname", "pod": "hushpod",
		    "pod_namespace": "hushspace" } ],
		  "culprits": [] } ] }
	END
	PERF_EXEC_PATH=$TMP/exec incident -i "$TMP/h"
	for word in hushname hushpod hushspace c0ffee; do
		grep -qF $word "$TMP/figures"
	done
	for word in --redact=host --redact=all; do
		PERF_EXEC_PATH=$TMP/exec incident -i "$TMP/h" $word -o "$TMP/h.html"
		not grep -E 'hushname|hushpod|hushspace' "$TMP/figures" "$TMP/h.html"
		grep -qF 'worker waited' "$TMP/h.html"
		grep -qF c0ffee "$TMP/figures"
	done
}

# Who, when, where: as the manifest says.
tells_the_trigger()
{
	[ "$(figure 'f["machine"]["Trigger"].split(",")[0]')" = signal ]
	[ "$(figure 'f["machine"]["Host"]')" = "$(cat "$TMP/host")" ]
	[ "$(figure 'f["machine"]["Boot"]')" = "$(cat "$TMP/boot")" ]
	# The dump is made at the trigger; its last samples are from just before.
	[ "$(figure '-1e9 < f["trigger"] - f["newest"] < 30e9')" = True ]
}

# Samples by event, CPU and task, counted from perf script's lines.
counts_samples()
{
	perf script -i "$DUMP" --ns -F comm,tid,cpu,time,event 2>/dev/null >"$TMP/lines"
	python3 - "$TMP/figures" "$TMP/lines" "$DUMP.json" <<-'END'
		import json, re, sys
		from collections import Counter
		f = json.load(open(sys.argv[1]))
		events, cpus, tasks, times = Counter(), Counter(), Counter(), []
		line = re.compile(r'\s*(.*?)\s+(-?\d+) \[(\d+)\]\s+(\d+)\.(\d+):\s+(\S+?):? *$')
		for text in open(sys.argv[2], errors='replace'):
		    comm, tid, cpu, s, ns, event = line.match(text).groups()
		    events[event] += 1
		    cpus[int(cpu)] += 1
		    times.append(int(s) * 10 ** 9 + int(ns))
		    if event.startswith('cpu-clock'):
		        tasks[int(tid)] += 1
		def check(what, got, want):
		    print(what, len(want) if hasattr(want, '__len__') else want)
		    if got != want and isinstance(want, dict):
		        want = {k: v for k, v in want.items() if got.get(k) != v}
		        got = {k: got.get(k) for k in want}
		    if got != want:
		        sys.exit('%s: %r instead of %r' % (what, got, want))
		check('samples', f['samples'], len(times))
		check('events', {e['name']: e['samples'] for e in f['events']}, dict(events))
		check('cpus', {c['cpu']: c['samples'] for c in f['cpus']}, dict(cpus))
		check('window', [f['oldest'], f['newest']], [min(times), max(times)])
		by_tid = Counter()
		for t in f['tasks']:
		    by_tid[t['tid']] += t['samples']
		check('tasks', {k: v for k, v in by_tid.items() if v}, dict(tasks))
		check('manifest', f['samples'], json.load(open(sys.argv[3]))['events'])
	END
}

# counts_as_report FILE: samples by function and by task
counts_as_report()
{
	local only=(-i "$1" --stdio -t '|' -g none --no-inline)

	# An inlined function has samples of its own on the page, but not in perf report.
	perf script --no-inline -i "$1" -s "$(perf --exec-path)/scripts/python/incident.py" -- \
		--json -o "$TMP/counts.html" >"$TMP/figures"
	perf report "${only[@]}" --no-children -F sample,sym,dso 2>/dev/null >"$TMP/self"
	perf report "${only[@]}" --children -F overhead_children,sym,dso 2>/dev/null >"$TMP/total"
	perf report "${only[@]}" --no-children -F sample,pid 2>/dev/null >"$TMP/tasks"
	python3 - "$TMP" <<-'END'
		import json, os, re, sys
		from collections import Counter
		tmp = sys.argv[1]
		f = json.load(open(tmp + '/figures'))
		def report(name):
		    """The rows of the clock"""
		    clock = False
		    for line in open('%s/%s' % (tmp, name), errors='replace'):
		        event = re.match(r"# Samples: .* of event '(.*)'", line)
		        clock = event[1] == f['clock'] if event else clock
		        if clock and line.strip() and line[0] != '#':
		            yield [cell.strip() for cell in line.split('|')]
		def same(what, got, want, near=0):
		    bad = {k: (got.get(k), want.get(k)) for k in set(got) | set(want)
		           if abs(got.get(k, 0) - want.get(k, 0)) > near}
		    print(what, len(want), sum(want.values()))
		    if bad or not want:
		        sys.exit('%s: got, want: %r' % (what, bad))
		def by_function(key):
		    sums = Counter()
		    for r in f['functions']:
		        sums[r['name'], os.path.basename(r['dso'])] += r[key]
		    return sums
		is_known = lambda name: not re.match(r'\[|(0x)?[0-9a-f]{8,}$', name)
		self_, total = Counter(), Counter()
		for n, symbol, dso in report('self'):
		    name = symbol[4:]
		    if is_known(name):
		        self_[name, os.path.basename(dso)] += int(n)
		for share, symbol, dso in report('total'):
		    if is_known(symbol[4:]):
		        total[symbol[4:], os.path.basename(dso)] += float(share[:-1])
		known = lambda sums: {k: v for k, v in sums.items() if is_known(k[0]) and v}
		same('samples of functions', known(by_function('self')),
		     {k: v for k, v in self_.items() if v})
		# Two digits, and nothing below a hundredth of a percent
		same('shares of functions with what they called',
		     {k: 100 * v / f['on_cpu_samples']
		      for k, v in known(by_function('total')).items()},
		     total, 0.0101)
		tasks, told = Counter(), Counter()
		for n, task in report('tasks'):
		    tasks[int(task.partition(':')[0])] += int(n)
		for t in f['tasks']:
		    told[t['tid']] += t['samples']
		same('samples of tasks', {k: v for k, v in told.items() if v}, tasks)
	END
}

# Of tasks that do not exit: the times on and off the CPU
counts_as_timehist()
{
	incident -i "$DUMP" >/dev/null
	perf sched timehist -i "$DUMP" --next --no-call-graph 2>/dev/null >"$TMP/timehist"
	perf script -i "$DUMP" --show-task-events 2>/dev/null |
		sed -nE 's/.*PERF_RECORD_EXIT\([0-9]+:([0-9]+)\).*/\1/p' >"$TMP/exits"
	python3 - "$TMP" <<-'END'
		import json, re, sys
		from collections import Counter
		tmp = sys.argv[1]
		f = json.load(open(tmp + '/figures'))
		line = re.compile(r' *(\d+)\.(\d{6}) \[(\d+)\] +(.*?)  +'
		                  r'(\S+) +(\S+) +(\S+) +next: (.*?) *$')
		def tid_of(task):
		    if task == '<idle>':
		        return 0
		    # A task whose name was not recorded is called by its tid.
		    tid = re.search(r'\[(-?\d+)[^\[]*\]$', task) or re.match(r':(\d+)$', task)
		    return int(tid[1]) if tid else sys.exit('no tid: %r' % task)
		on, off, lines, last, out = Counter(), Counter(), Counter(), {}, {}
		cpus = {c['cpu']: c for c in f['cpus']}
		for text in open(tmp + '/timehist', errors='replace'):
		    m = line.match(text)
		    if not m:
		        continue
		    time, cpu, tid = int(m[1]) * 10 ** 9 + int(m[2]) * 1000, int(m[3]), tid_of(m[4])
		    wait, run = (round(float(m[n]) * 1e6) for n in (5, 7))
		    # What the first task ran, and the last one, is not told.
		    on[tid] += run if cpu in last else time - cpus[cpu]['oldest']
		    off[tid] += wait
		    lines[tid] += 1
		    last[cpu], out[tid] = (time, tid_of(m[8])), time
		running = {}
		for time, tid in last.values():
		    running[tid] = min(time, running.get(tid, time))
		for cpu, (time, tid) in last.items():
		    on[tid] += cpus[cpu]['newest'] - time
		sums = {key: Counter() for key in ('switches', 'on_ns', 'off_ns')}
		for t in f['tasks']:
		    for key, of in sums.items():
		        of[t['tid']] += t[key]
		# The last switch of a task that exits has no id, and its last wait is told there.
		exited = {int(tid) for tid in open(tmp + '/exits')}
		checked = 0
		for tid, n in lines.items():
		    if tid <= 0 or tid in exited:
		        continue
		    near = 1000 * (n + 2)
		    ended = off[tid]
		    # Nor is a wait whose task has not left the CPU again, or not come back.
		    waits = ended + running.get(tid, f['newest']) - out[tid]
		    got = [sums[key][tid] for key in sums]
		    if got[0] != n or abs(got[1] - on[tid]) > near or \
		       min(abs(got[2] - ended), abs(got[2] - waits)) > near:
		        sys.exit('%d: got %r, timehist has %r' %
		                 (tid, got, (n, on[tid], ended, waits)))
		    checked += 1
		print('tasks of timehist', checked, 'of', len(lines), 'exited', len(exited))
		if checked < 5:
		    sys.exit('too few')
	END
}

# counts_waits [OPTION...]: times on and off the CPU, from the switches as perf script
# prints them, and for how long of these tasks could run, from their wakeups
counts_waits()
{
	perf script -i "$DUMP" "$@" -s "$(perf --exec-path)/scripts/python/incident.py" -- \
		--json -o "$TMP/waits.html" >"$TMP/figures"
	# Whoever leaves a CPU is who was switched to: no task is missing.
	not has 'Not every switch' figure 'f["notes"]'
	perf script -i "$DUMP" "$@" --ns -F tid,cpu,time,event,trace -G 2>/dev/null >"$TMP/lines"
	python3 - "$TMP/figures" "$TMP/lines" "$TMP/waits.html" "$#" <<-'END'
		import array, base64, json, re, sys
		from collections import Counter
		f = json.load(open(sys.argv[1]))
		first, last, newest = {}, {}, 0
		ready, woken = [], {}
		on, off, since, running, count = Counter(), Counter(), {}, {}, Counter()
		# With and without the plugin of libtraceevent.
		switch = re.compile(r'.*(?:prev_pid=|:)(\d+) .*?(?:prev_state=|\[\d+\] )(\S+) ==> '
		                    r'.*(?:next_pid=|:)(\d+) ')
		for text in open(sys.argv[2], errors='replace'):
		    m = re.match(r'\s*(-?\d+)\s+\[(\d+)\]\s+(\d+)\.(\d+):\s+(\S+?):? (.*)',
		                 text + ' ')
		    who, cpu, t = int(m[1]), int(m[2]), int(m[3]) * 10 ** 9 + int(m[4])
		    first.setdefault(cpu, t)
		    last[cpu] = newest = t
		    # A task on a CPU does not wait: it came back where nothing was recorded yet.
		    since.pop(who, None)
		    if m[5] == 'sched:sched_waking':
		        tid = int(re.match(r'(?:.*?pid=|.*?:)(\d+) ', m[6])[1])
		        if tid in since:
		            woken.setdefault(tid, t)
		    if m[5] != 'sched:sched_switch':
		        continue
		    m = switch.match(m[6])
		    prev, state, tid = int(m[1]), m[2], int(m[3])
		    if prev:
		        on[prev] += t - running.get(cpu, (prev, first[cpu]))[1]
		        count[prev] += 1
		        woken.pop(prev, None)
		        if state[0] not in 'XZ':
		            since[prev] = t
		            if state[0] == 'R':
		                woken[prev] = t
		    running[cpu] = (tid, t)
		    if tid in since:
		        off[tid] += t - since.pop(tid)
		        ready.append(t - woken.get(tid, t))
		for cpu, (tid, t) in running.items():
		    if tid:
		        on[tid] += last[cpu] - t
		for tid, t in since.items():
		    off[tid] += newest - t
		    ready.append(newest - woken.get(tid, newest))
		def by_tid(key):
		    sums = Counter()
		    for t in f['tasks']:
		        sums[t['tid']] += t[key]
		    return {k: v for k, v in sums.items() if v}
		for key, want in (('switches', count), ('on_ns', on), ('off_ns', off)):
		    want = {k: v for k, v in want.items() if v}
		    got = by_tid(key)
		    print(key, len(want), sum(want.values()))
		    bad = {k: (got.get(k), want.get(k)) for k in set(got) | set(want)
		           if got.get(k) != want.get(k)}
		    if bad:
		        sys.exit('%s: got, want: %r' % (key, bad))
		data = re.search(r'id="data">(.*?)</script>', open(sys.argv[3]).read(), re.S)[1]
		packed = json.loads(data)['off']['ready']
		told = array.array(packed['type'], base64.b64decode(packed['text'])) \
		    if 'type' in packed else ()
		print('could run', len(ready), sum(ready))
		# A part of the dump may have one switch.
		least = 1000 if sys.argv[4] == '0' else 0
		if sum(told) != sum(ready) or sum(ready) < least:
		    sys.exit('could run for %r, should be %r' % (sum(told), sum(ready)))
	END
}

# A window that ends with the first sample of a task that was met by the switch to it.
counts_the_last_run()
{
	local end

	end=$(perf script -i "$DUMP" --ns -F cpu,tid,time,event,trace -G 2>/dev/null | awk '
		{ sub(/^ */, ""); tid = $1; cpu = $2; at = $3 }
		$4 ~ /^cpu-clock/ && tid == met[cpu] { print substr(at, 1, length(at) - 1); exit }
		{ met[cpu] = ""; seen[tid] = 1 }
		/ ==> / {
			next_tid = $0
			sub(/.*(next_pid=|:)/, "", next_tid)
			sub(/ .*/, "", next_tid)
			if (!seen[next_tid])
				met[cpu] = next_tid
			seen[next_tid] = 1
		}')
	[ -n "$end" ]
	counts_waits --time ",$end"
	# A task that told its pid later than its name is one row.
	[ "$(figure '[t for t in f["tasks"] if t["pid"] < 0 <= t["tid"] and
		(t["tid"], t["comm"]) in [(o["tid"], o["comm"]) for o in f["tasks"] if o is not t]]'
	)" = '[]' ]
}

# How many the kernel lost, and where.
tells_what_was_lost()
{
	incident -i "$TMP/lost"
	perf script -i "$TMP/lost" --show-lost-events 2>/dev/null |
		sed -nE 's/.*PERF_RECORD_LOST lost ([0-9]+).*/\1/p' >"$TMP/lost.n"
	[ -s "$TMP/lost.n" ]
	[ "$(figure 'sum(c["lost"] for c in f["cpus"])')" = \
	  "$(awk '{ n += $1 } END { print n }' "$TMP/lost.n")" ]
	has 'records were lost' figure 'f["notes"]'
}

# side_band FILE: of perf verdict what perf script has, in lines of time, CPU or task, records
side_band()
{
	perf verdict -i "$1" --json --side-band >"$TMP/verdict"
	python3 - "$TMP/verdict" >"$TMP/side-band" <<-'END'
		import json, sys
		v = json.load(open(sys.argv[1]))
		for loss in v['losses']:
		    print('lost', loss['time'], loss['cpu'], loss['records'])
		for end in v['exits']:
		    print('exit', end['time'], end['tid'])
	END
	perf script -i "$1" --show-lost-events --show-task-events --ns -F comm,tid,cpu,time |
		perl -ne '/\[(\d+)\]\s+(\d+)\.(\d+): PERF_RECORD_LOST lost (\d+)/ &&
				push @lost, sprintf("lost %d%s %d %d", $2, $3, $1, $4);
			/(\d+)\.(\d+): PERF_RECORD_EXIT\(\d+:(\d+)\)/ &&
				push @exits, "exit $1$2 $3";
			END { print "$_\n" for @lost, @exits }' >"$TMP/expected"
	diff "$TMP/expected" "$TMP/side-band"
}

has_the_side_band()
{
	side_band "$TMP/lost"
	grep -q ^lost "$TMP/expected"
	side_band "$TMP/exits.data"
	[ "$(grep -c ^exit "$TMP/expected")" -ge 60 ]
	fails_somehow 'add --json' perf verdict -i "$TMP/lost" --side-band
	perf verdict -i "$TMP/lost" --json >"$TMP/verdict"
	not grep -E '"(losses|exits)"' "$TMP/verdict"
}

# A perf that was built without libtraceevent reads what was lost, and who ended, by itself.
does_without_a_verdict()
{
	local file

	mkdir -p "$TMP/bin"
	# shellcheck disable=SC2016 # for the shell that it is for
	printf '#!/bin/sh\n[ "$1" != verdict ] || exit 1\nexec %q "$@"\n' "$(type -P perf)" \
		>"$TMP/bin/perf"
	chmod +x "$TMP/bin/perf"
	for file in "$TMP/lost" "$TMP/told"; do
		incident -i "$file"
		mv "$TMP/figures" "$TMP/with"
		PATH=$TMP/bin:$PATH incident -i "$file"
		cmp "$TMP/with" "$TMP/figures"
	done
	[ "$(figure 'max(t["switches"] for t in f["tasks"])')" -gt 0 ]
}

# Which files are not here, and their share of the samples
tells_what_is_missing()
{
	local id share

	id=$(perf buildid-list -i "$TMP/gone" | awk '/victim$/ { print $1 }')
	perf report -i "$TMP/gone" --stdio --no-children --sort dso >"$TMP/report" 2>"$TMP/said"
	share=$(awk -v id="$id" '$2 == id { print $1 }' "$TMP/said")
	incident -i "$TMP/gone" -o "$TMP/gone.html"
	has "$share of the samples are in $TMP/victim .build-id $id., which is not here" \
		figure 'f["notes"]'
	has 'DEBUGINFOD_URLS' figure 'f["notes"]'
	# A program with names of functions is not missing.
	not has 'in [^ ]*/libc.so.6 .build-id' figure 'f["notes"]'
}

# It is the first that is told: on the page, in the summary and in JSON.
tells_what_was_given_up()
{
	local told='Not all was recorded: for --max-overhead, x:y was disabled when'

	cp "$DUMP" "$TMP/given"
	sed '2i\  "rate_divisor": 1,\n  "events_given_up": "x:y",' "$DUMP.json" >"$TMP/given.json"
	incident -i "$TMP/given"
	has "^$told" figure 'f["notes"][0]'
	perf script report incident -i "$TMP/given" -o "$TMP/given.html" >"$TMP/given.text"
	grep -q "$told" "$TMP/given.html"
	grep -m1 '^Note: ' "$TMP/given.text" | grep -q "^Note: $told"
}

needs_no_manifest()
{
	cp "$DUMP" "$TMP/plain"
	incident -i "$TMP/plain"
	[ "$(figure 'f["trigger"]')" = None ]
	has 'There is no plain.json' figure 'f["notes"]'
	echo '{ "cpus": [' >"$TMP/plain.json"
	incident -i "$TMP/plain"
	grep -q 'Cannot read .*plain.json' "$TMP/incident.stderr"
}

takes_any_recording()
{
	incident -i "$TMP/b" -o "$TMP/b.html"
	has 'No event samples the CPUs' figure 'f["notes"]'
	incident -i "$TMP/c" -o "$TMP/c.html"
	# Switches that were sampled tell nothing about who waited.
	[ "$(figure 'f["waits"]')" = '[]' ]
	incident -i "$TMP/d" -o "$TMP/d.html"
	[ "$(figure 'f["samples"]')" = 0 ]
}

takes_any_name()
{
	local locale

	for locale in C C.UTF-8; do
		LC_ALL=$locale perf script report incident -i "$TMP/names" -o "$TMP/names.html" \
			>"$TMP/summary" || return
		head -n 40 "$TMP/summary"
		grep -qF '\x1b[2Jx\x01' "$TMP/summary"
		grep -qE 'caf(\\ufffd|\?|�)' "$TMP/summary"
		not grep -q $'\033' "$TMP/summary"
	done
	perf script -i "$TMP/names" -s "$(perf --exec-path)/scripts/python/stackcollapse.py" \
		>"$TMP/folded"
	[ -s "$TMP/folded" ]
}

takes_a_task()
{
	incident -i "$TMP/e" -o "$TMP/e.html"
	[ "$(figure 'sum(c["samples"] for c in f["cpus"]) == f["samples"]')" = True ]
	incident -i "$TMP/f" -o "$TMP/f.html"
	[ "$(figure 'min(c["cpu"] for c in f["cpus"]) >= 0')" = True ]
	has 'Not every switch' figure 'f["notes"]'
	# What is said of the CPU is not more than there was.
	[ "$(figure 'sum(t["on_ns"] for t in f["tasks"]) <= f["window_ns"]')" = True ]
}

# Samples by cgroup, as perf script names these
counts_cgroups()
{
	incident -i "$TMP/g"
	perf script -i "$TMP/g" -F cgroup >"$TMP/cgroups"
	python3 - "$TMP/figures" "$TMP/cgroups" <<-'END'
		import collections, json, sys
		told = json.load(open(sys.argv[1]))['cgroup_samples']
		lines = [line.strip() for line in open(sys.argv[2])]
		want = collections.Counter(line for line in lines if line)
		print(told)
		if not want or told != dict(want):
		    sys.exit('it should be %r' % dict(want))
	END
}

reads_no_pipe()
{
	fails 1 'cannot read from a pipe' perf script report incident -i - <"$TMP/pipe"
}

# Times of the wall clock are those of the header, and the page has both machines.
reads_several()
{
	perf script report incident "$TMP/client" "$TMP/server" --json -o "$TMP/both.html" \
		>"$TMP/figures" 2>"$TMP/said" || { cat "$TMP/said"; return 1; }
	[ "$(stat -c %a "$TMP/both.html")" = 600 ]
	[ "$(grep -c '^<script type="application/json" id="page-[01]">' "$TMP/both.html")" = 2 ]
	figure '[m["machine"]["Host"] for m in f["machines"]]' | grep -qxF "['client', 'server']"
	perf report --header-only -i "$TMP/client" | sed -nE \
		's/.* = ([0-9]+)\.([0-9]+) \(TOD\) = ([0-9]+)\.([0-9]+) .*/\1\2000-\3\4/p' |
		awk '{ print "f[\"machines\"][0][\"wall_clock\"][\"offset_ns\"] ==", $0 }' \
		>"$TMP/offset"
	[ "$(figure "$(sed 's/-0*/-/' "$TMP/offset")")" = True ]
	# From the oldest record, the triggers are 0.2 s apart.
	figure '([m["oldest"] + m["wall_clock"]["offset_ns"] for m in f["machines"]] +
		[o["distance_ns"] * (1 if o["second"] else -1) for o in f["orders"]])' |
		tee "$TMP/times" | tr -d '[],' | awk '{
			differ = $3 - ($2 - $1) - 200000000
			near = NF == 3 && differ >= -1000000 && differ <= 1000000
		} END { exit !near }' || { cat "$TMP/times"; return 1; }
	# Which of them began first is not known.
	figure '"machine %d .* before machine %d" % ((1, 2) if f["orders"][0]["second"] else
		(2, 1))' >"$TMP/order"
	# A figure is that of a page alone.
	[ "$(figure 'f["machines"][0]["samples"]')" = \
	  "$(perf script -i "$TMP/client" -F time | wc -l)" ]
	perf script report incident -i "$TMP/client" -i "$TMP/server" -o "$TMP/both.html" \
		--redact host | tee "$TMP/summary"
	grep -q "^$(cat "$TMP/order")" "$TMP/summary"
	not grep -qE '"(host|name)":"(client|server)' "$TMP/both.html"
}

# One that is bad: its name is told, and there is no page and no temporary file.
refuses_several()
{
	mkdir -p "$TMP/parts"
	export TMPDIR=$TMP/parts
	head -c 20000 "$TMP/server" >"$TMP/cut"
	printf 'text' >"$TMP/text"
	cd "$TMP"
	fails_somehow "^incident: $TMP/cut: cannot be reported, so no page is written" \
		perf script report incident client "$TMP/cut" server -o "$TMP/bad.html"
	fails_somehow '^incident: text: cannot be reported' \
		perf script report incident text client -o "$TMP/bad.html"
	fails_somehow '^incident: none: cannot be read' perf script report incident client none
	ln -sf client alias
	fails_somehow '^incident: alias: this recording is there twice .client.' \
		perf script report incident client server alias
	fails_somehow 'none can come from a pipe' perf script report incident client -
	fails_somehow '^incident: server: this is a recording, which' \
		perf script report incident -o server client
	fails_somehow "argument --redact: 'me': use args" \
		perf script report incident client server --redact=me -o "$TMP/bad.html"
	[ ! -e "$TMP/bad.html" ] && [ ! -e "$TMP/incident.html" ]
	# A signal ends it, and what it runs: a perf that waits for ever to open a file.
	mkfifo hangs
	perf script report incident client "$TMP/hangs" -o "$TMP/bad.html" >"$TMP/said" 2>&1 &
	wait_for sh -c 'ls parts/*/1.json'
	wait_for pgrep -f "script -i $TMP/hangs"
	kill -TERM $!
	wait $! || [ $? = 143 ]
	FLIGHT_WAIT=10 wait_for not pgrep -f "script -i $TMP/hangs"
	[ ! -e "$TMP/bad.html" ]
	[ -z "$(ls -A "$TMP/parts")" ]
}

# What others read holds as many samples; gecko and stackcollapse leave tracepoints out,
# and gecko samples without a call chain. record_flight.sh looks closer, also at CTF.
exports()
{
	local scripts

	scripts=$(perf --exec-path)/scripts/python
	perf script -i "$DUMP" -s "$scripts/gecko.py" -- --save-only "$TMP/gecko"
	perf script -i "$DUMP" -s "$scripts/stackcollapse.py" >"$TMP/folded"
	perf script -i "$DUMP" -F comm,tid,time,event,ip,sym,dso >"$TMP/text" 2>/dev/null
	perf data convert -i "$DUMP" --to-json "$TMP/convert"
	incident -i "$DUMP" >/dev/null
	python3 - "$TMP" "$(json "$DUMP" events)" "$(figure 'f["on_cpu_samples"]')" <<-'END'
		import json, sys
		tmp, want = sys.argv[1], int(sys.argv[2])
		gecko = json.load(open(tmp + '/gecko'))
		counts = {
		    'gecko': sum(len(t['samples']['data']) for t in gecko['threads']),
		    'folded': sum(int(l.rsplit(' ', 1)[1]) for l in open(tmp + '/folded')),
		    'text': sum(1 for l in open(tmp + '/text', errors='replace') if l[:1].strip()),
		    'JSON': len(json.load(open(tmp + '/convert'))['samples']),
		}
		print(counts, want)
		ok = counts['text'] == counts['JSON'] == want
		sys.exit(not (ok and counts['folded'] == int(sys.argv[3]) >= counts['gecko'] > 0))
	END
}

prints_a_summary()
{
	perf script report incident -i "$DUMP" -o "$TMP/page.html" >"$TMP/summary"
	head -n 60 "$TMP/summary"
	grep -q '^Trigger *signal, SIGUSR1' "$TMP/summary"
	grep -q '^Functions, by samples of cpu-clock' "$TMP/summary"
	perf script report incident -i "$DUMP" -o "$TMP/page.html" | head -n 1 >/dev/null
	fails 255 'No such file' perf script report incident -i "$TMP/none"
	perf script report incident -i "$DUMP" -o "$TMP/no/where" >/dev/null 2>"$TMP/said" || true
	grep -q 'No such file or directory' "$TMP/said"
}

apart_begin
if ! perf version --build-options | grep -qE 'libpython: \[ on'; then
	echo "1..0 # SKIP perf was built without libpython"
	exit 2
fi
apart_record record_all
DUMP=$(cat "$TMP/dump")
check "writes a page about a dump" reads_a_dump
check "tells what triggered, when and where" tells_the_trigger
check "samples by event, CPU and task are perf script's" counts_samples
check "samples by function and task are perf report's" counts_as_report "$DUMP"
check "also those of tasks that exit" counts_as_report "$TMP/exits.data"
check "times on and off the CPU are perf sched timehist's" counts_as_timehist
check "times on and off the CPU are those of the switches" counts_waits
check "the last run on a CPU is that of the task sampled in it" counts_the_last_run
check "tells what was lost" tells_what_was_lost
check "perf verdict --side-band tells what perf script does" has_the_side_band
check "needs no perf verdict for what was lost" does_without_a_verdict
check "tells which files are missing" tells_what_is_missing
check "tells what --max-overhead had given up" tells_what_was_given_up
check "does without a manifest, and with a broken one" needs_no_manifest
check "takes any recording" takes_any_recording
check "prints a summary" prints_a_summary
check "takes any name" takes_any_name
check "takes a recording of one task" takes_a_task
check "samples by cgroup are perf script's" counts_cgroups
check "leaves out what does not leave the machine" redacts
check "leaves out names of containers" redacts_containers
check "refuses a pipe" reads_no_pipe
check "reads recordings of several machines" reads_several
check "refuses all if one of several is bad" refuses_several
check "gecko, folded stacks, text and JSON hold the samples" exports
persistent_end
