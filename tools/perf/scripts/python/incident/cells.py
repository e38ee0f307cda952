# SPDX-License-Identifier: GPL-2.0
"""
What the page of perf script report incident holds: a Recording, counted in slices of time.

    cells   (bin, CPU, event, task, chain, cgroup) -> samples
    off     waits of tasks; those shorter than a bin are added up by bin, task, chain and cgroup
    lanes   of the tasks that did most: runs of (task, bins) -> what share of the time the task
            ran, could run, was blocked, slept
    delays  (bin, kind, power of two, task, cgroup) -> waits

A Level says how fine that is: the number of bins, of nodes of the tree of call chains, of tasks,
of lanes, and of cgroups. Rare tasks are counted as one, '(other tasks)', and rare cgroups as
'(other cgroups)'; tasks of findings are not rare. A rare call chain ends in '(other functions)'
below its last function that is not rare; the sums of all functions that are left stay what they
are.

Columns are sent with the smallest type that holds their numbers.
"""
import array
import base64
import itertools
import operator
import sys
from collections import Counter, defaultdict, namedtuple

Level = namedtuple('Level', 'bins nodes tasks lanes cgroups')
LEVELS = (Level(10000, 60000, 10000, 100, 10000), Level(5000, 40000, 8000, 100, 8000),
          Level(2000, 20000, 4000, 100, 4000), Level(1000, 10000, 2000, 100, 2000),
          Level(500, 5000, 1000, 50, 1000), Level(200, 2000, 500, 50, 500),
          Level(100, 1000, 200, 50, 200), Level(20, 200, 50, 20, 50), Level(5, 50, 20, 10, 20))
# Lanes are for the eye: they have no more bins than a screen has pixels. Histograms are of parts
# that are selected, and have fewer.
MOST_STEPS = 2000
MOST_PARTS = 500
MOST_MARKS = 10000
MOST_NAME = 500
# Widths of bins, in round numbers.
WIDTHS = [n * 10 ** e for e in range(3, 12) for n in (1, 2, 5)]
RAN, RUNNABLE, BLOCKED, SLEPT = range(4)
DELAYED, WAITED = range(2)
OTHER_TASKS = (-1, -1, '(other tasks)')
OTHER_FUNCTIONS = '(other functions)'
OTHER_CGROUPS = '(other cgroups)'


