#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Read what perf data convert wrote, without any code of perf or of protobuf.

usage: read_profile.py sums FORMAT FILE      EVENT|TID|COMM|FUNCTION SAMPLES PERIOD
       read_profile.py stacks FORMAT FILE    EVENT|TID|NEWEST;...;OLDEST SAMPLES
       read_profile.py labels FORMAT FILE    NAME=VALUE SAMPLES
       read_profile.py mappings FORMAT FILE  FILE BUILD-ID
       read_profile.py switches perfetto FILE  TIME CPU PREV_COMM PREV_PID STATE COMM PID
       read_profile.py events perfetto FILE  NAME {FIELD: VALUE} of generic events
       read_profile.py interned perfetto FILE  number of stacks that were written
       read_profile.py stdin FORMAT          a summary, to see that it can be read

FORMAT is pprof, otlp or perfetto. A number that refers to nothing, text that is not
UTF-8 or a message that ends too early is an error. The sums of perfetto have no COMM.
"""
import collections
import gzip
import struct
import sys

UNKNOWN = '[unknown]'


def varint(buf, at):
    """(value, next position)"""
    value = shift = 0
    while True:
        byte = buf[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at
        assert shift < 70, 'a number of more than ten bytes'


def fields(buf):
    """Yield (number, value) of a message; bytes for what has a length."""
    at = 0
    while at < len(buf):
        tag, at = varint(buf, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(buf, at)
        elif kind == 1:
            value, at = struct.unpack_from('<Q', buf, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from('<I', buf, at)[0], at + 4
        else:
            assert kind == 2, f'wire type {kind}'
            size, at = varint(buf, at)
            assert at + size <= len(buf), 'a field that is longer than its message'
            value, at = buf[at:at + size], at + size
        yield tag >> 3, value


class Message:
    """A message: its fields by number."""

    def __init__(self, buf):
        self.all = collections.defaultdict(list)
        for number, value in fields(buf):
            self.all[number].append(value)

    def one(self, number, default=0):
        """The last value of a field."""
        return self.all[number][-1] if number in self.all else default

    def signed(self, number):
        """A signed number."""
        value = self.one(number)
        return value - (1 << 64) if value >= 1 << 63 else value

    def text(self, number):
        """A text."""
        return self.one(number, b'').decode()

    def messages(self, number):
        """Messages in a field."""
        return [Message(b) for b in self.all.get(number, [])]

    def numbers(self, number):
        """A repeated number, packed or not."""
        out = []
        for value in self.all.get(number, []):
            if isinstance(value, int):
                out.append(value)
                continue
            at = 0
            while at < len(value):
                item, at = varint(value, at)
                out.append(item)
        return out


class Sample:
    """What all formats say of some samples: stack is a list of locations, newest first, each a
    list of function names, an inlined one first."""

    def __init__(self, event, tid, comm, stack, samples, period, labels):
        self.event, self.tid, self.comm, self.stack = event, tid, comm, stack
        self.samples, self.period, self.labels = samples, period, labels


def read_pprof(data):
    """(samples, mappings) of a profile of pprof."""
    profile = Message(data)
    strings = [s.decode() for s in profile.all[6]]
    assert strings[0] == '', 'the first string is not empty'
    functions = {f.one(1): strings[f.one(2)] for f in profile.messages(5)}
    mappings = {m.one(1): (strings[m.one(5)], strings[m.one(6)]) for m in profile.messages(3)}
    locations = {}
    for l in profile.messages(4):
        assert l.one(2) == 0 or l.one(2) in mappings, 'a location in no mapping'
        locations[l.one(1)] = [functions[i.one(1)] for i in l.messages(4)] or [UNKNOWN]
    types = [(strings[t.one(1)], strings[t.one(2)]) for t in profile.messages(1)]
    assert 0 not in functions and 0 not in locations and 0 not in mappings
    names = [t for t, _ in types]
    assert strings[profile.one(14)] in names or not names, 'no default value'
    samples = []
    for s in profile.messages(2):
        values = s.numbers(2)
        assert len(values) == len(types), 'values and types differ in number'
        labels = {strings[l.one(1)]: strings[l.one(2)] for l in s.messages(3)}
        stack = [locations[i] for i in s.numbers(1)]
        for i in range(0, len(values), 2):
            if values[i]:
                assert names[i] == f'{names[i + 1]}.samples' and types[i][1] == 'count'
                samples.append(Sample(names[i + 1], int(labels['tid']), labels['comm'], stack,
                                      values[i], values[i + 1], labels))
    return samples, sorted(set(mappings.values()))


def any_value(message):
    """A text or a number."""
    if 1 in message.all:
        return message.text(1)
    return message.signed(3)


def read_otlp(data):
    """(samples, mappings) of OpenTelemetry's ProfilesData."""
    root = Message(data)
    assert len(root.all[2]) == 1 and len(root.all[1]) == 1
    tables = root.messages(2)[0]
    for table in (1, 2, 3, 4, 6, 7):
        assert tables.all[table][0] == b'', f'entry 0 of table {table} is not empty'
    strings = [s.decode() for s in tables.all[5]]
    assert strings[0] == ''
    functions = [strings[f.one(1)] for f in tables.messages(3)]
    attributes = [(strings[a.one(1)], any_value(a.messages(2)[0]) if 2 in a.all else None)
                  for a in tables.messages(6)]
    mappings = [(strings[m.one(4)],
                 dict(attributes[i] for i in m.numbers(5)).get('process.executable.build_id.gnu',
                                                               ''))
                for m in tables.messages(1)]
    locations = []
    for l in tables.messages(2):
        assert l.one(1) < len(mappings)
        locations.append([functions[i.one(1)] for i in l.messages(3)] or [UNKNOWN])
    stacks = [[locations[i] for i in s.numbers(1)] for s in tables.messages(7)]
    resource = root.messages(1)[0]
    common = {a.text(1): any_value(a.messages(2)[0]) for a in resource.messages(1)[0].messages(1)}
    found = {}
    for profile in resource.messages(2)[0].messages(2):
        kind = profile.messages(1)[0]
        name, is_count = strings[kind.one(1)], False
        if name.endswith('.samples'):
            name, is_count = name[:-len('.samples')], True
        for s in profile.messages(2):
            labels = dict(attributes[i] for i in s.numbers(2))
            labels.update(common)
            key = (name, s.one(1), tuple(s.numbers(2)))
            sample = found.setdefault(key, Sample(name, labels['thread.id'],
                                                  labels['thread.name'], stacks[s.one(1)], 0, 0,
                                                  labels))
            values = s.numbers(4)
            assert len(values) == 1
            if is_count:
                sample.samples += values[0]
            else:
                sample.period += values[0]
    return list(found.values()), sorted(set(mappings[1:]))


