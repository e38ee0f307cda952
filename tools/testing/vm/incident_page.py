# SPDX-License-Identifier: GPL-2.0
"""
What the tests of the incident page share: pages made of samples whose figures are known, as perf
would hand them to incident.py, and a browser that opens them.
"""
import io
import json
import os
import re
import runpy
import shutil
import struct
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout

sys.dont_write_bytecode = True
from webdriver import Browser  # beside this script

NSEC = 1000000000
START, WINDOW = 100 * NSEC, 9 * NSEC
HOSTILE = '</script><script>window.bad=1</script>'
OUT = os.environ.get('OUT', '/tmp')
CLOCK = struct.pack('=IIQQ', 1, 136, 0, 1000003) + b'\0' * 112
SWITCH = struct.pack('=IIQQ', 2, 136, 300, 1) + b'\0' * 112
MANIFEST = {
    'file': 'OUT.sample.20260102T030405.678Z', 'time': '20260102T030405.678Z', 'host': 'db7',
    'kernel': '6.12.117', 'boot_id': '0f1e2d3c-0000-4000-8000-123456789abc',
    'trigger': 'signal', 'reason': 'SIGUSR1 from pid 4711', 'action': 'dump', 'swallowed': 2,
    'cpus': [{'cpu': c, 'lost': 0, 'given_up': 4096 if c == 3 else 0, 'way': 'ring'}
             for c in range(4)],
}
# Text that differs too little from what is behind it; of a frame, opacity makes it fainter.
FAINT = """const rgb = (c) => (c.match(/[0-9.]+/g) || []).map(Number);
    const bright = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92
        : ((v + 0.055) / 1.055) ** 2.4).reduce((a, v, i) => a + v * [.2126, .7152, .0722][i], 0);
    const behind = (e) => { for (; e; e = e.parentElement) {
        const c = rgb(getComputedStyle(e).backgroundColor);
        if (c.length === 3 || c[3] > 0.99) return c; } return [255, 255, 255]; };
    const faint = (a, b) => (Math.max(bright(a), bright(b)) + .05) /
        (Math.min(bright(a), bright(b)) + .05) < 4.5;
    const texts = [...document.querySelectorAll('body *')].filter((e) => e.getClientRects().length &&
        !e.closest('svg, :disabled, #flame') && [...e.childNodes].some((n) => n.nodeType === 3 &&
        n.textContent.trim())).filter((e) => faint(rgb(getComputedStyle(e).color), behind(e)));
    const back = behind(document.body);
    const frames = [...document.querySelectorAll('#flame g.frame')].filter((g) => {
        const style = (what) => getComputedStyle(g.querySelector(what));
        const part = Number(getComputedStyle(g).opacity);
        const mix = (c, of) => rgb(c).slice(0, 3).map((v, i) => of * v + (1 - of) * back[i]);
        return g.querySelector('.d3-flame-graph-label').getClientRects().length &&
            faint(mix(style('.d3-flame-graph-label').color, part),
                  mix(style('rect').fill, part * style('rect').fillOpacity));
    });
    return [...texts, ...frames].map((e) => e.tagName + ' ' + e.textContent.slice(0, 40))"""
# Tables of which a part is seen only if they are moved sideways
CUT = """return [...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth)
    .map((e) => e.firstElementChild.id)"""
PERF = '''#!/bin/sh
case "$1" in
report) echo "# hostname : db7"; echo "# nrcpus online : 4"; echo "# cmdline : perf record -a "
	echo "# clockid: ${CLOCKID-monotonic (1)}"
	echo "# reference time: ${REFERENCE-2026-01-02 03:03:56 = 1767323036.178000 (TOD) = 100.000000000 (monotonic)}";;
verdict) cat "${VERDICT-/dev/null}";;
script) echo "${SIDE_BAND-  task 1 [001] 102.500000000: PERF_RECORD_LOST lost 17}";;
esac
'''


def frames(*names):
    """Leaf last, as people read it"""
    return [{'ip': 1, 'sym': {'name': name}, 'dso': dso} for name, dso in reversed(names)]


