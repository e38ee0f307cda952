# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What perf verdict adds up, against what is counted from the records of $TMP/data in another
# way. Sourced by verdict_compare.sh, not run.

# The figures of what changed, in all parts, are those that perf script prints.
counts_changes()
{
	perf script -i "$TMP/data" --ns -F tid,cpu,time,event,trace,ip,sym >"$TMP/lines"
	python3 - "$TMP/json" "$TMP/lines" <<-'END'
		import json, re, sys
		from collections import Counter
		compared = json.load(open(sys.argv[1]))['comparison']
		parts = [(p['from'], p['to']) for p in [compared['part']] + compared['calm']]
		# A task has no tid any more at its end.
		head = re.compile(r' *(-?\d+) +\[(\d+)\] +(\d+)\.(\d+): +(\S+?):(?: +(.*))?$')
		samples, runs, clock, known = [], [], None, {}
		for line in open(sys.argv[2]):
		    found = head.match(line)
		    if found:
		        tid, cpu, s, ns, event, fields = found.groups()
		        time = int(s) * 10 ** 9 + int(ns)
		        clock = event.startswith('cpu-clock') and tid != '0'
		        if clock:
		            samples.append((time, []))
		        if event == 'sched:sched_switch':
		            # COMM:TID [PRIO] STATE ==> COMM:TID [PRIO]
		            tids = re.findall(r':(\d+) \[', fields)
		            if len(tids) != 2:
		                tids = re.findall(r'_pid=(\d+)', fields)
		            runs.append((int(cpu), time, int(tids[0]), int(tids[1])))
		    elif clock and line.strip():
		        ip, name = line.split()[:2]
		        if name in ('burn', 'run_late'):
		            known[ip] = name
		        samples[-1][1].append((ip, name))
		    elif not line.strip():
		        clock = False
		# perf script has forgotten the maps of a task that is in do_exit().
		samples = [(time, [known.get(ip, name) if name == '[unknown]' else name
		                   for ip, name in chain]) for time, chain in samples]
		def counts(of, total):
		    return [sum(of in (chain if total else chain[:1]) for time, chain in samples
		                if start <= time < end) for start, end in parts]
		def figures(values):
		    calm = sorted(values[1:])
		    return values[0], calm[len(calm) // 2], calm[0], calm[-1]
		checked = Counter()
		for c in compared['changes']:
		    told = c['now'], c['median'], c['least'], c['most']
		    if c.get('function') in ('burn', 'run_late'):
		        found = figures(counts(c['function'], c['figure'] == 'total'))
		        if found != told:
		            sys.exit('%r, counted %r' % (c, found))
		        checked[c['figure']] += 1
		    elif c['figure'] == 'on_cpu' and c['tasks'] == 1:
		        on, ran = {}, []
		        for cpu, time, prev, next_ in runs:
		            if prev == c['tid'] and cpu in on:
		                ran.append((on.pop(cpu), time))
		            if next_ == c['tid']:
		                on[cpu] = time
		        values = [sum(max(0, min(b, end) - max(a, start)) for a, b in ran)
		                  for start, end in parts]
		        if abs(figures(values)[0] - told[0]) > 50e6:
		            sys.exit('%r, counted %r' % (c, figures(values)))
		        checked['task'] += 1
		print(dict(checked))
		if not checked['self'] or not checked['total']:
		    sys.exit('nothing to check in %r' % compared['changes'][:5])
	END
}

# Waits for CPUs: those of tasks are what perf sched timehist adds up to, and those of CPUs what
# the records do.
counts_delays()
{
	perf verdict -i "$TMP/data" --run-queues | tee "$TMP/queues"
	grep -q '^Run queues of CPUs' "$TMP/queues"
	grep -q '^Tasks that waited for a CPU' "$TMP/queues"
	perf verdict -i "$TMP/data" --run-queues --json >"$TMP/queues"
	cp "$TMP/queues" "$(mktemp "$TMP/kept.XXXXXX")"
	perf script -i "$TMP/data" --ns -G -F cpu,time,event,trace --show-task-events \
		>"$TMP/lines" 2>"$TMP/said"
	perf sched timehist -i "$TMP/data" --no-call-graph >"$TMP/timehist" 2>"$TMP/said"
	python3 - "$TMP" <<-'END'
		import json, re, sys
		from collections import Counter
		tmp = sys.argv[1]
		told = json.load(open(tmp + '/queues'))['run_queues']
		head = re.compile(r' *\[(\d+)\] +(\d+)\.(\d+): +(\S+?): +(.*)$')
		gone = re.compile(r'.*?(\d+)\.(\d+): +PERF_RECORD_EXIT\(\d+:(\d+)\)')
		delays, taken, longest = Counter(), Counter(), Counter()
		cpus, edges = Counter(), []
		ready, on, running, last_wait, broken = {}, {}, {}, {}, set()
		runs, known, racing, exits = {}, set(), set(), {}
		def add(tid, cpu, time):
		    since, queue, preempted = ready.pop(tid)
		    # A wakeup while the task still had the CPU is lost to perf sched timehist.
		    last_wait[tid] = None if tid in racing else time - since
		    racing.discard(tid)
		    # Of a task without a record before, it is not known whether it waited.
		    if tid not in known:
		        return
		    delays[tid] += time - since
		    taken[tid] += (time - since) * preempted
		    longest[tid] = max(longest[tid], time - since)
		    if queue is None:
		        queue = cpu
		    if queue is not None:
		        cpus[queue] += time - since
		        edges.append((since, queue, 1, 0))
		        edges.append((time, queue, -1, 0))
		for line in open(tmp + '/lines'):
		    m = gone.match(line)
		    if m:
		        exits[int(m[3])] = int(m[1]) * 10 ** 6 + int(m[2]) // 1000
		    m = head.match(line)
		    if not m:
		        continue
		    cpu, time, event, text = int(m[1]), int(m[2]) * 10 ** 9 + int(m[3]), m[4], m[5]
		    newest = time
		    if event == 'sched:sched_switch':
		        tids = re.findall(r':(\d+) \[', text) or re.findall(r'_pid=(\d+)', text)
		        prev, next_ = int(tids[0]), int(tids[1])
		        state = re.search(r'\] (\S+) ==>|prev_state=(\S+)', text)
		        if cpu in running and running[cpu][0] != prev:
		            broken |= {running[cpu][0], prev}
		        if cpu in running and running[cpu][0] == 0:
		            edges.append((running[cpu][1], cpu, 0, 1))
		            edges.append((time, cpu, 0, -1))
		        running[cpu] = next_, time
		        if prev:
		            # It ran, and no record tells since when.
		            if on.pop(prev, None) is None and prev in ready:
		                broken.add(prev)
		            known.add(prev)
		            runs[prev, time // 1000] = last_wait.pop(prev, 0)
		            # Woken before it has left the CPU: it can run on.
		            woken = ready.pop(prev, None)
		            if (state[1] or state[2]).startswith('R'):
		                ready[prev] = time, cpu, True
		            elif woken and time - woken[0] < 10 ** 6:
		                ready[prev] = time, woken[1], False
		                racing.add(prev)
		            elif woken:
		                # perf sched timehist counts from that wakeup, if no other follows.
		                last_wait[prev] = None
		        if next_:
		            if next_ in ready:
		                add(next_, cpu, time)
		            on[next_] = cpu
		    elif event.startswith('sched:sched_wak'):
		        tid = re.search(r'\bpid=(\d+)|:(\d+) \[', text)
		        tid = int(tid[1] or tid[2])
		        target = re.search(r'(?:target_cpu=|CPU:)(\d+)', text)
		        new = event == 'sched:sched_wakeup_new'
		        if new:
		            known.add(tid)
		        if tid in on or tid not in ready:
		            ready[tid] = time, int(target[1]) if new else None, False
		for tid in list(ready):
		    if tid not in on and tid in known:
		        add(tid, None, newest)
		for cpu, (tid, since) in running.items():
		    if not tid:
		        edges.append((since, cpu, 0, 1))
		        edges.append((newest, cpu, 0, -1))
		waits, idles, waited, others = Counter(), Counter(), Counter(), Counter()
		edges.sort(key=lambda e: e[0])
		for i, (time, cpu, wait, idle) in enumerate(edges):
		    for c, n in waits.items():
		        if n and i:
		            waited[c] += time - edges[i - 1][0]
		            if sum(idles.values()) > idles[c]:
		                others[c] += time - edges[i - 1][0]
		    waits[cpu] += wait
		    idles[cpu] += idle
		def near(what, got, want):
		    if abs(got - want) > 1e6 + want / 50:
		        sys.exit('%s: %d, counted %d' % (what, got, want))
		print(len(broken), 'tasks whose switches are missing')
		for c in told['cpus'] if not broken else []:
		    near('CPU %d' % c['cpu'], c['ns'], cpus[c['cpu']])
		    near('CPU %d not empty' % c['cpu'], c['waited_ns'], waited[c['cpu']])
		    near('CPU %d others idle' % c['cpu'], c['others_idle_ns'], others[c['cpu']])
		whole = [t for t in told['tasks'] if t['tid'] not in broken]
		for t in whole:
		    near('task %d' % t['tid'], t['ns'], delays[t['tid']])
		    near('task %d preempted' % t['tid'], t['preempted_ns'], taken[t['tid']])
		    near('task %d longest' % t['tid'], t['longest_ns'], longest[t['tid']])
		# A line of perf sched timehist: the end of a run, and how long the task waited.
		line = re.compile(r' *(\d+)\.(\d{6}) \[\d+\] +.*?'
		                  r'\[(\d+)[^\[]*\] +\S+ +(\S+) +\S+ *$')
		checked = told_delays = 0
		unseen = []
		for text in open(tmp + '/timehist', errors='replace'):
		    m = line.match(text)
		    if not m or int(m[3]) in broken:
		        continue
		    end = int(m[1]) * 10 ** 6 + int(m[2])
		    # It forgets a task that exits. What runs on is new to it.
		    if end >= exits.get(int(m[3]), end + 1):
		        continue
		    # Times are rounded to us.
		    at = [(int(m[3]), end + us) for us in (0, -1, 1)]
		    wait = [runs[run] for run in at if run in runs]
		    if not wait or None in wait:
		        continue
		    got = round(float(m[4]) * 1e6)
		    if wait == [0] and got:
		        # No wakeup was seen here. In some recordings it is one line of 18,000.
		        unseen.append((m[3], end, text))
		        continue
		    if min(abs(got - w) for w in wait) > 2000:
		        sys.exit('perf sched timehist: waited %d, not %s: %s' % (got, wait, text))
		    checked += 1
		    told_delays += got > 10 ** 5
		print('lines of timehist', checked, 'with delays', told_delays)
		# What the records tell of such a task
		for tid, end, text in unseen[:3]:
		    print(text, end='')
		    for record in open(tmp + '/lines'):
		        m = head.match(record)
		        if m and abs(int(m[2]) * 10 ** 6 + int(m[3]) // 1000 - end) < 20000 and \
		           re.search(r'(:|pid=)%s ' % tid, record):
		            print(record, end='')
		if len(unseen) * 1000 > checked:
		    sys.exit('%d waits without a wakeup' % len(unseen))
		if checked < 30 or told_delays < 3:
		    sys.exit('too few')
	END
	fails 1 'exclude each other' perf verdict -i "$TMP/data" --run-queues --compare
}