def bin_width(width, bins):
    return next((w for w in WIDTHS if width // w < bins), max(WIDTHS[-1], -(-width // bins)))


def packed(values):
    """Integers for a typed array of JavaScript, little-endian, with the letter of its type"""
    low, high = min(values, default=0), max(values, default=0)
    if not low and not high:
        return {'zeros': len(values)}
    if low < 0:
        code = 'i'
    else:
        code = next((c for c, bits in (('B', 8), ('H', 16), ('I', 32)) if high < 1 << bits), 'd')
    numbers = array.array(code, values)
    if sys.byteorder == 'big':
        numbers.byteswap()
    return {'type': code, 'text': base64.b64encode(numbers.tobytes()).decode()}


def columns(names, rows):
    """Of tuples, a dictionary of packed columns"""
    names = names.split()
    held = [array.array('q') for _ in names]
    rows = iter(rows)
    # Some at once: that takes less time than one by one, and not the memory of all.
    for some in iter(lambda: tuple(itertools.islice(rows, 4096)), ()):
        for column, values in zip(held, zip(*some)):
            column.extend(values)
    return {name: packed(column) for name, column in zip(names, held)}


class Cells:
    def __init__(self, recording, start, width, level, state, told=()):
        """told: tids of the tasks of findings"""
        self.r = recording
        self.told = told
        self.start = start
        self.level = level
        self.state = state
        self.bin = bin_width(width, level.bins)
        self.step = max(self.bin, bin_width(width, MOST_STEPS))
        self.part = max(self.bin, bin_width(width, MOST_PARTS))
        # Times of waits fit into 32 bits in this unit.
        self.tick = max(1000, -(-width // (1 << 32)))
        self.off = recording.switches.off
        self.tasks, self.task_of, self.rare_tasks = self.fold_tasks()
        self.chains, self.frames, self.chain_of, self.rare_chains = self.fold_chains()
        self.cgroups, self.cgroup_of, self.rare_cgroups = self.fold_cgroups()

    def fold_tasks(self):
        """Tasks that are told, a list of which one each task is, and how many are not told"""
        tasks = self.r.tasks.items
        if len(tasks) <= self.level.tasks:
            return tasks, range(len(tasks)), 0
        weights = Counter(self.r.samples.task)
        for _, _, _, task, _, _ in self.off:
            weights[task] += 1
        shown = [n for n, task in enumerate(tasks) if task[1] == 0 or task[1] in self.told]
        kept = sorted(set(n for n, _ in weights.most_common(self.level.tasks)) | set(shown))
        told = [tasks[n] for n in kept] + [OTHER_TASKS]
        new = {n: i for i, n in enumerate(kept)}
        return told, [new.get(n, len(kept)) for n in range(len(tasks))], len(tasks) - len(kept)

    def fold_cgroups(self):
        """Names that are told, which one each cgroup has, and how many are not told"""
        # The end of a long path is what tells it from others.
        names = [name if len(name) <= MOST_NAME else '\u2026' + name[-MOST_NAME:]
                 for name in self.r.cgroups.items]
        weights = Counter(self.r.samples.cgroup)
        for wait in self.off:
            weights[wait[5]] += 1
        rare = set()
        if len(names) > self.level.cgroups:
            kept = set(n for n, _ in weights.most_common(self.level.cgroups)) | {0}
            rare = set(range(len(names))) - kept
        # Names may be equal: what is not to be told was left out of them.
        new = {}
        of = [new.setdefault(OTHER_CGROUPS if n in rare else name, len(new))
              for n, name in enumerate(names)]
        return list(new), of, len(rare)

    def rare_nodes(self):
        """Which call chains have so few samples and waits that they are left out"""
        chains = self.r.symbols.chains.items
        if len(chains) <= self.level.nodes:
            return bytearray(len(chains))
        weights = array.array('q', bytes(8 * len(chains)))
        for chain in self.r.samples.chain:
            weights[chain] += 1
        for _, _, _, _, chain, _ in self.off:
            weights[chain] += 1
        # A parent has a smaller number than its children.
        for chain in range(len(chains) - 1, 0, -1):
            weights[chains[chain][0]] += weights[chain]
        least = sorted(weights, reverse=True)[self.level.nodes] + 1
        return bytearray(weight < least for weight in weights)

    def fold_chains(self):
        """The tree of (parent, frame), its frames, which node each chain is, how many are rare"""
        chains, frames = self.r.symbols.chains.items, self.r.symbols.frames.items
        rare = self.rare_nodes()
        nodes, new, used, told = {(-1, -1): 0}, array.array('I', [0]), {}, []
        folded = set()

        def frame_number(frame):
            name, dso, kind = frame
            key = (name[:MOST_NAME], dso[:MOST_NAME], kind)
            if key not in used:
                used[key] = len(told)
                told.append(key)
            return used[key]

        for chain in range(1, len(chains)):
            parent, frame = chains[chain]
            parent = new[parent]
            frame = frames[frame]
            if rare[chain] and frame[2] != self.state:
                if parent in folded:
                    new.append(parent)
                    continue
                frame = (OTHER_FUNCTIONS, '', self.state)
            key = (parent, frame_number(frame))
            node = nodes.setdefault(key, len(nodes))
            if frame[0] == OTHER_FUNCTIONS and frame[2] == self.state:
                folded.add(node)
            new.append(node)
        return list(nodes), told, new, sum(rare)

    def cells(self):
        """Of one bin after the other, so that no more is kept than the columns"""
        time, cpu, event, task, chain, cgroup = self.r.samples.in_order()
        start, width = self.start, self.bin
        cells = zip(((t - start) // width for t in time), cpu, event,
                    *(map(of.__getitem__, column) for of, column in
                      ((self.task_of, task), (self.chain_of, chain), (self.cgroup_of, cgroup))))

        def rows():
            for _, same in itertools.groupby(cells, operator.itemgetter(0)):
                found = Counter(same)
                for cell in sorted(found):
                    yield cell + (found[cell],)
        return columns('bin cpu event task chain cgroup count', rows())

    def waits(self):
        """Whole ones; those shorter than a bin are added up where they begin"""
        rows, short, width = [], {}, self.bin
        for start, woken, end, task, chain, cgroup in self.off:
            start -= self.start
            key = self.task_of[task], self.chain_of[chain], self.cgroup_of[cgroup]
            end -= self.start
            ready = end + self.start - woken
            if end - start >= width:
                rows.append((start, end, end - start, ready) + key)
                continue
            sums = short.setdefault((start // width,) + key, [0, 0])
            sums[0] += end - start
            sums[1] += ready
        for (bin_, *key), (time, ready) in short.items():
            rows.append((bin_ * width, (bin_ + 1) * width, time, ready) + tuple(key))
        rows.sort()
        # time: how long within that: as long as the whole, but for those added up.
        return columns('start end time ready task chain cgroup', (
            (r[0] // self.tick, min(r[1] // self.tick, 0xffffffff)) + r[2:] for r in rows))

    def switches(self):
        counts = Counter((cpu, (time - self.start) // self.bin)
                         for cpu, times in self.r.switches.by_cpu.items() for time in times)
        return columns('cpu bin count', (key + (counts[key],) for key in sorted(counts)))

    def how(self, chain):
        """What a task did that left the CPU with this chain; None: it waited for work"""
        frames, leaf = self.r.symbols.frames.items, self.r.symbols.chains.items[chain][1]
        name = frames[leaf][0]
        if name == '(waiting for work)':
            return None
        return {'(preempted)': RUNNABLE, '(uninterruptible)': BLOCKED}.get(name, SLEPT)

    def of_chains(self):
        return {chain: self.how(chain) for chain in set(self.off.columns[4])}

    def choose_lanes(self, hows):
        """Tasks of findings, then those that ran, could run or were blocked for the longest"""
        tasks, weights = self.r.tasks.items, Counter()
        for start, end, task in self.r.switches.on:
            weights[task] += end - start
        for start, woken, end, task, chain, _ in self.off:
            weights[task] += end - (start if hows[chain] == BLOCKED else woken)
        first = {tid: n for n, tid in enumerate(self.told)}
        other = len(self.tasks) - 1 if self.rare_tasks else -1
        found = [t for t in weights if tasks[t][1] and self.task_of[t] != other]
        found.sort(key=lambda t: (first.get(tasks[t][1], len(first)), -weights[t]))
        return found[:self.level.lanes]

    def spans(self, lane_of, hows):
        """What the tasks that have lanes did, from when to when"""
        begin = self.start
        for start, end, task in self.r.switches.on:
            if task in lane_of:
                yield lane_of[task], start - begin, end - begin, RAN
        for start, woken, end, task, chain, _ in self.off:
            if task in lane_of:
                how = hows[chain]
                if woken > start:
                    yield (lane_of[task], start - begin, woken - begin,
                           SLEPT if how is None else how)
                if end > woken:
                    yield lane_of[task], woken - begin, end - begin, RUNNABLE

    def lanes(self, hows):
        chosen, step = self.choose_lanes(hows), self.step
        lane_of = {task: n for n, task in enumerate(chosen)}
        parts, rows = defaultdict(lambda: [0, 0, 0, 0]), []

        def put(lane, start, end, what):
            first, last = start // step, end // step
            parts[lane, first][what] += (first + 1) * step - start
            if end > last * step:
                parts[lane, last][what] += end - last * step
            if last > first + 1:
                rows.append((lane, first + 1, last - first - 1) +
                            tuple(255 * (n == what) for n in range(4)))

        # Most are short, and are added without a call.
        for lane, start, end, what in self.spans(lane_of, hows):
            bin_ = start // step
            if end < (bin_ + 1) * step:
                parts[lane, bin_][what] += end - start
            else:
                put(lane, start, end, what)
        for (lane, bin_), times in parts.items():
            rows.append((lane, bin_, 1) + tuple(round(255 * t / step) for t in times))
        rows.sort()
        lanes = columns('lane bin bins ran runnable blocked slept', rows)
        lanes['tasks'] = [self.task_of[task] for task in chosen]
        return lanes

    def delays(self, hows):
        """How long waits were: for a CPU, and for something else, by powers of two in us"""
        counts = Counter()
        for start, woken, end, task, chain, cgroup in self.off:
            key = self.task_of[task], self.cgroup_of[cgroup]
            bin_ = (end - self.start) // self.part
            if end > woken:
                counts[(bin_, DELAYED, ((end - woken) // 1000).bit_length()) + key] += 1
            if woken > start and hows[chain] is not None:
                counts[(bin_, WAITED, ((woken - start) // 1000).bit_length()) + key] += 1
        return columns('bin kind power task cgroup count',
                       (key + (counts[key],) for key in sorted(counts)))

    def marks(self):
        marks = [(kind, cpu, time - self.start, n, since - self.start)
                 for kind, cpu, time, n, since in self.r.marks]
        if len(marks) <= MOST_MARKS:
            return marks
        sums = {}
        for kind, cpu, time, n, since in marks:
            mark = sums.setdefault((kind, cpu, time // self.step), [time, 0, since])
            mark[:] = max(mark[0], time), mark[1] + n, min(mark[2], since)
        return [(kind, cpu, time, n, since)
                for (kind, cpu, _), (time, n, since) in sums.items()]

    def words(self):
        """What is counted together, for the reader"""
        told = []
        if self.level != LEVELS[0]:
            told.append('times are in steps of %g ms' % (self.bin / 1e6))
        if self.rare_tasks:
            told.append('%d tasks with few samples are counted as "(other tasks)"'
                        % self.rare_tasks)
        if self.rare_cgroups:
            told.append('%d cgroups with few samples are counted as "(other cgroups)"'
                        % self.rare_cgroups)
        if self.rare_chains:
            told.append('call chains with few samples end in "(other functions)"')
        return 'So that this page is not larger than 8 MiB, %s.' % (
            ', '.join(told[:-1]) + ' and ' * (len(told) > 1) + told[-1]) if told else ''

    def steps(self, before):
        """Lanes and delays; those of another level, if they are the same"""
        key = self.step, self.part, self.level.lanes, list(self.task_of), self.cgroup_of
        if not before or before[0] != key:
            hows = self.of_chains()
            before = key, {'lanes': self.lanes(hows), 'delays': self.delays(hows)}
        return before

    def data(self, cpus, steps):
        """cpus: those that the page shows; steps: what steps() returned"""
        dsos, cpus = {'': 0}, set(cpus)
        return {
            'bin': self.bin, 'tick': self.tick, 'step': self.step, 'part': self.part,
            'aggregated': self.words(), **steps[1],
            'cells': self.cells(), 'off': self.waits(), 'switches': self.switches(),
            'taskNames': self.tasks, 'cgroups': self.cgroups,
            'frames': [(name, dsos.setdefault(dso, len(dsos)), kind)
                       for name, dso, kind in self.frames],
            'dsos': list(dsos),
            'chains': {'parent': packed([c[0] for c in self.chains]),
                       'frame': packed([c[1] for c in self.chains])},
            'marks': [mark for mark in self.marks() if mark[1] in cpus],
        }