MAIN = ('main', '/usr/bin/server')
STACKS = {
    'hot': frames(MAIN, ('serve', '/usr/bin/server'), ('hot_function', '/usr/bin/server')),
    'read': frames(MAIN, ('serve', '/usr/bin/server'), ('read', '/lib/libc.so.6'),
                   ('do_syscall_64', '[kernel.kallsyms]'), ('vfs_read', '[kernel.kallsyms]')),
    'idle': frames(('do_idle', '[kernel.kallsyms]'), ('native_safe_halt', '[kernel.kallsyms]')),
    'wait': frames(MAIN, ('pthread_mutex_lock', '/lib/libc.so.6'),
                   ('futex_wait', '[kernel.kallsyms]'), ('schedule', '[kernel.kallsyms]')),
}


def sample(name, attr, ns, cpu, tid, comm, stack):
    return {'ev_name': name, 'attr': attr, 'comm': comm, 'callchain': stack,
            'sample': {'time': START + ns, 'cpu': cpu, 'pid': tid, 'tid': tid}}


def scene(samples):
    """
    A hot function between 4 s and 6 s, else reads; CPU 2 has one task; CPU 3 idles, and
    begins at 3 s; CPU 1 loses what came from 2 s to 2.5 s
    """
    step = WINDOW * 4 // samples
    # 2000 call chains, of many depths.
    many = [frames(*[('level_%d_%d' % (n, n * v % 50), '/usr/bin/server')
                     for n in range(v % 40)]) + STACKS[name]
            for name in ('hot', 'read') for v in range(1000)]
    for i in range(samples):
        ns, cpu = i * step // 4, i % 4
        hot = 4 * NSEC <= ns < 6 * NSEC
        stack = many[(0 if hot else 1000) + i // 4 % 1000] if samples > 100000 else (
            STACKS['hot' if hot else 'read'])
        if cpu == 3 and ns < 3 * NSEC or cpu == 1 and 2 * NSEC <= ns < 2.5 * NSEC:
            continue
        if cpu == 3:
            yield ns, cpu, 0, 'swapper', STACKS['idle']
        elif hot or cpu == 2:
            yield ns, cpu, 1000 + cpu, 'server', stack
        else:
            yield ns, cpu, 2000 + i % 11, 'worker-%d' % (i % 11), stack
    yield WINDOW, 0, 3000, HOSTILE, STACKS['hot']


def feed(script, samples, switches, given):
    """The scene; on CPU 2 its task is off for 10 ms now and then, and another one runs"""
    def switch(ns, prev, following):
        script['trace_unhandled'](
            'x', None, {'prev_pid': prev[0], 'prev_comm': prev[1], 'prev_state': 1,
                        'next_pid': following[0], 'next_comm': following[1]},
            sample('sched:sched_switch', SWITCH, ns, 2, *prev, STACKS['wait']))

    victim, other, back, n = (1002, 'server'), (7, 'other'), None, 0
    for ns, cpu, tid, comm, stack in scene(samples) if samples else ():
        if back is not None and ns >= back:
            switch(back, other, victim)
            back = None
        if cpu == 2 and back is not None:
            tid, comm = other
        given.append((ns, cpu, tid, comm, stack))
        script['process_event'](sample('cpu-clock', CLOCK, ns, cpu, tid, comm, stack))
        n += cpu == 2
        if switches and cpu == 2 and back is None and n % 100 == 2:
            # The lock holder's victim: off for 10 ms, then on again.
            switch(ns + 1000, victim, other)
            back = ns + 10001000


