#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
The page of perf script report incident of several machines, in a headless Chromium.

Each machine is made of samples whose times are known, on a clock of its own, as those of
test-incident-page.py. Prints TAP; screenshots go to $OUT/incident-*.png.

usage: test-incident-machines.py DIRECTORY-WITH-incident.py
"""
import io
import json
import os
import re
import runpy
import sys
import time
from contextlib import redirect_stderr, redirect_stdout

sys.dont_write_bytecode = True
# Beside this script
from incident_page import CLOCK, MANIFEST, NSEC, STACKS, START, run, same, sample

BAD = '</script><img src=x onerror=window.bad=1><script>window.bad=1</script>'
# The wall clock when the clock of the records of a machine is START
WALL = 1767323036 * NSEC
SPAN = 10
POSITIONS = '''return [...document.querySelectorAll('.machine > .lane')].map((lane) => {
    const e = lane.querySelector(arguments[0]);
    if (!e || e.hidden)
        return null;
    const a = e.getBoundingClientRect(), b = lane.getBoundingClientRect();
    return [(a.x - b.x) / b.width, (a.right - b.x) / b.width]; }).slice(1)'''


class Machine:
    """
    What its recorder wrote. Times are in seconds of its records, since START. at: those of the
    wall clock, since WALL, when its clock was START
    """

    def __init__(self, host, at=0.0, trigger=9.0, error=0.001, **other):
        self.host, self.at, self.trigger, self.error = host, at, trigger, error
        self.findings = other.pop('findings', [])
        self.reference = other.pop('reference', None)
        self.clockid = other.pop('clockid', 'monotonic (1)')
        self.side_band = other.pop('side_band', '')
        self.samples = other.pop('samples', 400)
        self.span = other.pop('span', SPAN)
        self.manifest = dict(MANIFEST, host=host, boot_id='boot of ' + host, **other)
        if trigger is not None:
            self.manifest['trigger_time'] = START / NSEC + trigger
        if error is not None:
            self.manifest['clock_error'] = error

    def environment(self, path):
        if self.reference is None:
            # Some time later, as a dump has it
            wall = round((WALL + (self.at + 12) * NSEC) / 1000)
            self.reference = '2026-01-02 = %d.%06d (TOD) = %d.%09d (monotonic)' % (
                wall // 10 ** 6, wall % 10 ** 6, START // NSEC + 12, 0)
        with open(path + '.json', 'w', encoding='utf-8') as f:
            json.dump(self.manifest, f)
        with open(path + '.told', 'w', encoding='utf-8') as f:
            json.dump({'findings': self.findings, 'missing': [], 'notes': []}, f)
        return {'REFERENCE': self.reference, 'CLOCKID': self.clockid, 'VERDICT': path + '.told',
                'SIDE_BAND': self.side_band}

    def record(self, t, directory, n, options):
        path = os.path.join(directory, 'dump-%d-%s' % (n, self.host[:4].strip('</')))
        environment = self.environment(path)
        os.environ.update(environment)
        sys.argv = ['incident.py', '-i', path, '--part', directory, str(n), *options]
        try:
            script = runpy.run_path(os.path.join(t.scripts, 'incident.py'))
            for i in range(self.samples):
                # The second half is idle.
                tid = 7 if i < self.samples // 2 else 0
                script['process_event'](sample(
                    'cpu-clock', CLOCK, i * self.span * NSEC // self.samples, 0, tid,
                    self.host if tid else 'swapper', STACKS['hot' if tid else 'idle']))
            script['trace_end']()
        finally:
            for name in environment:
                del os.environ[name]


def finding(start, end, sentence, cost=None):
    return {'kind': 'wait', 'root': 'ran', 'confidence': 'likely',
            'cost_ns': round((cost or end - start) * NSEC), 'sentence': sentence,
            'from': round(START + start * NSEC), 'to': round(START + end * NSEC),
            'victims': [], 'culprits': [], 'containers': [], 'chain': []}


def combine(t, name, machines, *options):
    """Makes the page NAME as bin/incident-report does; returns what goes to stdout and stderr"""
    directory = os.path.join(t.directory.name, name + '.parts')
    os.mkdir(directory)
    for n, machine in enumerate(machines, 1):
        machine.record(t, directory, n, [o for o in options if o.startswith('--redact')])
    sys.argv = ['incident.py', '--combine', directory, *options,
                '-o', os.path.join(t.directory.name, name + '.html')]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            runpy.run_path(os.path.join(t.scripts, 'incident.py'))
        except SystemExit as end:
            if end.code:
                raise
    return out.getvalue(), err.getvalue()


def pair(**server):
    """A client waits from 4 s to 4.4 s for a server that stalls from 4.05 s to 4.35 s"""
    return [Machine('client', 0, 4.5, findings=[
                finding(4, 4.4, 'client (7) waited 0.400 s for an answer')]),
            Machine('server', **{'at': -2, 'trigger': 6.36, 'error': 0.002, 'findings': [
                finding(6.05, 6.35, 'server (8) waited 0.300 s for compactor (9)')], **server})]


def inside(t, script):
    """In the page of the machine that is open"""
    t.browser.wait("return document.getElementById('frame').getAttribute('srcdoc')")
    t.browser.call('POST', '/frame', {'id': 0})
    try:
        t.browser.wait("return document.body && document.body.dataset.ready === 'yes'")
        return t.browser.run(script)
    finally:
        t.browser.call('POST', '/frame', {'id': None})


def selected_inside(t):
    return inside(t, "return document.getElementById('selection').textContent")


def soon(what, get, want):
    """The page of a machine gets what is selected by a message"""
    for _ in range(100):
        got = get()
        if want(got):
            return
        time.sleep(0.1)
    raise AssertionError('%s: it stays at %r' % (what, got))


def near(what, got, want, by):
    if abs(got - want) > by:
        raise AssertionError('%s: %r, it should be %r' % (what, got, want))


def one_axis(t):
    """Clocks differ by hours; the triggers are where the wall clock has them"""
    server = Machine('server', 0, 6.36, 0.002)
    server.reference = '= %d.%06d (TOD) = %d.%09d (monotonic)' % (
        WALL // NSEC + 10000 - 2, 0, START // NSEC + 10000, 0)
    combine(t, 'axis', [pair()[0], server])
    t.open('axis')
    triggers = t.browser.run(POSITIONS, '.trigger')
    # Of 0 s to 10 s and -2 s to 8 s, with a fiftieth on each side
    wide = (SPAN * 399 / 400 + 2) * 1.04
    first = -2 - wide * 0.02 / 1.04
    for at, want in zip(triggers, (4.5, 4.36)):
        near('trigger', (at[0] + at[1]) / 2, (want - first) / wide, 0.003)
    errors = t.browser.run(POSITIONS, '.error')
    for at, want in zip(errors, (0.001, 0.002)):
        near('error', at[1] - at[0], 2 * want / wide, 0.0002)
    t.browser.focus('#timeline')
    t.browser.keys('+', '+', '+')


def bands(t):
    """Of errors that can be seen"""
    combine(t, 'bands', [Machine('a', 0, 4, 0.5), Machine('b', 0, 6, 1)])
    t.open('bands')
    wide = SPAN * 399 / 400 * 1.04
    for at, want, trigger in zip(t.browser.run(POSITIONS, '.error'), (0.5, 1),
                                 t.browser.run(POSITIONS, '.trigger')):
        near('width', at[1] - at[0], 2 * want / wide, 0.002)
        near('middle', (at[0] + at[1]) / 2, (trigger[0] + trigger[1]) / 2, 0.002)


def order(t):
    """It is certain beyond the sum of the errors alone, and what is not known is said"""
    for n, (error, words) in enumerate((
            (0.002, 'server triggered 140.000 ms before client. The order is certain: the errors '
                    'of both clocks together are 3.002 ms.'),
            (0.1389, 'The order is certain: the errors of both clocks together are 139.902 ms.'),
            (0.1391, 'server seems to have triggered 140.000 ms before client. The order is not '
                     'certain: the errors of both clocks together are 140.102 ms.'),
            *((bad, 'The order is not proven: the clock error of server is unknown.')
              for bad in (None, float('nan'), -1, '0.1', True)))):
        said, _ = combine(t, 'order-%d' % n, pair(error=error))
        if words not in said:
            raise AssertionError('%r is not in %s' % (words, said))
        t.open('order-%d' % n)
        if words not in t.browser.text('#orders'):
            raise AssertionError(t.browser.text('#orders'))
        same('note', 'The clock error of server is unknown: its manifest has no clock_error' in
             t.browser.text('#notes'), error is None)
        if 'is unknown' in words:
            same('bands', [at is not None for at in t.browser.run(POSITIONS, '.error')],
                 [True, False])


def free_clock(t):
    """A clock that nobody steers goes from the wall clock by up to 500 ppm"""
    said, _ = combine(t, 'free', pair(clockid='monotonic_raw (4)'), '--json')
    errors = [m['wall_clock']['error_ns'] for m in json.loads(said)['machines']]
    # The reference time is 5.64 s behind the trigger.
    same('errors', errors, [1001000, 2001000 + 2820000])


def one_boot(t):
    """Two dumps of one boot have one clock, whatever its error is"""
    machines = [Machine('db7', 0, 4, None), Machine('db7', 0.000003, 3.999999, None)]
    said, _ = combine(t, 'boot', machines, '--json')
    told = json.loads(said)
    same('order', [(o['first'], o['distance_ns'], o['certain']) for o in told['orders']],
         [(1, 1000, True)])
    same('notes', told['notes'], [])
    same('names', len({m['name'] for m in told['machines']}), 2)


def unplaced(t):
    """A recording without times of the wall clock is listed, and why"""
    said, _ = combine(t, 'unplaced', [*pair(), Machine('old', trigger=None, time='', reference='-'),
                                      Machine('named', 0, 5, reference='-', error=0.001,
                                              time='20260102T030408.000Z')], '--json')
    told = json.loads(said)
    same('placed', [m['placed'] for m in told['machines']], [True, True, False, True])
    # Named at 12 s, behind its newest record at 9.975 s: its error is not known.
    same('offset', told['machines'][3]['wall_clock']['offset_ns'],
         WALL + 32 * NSEC - START - (SPAN * NSEC - SPAN * NSEC // 400) - 20 * NSEC)
    same('error', told['machines'][3]['wall_clock']['error_ns'], None)
    t.open('unplaced')
    same('rows', t.browser.run(POSITIONS, 'canvas').__len__(), 3)
    if 'old is not on the axis. It has no reference time' not in t.browser.text('#notes') or \
       '-k monotonic' not in t.browser.text('#notes'):
        raise AssertionError(t.browser.text('#notes'))
    same('table', len(t.rows('#machine-table')), 4)
    combine(t, 'nowhere', [Machine(name, trigger=None, time='', reference='-') for name in 'ab'])
    t.open('nowhere')
    same('axis', t.browser.run("return document.getElementById('axis-section').hidden"), True)
    same('complaints', t.browser.complaints(), [])


def apart(t):
    """Recordings that do not overlap are said to; a day is too much"""
    said, _ = combine(t, 'apart', [Machine('a'), Machine('b', 3600)])
    for host in 'ab':
        if '%s: no other recording overlaps with it in time.' % host not in said:
            raise AssertionError(said)
    try:
        combine(t, 'days', [Machine('a'), Machine('b', 86401)])
    except SystemExit as err:
        for words in ('too far apart', 'a: 2026-01-02 03:03:56', 'b: 2026-01-03 03:03:57'):
            if words not in str(err.code):
                raise AssertionError(err.code) from err
    else:
        raise AssertionError('it is not refused')
    if os.path.exists(os.path.join(t.directory.name, 'days.html')):
        raise AssertionError('there is a page')


def hostile(t):
    """Names of hosts and tasks, reasons and sentences are text"""
    combine(t, 'hostile', [
        Machine(BAD, findings=[finding(1, 2, BAD)], reason=BAD, kernel=BAD), Machine('b', 0, 5)])
    t.open('hostile')
    same('complaints', t.browser.complaints(), [])
    t.browser.click('#machines button')
    told = inside(t, 'return [window.bad || 0, document.getElementById("title").textContent]')
    same('script of a name has run inside', told[0], 0)
    if BAD not in told[1]:
        raise AssertionError(told[1])
    same('script of a name has run', t.browser.run('return window.bad || 0'), 0)
    same('images', t.browser.run("return document.querySelectorAll('img').length"), 0)
    for where in ('#orders', '#machine-table', '#findings', '#machines', '#h-page'):
        if BAD not in t.browser.text(where):
            raise AssertionError('%s: %s' % (where, t.browser.text(where)))
    same('complaints', t.browser.complaints(), [])


def opens(t):
    """A machine, and a finding of it at its time, by the mouse and by the keys"""
    combine(t, 'pair', pair())
    t.open('pair')
    same('title', t.browser.text('#title'), 'Recordings of 2 machines')
    same('hidden', t.browser.run("return document.getElementById('page').hidden"), True)
    t.browser.mouse('.machine > button')
    title = "return document.getElementById('title').textContent"
    if 'Incident on client' not in inside(t, title):
        raise AssertionError(inside(t, title))
    same('findings', [li[:6] for li in t.browser.run(
        "return [...document.querySelectorAll('#findings > li')].map((li) => li.textContent)")],
         ['client', 'server'])
    t.browser.focus('#findings > li:last-child button')
    t.browser.keys('Enter')
    if 'Incident on server' not in inside(t, title):
        raise AssertionError(inside(t, title))
    # In its own page, from the trigger at 6.36 s on: 6.05 s to 6.35 s
    soon('selected', lambda: selected_inside(t), lambda text: 'Selected: −0.3' in text)
    start, end = re.search(r'−([\d.]+) s to −([\d.]+) s', selected_inside(t)).groups()
    near('start', float(start), 0.31, 0.01)
    near('end', float(end), 0.01, 0.01)
    # A click on the bar of the client
    t.browser.mouse('.told button')
    soon('client', lambda: inside(t, title), lambda text: 'client' in text)
    soon('its time', lambda: selected_inside(t), lambda text: 'Selected: −0.5' in text)
    same('complaints', t.browser.complaints(), [])
    t.shot('machines-open')


def selects(t):
    """A drag on the axis is handed on; so is what the keys select"""
    combine(t, 'select', pair())
    t.open('select')
    t.browser.mouse('.machine > button')
    t.browser.drag('#machines .lane', 0.5, 0.6, 10)
    soon('selected', lambda: selected_inside(t), lambda text: 'Selected' in text)
    told = re.search(r'([−+][\d.]+) s to ([−+][\d.]+) s', t.browser.text('#selection')).groups()
    # The axis begins to count at the trigger of the server, 0.14 s before that of the client.
    for here, there in zip(told, re.search(r'([−+][\d.]+) s to ([−+][\d.]+) s',
                                           selected_inside(t)).groups()):
        near('selected', float(there.replace('−', '-')), float(here.replace('−', '-')) - 0.14,
             0.02)
    t.browser.focus('#timeline')
    before = t.browser.text('#selection')
    t.browser.keys('Right')
    if t.browser.text('#selection') == before:
        raise AssertionError('the selection does not move')
    t.browser.keys('Enter')
    seen = t.browser.run(POSITIONS, '.selected')
    near('zoomed', seen[0][1] - seen[0][0], 1, 0.02)
    t.browser.keys('Escape')
    if 'Seen' not in t.browser.text('#selection'):
        raise AssertionError(t.browser.text('#selection'))
    soon('whole', lambda: selected_inside(t), lambda text: 'All of' in text)


def strips(t):
    """The busy half of a machine is darker; where records were lost, there is a hatch"""
    combine(t, 'strips', [Machine('a', side_band='  task 1 [000] %d.000000000: PERF_RECORD_LOST '
                                  'lost 17' % (START // NSEC + 3)), Machine('b')])
    t.open('strips')
    alike = t.browser.run('''const c = document.querySelectorAll('.machine canvas')[1];
        const x = c.getContext('2d'), at = (s) => [...x.getImageData(c.width * s, 18, 1, 1).data];
        return [at(0.2), at(0.3), at(0.7), at(0.8)].map(String);''')
    same('busy', alike[0], alike[1])
    same('idle', alike[2], alike[3])
    if alike[0] == alike[2]:
        raise AssertionError('busy as idle: %r' % alike)
    lost = t.browser.run(POSITIONS, '.lost')
    same('lost', [at is not None for at in lost], [True, False])
    # That it was read back.
    t.browser.complaints()


def redacts(t):
    """With --redact=host no machine has a name, on no page"""
    machines = pair(reason='hushreason')
    for machine, name in zip(machines, ('hushclient', 'hushserver')):
        machine.host = machine.manifest['host'] = name
        machine.manifest['boot_id'] = name + 'boot'
    said, err = combine(t, 'redacted', machines, '--redact=all', '--json')
    with open(os.path.join(t.directory.name, 'redacted.html'), encoding='utf-8') as f:
        page = f.read()
    # Names of tasks stay.
    page = page.replace('"hushclient"', '').replace('"hushserver"', '')
    figures = json.loads(said)
    for m in figures['machines']:
        m['tasks'] = []
    for text in (page, json.dumps(figures), err.replace(t.directory.name, '')):
        same('told', re.findall('hush[a-z]+|dump-.-', text), [])
    same('names', [m['name'] for m in figures['machines']], ['machine 1', 'machine 2'])
    t.open('redacted')
    if 'machine 2 triggered' not in t.browser.text('#orders'):
        raise AssertionError(t.browser.text('#orders'))


def offline(t):
    combine(t, 'offline', pair())
    t.open('offline')
    same('resources', t.browser.run("return performance.getEntriesByType('resource').length"), 0)
    path = os.path.join(t.directory.name, 'offline.html')
    with open(path, encoding='utf-8') as f:
        same('references', re.findall(r'<(?:script|link|img)[^>]+(?:src|href)=[^>]*>', f.read()),
             [])
    same('mode', os.stat(path).st_mode & 0o777, 0o600)


def looks(t):
    """Wide and narrow, light and dark: nothing is cut off, and all text can be read"""
    combine(t, 'looks', [*pair(), Machine('lonely', 1, None, None, trigger_time=0, time='',
                                          samples=900)])
    t.open('looks')
    t.browser.drag('#machines .lane', 0.5, 0.6, 10)
    t.look('machines')


def many(t):
    """64 machines; what their pages have in common is there once"""
    machines = [Machine('web%d' % n, n % 3, 5 + n / 100, findings=[
        finding(4, 4.4, 'task %d waited' % i) for i in range(20)]) for n in range(64)]
    began = time.monotonic()
    large, sys.modules['machines'].LARGE = sys.modules['machines'].LARGE, 1 << 20
    _, said = combine(t, 'many', machines)
    sys.modules['machines'].LARGE = large
    made = time.monotonic()
    t.open('many')
    opened = time.monotonic()
    same('rows', len(t.browser.run(POSITIONS, 'canvas')), 64)
    same('orders', t.browser.run("return document.querySelectorAll('#orders li').length"), 63)
    t.browser.click('.machine:last-child > button')
    if 'web63' not in inside(t, "return document.getElementById('title').textContent"):
        raise AssertionError('it is another page')
    size = os.path.getsize(os.path.join(t.directory.name, 'many.html')) / 1048576
    print('# 64 machines: made in %.1f s, opened in %.1f s, %.1f MiB' % (
        made - began, opened - made, size))
    if 'It is %d MiB large.' % size not in said:
        raise AssertionError(said)
    if size > 16:
        raise AssertionError('%.1f MiB' % size)
    same('complaints', t.browser.complaints(), [])
    t.shot('machines-many')


CHECKS = [
    ('triggers are where the wall clock has them', one_axis, False),
    ('the errors of the clocks are bands', bands, False),
    ('tells whether the order is certain', order, False),
    ('clocks that are not steered have larger errors', free_clock, False),
    ('dumps of one boot have one clock', one_boot, False),
    ('what has no place is listed', unplaced, False),
    ('recordings that do not overlap', apart, False),
    ('names are no scripts', hostile, False),
    ('opens the page of a machine, and a finding', opens, False),
    ('hands on what is selected', selects, False),
    ('shows busy times and lost records', strips, False),
    ('tells no names with --redact', redacts, False),
    ('needs no network', offline, False),
    ('can be read, wide and narrow, light and dark', looks, False),
    ('64 machines', many, False),
]

if __name__ == '__main__':
    sys.exit(run(CHECKS))
