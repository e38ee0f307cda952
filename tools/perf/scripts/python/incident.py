# incident.py - one page, and a summary, of what led to an incident
# SPDX-License-Identifier: GPL-2.0
"""
Report a dump of the flight recorder: perf script report incident -i DUMP

perf calls process_sample() for each sample and process_tracepoint() for each tracepoint, in the
order of time. It numbers call chains by callchain_node(). Without that, process_event() and
trace_unhandled() get the call chain itself. They are stored in a Recording:

    Symbols   numbered frames and call chains, as a tree of (parent, frame)
    Samples   six numbers per sample, in columns: (time, CPU, event, task, chain, cgroup)
    Switches  running and waiting tasks, from sched:sched_switch or --switch-events; since when
              a waiting task could run, from sched:sched_waking and the like
    marks     the times of throttling, and of lost records with the range without data: from
              the last record of the CPU before them

At the end Figures computes the values of the summary, and Page writes them to one HTML file,
together with cells, (bin, CPU, event, task, chain, cgroup) -> samples, as arrays of integers
in base64. A bin is a slice of time, so 500,000 samples need at most as many cells, and usually
far fewer. If the page would be larger than 8 MiB, bins are made longer, and rare tasks and
call chains are counted together; incident/cells.py does that, and the page says so. Style,
scripts, d3 and d3-flame-graph are in incident/ beside this script; see incident/install.sh.

OUT.sample.TIME.json beside the dump defines the window. Without it, the records do.

Of several recordings, bin/incident-report runs this once for each, with --part: what the page of
all needs goes to files. Then it runs it with --combine, and incident/machines.py writes that page.
"""
import argparse
import array
import datetime
import gc
import html
import itertools
import json
import operator
import os
import re
import struct
import subprocess
import sys
from collections import Counter, defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
# First, as there may be other modules of these names.
sys.path.insert(0, os.path.join(HERE, 'incident'))
from cells import Cells, LEVELS, MOST_NAME  # pylint: disable=wrong-import-position

NSEC = 1000000000
IDLE = 0
MOST_TASKS = 1000
MOST_MISSING = 5
MOST_BYTES = 8 << 20
# Of findings on the page, and of characters of a sentence
MOST_FINDINGS = 100
MOST_WORDS = 4000

# Of the manifests of perf data recover: why bytes of ring buffers were dropped
DROPPED = {'in_flight': 'they were being written at the death',
           'overwritten': 'records in flight had overwritten them',
           'partial': 'newer records had overwritten their end',
           'size': 'no record has the size that is in their place',
           'type': 'records of an unknown type',
           'id': 'records with the id of no event',
           'cpu': 'records of another CPU',
           'time': 'records whose time is out of order',
           'body': 'records with a length or a string that exceeds them'}
# and counts of what is damaged
DAMAGED = {'damaged': 'sessions or the death', 'tasks_damaged': 'the table of tasks',
           'events_damaged': 'events', 'buffers_damaged': 'ring buffers',
           'notes_damaged': 'parts of the notes', 'notes_dropped': 'records in the notes'}

# They say since when a task can run.
WAKEUPS = ('sched:sched_waking', 'sched:sched_wakeup', 'sched:sched_wakeup_new')
SWITCH = 'sched:sched_switch'
# What is read of tracepoints
FIELDS = {SWITCH: ('prev_pid', 'prev_comm', 'prev_state', 'next_pid', 'next_comm'),
          **dict.fromkeys(WAKEUPS, ('pid',))}
# -1, as perf hands it over
NO_ID = (-1, 0xffffffff)
# A kernel thread that sleeps waits for work, and nobody for it.
FOR_WORK = 'waiting for work'
TASK_STATES = {0: 'preempted', 1: 'sleeping', 2: 'uninterruptible', 4: 'stopped', 8: 'traced',
               16: 'dead', 32: 'dead', 64: 'parked', 128: 'idle'}
PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT = 0, 1, 2
PERF_TYPE_HW_CACHE, PERF_TYPE_BREAKPOINT = 3, 5
# In perf_event_attr's flags: the period is a frequency.
ATTR_FREQ = 1 << 10
# Events that sample the running task, the best first: cpu-clock, task-clock; CPU cycles and
# reference cycles, which do not count while a CPU is idle; events of other PMUs by name.
CLOCKS = {(PERF_TYPE_SOFTWARE, 0): 1, (PERF_TYPE_SOFTWARE, 1): 2,
          (PERF_TYPE_HARDWARE, 0): 3, (PERF_TYPE_HARDWARE, 9): 4}
OTHER_CLOCK = 5
OTHER_CYCLES = re.compile(r'(.*/)?(cpu[-_])?cycles\b|ibs_op/')


def text(value):
    """A field of a tracepoint: bytes, where it holds something that is not printable"""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).split(b'\0')[0].decode('utf-8', 'replace')
    return value


def clock_rank(name, event_type, config):
    """How good a clock an event is, 1 the best; 0: it is none"""
    if event_type in (PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE):
        # The upper half of a hardware event says which PMU of a hybrid machine.
        return CLOCKS.get((event_type, config & 0xffffffff), 0)
    if event_type in (PERF_TYPE_TRACEPOINT, PERF_TYPE_HW_CACHE, PERF_TYPE_BREAKPOINT):
        return 0
    return OTHER_CLOCK if OTHER_CYCLES.match(name) else 0