def make(scripts, path, samples=20000, switches=True, manifest=True, library=True):
    """Runs incident.py as perf does; returns the figures and the samples it was given"""
    shutil.rmtree(path + '.py', ignore_errors=True)
    shutil.copytree(scripts, path + '.py',
                    ignore=lambda _, names: [n for n in names if not n.startswith('incident')
                                             and n not in ('lib',) and '/lib' not in _
                                             and not _.endswith('/incident')])
    if not library:
        shutil.rmtree(path + '.py/incident/lib', ignore_errors=True)
    if manifest:
        with open(path + '.json', 'w', encoding='utf-8') as f:
            json.dump(MANIFEST, f)
    sys.argv = ['incident.py', '-i', path, '-o', path + '.html', '--json']
    said, given = io.StringIO(), []
    with redirect_stdout(said), redirect_stderr(io.StringIO()):
        script = runpy.run_path(path + '.py/incident.py')
        feed(script, samples, switches, given)
        script['trace_end']()
    return json.loads(said.getvalue()), given


def attr(event_type, config):
    return struct.pack('=IIQQ', event_type, 136, config, 1) + b'\0' * 112


class Told:
    """What incident.py tells of a few records, given to it in seconds from START on"""

    def __init__(self, t, name, side_band=''):
        self.path = os.path.join(t.directory.name, name)
        os.environ['SIDE_BAND'] = side_band
        sys.argv = ['incident.py', '-i', self.path, '-o', self.path + '.html', '--json']
        try:
            self.script = runpy.run_path(os.path.join(t.scripts, 'incident.py'))
        finally:
            del os.environ['SIDE_BAND']

    def sample(self, at, cpu, tid, comm='task', name='cpu-clock', of=CLOCK, stack=None,
               cgroup=None):
        s = sample(name, of, round(at * NSEC), cpu, tid, comm, stack or STACKS['hot'])
        if cgroup is not None:
            s['sample']['cgroup'] = cgroup
        self.script['process_event'](s)

    def switch(self, at, cpu, prev, following, comm='task', state=1):
        self.script['trace_unhandled'](
            'x', None, {'prev_pid': prev, 'prev_comm': comm, 'prev_state': state,
                        'next_pid': following, 'next_comm': comm},
            sample('sched:sched_switch', SWITCH, round(at * NSEC), cpu, prev, ':%d' % prev,
                   STACKS['wait']))

    def wake(self, at, cpu, tid):
        self.script['trace_unhandled'](
            'x', None, {'pid': tid, 'comm': 'task'},
            sample('sched:sched_waking', SWITCH, round(at * NSEC), cpu, 0, 'swapper', []))

    def verdict(self, **told):
        """What perf verdict tells of it"""
        empty = {'findings': [], 'missing': [], 'notes': []}
        self.script['machine'].verdict = {**empty, **told}

    def switch_record(self, at, cpu, tid, out):
        self.script['context_switch'](START + round(at * NSEC), cpu, tid, tid, 0, 0, 0, out, 0)

    def figures(self):
        said = io.StringIO()
        with redirect_stdout(said), redirect_stderr(io.StringIO()):
            self.script['trace_end']()
        return json.loads(said.getvalue())

    def times(self):
        """tid -> (seconds on the CPU, seconds off it), and whether some are said to be missing"""
        told, sums = self.figures(), {}
        for f in told['tasks']:
            # Under each of its names.
            if f['tid']:
                on, off = sums.get(f['tid'], (0, 0))
                sums[f['tid']] = (on + f['on_ns'] / NSEC, off + f['off_ns'] / NSEC)
        return sums, any('Not every switch' in note for note in told['notes'])


def busy(given):
    """The samples that found a task"""
    return [s for s in given if s[2]]


