# SPDX-License-Identifier: GPL-2.0
"""
One page of the recordings of several machines, on one axis of wall-clock time.

incident.py runs once for each recording. hand_over() then writes, into a directory,

    N.json      what the page of all shows of the machine: a Part
    N.figures   what --json prints of it
    N.data      the data of its own page, at most 8 MiB
    page        what these pages have in common, the same for all

Machines reads them, and writes the page of all. The pages of the machines are in it, as their
data and, once, what they have in common; a script puts them together when a machine is chosen.
So 64 machines take the room of their data. Nothing is kept in memory but the Parts.

Times of records become times of the wall clock by an offset, see Clock. The error of a clock is
the one that the kernel had from chrony or ntpd when the dump was written. Times of two machines
are in a certain order if they are further apart than the errors of both clocks together.
"""
import datetime
import html
import json
import math
import os
import re
import shutil

NSEC = 1000000000
DAY = 86400 * NSEC
LARGE = 32 << 20
# The strip of a machine has as many slices of time, if each has as many samples.
MOST_SLICES, PER_SLICE = 400, 4
# Ranges of lost records that are closer than this part of the window are one.
FINEST = 1000
# Of findings in the summary
MOST_TOLD = 20
# A reference time of the header has microseconds, a manifest has milliseconds.
HEADER_RESOLUTION, MANIFEST_RESOLUTION = 1000, 1000000
# What the kernel lets ntpd and chrony change the speed of a clock by, and more than most crystals
# are off: clocks that these do not change differ by as much from the wall clock.
DRIFT = 500e-6
STEERED = ('realtime', 'monotonic', 'boottime', 'tai')
HERE = os.path.dirname(os.path.abspath(__file__))
UNPLACED = ('It has no reference time, so its place on the axis is unknown. Record it with '
            '-k monotonic; flight recorders do so.')


class Clock:
    """
    How times of records become times of the wall clock.

    A dump has both at the time when it was written, in its header. Without that, the manifest
    has the time of the day at which it was named. That was after the trigger and after the newest
    record, it is not known by how much.
    """

    def __init__(self, machine, figures):
        self.offset = self.error = self.why = None
        manifest = machine.manifest
        reference = machine.reference()
        if reference:
            self.offset = reference[0] - reference[1]
            self.error, self.why = told_error(manifest)
            if self.error is not None:
                at = figures.newest if figures.trigger is None else figures.trigger
                self.error += HEADER_RESOLUTION + drift(machine.header, at - reference[1])
            return
        named = utc(manifest.get('time'))
        if named is None or manifest.get('trigger_time') is None or figures.trigger is None:
            self.why = UNPLACED
            return
        self.offset = named - max(figures.newest, figures.trigger)
        self.why = ('its file has no reference time, and its manifest alone tells when the dump '
                    'was written, in milliseconds: it is shown later than it was, by as long as '
                    'that took')

    def data(self):
        return {'offset_ns': self.offset, 'error_ns': self.error, 'why': self.why}


def told_error(manifest):
    """(ns, or None if it is unknown, and why)"""
    error = manifest.get('clock_error')
    if not manifest:
        return None, 'it has no manifest, which would tell it'
    if error is None:
        return None, ('its manifest has no clock_error, because nothing kept the clock, or perf '
                      'could not ask the kernel')
    if isinstance(error, bool) or not isinstance(error, (int, float)) or \
       not math.isfinite(error) or error < 0:
        return None, 'clock_error of its manifest is not valid'
    return math.ceil(error * NSEC), None


def drift(header, distance):
    """How far the clock of the records may have gone from the wall clock in that time"""
    name = str(header.get('clockid', '')).split(' ')[0]
    return 0 if name in STEERED else math.ceil(abs(distance) * DRIFT)


def utc(time):
    """ns of a time of a manifest, or None"""
    match = re.match(r'(\d{8}T\d{6})\.(\d{3})Z$', str(time))
    try:
        at = datetime.datetime.strptime(match[1], '%Y%m%dT%H%M%S') if match else None
    except ValueError:
        return None
    return None if at is None else int(at.replace(
        tzinfo=datetime.timezone.utc).timestamp()) * NSEC + int(match[2]) * 1000000