def without_homes(value):
    """
    value, and all in it, without the directories below home directories: what lies between
    /home/ or /root/ and the last slash. perf data convert --redact has the same rule in
    util/export/redact.c. A script cannot call it, so a change of one is a change of both.
    """
    if isinstance(value, dict):
        return {key: without_homes(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(without_homes(item) for item in value)
    found = re.search('/(home|root)/+', value) if isinstance(value, str) else None
    if not found:
        return value
    rest = value[found.end():]
    if '/' in rest:
        rest = '-' + rest[rest.rindex('/'):]
    elif rest and found[1] == 'home':
        rest = '-'
    return value[:found.end()] + rest


def without_containers(value):
    """value, and all in it, without the names of containers and pods"""
    if isinstance(value, dict):
        return {key: without_containers(item) for key, item in value.items()
                if key not in ('containers', 'container_name', 'pod', 'pod_namespace')}
    return [without_containers(item) for item in value] if isinstance(value, list) else value


class Table:
    """Numbers things in the order in which they come."""

    def __init__(self, *first):
        self.index = {}
        self.items = []
        for item in first:
            self.number(item)

    def number(self, item):
        n = self.index.get(item)
        if n is None:
            n = self.index[item] = len(self.items)
            self.items.append(item)
        return n

    def rename(self, old, new):
        """new takes the number of old"""
        n = self.index[new] = self.index.pop(old)
        self.items[n] = new
        return n


class Symbols:
    """Frames are (name, dso, kind); chains are (parent chain, frame), root first."""
    USER, KERNEL, STATE = range(3)
    EMPTY = 0

    def __init__(self):
        self.frames = Table()
        self.chains = Table((-1, -1))
        self.raw = {}
        self.kthreads = {}
        self.states = {}

    @staticmethod
    def kind(dso):
        if dso.startswith('[') and dso not in ('[vdso]', '[vsyscall]', '[unknown]'):
            return Symbols.KERNEL
        if dso.endswith(('.ko', '.ko.xz', '.ko.gz', '.ko.zst', '/vmlinux')):
            return Symbols.KERNEL
        return Symbols.USER

    def frame(self, name, dso):
        key = (name, dso)
        n = self.raw.get(key)
        if n is None:
            dso = dso or '[unknown]'
            label = name or '[%s]' % os.path.basename(dso).strip('[]')
            n = self.raw[key] = self.frames.number((label, dso, self.kind(dso)))
        return n

    def node(self, caller, name, dso):
        return self.chains.number((caller, self.frame(name, dso)))

    def chain(self, sample):
        entries = sample.get('callchain')
        if isinstance(entries, int):
            return entries
        chain = self.EMPTY
        if not entries:
            return self.node(chain, sample.get('symbol'), sample.get('dso'))
        for entry in reversed(entries):
            symbol = entry.get('sym')
            chain = self.node(chain, symbol and symbol['name'], entry.get('dso'))
        return chain

    def state(self, chain, state):
        """The call chain of a task that left the CPU in that state"""
        found = self.states.get((chain, state))
        if found is None:
            found = self.states[chain, state] = self.new_state(chain, state)
        return found

    def new_state(self, chain, state):
        if state == 'idle' or state in ('sleeping', 'parked') and self.of_kthread(chain):
            state = FOR_WORK
        frame = self.frames.number(('(%s)' % state, '', self.STATE))
        return self.chains.number((chain, frame))

    def of_kthread(self, chain):
        """Whether a call chain begins in the function that all kernel threads run"""
        if chain not in self.kthreads:
            parent, frame = self.chains.items[chain]
            name, _, kind = self.frames.items[frame] if parent >= 0 else ('', '', self.STATE)
            self.kthreads[chain] = (name, kind) == ('kthread', self.KERNEL) or (
                parent > self.EMPTY and self.of_kthread(parent))
        return self.kthreads[chain]

    def leaf(self, chain):
        return self.chains.items[chain][1]


class Samples:
    """Columns, in the order of time, of the events, tasks and chains that are numbered"""
    COLUMNS = (('time', 'q'), ('cpu', 'i'), ('event', 'H'), ('task', 'I'), ('chain', 'I'),
               ('cgroup', 'I'))

    def __init__(self):
        self.columns = [array.array(code) for _, code in self.COLUMNS]
        self.time, self.cpu, self.event, self.task, self.chain, self.cgroup = self.columns
        # Without a loop, which would take as long as all else that is done for a sample.
        self.adds = tuple(column.append for column in self.columns)

    def __len__(self):
        return len(self.time)

    def in_order(self):
        """The columns, the oldest first"""
        time = self.time
        if all(map(operator.le, time, itertools.islice(time, 1, None))):
            return self.columns
        order = array.array('I', sorted(range(len(time)), key=time.__getitem__))
        return [map(column.__getitem__, order) for column in self.columns]


class Intervals:
    """Columns of what tasks did from start to end: they ran, or waited"""

    def __init__(self, **codes):
        self.columns = [array.array(code) for code in codes.values()]
        self.adds = tuple(column.append for column in self.columns)

    def __iter__(self):
        return zip(*self.columns)


class Switches:
    """
    Who runs where, and who waits.

    What runs on a CPU at its first record is what its first switch takes off it; what
    runs after its last switch runs until its last record. A task that is off at the end
    waited until then; one that was off at the beginning is not known to have been.

    That holds where every switch of a CPU is there. The task that leaves a CPU, or is sampled
    on it, must be the one that was switched to. If not (records were lost, only some tasks were
    recorded, parts of a recording were put together), what came before is not known, and not
    counted.
    """

    def __init__(self):
        # CPU -> (task, tid, since); a CPU of which nothing is known is not in it.
        self.running = {}
        self.met = set()
        self.waiting = {}
        self.run = Counter()
        self.first_runs = Counter()
        self.count = Counter()
        self.by_cpu = defaultdict(lambda: array.array('q'))
        # woken: since when it could run; the end, if that is not known.
        self.off = Intervals(start='q', woken='q', end='q', task='I', chain='I', cgroup='I')
        self.on = Intervals(start='q', end='q', task='I')
        self.first_on = []
        self.broken = False

    def leave(self, time, cpu, task, tid, chain, first, cgroup=0, runnable=False):
        """tid goes off the CPU; chain None: for good; runnable: it was preempted"""
        _, runs, began = self.running.pop(cpu, (None, None, None))
        self.by_cpu[cpu].append(time)
        self.waiting.pop(tid, None)
        if runs is not None and runs != tid:
            self.broken = True
        if tid != IDLE:
            self.count[task] += 1
            if runs == tid:
                self.run[task] += time - began
                self.add_run(began, time, task)
            elif cpu not in self.met:
                self.first_runs[task] += time - first
                self.first_on.append((first, time, task))
            if chain is not None:
                self.waiting[tid] = [time, time if runnable else None, task, chain, cgroup]
        self.met.add(cpu)

    def enter(self, time, cpu, task, tid):
        self.running[cpu] = (task, tid, time)
        self.met.add(cpu)
        if tid in self.waiting:
            self.wait(tid, time)

    def wake(self, time, tid):
        """tid can run, if it could not yet"""
        wait = self.waiting.get(tid)
        if wait and wait[1] is None:
            wait[1] = time

    def sampled(self, cpu, tid):
        """tid was seen on the CPU: whoever else was thought to be is not, nor does it wait"""
        runs = self.running.get(cpu)
        if runs and runs[1] != tid:
            del self.running[cpu]
            self.broken = True
        self.waiting.pop(tid, None)

    def forget(self, cpu):
        """Records of the CPU were lost"""
        self.running.pop(cpu, None)
        self.met.add(cpu)

    def add_run(self, start, end, task):
        add_start, add_end, add_task = self.on.adds
        add_start(start)
        add_end(end)
        add_task(task)

    def wait(self, tid, end):
        start, woken, task, chain, cgroup = self.waiting.pop(tid)
        add_start, add_woken, add_end, add_task, add_chain, add_cgroup = self.off.adds
        add_start(start)
        add_woken(end if woken is None else woken)
        add_end(end)
        add_task(task)
        add_chain(chain)
        add_cgroup(cgroup)

    def finish(self, last, newest, tid_task):
        if not self.broken:
            self.run.update(self.first_runs)
            for run in self.first_on:
                self.add_run(*run)
            for cpu, (task, tid, time) in self.running.items():
                if tid != IDLE:
                    # Its samples may have told more of it than the switch to it.
                    self.run[tid_task.get(tid, task)] += last[cpu] - time
                    self.add_run(time, last[cpu], tid_task.get(tid, task))
        for tid in list(self.waiting):
            self.wait(tid, newest)


class InOrder:
    """
    Calls that are made at the end, in the order of time.

    perf hands out a sample whose call chain is deferred when the user half has come, which is
    after other records. Only all of them in their order tell which task runs where.
    """

    def __init__(self):
        self.calls = []

    def later(self, call):
        """The same call, whose first argument is the time, but made by do()"""
        keep = self.calls.append
        return lambda *args: keep((call, args))

    def sample(self, call):
        """later(), for what has a name that is mostly one of before, as fifth argument"""
        keep, intern = self.calls.append, sys.intern
        return lambda time, cpu, pid, tid, comm, *args: keep(
            (call, (time, cpu, pid, tid, intern(comm), *args)))

    def do(self):
        self.calls.sort(key=lambda kept: kept[1][0])
        for call, args in self.calls:
            call(*args)
        self.calls.clear()


class Recording:
    """What perf told us, counted."""

    def __init__(self, losses=(), exits=()):
        """losses: CPU -> [(time, records)], exits: tid -> [time], both in order"""
        self.symbols = Symbols()
        self.tasks = Table()
        self.events = Table()
        self.clocks = {}
        # Of events that are sampled: not each hit of a tracepoint became a sample.
        self.of_some = {}
        self.traced = Switches()
        self.told = Switches()
        self.samples = Samples()
        self.first = {}
        self.last = {}
        self.marks = []
        self.tid_task = {}
        self.losses = {cpu: list(reversed(of)) for cpu, of in dict(losses).items()}
        self.exits = dict(exits)
        self.partial_switches = False
        self.wakeups = False
        # Samples without a cgroup have number 0.
        self.cgroups = Table('')
        # Ids of samples are of the recorder's name space, those of switches of the first;
        # whether these are the same is not known before a switch away from a task.
        self.same_ids = None

    @property
    def switches(self):
        """Those of sched:sched_switch, if they are all there; they know more"""
        return self.traced if self.traced.by_cpu else self.told

    def seen(self, cpu, time):
        if self.losses:
            self.lose(cpu, time)
        if cpu not in self.first:
            self.first[cpu] = self.last[cpu] = time
        elif time > self.last[cpu]:
            self.last[cpu] = time
        elif time < self.first[cpu]:
            self.first[cpu] = time

    def lose(self, cpu, until):
        """
        The kernel tells of lost records when there is room again: nothing is known since
        the record before.
        """
        losses = self.losses.get(cpu)
        while losses and losses[-1][0] <= until:
            time, count = losses.pop()
            self.marks.append(('lost', cpu, time, count, min(self.last.get(cpu, time), time)))
            self.traced.forget(cpu)
            self.told.forget(cpu)

    def task(self, pid, tid, comm):
        item, met = (pid, tid, comm), (-1, tid, comm)
        if item not in self.tasks.index and met in self.tasks.index and \
           self.same_ids is not False:
            # The switch to it told no pid.
            task = self.tasks.rename(met, item)
        else:
            task = self.tasks.number(item)
        self.tid_task[tid] = task
        return task

    def who(self, pid, tid, comm):
        """A task on its way out has no id, and no name once its exit has been seen"""
        if tid in NO_ID:
            return -1, -1, '(exiting)'
        if comm == ':%d' % tid and tid in self.tid_task:
            return self.tasks.items[self.tid_task[tid]]
        return pid, tid, comm

    def event(self, name, clock):
        event = self.events.number(name.rstrip(':'))
        self.clocks[event] = clock
        return event

    def clock(self, name, attr):
        event_type, _, config, period = struct.unpack_from('=IIQQ', attr)
        flags = struct.unpack_from('=Q', attr, 40)[0]
        event = self.event(name, clock_rank(name, event_type, config))
        some = bool(flags & ATTR_FREQ) or period > 1
        self.of_some[event] = some or self.of_some.get(event, False)
        return event

    def numbers(self, s, event):
        """What perf hands over to process_sample()"""
        where = s['sample']
        return (where['time'], where['cpu'], where['pid'], where['tid'], s['comm'], event,
                self.symbols.chain(s), where.get('cgroup', ''))

    def add(self, time, cpu, pid, tid, comm, event, chain, cgroup, switch=None):
        if cpu in NO_ID:
            cpu = -1
        # What is mostly so is done here, without a call.
        if self.losses or time <= self.last.get(cpu, time):
            self.seen(cpu, time)
        else:
            self.last[cpu] = time
        # Mostly, the task is the one that last had the id.
        task = self.tid_task.get(tid)
        if task is None or self.tasks.items[task] != (pid, tid, comm):
            task = self.task(*self.who(pid, tid, comm))
        number = self.cgroups.index.get(cgroup)
        cgroup = self.cgroups.number(cgroup) if number is None else number
        add_time, add_cpu, add_event, add_task, add_chain, add_cgroup = self.samples.adds
        add_time(time)
        add_cpu(cpu)
        add_event(event)
        add_task(task)
        add_chain(chain)
        add_cgroup(cgroup)
        if tid not in NO_ID:
            if switch is not None and (switch or tid) and self.same_ids is not False:
                self.same_ids = switch == tid
            if self.same_ids:
                self.traced.sampled(cpu, tid)
            if self.told.met:
                self.told.sampled(cpu, tid)
        return time, cpu, task, chain, cgroup

    def fields(self, event):
        """Which fields of an event are read"""
        return FIELDS.get(self.events.items[event], ())

    def tracepoint(self, time, cpu, pid, tid, comm, event, chain, cgroup, fields):
        if None in fields:
            # Not as the kernel writes it
            fields = ()
        _, cpu, task, _, cgroup = self.add(time, cpu, pid, tid, comm, event, chain, cgroup,
                                           fields[0] if len(fields) > 1 else None)
        if len(fields) > 1:
            if self.of_some[event]:
                self.partial_switches = True
            else:
                self.sched_switch(time, cpu, task, chain, cgroup, fields)
        elif fields and not self.of_some[event]:
            self.wakeups = True
            self.traced.wake(time, fields[0])

    def sched_switch(self, time, cpu, task, chain, cgroup, fields):
        tid, prev_comm, state, following, next_comm = fields
        state &= 0xff
        comm = self.tasks.items[task][2]
        if comm[:1] in ('(', ':') and comm in ('(exiting)', ':%d' % tid):
            task = self.task_named(tid, prev_comm)
        state = TASK_STATES.get(state & -state, 'waiting')
        chain = None if state == 'dead' else self.symbols.state(chain, state)
        self.traced.leave(time, cpu, task, tid, chain, self.first[cpu], cgroup,
                          state == 'preempted')
        self.traced.enter(time, cpu, self.task_named(following, next_comm), following)

    def task_named(self, tid, comm):
        task = self.tid_task.get(tid)
        return self.task(-1 if tid else 0, tid, text(comm)) if task is None else task

    def context_switch(self, time, cpu, pid, tid, out, preempt):
        """PERF_RECORD_SWITCH: the same without a call chain"""
        cpu = -1 if cpu in NO_ID else cpu
        self.seen(cpu, time)
        gone, switches = tid in NO_ID, self.told
        if gone:
            # A task that exits has no id any more: it is the one that was switched to.
            if not out or cpu not in switches.running:
                switches.forget(cpu)
                return
            tid = switches.running[cpu][1]
        task = self.tid_task.get(tid)
        if task is None:
            task = self.task(pid, tid, '[%d]' % tid if tid else 'swapper')
        if not out:
            switches.enter(time, cpu, task, tid)
            return
        began = switches.running.get(cpu, (None, None, self.first[cpu]))[2]
        gone = gone or any(began <= exit_ <= time for exit_ in self.exits.get(tid, ()))
        chain = None if gone else self.symbols.state(Symbols.EMPTY, 'preempted' if preempt
                                                     else 'sleeping')
        switches.leave(time, cpu, task, tid, chain, self.first[cpu], 0, bool(preempt))

    def throttled(self, cpu, time):
        self.marks.append(('throttled', cpu, time, 1, time))

    def redact(self, what):
        """Different names may become equal; they keep their numbers"""
        if 'home' in what:
            for names in (self.symbols.frames, self.tasks, self.cgroups):
                names.items = without_homes(names.items)

    def finish(self):
        for cpu, losses in self.losses.items():
            if losses:
                self.lose(cpu, losses[0][0])
        newest = max(self.last.values(), default=0)
        for switches in (self.traced, self.told):
            switches.finish(self.last, newest, self.tid_task)


def run_perf(*args):
    """What a perf command prints, or nothing: its warnings are perf script's own, too"""
    return subprocess.run(('perf',) + args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False
                          ).stdout.decode('utf-8', 'replace')


class Machine:
    """Data of the header of the file and of its manifest."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)
        self.header = {}
        # Whether a sample can come later than others that are newer
        self.defers = False
        self.manifest = self.read_manifest()
        self.verdict = self.read_verdict()
        for line in run_perf('report', '--header-only', '-i', path).splitlines():
            match = re.match(r'# ([a-z][a-z ]*?)\s*[:=] *(.*)', line)
            if match:
                self.header.setdefault(match[1], match[2])
                self.defers |= match[1] == 'event' and ', defer_callchain = ' in match[2]

    def redact(self, what, instead=None):
        """Forget what is not to be told: words of --redact. instead: number of the machine"""
        # The kernel prints names of all kinds.
        if what:
            self.manifest.pop('messages', None)
        if 'args' in what:
            self.manifest.pop('reason', None)
            self.header.pop('cmdline', None)
        if 'host' in what:
            for name in ('host', 'boot_id'):
                self.manifest.pop(name, None)
            self.header.pop('hostname', None)
            self.verdict = without_containers(self.verdict)
            if instead is not None:
                # With dumps of many machines, names of files can tell the machine.
                self.manifest['host'] = 'machine %d' % instead
                self.name = 'recording %d' % instead
        if 'home' in what:
            self.manifest = without_homes(self.manifest)
            self.header = without_homes(self.header)
            self.verdict = without_homes(self.verdict)

    def read_manifest(self):
        try:
            with open(self.path + '.json', encoding='utf-8') as f:
                manifest = json.load(f)
            return manifest if isinstance(manifest, dict) else {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as err:
            print('Cannot read %s.json, continuing without it: %s' % (self.path, err),
                  file=sys.stderr)
            return {}

    def read_verdict(self):
        """Who held whom up, and what changed, as perf verdict tells it; {} if it cannot"""
        try:
            verdict = json.loads(run_perf('verdict', '--json', '--side-band', '--compare', '-i',
                                          self.path))
            return verdict if isinstance(verdict, dict) else {}
        except ValueError:
            return {}

    def reference(self):
        """(wall clock, clock of the records) in ns at the same time"""
        match = re.search(r'= (\d+)\.(\d+) \(TOD\) = (\d+)\.(\d+)',
                          self.header.get('reference time', ''))
        if not match:
            return None
        return tuple(int(match[i]) * NSEC + int(match[i + 1].ljust(9, '0')) for i in (1, 3))

    def trigger(self):
        """When it was triggered, on the clock of the records, or None"""
        # Manifests of earlier versions have the time of the dump alone.
        time = self.manifest.get('trigger_time')
        if isinstance(time, (int, float)) and time > 0:
            return round(time * NSEC)
        match = re.match(r'(\d{8}T\d{6})\.(\d{3})Z$', str(self.manifest.get('time', '')))
        reference = self.reference()
        if not match or not reference:
            return None
        utc = datetime.datetime.strptime(match[1], '%Y%m%dT%H%M%S').replace(
            tzinfo=datetime.timezone.utc)
        return int(utc.timestamp()) * NSEC + int(match[2]) * 1000000 - reference[0] + reference[1]

    def side_band(self):
        """
        Of PERF_RECORD_LOST: CPU -> [(time, records)]; of PERF_RECORD_EXIT: tid -> [time]
        """
        losses, exits = defaultdict(list), defaultdict(list)
        if 'losses' in self.verdict:
            # The page does not show them as they are.
            for loss in self.verdict.pop('losses'):
                losses[loss.get('cpu', -1)].append((loss['time'], loss['records']))
            for end in self.verdict.pop('exits'):
                exits[end['tid']].append(end['time'])
            return losses, exits
        # There is no perf verdict without libtraceevent. No sample has that task; the records
        # of what was lost are shown all the same.
        lines = run_perf('script', '-i', self.path, '--show-lost-events', '--show-task-events',
                         '--tid', '2147483647', '--ns', '-F', 'comm,tid,cpu,time')
        pattern = re.compile(r'(?:\[(\d+)\]\s+)?(\d+)\.(\d+): PERF_RECORD_'
                             r'(?:LOST.*?lost (\d+)|EXIT\(\d+:(\d+)\))')
        for line in lines.splitlines():
            match = pattern.search(line)
            if not match:
                continue
            time = int(match[2]) * NSEC + int(match[3].ljust(9, '0'))
            if match[5]:
                exits[int(match[5])].append(time)
            else:
                losses[int(match[1] or -1)].append((time, int(match[4])))
        return losses, exits


class Figures:
    """What the summary and the page show, counted from a Recording once."""

    def __init__(self, recording, machine):
        self.r = recording
        self.machine = machine
        manifest = machine.manifest
        self.told = {c['cpu']: c for c in manifest.get('cpus', [])
                     if isinstance(c, dict) and isinstance(c.get('cpu'), int)}
        self.trigger = machine.trigger()
        times = list(recording.first.values()) + list(recording.last.values())
        self.oldest = min(times, default=0)
        self.newest = max(times, default=0)
        if self.trigger is not None and not \
           self.oldest - 60 * NSEC < self.trigger < self.newest + 60 * NSEC:
            self.trigger = None
        self.end = max(self.newest, self.trigger or 0)
        recording.finish()
        samples = recording.samples
        self.by_event = Counter(samples.event)
        self.clock = self.clock_events()
        # Without a clock the event with most samples is what is shown first.
        self.shown = self.clock or [e for e, _ in self.by_event.most_common(1)]
        self.by_cpu = Counter(samples.cpu)
        self.by_cgroup = Counter(samples.cgroup)
        shown = set(self.shown)
        # Samples of a clock that found a CPU idle; those of other events have happened there.
        self.by_task, self.by_chain, self.idle_chain = Counter(), Counter(), Counter()
        tids = [tid for _, tid, _ in recording.tasks.items] if self.clock else []
        for event, task, chain in zip(samples.event, samples.task, samples.chain):
            if event in shown:
                self.by_task[task] += 1
                self.by_chain[chain] += 1
                if tids and tids[task] == IDLE:
                    self.idle_chain[chain] += 1
        self.cpus = self.per_cpu()

    def clock_events(self):
        """The events whose samples say who was on a CPU: more than one on hybrid machines"""
        ranks = {e: self.r.clocks[e] for e in self.by_event if self.r.clocks[e]}
        best = min(ranks.values(), default=0)
        return sorted(e for e in ranks if ranks[e] == best)

    def names(self, events):
        return ' + '.join(self.r.events.items[e] for e in events)

    def per_cpu(self):
        lost, throttled = Counter(), Counter()
        for kind, cpu, _, count, _ in self.r.marks:
            if kind == 'lost':
                lost[cpu] += count
            else:
                throttled[cpu] += 1
        return [{
            'cpu': cpu, 'samples': self.by_cpu[cpu],
            'switches': len(self.r.switches.by_cpu.get(cpu, ())),
            'oldest': self.r.first.get(cpu), 'newest': self.r.last.get(cpu),
            'lost': max(lost[cpu], self.told.get(cpu, {}).get('lost', 0)),
            'throttled': throttled[cpu],
            'given_up': self.told.get(cpu, {}).get('given_up', 0),
            'way': self.told.get(cpu, {}).get('way', ''),
        } for cpu in sorted(set(self.r.first) | set(self.told) | set(lost) | set(throttled))]

    def events(self):
        return [{'name': name, 'kind': 'clock' if self.r.clocks[e] else 'count',
                 'samples': self.by_event[e]} for e, name in enumerate(self.r.events.items)]

    def tasks(self):
        off = Counter()
        for start, _, end, task, _, _ in self.r.switches.off:
            off[task] += end - start
        rows = [{'pid': pid, 'tid': tid, 'comm': comm, 'samples': self.by_task[task],
                 'switches': self.r.switches.count[task], 'on_ns': self.r.switches.run[task],
                 'off_ns': off[task]}
                for task, (pid, tid, comm) in enumerate(self.r.tasks.items)]
        rows = [row for row in rows if row['samples'] or row['switches'] or row['on_ns']]
        return sorted(rows, key=lambda row: (-row['samples'], -row['on_ns'], row['tid']))

    def functions(self):
        """
        [name, dso, self, total, idle] by samples; a function counts once in a chain. idle: so
        many of its own samples found the CPU idle
        """
        own, total, idle = Counter(), Counter(), Counter()
        chains = self.r.symbols.chains.items
        for chain, count in self.by_chain.items():
            own[self.r.symbols.leaf(chain)] += count
            idle[self.r.symbols.leaf(chain)] += self.idle_chain[chain]
            frames = set()
            while chain > Symbols.EMPTY:
                chain, frame = chains[chain]
                frames.add(frame)
            for frame in frames:
                total[frame] += count
        rows = [{'name': frames[0], 'dso': frames[1], 'self': own[n], 'total': total[n],
                 'idle': idle[n]}
                for n, frames in enumerate(self.r.symbols.frames.items) if total[n]]
        return sorted(rows, key=lambda row: (-row['self'], -row['total'], row['name']))

    def waits(self):
        """Off-CPU time by who waited and how"""
        sums = Counter()
        for start, _, end, task, chain, _ in self.r.switches.off:
            sums[task, self.r.symbols.frames.items[self.r.symbols.leaf(chain)][0]] += end - start
        return [{'comm': self.r.tasks.items[task][2], 'tid': self.r.tasks.items[task][1],
                 'state': state.strip('()'), 'off_ns': ns}
                for (task, state), ns in sums.most_common()]

    def what(self):
        """What triggered, when, on which machine: (name, value) pairs"""
        m, h = self.machine.manifest, self.machine.header
        time = str(m.get('time', ''))
        match = re.match(r'(....)(..)(..)T(..)(..)(..\.\d+)Z', time)
        if match:
            time = '%s-%s-%s %s:%s:%s UTC' % match.groups()
        swallowed = m.get('swallowed')
        pairs = [
            ('Trigger', ', '.join(str(m[k]) for k in ('trigger', 'reason') if m.get(k))),
            ('Action', m.get('action')),
            ('Time', time or self.ended()),
            ('File written', '' if time or self.ended() else h.get('captured on')),
            ('Host', m.get('host') or h.get('hostname')),
            ('Kernel', m.get('kernel') or h.get('os release')),
            ('Boot', m.get('boot_id')),
            ('CPU', h.get('cpudesc')),
            ('CPUs', h.get('nrcpus online')),
            ('Swallowed', '%d more triggers in the cooldown' % swallowed if swallowed else ''),
            ('Command', str(h.get('cmdline', '')).strip()),
            ('File', self.machine.name),
        ]
        return [(name, str(value)) for name, value in pairs if value]

    def messages(self):
        """What the kernel printed before it died"""
        lines = self.machine.manifest.get('messages')
        return [str(line) for line in lines] if isinstance(lines, list) else []

    def ended(self):
        """Wall-clock time of the newest record, if the header has a reference time"""
        reference = self.machine.reference()
        if not reference or not self.newest:
            return ''
        at = (reference[0] + self.newest - reference[1]) / NSEC
        return 'until %s UTC' % datetime.datetime.fromtimestamp(
            at, datetime.timezone.utc).strftime('%Y-%m-%d %H:%M:%S')

    def missing_files(self):
        """(dso, its number of a frame, samples) of files that no function has a name of"""
        raw = self.r.symbols.raw
        named = {dso for name, dso in raw if name}
        unnamed = {n: dso for (name, dso), n in raw.items()
                   if not name and dso and dso not in named and
                   (dso[0] == '/' and dso[1:2] != '/' or dso.startswith('[kernel'))}
        samples, frames = Counter(), {}
        for chain, count in self.by_chain.items():
            n = self.r.symbols.leaf(chain)
            if n in unnamed:
                samples[unnamed[n]] += count
                frames[unnamed[n]] = n
        return [(dso, frames[dso], count) for dso, count in samples.most_common()]

    def missing(self):
        """What symbols are missing, and how to get them"""
        files, shown = self.missing_files(), sum(self.by_chain.values())
        files = [f for f in files if f[2] * 1000 >= shown]
        if not files:
            return []
        lines = (line.split(' ', 1) for line in
                 run_perf('buildid-list', '-i', self.machine.path).splitlines())
        ids = {line[1]: line[0] for line in lines if len(line) == 2}
        notes = ['%s of the samples are in %s (build-id %s), which is not here: its functions '
                 'have no names.' % (percent(count, shown),
                                     self.r.symbols.frames.items[frame][1],
                                     ids.get(dso, 'unknown'))
                 for dso, frame, count in files[:MOST_MISSING]]
        if len(files) > MOST_MISSING:
            notes.append('%d more files are not here.' % (len(files) - MOST_MISSING))
        return notes + ['For the names of functions, set DEBUGINFOD_URLS, or use perf '
                        '--buildid-dir with perf-symbols of the machine that recorded: see '
                        'perf-report(1).']

    def notes(self):
        """Limitations of the data that the reader must know"""
        verdict = self.machine.verdict
        notes = [verdict[key] for key in ('overhead', 'shares') if verdict.get(key)]
        lost = sum(c['lost'] for c in self.cpus)
        given_up = sum(c['given_up'] for c in self.cpus)
        if not self.machine.manifest:
            notes.append('There is no %s.json: the trigger and the number of overwritten bytes '
                         'are unknown.' % self.machine.name)
        if lost:
            notes.append('%d records were lost: a ring buffer of the kernel was full.' % lost)
        if given_up and not self.image():
            notes.append('%d bytes were lost: they were overwritten while they were read.'
                         % given_up)
        if self.machine.manifest.get('unresolved'):
            notes.append('%d samples belong to unknown tasks.'
                         % self.machine.manifest['unresolved'])
        # Only a dump has a manifest that tells; the other counts what is in the file.
        halves = self.machine.manifest.get('half_chains') or verdict.get('half_chains')
        if halves:
            notes.append('%d samples lack the user half of their call chain: it was evicted, '
                         'or had not come yet.' % halves)
        notes += self.frozen() + self.recovered()
        if self.r.partial_switches:
            notes.append('sched:sched_switch was sampled (-F or -c), so times on and off the '
                         'CPU are unknown: record it without -F and -c, beside cpu-clock/freq=99/.')
        if self.r.switches.broken:
            notes.append('Not every switch is here (only some tasks were recorded, or files were '
                         'combined): times on and off the CPU are incomplete.')
        # It says the same with names.
        named = self.machine.verdict.get('notes', [])
        if named and (lost or self.r.switches.broken):
            notes = [note for note in notes if not note.startswith('Not every switch')] + named
        notes += self.missing()
        if args.redact:
            notes.append('Left out by --redact: %s.' % ', '.join(sorted(args.redact)))
        if len(self.r.samples) and not self.clock:
            notes.append('No event samples the CPUs by time (cpu-clock, cycles): the running '
                         'tasks are unknown.')
        return notes

    def frozen(self):
        """What is missing because the session was frozen before the dump"""
        manifest = self.machine.manifest
        frozen, lost = manifest.get('frozen'), manifest.get('frozen_lost')
        if not isinstance(frozen, (int, float)):
            return []
        note = 'The session %s was frozen (by: %s)' % (manifest.get('session'),
                                                       manifest.get('frozen_by'))
        trigger = manifest.get('trigger_time')
        if isinstance(trigger, (int, float)) and trigger > frozen:
            note += ' %.3f s before the trigger' % (trigger - frozen)
        if isinstance(lost, int):
            note += '; %d later records were refused' % lost
        return [note + '.']

    def image(self):
        """What the manifest says of the image, if the recording is that of a dead machine"""
        image = self.machine.manifest.get('image')
        return image if isinstance(image, dict) else {}

    def recovered(self):
        """What of the image of a dead machine is not in the recording, and why"""
        image, manifest = self.image(), self.machine.manifest
        if not image:
            return []
        dropped = manifest.get('dropped')
        dropped = [d for d in (dropped if isinstance(dropped, list) else [])
                   if isinstance(d, dict) and isinstance(d.get('bytes'), int)]
        notes = ['%d bytes of the ring buffers were dropped: %s.' % (
            d['bytes'], DROPPED.get(str(d.get('reason')), d.get('reason'))) for d in dropped]
        counts = {**{name: manifest.get(name) for name in DAMAGED}, **image}
        damaged = ['%s (%d)' % (what, counts[name]) for name, what in DAMAGED.items()
                   if isinstance(counts[name], int) and counts[name] > 0]
        if damaged:
            notes.append('Damaged in the image, and left out: %s.' % ', '.join(damaged))
        if image.get('tasks_left_out') is True:
            notes.append('Not all tasks that were alive at the death are in the image: '
                         'some names may be missing.')
        if image.get('truncated') is True:
            notes.append('The file with the image ended before the image did.')
        return notes

    def all(self):
        return {
            'machine': dict(self.what()), 'messages': self.messages(), 'notes': self.notes(),
            'oldest': self.oldest, 'newest': self.newest, 'trigger': self.trigger,
            'window_ns': self.newest - self.oldest, 'samples': len(self.r.samples),
            'clock': self.names(self.clock) or None, 'shown': self.names(self.shown) or None,
            'on_cpu_samples': sum(self.by_event[e] for e in self.clock),
            'shown_samples': sum(self.by_event[e] for e in self.shown),
            'idle_samples': sum(self.idle_chain.values()),
            'events': self.events(), 'cpus': self.cpus, 'tasks': self.tasks(),
            'functions': self.functions(), 'waits': self.waits(),
            'cgroup_samples': {name: self.by_cgroup[n] for n, name in
                               enumerate(self.r.cgroups.items) if name},
            'verdict': self.machine.verdict,
        }


def seconds(ns):
    return '%.3f' % (ns / NSEC)


def printable(value):
    """What the terminal can show, and does not obey"""
    plain = ''.join(c if c.isprintable() else '\\x%02x' % ord(c) for c in str(value))
    encoding = getattr(sys.stdout, 'encoding', None) or 'utf-8'
    return plain.encode(encoding, 'backslashreplace').decode(encoding)


def cpu_name(cpu):
    return '?' if cpu < 0 else str(cpu)


def percent(part, whole):
    return '%.2f%%' % (100 * part / whole) if whole else '-'


def table(title, heads, rows, out):
    """Columns as wide as what is in them; a head that begins with < is left-aligned"""
    print('\n%s' % title, file=out)
    if not rows:
        print('  none', file=out)
        return
    left = [head.startswith('<') for head in heads]
    cells = [[head.lstrip('<') for head in heads]] + [[printable(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    for row in cells:
        print(('  ' + '  '.join(c.ljust(w) if l else c.rjust(w)
                                for c, w, l in zip(row, widths, left))).rstrip(), file=out)


def summary(figures, out, limit=10):
    """The figures of the page, for a terminal"""
    # Idle CPUs have no place among the tasks and functions that ran.
    busy = figures['shown_samples'] - figures['idle_samples']
    tasks = [t for t in figures['tasks'] if t['tid'] != IDLE or not figures['idle_samples']]
    functions = sorted((dict(f, self=f['self'] - f['idle']) for f in figures['functions']
                        if not f['idle'] or f['self'] > f['idle']), key=lambda f: -f['self'])
    waits = [w for w in figures['waits'] if w['state'] != FOR_WORK]
    for_work = sum(w['off_ns'] for w in figures['waits'] if w['state'] == FOR_WORK)
    for name, value in figures['machine'].items():
        print('%-10s %s' % (name, printable(value)), file=out)
    print('%-10s %s s, %s .. %s' % ('Window', seconds(figures['window_ns']),
                                    seconds(figures['oldest']), seconds(figures['newest'])),
          file=out)
    if figures['trigger'] is not None:
        print('%-10s at %s' % ('Triggered', seconds(figures['trigger'])), file=out)
    print('%-10s %d' % ('Samples', figures['samples']), file=out)
    if figures['idle_samples']:
        print('%-10s %s of the samples of %s, which are not counted below' % (
            'Idle', percent(figures['idle_samples'], figures['shown_samples']), figures['clock']),
              file=out)
    for note in figures['notes']:
        print('Note: %s' % printable(note), file=out)
    if figures['messages']:
        print('\nLast messages of the kernel', file=out)
    for line in figures['messages'][-limit:]:
        print('  %s' % printable(line), file=out)
    findings(figures['verdict'], out)
    table('Events', ['<EVENT', 'SAMPLES'],
          [(e['name'], e['samples']) for e in figures['events']], out)
    table('CPUs', ['CPU', 'SAMPLES', 'SWITCHES', 'OLDEST(s)', 'NEWEST(s)', 'LOST', 'THROTTLED',
                   'GIVEN UP', '<WAY'],
          [(cpu_name(c['cpu']), c['samples'], c['switches'],
            '-' if c['oldest'] is None else seconds(c['oldest']),
            '-' if c['newest'] is None else seconds(c['newest']),
            c['lost'], c['throttled'], c['given_up'], c['way']) for c in figures['cpus']], out)
    table('Tasks, by samples of %s' % (figures['shown'] or 'no event'),
          ['TID', '<TASK', 'SAMPLES', 'SHARE', 'SWITCHES', 'ON-CPU(s)', 'OFF-CPU(s)'],
          [(t['tid'], t['comm'], t['samples'], percent(t['samples'], busy), t['switches'],
            seconds(t['on_ns']), seconds(t['off_ns'])) for t in tasks[:limit]], out)
    table('Functions, by samples of %s' % (figures['shown'] or 'no event'),
          ['SELF', 'SHARE', 'TOTAL', '<FUNCTION', '<IN'],
          [(f['self'], percent(f['self'], busy), f['total'], f['name'][:60], f['dso'])
           for f in functions[:limit]], out)
    if figures['waits']:
        table('Off the CPU', ['TID', '<TASK', '<HOW', 'TIME(s)'],
              [(w['tid'], w['comm'], w['state'], seconds(w['off_ns']))
               for w in waits[:limit]], out)
        if for_work:
            print('  Not listed: kernel threads that waited for work, %s s in all'
                  % seconds(for_work), file=out)


def findings(verdict, out):
    """What perf verdict found, for a terminal"""
    if not verdict:
        return
    print('\nFindings', file=out)
    if not verdict['findings']:
        print('  Nothing was found that held tasks up.', file=out)
    for n, finding in enumerate(verdict['findings'], 1):
        print('  %d. %s (%s)' % (n, printable(finding['sentence']), finding['confidence']),
              file=out)
        # Of an older perf, findings have no containers.
        for words in finding.get('containers', []):
            print('     %s' % printable(words), file=out)
        for depth, link in enumerate(finding['chain']):
            print('     %s%s' % ('  ' * depth, printable(link['text'])), file=out)
    for missing in verdict['missing']:
        print('  Not recorded: %s (-e %s)' % (missing['what'], missing['events']), file=out)


def shortened(value, most=MOST_WORDS):
    """value, and all in it, without the ends of long names and sentences"""
    if isinstance(value, dict):
        return {key: shortened(item, MOST_NAME if key in ('function', 'dso', 'comm') else
                               MOST_WORDS) for key, item in value.items()}
    if isinstance(value, list):
        return [shortened(item) for item in value]
    return value[:most] if isinstance(value, str) else value


class Page:
    """The HTML page: Figures for its tables, and cells to count any part of the window."""
    ASSETS = os.path.join(HERE, 'incident')
    LIBRARIES = ('d3', 'd3-flame-graph')
    # Each is a part of one script; the last one starts it.
    SCRIPTS = ('common.js', 'lanes.js', 'compare.js', 'butterfly.js', 'findings.js',
               'incident.js')

    def __init__(self, figures):
        self.f = figures
        self.r = figures.r
        self.start = figures.oldest
        self.width = max(figures.end - self.start, 1)
        # What one level of detail has in common with the next one
        self.steps = None
        self.verdict = shortened(self.f.machine.verdict)
        self.more = self.verdict.get('findings', [])[MOST_FINDINGS:]
        if self.more:
            self.verdict['findings'] = self.verdict['findings'][:MOST_FINDINGS]

    def told_tasks(self):
        """tids of the tasks of findings, those of the first one first"""
        tids = {}
        for finding in self.verdict.get('findings', []):
            links = [link['task'] for link in finding['chain']]
            for task in finding['victims'] + finding['culprits'] + links:
                tids.setdefault(task['tid'])
        return tids

    def data(self, counted, level):
        figures = dict(counted)
        for name in ('functions', 'waits', 'cgroup_samples'):
            # The page counts them itself, from the cells, for the part that is selected.
            del figures[name]
        figures['tasks'] = sorted((t for t in counted['tasks'] if t['switches'] or t['on_ns']),
                                  key=lambda t: -t['on_ns'])[:MOST_TASKS]
        cells = Cells(self.r, self.start, self.width, level, Symbols.STATE, self.told_tasks())
        self.steps = cells.steps(self.steps)
        figures.update(cells.data([c['cpu'] for c in counted['cpus']], self.steps))
        if self.more:
            figures['notes'] = counted['notes'] + [
                '%d more findings are not on this page: perf verdict lists them.' % len(self.more)]
        figures.update({
            'start': self.start, 'width': self.width,
            'what': self.f.what(), 'messages': self.f.messages(),
            'shownEvents': self.f.shown, 'verdict': self.verdict,
            'hasSwitches': bool(self.r.switches.by_cpu), 'hasWakeups': self.r.wakeups,
        })
        return figures

    def read(self, *path):
        with open(os.path.join(self.ASSETS, *path), encoding='utf-8') as f:
            return f.read()

    def library(self):
        """d3 and d3-flame-graph with their licences; nothing if they were not installed"""
        parts = {'script': '', 'style': '', 'licences': ''}
        for name in self.LIBRARIES:
            try:
                script = self.read('lib', name + '.js')
                licence = self.read('lib', name + '.LICENSE')
            except OSError:
                return {'script': '', 'style': '', 'licences': ''}
            comment = licence.replace('*/', '* /')
            parts['script'] += '<script>/* %s\n\n%s */\n%s</script>\n' % (
                name, comment, script.replace('</script', '<\\/script'))
            parts['licences'] += '<h3>%s</h3><pre>%s</pre>' % (name, html.escape(licence))
        parts['style'] = self.read('lib', 'd3-flame-graph.css')
        return parts

    def fitting(self, counted, room):
        """The data as JSON, counted as finely as there is room for"""
        n = 0
        while True:
            # ASCII, and "<" never ends the element that the data lie in.
            data = json.dumps(self.data(counted, LEVELS[n]), separators=(',', ':')).replace(
                '<', '\\u003c')
            if len(data) <= room or n == len(LEVELS) - 1:
                return data
            # Levels that are known to be too large are left out.
            n += 1
            while n < len(LEVELS) - 1 and LEVELS[n].bins * len(data) > \
                    8 * room * LEVELS[0].bins:
                n += 1

    def title(self):
        return html.escape(' '.join(filter(None, (self.f.machine.manifest.get('host'),
                                                  self.f.machine.name))))

    def values(self):
        """What the page is made of, but for its title and its data"""
        library = self.library()
        return {
            'style': library['style'] + self.read('incident.css'),
            'library': library['script'], 'licences': library['licences'],
            'script': '\n'.join(self.read(name) for name in self.SCRIPTS),
        }

    def room(self, values):
        """How large the data may be"""
        return MOST_BYTES - sum(len(value.encode()) for value in values.values()) - \
            os.path.getsize(os.path.join(self.ASSETS, 'incident.html'))

    def write(self, f, counted):
        values = dict(self.values(), title=self.title())
        values['data'] = self.fitting(counted, self.room(values))
        f.write(re.sub(r'@(%s)@' % '|'.join(values), lambda m: values[m[1]],
                       self.read('incident.html')))
        return bool(values['library'])


def arguments():
    parser = argparse.ArgumentParser(prog='perf script report incident', description='Report a '
                                     'recording as a summary and as an HTML page.')
    parser.add_argument('-i', '--input', default='perf.data', help='the dump')
    parser.add_argument('-o', '--output', help='the page (DUMP.html)')
    parser.add_argument('--json', action='store_true',
                        help='print JSON; write the page only with -o')
    parser.add_argument('--redact', nargs='?', const='args,home', type=redaction, default=set(),
                        metavar='WHAT', help='leave out args, home, host (args,home) or all')
    # Of bin/incident-report: a directory for several recordings, and the number of this one
    parser.add_argument('--part', nargs=2, help=argparse.SUPPRESS)
    parser.add_argument('--combine', help=argparse.SUPPRESS)
    return parser.parse_args()


def redaction(words):
    what = set(words.split(','))
    if not what <= {'args', 'home', 'host', 'all'}:
        raise argparse.ArgumentTypeError("'%s': use args, home, host or all, separated by commas"
                                         % words)
    return {'args', 'home', 'host'} if 'all' in what else what


def write_file(path, write):
    """The file is whole, or not there. Returns what write(file) does"""
    temporary, made = '%s.%d' % (path, os.getpid()), False
    try:
        # The page is as confidential as the dump.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        made = True
        with open(fd, 'w', encoding='utf-8', errors='replace') as f:
            done = write(f)
        os.rename(temporary, path)
    except BaseException as err:
        if made:
            os.unlink(temporary)
        if not isinstance(err, OSError):
            raise
        sys.exit('incident: %s: %s' % (path, err.strerror))
    return done


def write_page(path, write):
    whole = write_file(path, write)
    print('\nThe page is %s' % path, file=sys.stderr)
    if not whole:
        print('It has no flame graph: this perf was built without d3 and d3-flame-graph, because '
              'npm or the network was not available.', file=sys.stderr)


def tell(write):
    """write(stdout), whose reader may close the pipe"""
    try:
        write(sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def trace_end():
    in_order.do()
    boot = machine.manifest.get('boot_id')
    machine.redact(args.redact, int(args.part[1]) if args.part else None)
    figures = Figures(recording, machine)
    recording.redact(args.redact)
    counted = figures.all()
    if args.part:
        machines.hand_over(os.path.join(*args.part), figures, counted, Page(figures), boot)
        return
    tell(lambda out: print(json.dumps(counted), file=out) if args.json else summary(counted, out))
    if args.output or not args.json:
        page = Page(figures)
        write_page(args.output or args.input + '.html', lambda f: page.write(f, counted))


def combine():
    """The page of all recordings that were handed over"""
    everything = machines.Machines(args.combine)
    everything.check(printable)
    tell(everything.print_json if args.json else
         lambda out: everything.summary(out, table, printable))
    if args.output or not args.json:
        path = args.output or 'incident.html'
        write_page(path, everything.write)
        if os.path.getsize(path) > machines.LARGE:
            print('It is %d MiB large.' % (os.path.getsize(path) >> 20), file=sys.stderr)


def callchain_node(caller, name, dso):
    return recording.symbols.node(caller, name, dso)


def sample_event(name, attr):
    return recording.clock(name, attr)


def process_event(event):
    process_sample(*recording.numbers(event, recording.clock(event['ev_name'], event['attr'])))


def trace_unhandled(_name, _context, fields, event):
    number = recording.clock(event['ev_name'], event['attr'])
    process_tracepoint(*recording.numbers(event, number),
                       tuple(map(fields.get, recording.fields(number))))


# perf gives so many of them.
def context_switch(time, cpu, pid, tid, _next_pid, _next_tid, _machine, out, preempt, *_):
    process_switch(time, cpu, pid, tid, out, preempt)


def throttle(time, _id, _stream, cpu, _pid, _tid):
    recording.throttled(cpu, time)


# Hardly anything here refers to itself, and the collector would look at everything again and again.
gc.disable()
args = arguments()
if args.part or args.combine:
    import machines
if args.combine:
    # perf has opened the first recording for it, and need not read it.
    combine()
    sys.exit(0)
if args.input == '-':
    sys.exit('incident: cannot read from a pipe, because the file is read more than once. '
             'Use perf script report incident -i FILE.')
# What else there may be that the locale has no letters for: a path.
if hasattr(sys.stdout, 'reconfigure'):
    sys.stdout.reconfigure(errors='backslashreplace')
machine = Machine(args.input)
recording = Recording(*machine.side_band())
in_order = InOrder()
# What perf calls most
process_sample = recording.add
process_tracepoint = recording.tracepoint
process_switch = recording.context_switch
tracepoint_fields = recording.fields
if machine.defers:
    process_sample = in_order.sample(process_sample)
    process_tracepoint = in_order.sample(process_tracepoint)
    process_switch = in_order.later(process_switch)