class Perfetto:
    """A trace, packet by packet, as a reader does that forgets nothing."""

    INTERNED = {5: 'name', 6: 'frame', 7: 'stack', 16: 'build_id', 17: 'path', 18: 'source',
                19: 'mapping'}

    def __init__(self, data):
        self.sequences, self.events, self.counts = {}, {}, collections.Counter()
        self.samples, self.switches, self.generic, self.notes = [], [], [], []
        self.threads, self.snapshots = {}, []
        for number, packet in fields(data):
            assert number == 1
            self.packet(Message(packet))

    def packet(self, p):
        """Take a packet."""
        sequence, flags = p.one(10), p.one(13)
        if flags & 1:
            self.sequences[sequence] = collections.defaultdict(dict)
        assert sequence in self.sequences, 'a sequence that does not begin'
        assert flags & 3, 'no flags'
        interned = self.sequences[sequence]
        for d in p.messages(59):
            self.events[sequence] = d.messages(12)[0].messages(1)[0].text(10)
        for data in p.messages(12):
            for number, kind in self.INTERNED.items():
                for entry in data.messages(number):
                    assert entry.one(1) and entry.one(1) not in interned[kind], 'written twice'
                    interned[kind][entry.one(1)] = entry
        for s in p.messages(66):
            self.sample(interned, s, self.events[sequence])
        for bundle in p.messages(1):
            for e in bundle.messages(2):
                self.ftrace(bundle.one(1), e)
        for tree in p.messages(2):
            for t in tree.messages(2):
                self.threads[t.one(1) & 0xffffffff] = (t.one(3), t.text(2))
        for e in p.messages(11):
            self.notes.append((e.text(23), {a.text(10): a.text(6) for a in e.messages(4)}))
        self.snapshots += p.messages(6)

    def sample(self, interned, s, event):
        """Resolve a sample; the oldest call comes first in it."""
        assert s.one(3) in self.threads, 'a thread without a name'
        stack, last = [], None
        for i in interned['stack'][s.one(4)].numbers(2):
            frame = interned['frame'][i]
            mapping = interned['mapping'][frame.one(3)]
            assert mapping.numbers(7)[0] in interned['path']
            name = interned['name'][frame.one(2)].text(2) if 2 in frame.all else UNKNOWN
            # Other frames of one address are what was inlined, and into what. A function that
            # calls itself has the same frame again.
            if last and last[0] != i and last[1:] == (frame.one(3), frame.one(4)):
                stack[-1].insert(0, name)
            else:
                stack.append([name])
            last = i, frame.one(3), frame.one(4)
        count, key = s.one(6), (event, s.one(1, -1))
        period = count - self.counts[key]
        self.counts[key] = count
        # -1, of a task that has exited
        tid = s.one(3) - (s.one(3) >> 31 << 32)
        self.samples.append(Sample(event, tid, '', stack[::-1], 1, period, {}))

    def ftrace(self, cpu, e):
        """Take an event."""
        for s in e.messages(4):
            self.switches.append((e.one(1), cpu, s.text(1), s.signed(2), s.signed(4), s.text(5),
                                  s.signed(6)))
        for number, name in ((17, 'sched_wakeup'), (20, 'sched_waking')):
            for w in e.messages(number):
                self.generic.append((name, {'comm': w.text(1), 'pid': w.signed(2),
                                            'target_cpu': w.signed(5)}))
        for g in e.messages(327):
            values = {}
            for f in g.messages(2):
                values[f.text(1)] = f.text(3) if 3 in f.all else \
                    f.signed(4) if 4 in f.all else f.one(5)
            self.generic.append((g.text(1), values))