def busy(figures):
    """
    How busy the CPUs were in slices of the window, in percent; -1: no samples. Samples of CPU
    clocks find idle CPUs, too. Others do not: they are compared with the slice that has most.
    """
    samples, clock = figures.r.samples, set(figures.clock)
    start, width = figures.oldest, max(figures.newest - figures.oldest, 1)
    number = sum(figures.by_event[e] for e in clock)
    slices = max(1, min(MOST_SLICES, number // PER_SLICE))
    seen, ran = [0] * slices, [0] * slices
    idle = [tid == 0 for _, tid, _ in figures.r.tasks.items]
    for time, event, task in zip(samples.time, samples.event, samples.task):
        if event in clock:
            i = min((time - start) * slices // width, slices - 1)
            seen[i] += 1
            ran[i] += not idle[task]
    whole = all(figures.r.clocks[e] == 1 for e in clock) or sum(seen) > sum(ran)
    of = seen if whole else [max(ran)] * slices
    return {'share': whole, 'values': [100 * r // o if s else -1
                                       for r, s, o in zip(ran, seen, of)]}


def lost(figures):
    """[from, to, records] without data on some CPU"""
    ranges = []
    near = (figures.newest - figures.oldest) // FINEST
    for since, time, count in sorted((since, time, count) for kind, _, time, count, since
                                     in figures.r.marks if kind == 'lost'):
        if ranges and since <= ranges[-1][1] + near:
            ranges[-1][1] = max(ranges[-1][1], time)
            ranges[-1][2] += count
        else:
            ranges.append([since, time, count])
    return ranges


def part(figures, page, boot):
    """What the page of all shows of a machine; times are those of its records"""
    told, clock = dict(figures.what()), Clock(figures.machine, figures)
    return {
        'host': told.get('Host', ''), 'kernel': told.get('Kernel', ''),
        'boot': told.get('Boot', ''), 'file': told['File'], 'reason': told.get('Trigger', ''),
        'title': page.title(), 'samples': len(figures.r.samples), 'clock': clock.data(),
        'start': figures.oldest, 'end': figures.newest, 'trigger': figures.trigger,
        'busy': busy(figures), 'lost': lost(figures),
        'findings': [{key: finding[key] for key in ('from', 'to', 'sentence', 'cost_ns',
                                                    'confidence')}
                     for finding in page.verdict.get('findings', [])],
        # Of dumps of one boot the same clock tells the order; not to be told, if redacted.
        'same': boot and [boot, figures.machine.header.get('clockid')],
    }


def hand_over(prefix, figures, counted, page, boot):
    def write(name, text):
        with open(name, 'w', encoding='utf-8', errors='replace') as f:
            f.write(text)

    values = page.values()
    write(prefix + '.figures', json.dumps(counted))
    write(prefix + '.data', page.fitting(counted, page.room(values)))
    whole = re.split('@(?:title|data)@', page.read('incident.html'))
    write(os.path.join(os.path.dirname(prefix), 'page'), json.dumps({
        'library': bool(values['library']),
        # What is before, between and after the title and the data
        'template': [re.sub(r'@(%s)@' % '|'.join(values), lambda m: values[m[1]], text)
                     for text in whole],
        'style': page.read('incident.css') + page.read('machines.css'),
        'script': page.read('common.js') + page.read('machines.js'), 'page': page.read('machines.html'),
        'licences': values['licences']}))
    # Last: it tells that all is there.
    write(prefix + '.json', json.dumps(part(figures, page, boot)))


def duration(ns):
    if abs(ns) >= NSEC:
        return '%.3f s' % (ns / NSEC)
    return '%.3f ms' % (ns / 1000000)


def date(ns):
    """A time of the wall clock"""
    return datetime.datetime.fromtimestamp(ns // NSEC, datetime.timezone.utc).strftime(
        '%Y-%m-%d %H:%M:%S') + '.%06d UTC' % (ns % NSEC // 1000)


def in_script(value):
    """JSON that never ends the element that it lies in"""
    return json.dumps(value, separators=(',', ':')).replace('<', '\\u003c')


class Machines:
    """All that were handed over, in the order of the command line"""

    def __init__(self, directory):
        self.directory = directory
        self.parts = []
        while os.path.exists(self.path(len(self.parts) + 1, 'json')):
            with open(self.path(len(self.parts) + 1, 'json'), encoding='utf-8') as f:
                self.parts.append(json.load(f))
        with open(os.path.join(directory, 'page'), encoding='utf-8') as f:
            self.common = json.load(f)
        self.name()
        self.placed = []
        for p in self.parts:
            p['offset'] = p['clock']['offset_ns'] if p['samples'] else None
            if not p['samples']:
                p['clock']['why'] = 'It has no samples.'
            if p['offset'] is not None:
                for key in ('start', 'end', 'trigger'):
                    p['wall_' + key] = None if p[key] is None else p[key] + p['offset']
                self.placed.append(p)

    def path(self, n, suffix):
        return os.path.join(self.directory, '%d.%s' % (n, suffix))

    def name(self):
        """By their hosts; two dumps of one host by their files as well"""
        hosts = [p['host'] for p in self.parts]
        for p in self.parts:
            p['name'] = p['host'] or p['file']
            if p['host'] and hosts.count(p['host']) > 1:
                p['name'] += ' (%s)' % p['file']

    def groups(self):
        """Those whose windows overlap, directly or by others, in the order of time"""
        groups, end = [], None
        for p in sorted(self.placed, key=lambda p: p['wall_start']):
            if end is None or p['wall_start'] > end:
                groups.append([])
                end = p['wall_end']
            groups[-1].append(p)
            end = max(end, p['wall_end'])
        return groups

    def check(self, printable):
        """Refuses what no axis can show"""
        groups = self.groups()
        if len(groups) < 2 or groups[-1][0]['wall_start'] - groups[0][0]['wall_start'] < DAY:
            return
        raise SystemExit('incident: the recordings are too far apart for one page:%s\nReport '
                         'those alone that are less than a day apart.' % ''.join(
                             '\n  %s: %s to %s' % (printable(p['name']), date(p['wall_start']),
                                                   date(p['wall_end']))
                             for group in groups for p in group))

    def orders(self):
        """Of triggers, each with all that came later"""
        parts = sorted((p for p in self.placed if p['wall_trigger'] is not None),
                       key=lambda p: p['wall_trigger'])
        return [self.order(a, b) for i, a in enumerate(parts) for b in parts[i + 1:]]

    def order(self, first, second):
        distance = second['wall_trigger'] - first['wall_trigger']
        errors = [p['clock']['error_ns'] for p in (first, second)]
        total = None if None in errors else sum(errors)
        if first['same'] and first['same'] == second['same']:
            # The offsets of its dumps differ by microseconds.
            if second['trigger'] < first['trigger']:
                first, second = second, first
            distance, total = second['trigger'] - first['trigger'], 0
            certain = distance > 0
            why = 'Both are of one boot, so one clock tells the order.'
        elif total is None:
            certain = False
            unknown = [p['name'] for p, error in zip((first, second), errors) if error is None]
            why = 'The order is not proven: the clock error of %s is unknown.' % ' and '.join(
                unknown)
        else:
            certain = distance > total
            why = 'The order is %s: the errors of both clocks together are %s.' % (
                'certain' if certain else 'not certain', duration(total))
        return {
            'first': self.parts.index(first), 'second': self.parts.index(second),
            'distance_ns': distance, 'error_ns': total, 'certain': certain,
            'sentence': '%s %s %s before %s. %s' % (
                first['name'], 'triggered' if certain else 'seems to have triggered',
                duration(distance), second['name'], why),
        }

    def told_orders(self):
        """Each with the next one: if all of these are certain, all are"""
        told, last = [], None
        for order in self.orders():
            if order['first'] != last:
                told.append(order['sentence'])
            last = order['first']
        return told

    def notes(self):
        notes = ['%s is not on the axis. %s' % (p['name'], p['clock']['why'])
                 for p in self.parts if p not in self.placed]
        for p in self.placed:
            others = [o for o in self.placed if not p['same'] or o['same'] != p['same']]
            if p['clock']['error_ns'] is None and [o for o in others if o is not p]:
                notes.append('The clock error of %s is unknown: %s. The order of its events and '
                             'those of other machines is not proven.' % (p['name'],
                                                                         p['clock']['why']))
        groups = self.groups()
        if len(groups) > 1:
            notes += ['%s: no other recording overlaps with it in time.' % group[0]['name']
                      for group in groups if len(group) == 1]
            notes += ['%s overlap in time with each other, and with no others.' %
                      ', '.join(p['name'] for p in group) for group in groups if len(group) > 1]
        return notes

    def zero(self):
        """Where the axis begins to count: at the first trigger, or at the oldest record"""
        triggers = [p['wall_trigger'] for p in self.placed if p['wall_trigger'] is not None]
        return min(triggers or [p['wall_start'] for p in self.placed], default=0)

    def findings(self):
        """(finding, machine), the most expensive first"""
        return sorted(((f, p) for p in self.parts for f in p['findings']),
                      key=lambda item: -item[0]['cost_ns'])

    def data(self):
        """Times are those since the zero of the axis: JavaScript has 53 bits"""
        zero = self.zero()
        machines = []
        for p in self.parts:
            machine = {key: p[key] for key in (
                'name', 'host', 'kernel', 'boot', 'file', 'reason', 'title', 'busy')}
            placed = p in self.placed
            offset = p['offset'] - zero if placed else 0
            machine.update({
                'placed': placed, 'error': p['clock']['error_ns'], 'why': p['clock']['why'],
                # Of the records, for the page of the machine
                'base': p['start'], 'start': p['start'] + offset, 'end': p['end'] + offset,
                'trigger': None if p['trigger'] is None else p['trigger'] + offset,
                'lost': [[since + offset, to + offset, n] for since, to, n in p['lost']],
                'findings': [{**f, 'from': f['from'] + offset, 'to': f['to'] + offset}
                             for f in p['findings']],
                'window': duration(p['end'] - p['start']),
                'triggered': '' if not placed or p['trigger'] is None else
                             date(p['wall_trigger']),
                'clock': 'unknown' if p['clock']['error_ns'] is None else
                         '\u00b1' + duration(p['clock']['error_ns']),
            })
            machines.append(machine)
        return {'machines': machines, 'notes': self.notes(), 'orders': self.told_orders(),
                'zero': date(zero) if self.placed else '',
                'triggered': any(p['trigger'] is not None for p in self.placed)}

    def write(self, f):
        """The page; data of machines are copied, not read"""
        title = 'Recordings of %d machines' % len(self.parts)
        values = {'title': html.escape(title), 'style': self.common['style'],
                  'script': self.common['script'], 'licences': self.common['licences'],
                  'data': in_script(self.data()), 'template': in_script(self.common['template'])}
        for text in re.split('(@[a-z]+@)', self.common['page']):
            if text == '@pages@':
                for n in range(1, len(self.parts) + 1):
                    f.write('<script type="application/json" id="page-%d">' % (n - 1))
                    with open(self.path(n, 'data'), encoding='utf-8') as data:
                        shutil.copyfileobj(data, f)
                    f.write('</script>\n')
            else:
                f.write(values.get(text.strip('@'), text) if text[:1] == '@' else text)
        return self.common['library']

    def print_json(self, out):
        out.write('{"machines": [')
        for n, p in enumerate(self.parts, 1):
            with open(self.path(n, 'figures'), encoding='utf-8') as f:
                figures = json.load(f)
            figures.update({'name': p['name'], 'file': p['file'], 'placed': p in self.placed,
                            'wall_clock': p['clock']})
            out.write((', ' if n > 1 else '') + json.dumps(figures))
        out.write('], "orders": %s, "notes": %s}\n' % (json.dumps(self.orders()),
                                                       json.dumps(self.notes())))

    def summary(self, out, table, printable):
        zero = self.zero()
        at = lambda ns: '-' if ns is None else '%.6f' % ((ns - zero) / NSEC)
        for note in self.notes():
            print('Note: %s' % printable(note), file=out)
        for sentence in self.told_orders():
            print(printable(sentence), file=out)
        table('Machines' + (', in seconds since %s' % date(zero) if self.placed else ''),
              ['<MACHINE', 'FROM(s)', 'TO(s)', 'TRIGGER(s)', 'CLOCK ERROR', '<REASON', '<FILE'],
              [(p['name'], at(p.get('wall_start')), at(p.get('wall_end')),
                at(p.get('wall_trigger')), 'unknown' if p['clock']['error_ns'] is None else
                duration(p['clock']['error_ns']), p['reason'], p['file']) for p in self.parts], out)
        found = self.findings()
        print('\nFindings', file=out)
        for n, (finding, p) in enumerate(found[:MOST_TOLD], 1):
            print('  %d. %s: %s (%s)' % (n, printable(p['name']), printable(finding['sentence']),
                                         finding['confidence']), file=out)
        if not found:
            print('  Nothing was found that held tasks up.', file=out)
        if len(found) > MOST_TOLD:
            print('  %d more are on the page.' % (len(found) - MOST_TOLD), file=out)