class Tests:
    def __init__(self, scripts):
        self.scripts = scripts
        self.n = self.bad = 0
        self.directory = tempfile.TemporaryDirectory()
        perf = os.path.join(self.directory.name, 'perf')
        with open(perf, 'w', encoding='utf-8') as f:
            f.write(PERF)
        os.chmod(perf, 0o755)
        os.environ['PATH'] = self.directory.name + ':' + os.environ['PATH']
        self.page = os.path.join(self.directory.name, 'page')
        self.figures, self.given = make(scripts, self.page)
        self.whole = os.path.exists(os.path.join(scripts, 'incident/lib/d3.js'))
        self.browser = Browser()

    def check(self, name, function, needs_library=False):
        self.n += 1
        if needs_library and not self.whole:
            print('ok %d %s # SKIP d3 was not fetched: there was no npm, or no network'
                  % (self.n, name))
            return
        try:
            function()
            print('ok %d %s' % (self.n, name), flush=True)
        except (Exception, SystemExit) as err:  # whatever it is, it is this test's
            self.bad += 1
            print('# %s: %s' % (type(err).__name__, str(err).replace('\n', '\n# ')))
            print('not ok %d %s' % (self.n, name), flush=True)
            self.shot('failed-%d' % self.n)

    def shot(self, name):
        height = self.browser.run('return document.documentElement.scrollHeight')
        width = self.browser.run('return window.innerWidth')
        self.browser.resize(width, min(height, 2400))
        self.browser.screenshot(os.path.join(OUT, 'incident-%s.png' % name))
        self.browser.resize(width, 1000)

    def open(self, name='page', link=''):
        self.browser.resize(1300, 1000)
        # Of the same page with another link, a browser would follow the link alone.
        self.browser.call('POST', '/url', {'url': 'about:blank'})
        self.browser.open(os.path.join(self.directory.name, name + '.html') + link)
        self.browser.settle()

    def look(self, name):
        """Nothing is cut off, and all text can be read; screenshots"""
        for scheme in ('light', 'dark'):
            self.browser.devtools('Emulation.setEmulatedMedia',
                                  features=[{'name': 'prefers-color-scheme', 'value': scheme}])
            for width in (1300, 400):
                self.browser.resize(width, 1000)
                self.browser.settle()
                wide = self.browser.run('return document.documentElement.scrollWidth')
                if wide > width:
                    raise AssertionError('%s: %d is more than %d' % (scheme, wide, width))
                same('%s, %d: tables that are cut off' % (scheme, width), self.browser.run(CUT), [])
                same('%s, %d: too faint' % (scheme, width), self.browser.run(FAINT), [])
                self.shot('%s-%s-%d' % (name, scheme, width))
        self.browser.devtools('Emulation.setEmulatedMedia', features=[])

    def choose(self, which, value):
        self.browser.run("""const s = document.querySelector(arguments[0]); s.value = arguments[1];
            s.dispatchEvent(new Event('change'))""", which, value)
        self.browser.settle()

    def rows(self, table):
        return self.browser.run('''return [...document.querySelectorAll(arguments[0] +
            ' tbody tr')].map((tr) => [...tr.cells].map((td) => td.textContent))''', table)

    def selected(self):
        """[from, to) in ns since the first record, from the page's words"""
        text = self.browser.text('#selection').replace('\u2212', '-').replace('+', '')
        match = re.search(r'([-\d.]+) s to ([-\d.]+) s', text)
        at = self.figures['trigger'] - START
        return [round(float(t) * 1000) * 1000000 + at for t in match.groups()]

    def total(self):
        match = re.search(r'([\d,]+) samples', self.browser.text('#matched'))
        return int(match[1].replace(',', '')) if match else 0

    def within(self, start, end):
        return [s for s in busy(self.given) if start <= s[0] < end]


def same(what, got, want):
    if got != want:
        raise AssertionError('%s: %r, it should be %r' % (what, got, want))


def eventually(what, get, want):
    """d3 draws in transitions, which take a frame or more"""
    for _ in range(600):
        got = get()
        if want(got):
            return
        time.sleep(0.1)
    raise AssertionError('%s: it stays at %r' % (what, got))


def run(checks):
    """checks: (name, function of Tests, whether it needs d3). Prints TAP"""
    for command in ('chromedriver', 'chromium'):
        if not shutil.which(command):
            print('1..0 # SKIP %s is not installed' % command)
            return 0
    t = Tests(sys.argv[1])
    try:
        for name, function, needs_library in checks:
            t.check(name, lambda f=function: f(t), needs_library)
    finally:
        t.browser.close()
    print('1..%d' % t.n)
    return t.bad != 0