def unmapped(kind, data):
    """Addresses that are in no file."""
    if kind == 'pprof':
        found = [l.one(3) for l in Message(data).messages(4) if not l.one(2)]
    elif kind == 'otlp':
        found = [l.one(2) for l in Message(data).messages(2)[0].messages(2)[1:] if not l.one(1)]
    else:
        found = []
        for interned in Perfetto(data).sequences.values():
            none = {n for n, m in interned['mapping'].items()
                    if not interned['path'][m.numbers(7)[0]].text(2)}
            found += [f.one(4) for f in interned['frame'].values() if f.one(3) in none]
    return sorted(set(found))


def read(kind, data):
    """(samples, mappings) of a file."""
    if data[:2] == b'\x1f\x8b':
        data = gzip.decompress(data)
    if kind == 'pprof':
        return read_pprof(data)
    if kind == 'otlp':
        return read_otlp(data)
    trace = Perfetto(data)
    mappings = set()
    for interned in trace.sequences.values():
        for m in interned['mapping'].values():
            mappings.add((interned['path'][m.numbers(7)[0]].text(2),
                          interned['build_id'][m.one(2)].one(2, b'').hex()))
    return trace.samples, sorted(mappings - {('', '')})


def table(pairs):
    """Print sums, sorted."""
    sums = {}
    for key, values in pairs:
        old = sums.setdefault(key, [0] * len(values))
        sums[key] = [a + b for a, b in zip(old, values)]
    for key in sorted(sums):
        print(key, *sums[key])


def main():
    """See the head of the file."""
    what, kind = sys.argv[1:3]
    if what == 'stdin':
        data = sys.stdin.buffer.read()
    else:
        with open(sys.argv[3], 'rb') as f:
            data = f.read()
    if what in ('switches', 'events', 'interned', 'notes', 'clocks'):
        trace = Perfetto(data)
        if what == 'switches':
            for s in trace.switches:
                print(*s)
        elif what == 'events':
            for name, values in trace.generic:
                print(name, values)
        elif what == 'notes':
            for name, values in trace.notes:
                print(name, values)
        elif what == 'clocks':
            print(len(trace.snapshots))
        else:
            print(sum(len(s['stack']) for s in trace.sequences.values()))
        return
    if what == 'unmapped':
        print(*('%x' % address for address in unmapped(kind, data)))
        return
    samples, mappings = read(kind, data)
    if what == 'sums':
        # perf report shows the function that others were inlined into.
        table((f'{s.event}|{s.tid}|{s.comm}|{s.stack[0][-1]}', (s.samples, s.period))
              for s in samples)
    elif what == 'stacks':
        table((f'{s.event}|{s.tid}|' + ';'.join(n for l in s.stack for n in l), (s.samples,))
              for s in samples)
    elif what == 'labels':
        table((f'{k}={v}', (s.samples,)) for s in samples for k, v in s.labels.items())
    elif what == 'mappings':
        for m in mappings:
            print(*m)
    else:
        print(len(samples), 'entries,', sum(s.samples for s in samples), 'samples')


if __name__ == '__main__':
    main()
