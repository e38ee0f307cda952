#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Views of the page of perf script report incident, in a headless Chromium: what the mouse zooms to,
the evidence of findings, two selections compared, many cgroups, and links to what is seen.

The pages are made as those of test-incident-page.py. Prints TAP; screenshots go to
$OUT/incident-*.png.

usage: test-incident-views.py DIRECTORY-WITH-incident.py
"""
import os
import re
import sys
from urllib.parse import parse_qs

sys.dont_write_bytecode = True
# Beside this script
from incident_page import MAIN, NSEC, STACKS, START, Told, eventually, frames, run, same

BUTTONS = ('zoom-in', 'zoom-out', 'zoom-selection', 'clear')
# The canvas of the timeline at 1300 pixels: names of tasks, and what is beside the plot
MARGIN, BESIDE = 132, 8


def link_of(t):
    return {key: of[0] for key, of in parse_qs(t.browser.run(
        'return location.hash')[1:]).items()}


def data(t, name):
    return t.browser.run("return JSON.parse(document.getElementById('data').textContent)"
                         + name)


def bins(t):
    return data(t, '.width') // data(t, '.bin') + 1


def seen(t):
    return [int(n) for n in link_of(t).get('see', '0-%d' % bins(t)).split('-')]


def part(t):
    return [int(n) for n in link_of(t)['part'].split('-')]


def usable(t):
    return [b for b in BUTTONS if t.browser.run(
        'return !document.getElementById(arguments[0]).disabled', b)]


def zooms(t):
    """By buttons, the wheel, and a double click"""
    t.open()
    whole = seen(t)
    same('usable', usable(t), ['zoom-in'])
    t.browser.mouse('#zoom-in')
    a, b = seen(t)
    if abs((b - a) - whole[1] / 2) > 1 or abs((a + b) / 2 - whole[1] / 2) > 1:
        raise AssertionError('%d-%d of %d' % (a, b, whole[1]))
    same('usable, zoomed', usable(t), ['zoom-in', 'zoom-out', 'clear'])
    t.browser.mouse('#zoom-out')
    same('back', (seen(t), usable(t)), (whole, ['zoom-in']))
    t.browser.drag('#cpus', 0.5, 0.6)
    chosen = part(t)
    t.browser.mouse('#zoom-selection')
    same('the selection', seen(t), chosen)
    same('selected still', part(t), chosen)
    t.browser.mouse('#clear')
    same('the whole window', (link_of(t), usable(t)), ({}, ['zoom-in']))
    for _ in range(20):
        t.browser.mouse('#zoom-in')
    if not 10 <= seen(t)[1] - seen(t)[0] <= 20 or 'zoom-in' in usable(t):
        raise AssertionError('%r, %r' % (seen(t), usable(t)))
    t.browser.mouse('#clear')
    wheel(t, whole)
    for canvas in ('#cpus', '#axis', '#lanes'):
        t.browser.drag('#cpus', 0.5, 0.6)
        chosen = part(t)
        t.browser.mouse(canvas, 0.55, 8, clicks=2)
        same('twice on ' + canvas, (seen(t), part(t)), (chosen, chosen))
        t.browser.mouse('#clear')


def wheel(t, whole):
    """What is below the pointer stays there"""
    share = (MARGIN + 0.25 * (t.browser.run('return document.getElementById("cpus").clientWidth')
                              - MARGIN - BESIDE)) / t.browser.run(
        'return document.getElementById("cpus").clientWidth')
    for canvas in ('#cpus', '#lanes'):
        t.browser.wheel(canvas, share, -100, control=False)
        same('without a key', seen(t), whole)
        t.browser.wheel(canvas, share, -100)
        a, b = seen(t)
        if abs((b - a) - 0.7 * whole[1]) > 2 or abs(a + 0.25 * (b - a) - 0.25 * whole[1]) > 3:
            raise AssertionError('%s: %d-%d of %d' % (canvas, a, b, whole[1]))
        t.browser.wheel(canvas, share, 100)
        t.browser.wheel(canvas, share, 100)
        same('back', seen(t), whole)


def widths(t):
    return t.browser.run("""return Object.fromEntries([...document.querySelectorAll(
        '#flame g.frame')].map((g) => [g.getAttribute('name'),
        Math.round(g.querySelector('rect').getAttribute('width'))]))""")


def click_frame(t, name):
    t.browser.run("""[...document.querySelectorAll('#flame g.frame')]
        .find((g) => g.getAttribute('name') === arguments[0])
        .dispatchEvent(new MouseEvent('click', {bubbles: true}))""", name)
    t.browser.settle()


def state(t):
    """What is seen of all that a link tells"""
    of = {name: t.browser.run('return document.getElementById(arguments[0]).value', name)
          for name in ('view', 'of-task', 'of-cgroup', 'compare', 'search')}
    for name in ('selection', 'matched', 'compared-how', 'keep'):
        of[name] = t.browser.text('#' + name)
    of['changed'] = t.rows('#changed-functions') if of['compare'] else None
    of['tasks'], of['usable'] = t.rows('#tasks'), usable(t)
    of['axis'] = t.browser.run('return document.getElementById("axis").toDataURL().length')
    return of


def linked(t):
    """A link tells the kept part, and which frame is shown alone; other links do not"""
    t.open()
    t.browser.drag('#cpus', 0.2, 0.4)
    t.browser.mouse('#keep')
    kept = part(t)
    t.browser.drag('#cpus', 0.55, 0.7)
    t.choose('#compare', 'kept')
    t.browser.mouse('#zoom-selection')
    if t.whole:
        click_frame(t, 'hot_function')
        eventually('zoomed', lambda: widths(t)['hot_function'], lambda n: n > 1000)
    before, zoomed = state(t), widths(t)
    link = t.browser.run('return location.hash')
    same('kept', link_of(t)['kept'], '%d-%d' % tuple(kept))
    for again in range(2):
        if again:
            # In the same document: what a link does not tell is as usual.
            t.browser.run("location.hash = '#search=serve'")
            t.browser.settle()
            same('another link', (link_of(t), t.browser.text('#keep')),
                 ({'search': 'serve'}, 'Keep part'))
            if t.whole:
                same('not zoomed', t.browser.run(
                    "return document.getElementById('reset-flame').disabled"), True)
            t.browser.run('location.hash = arguments[0]', link)
            t.browser.settle()
        else:
            t.open('page', link)
        same('seen', state(t), before)
        if t.whole:
            same('flame graph', widths(t), zoomed)
            same('frame', t.browser.text('#frame').split(' ')[0], 'hot_function')
        same('link', t.browser.run('return location.hash'), link)
    if not t.whole:
        return
    # Another part, in which the function ran as well, and one in which it did not
    t.browser.mouse('#clear')
    eventually('zoomed still', lambda: widths(t)['hot_function'], lambda n: n > 1000)
    t.browser.mouse('#reset-flame')
    same('reset', (link_of(t).get('zoom'), widths(t)['hot_function'] < 1000), (None, True))
    click_frame(t, 'hot_function')
    t.browser.drag('#cpus', 0.2, 0.3)
    same('it is not there', 'hot_function' in widths(t), False)
    for wrong in ('999999999999', 'a', '-1'):
        t.open('page', '#zoom=' + wrong)
        same('zoom=' + wrong, (t.browser.run(
            "return document.getElementById('reset-flame').disabled"), t.browser.complaints()),
             (True, []))


def evidence(t, name='evidence'):
    """server (5) waits from 4 s to 5 s for other (7), which runs, mostly in hot_function"""
    told = Told(t, name)
    told.sample(0, 1, 7, 'other', stack=STACKS['read'])
    for n in range(1, 1000):
        waits = 400 <= n < 500
        if n in (400, 500):
            told.switch(n / 100, 0, 5 if waits else 7, 7 if waits else 5, 'server')
        told.sample(n / 100 + 0.001, 0, 7 if waits else 5, 'other' if waits else 'server',
                    stack=STACKS['hot' if waits and n % 4 else 'read'])
    times = {'start': START + 4 * NSEC, 'end': START + 5 * NSEC, 'ns': NSEC}
    task = lambda comm, tid: {'comm': comm, 'tid': tid, 'ns': NSEC}
    told.verdict(findings=[
        {'kind': 'wait', 'root': 'ran', 'confidence': 'likely', 'cost_ns': NSEC, 'waits': 1,
         'sentence': 'server (5) waited 1.000 s for a futex: other (7) ran meanwhile.',
         'from': times['start'], 'to': times['end'], 'containers': [],
         'victims': [task('server', 5)], 'culprits': [task('other', 7), task('ghost', 99)],
         'chain': [
             dict(times, text='server (5) waited 1.000 s for a futex, in futex_wait()',
                  task=task('server', 5), waits_for='a futex'),
             dict(times, text='other (7) ran for 1.000 s, mostly in hot_function()',
                  task=task('other', 7), root='ran', function='hot_function'),
             dict(times, text='ghost (99) waited 1.000 s for work', task=task('ghost', 99))]}],
        missing=[{'events': 'irq:*', 'what': 'whether interrupts had the CPUs'}])
    told.figures()
    t.open(name)


def press(t, text, n=0):
    """A button of the findings, with the mouse"""
    t.browser.run("""document.querySelectorAll('[data-it]').forEach((b) => delete b.dataset.it);
        [...document.querySelectorAll('#findings button')]
        .filter((b) => b.textContent === arguments[0])[arguments[1]].dataset.it = ''""", text, n)
    t.browser.mouse('[data-it]')
    t.browser.settle()


def tasks_clicked(t):
    """A task of a finding is shown alone, with its lane; one of which nothing is known cannot be"""
    evidence(t)
    same('buttons', t.browser.run("""return [...document.querySelectorAll('#findings button')]
        .map((b) => b.textContent)"""),
         ['server (5) waited 1.000 s for a futex: other (7) ran meanwhile.', 'server (5)',
          'other (7)', 'server (5)', '4.000 s', 'stack', 'other (7)', '4.000 s', 'stack',
          'hot_function', '4.000 s'])
    if 'By: other (7) 1.000 s, ghost (99) 1.000 s' not in t.browser.text('#findings'):
        raise AssertionError(t.browser.text('#findings'))
    for n, (name, tid, did) in enumerate((('other', '7', 'ran 1.000 s'),
                                          ('server', '5', 'slept 1.000 s'))):
        press(t, '%s (%s)' % (name, tid), n)
        same('tasks', [row[:2] for row in t.rows('#tasks')], [[name, tid]])
        same('link', link_of(t), {'task': name})
        said = t.browser.text('#lane-hover')
        if not said.startswith('%s (%s) at' % (name, tid)) or did not in said:
            raise AssertionError(said)
        in_sight = t.browser.run("""const b = document.getElementById('states-view')
            .getBoundingClientRect(); return b.top >= 0 && b.bottom <= window.innerHeight""")
        same('lane in sight', in_sight, True)
    press(t, '4.000 s', 1)
    same('time', [round(ns / 1e8) for ns in selected(t)], [40, 50])
    press(t, 'hot_function')
    same('search', link_of(t)['search'], 'hot_function')
    same('complaints', t.browser.complaints(), [])


def selected(t):
    match = re.search(r'([\d.]+) s to ([\d.]+) s', t.browser.text('#selection'))
    return [float(n) * 1e9 for n in match.groups()]


def unfaded(t):
    """The frame that is shown alone, and what it called"""
    return t.browser.run("""return [...document.querySelectorAll('#flame g.frame:not(.fade)')]
        .map((g) => g.getAttribute('name'))""")


def stacks_clicked(t):
    """A stack of a finding is shown in the flame graph of its task and time"""
    evidence(t)
    t.choose('#of-task', t.browser.run(
        "return document.querySelector('#of-task').options[1].value"))
    for n, name, view, leaf, chain in (
            (0, 'server', 'off', '(sleeping)', 'main → pthread_mutex_lock → futex_wait → schedule'),
            (1, 'other', '0', 'hot_function', 'main → serve → hot_function')):
        title = t.browser.run("""return [...document.querySelectorAll('#findings button')]
            .filter((b) => b.textContent === 'stack')[arguments[0]].title""", n)
        if chain not in title:
            raise AssertionError(title)
        press(t, 'stack', n)
        link = link_of(t)
        same('link', (link['task'], link.get('view', '0')), (name, view))
        same('time', [round(ns / 1e8) for ns in selected(t)], [40, 50])
        same('tasks', [row[0] for row in t.rows('#tasks')], [name])
        eventually('frame', lambda: unfaded(t)[:1], lambda names: names == [leaf])
        drawn = widths(t)
        for function in chain.split(' → '):
            if drawn[function] < 1000:
                raise AssertionError('%s: %r' % (function, drawn))
        same('others', 'vfs_read' in drawn and drawn['vfs_read'] > 0, False)
        link = t.browser.run('return location.hash')
        t.open('evidence', link)
        same('by the link', widths(t), drawn)
    same('complaints', t.browser.complaints(), [])
    t.look('stack')


def equal(t):
    """No difference is claimed of two parts that are equal, or of a part with itself"""
    told, n = Told(t, 'equal'), 20000
    stacks = [frames(MAIN, ('f%d' % i, '/usr/bin/server')) for i in range(7)]
    for i in range(n):
        late = i >= n * 9 // 10 and i % 5 == 0
        # A period of 7 ms, so that each part has the same; in the last second, one in five is new.
        stack = frames(MAIN, ('new', '/usr/bin/server')) if late else stacks[i % 7]
        told.sample(i / 2000, i % 2, 5 + i % 3, 'task-%s' % 'abc'[i % 3], stack=stack)
    told.figures()
    t.open('equal')
    second = NSEC // data(t, '.bin')
    none = 'Nothing changed by more than calm parts differ.'
    for kept, of, slices in (((1, 3), (1, 3), '5 slices of 400.000 ms'),
                             ((1, 3), (5, 7), '5 slices of 400.000 ms'),
                             ((1, 3), (2, 6), '5 slices of 400.000 ms'),
                             ((1, 8), (2, 2.5), '13 calm parts as long'),
                             ((1, 3), (9, 10), None)):
        bins_ = ['%d-%d' % (a * second, b * second) for a, b in (kept, of)]
        t.open('equal', '#kept=%s&part=%s&compare=kept' % tuple(bins_))
        how, tables = t.browser.text('#compared-how'), [
            t.rows('#changed-' + which) for which in ('tasks', 'functions')]
        if slices:
            if slices not in how:
                raise AssertionError(how)
            same('%r and %r' % (kept, of), tables, [[[none]], [[none]]])
        else:
            same('what is new', sorted({row[0] for row in tables[1]}), ['new'])
            same('scaled', [row[3:] for row in tables[1] if row[2] == 'self'],
                 [['400', '0', '0', '0']])
        fills = t.browser.run("""return [...new Set([...document.querySelectorAll('#flame g.frame')]
            .filter((g) => !g.querySelector('rect').getAttribute('fill').startsWith('hsl(215 8%'))
            .map((g) => g.getAttribute('name')))]""")
        if t.whole:
            same('colours', fills, [] if slices else ['new'])
    t.look('two-selections')
    t.open('equal', '#kept=0-4&part=%d-%d&compare=kept' % (second, 2 * second))
    if 'the kept part is too short' not in t.browser.text('#compared-how'):
        raise AssertionError(t.browser.text('#compared-how'))


def heights(t, cpu):
    """How much of the row of one of two CPUs is drawn on"""
    return t.browser.run("""const c = document.getElementById('cpus'), r = c.width / c.clientWidth;
        const h = c.clientHeight / 2, at = c.getContext('2d').getImageData(arguments[1] * r,
            (arguments[0] * h + 2) * r, (c.clientWidth - arguments[1] - 8) * r, (h - 4) * r).data;
        return at.filter((v, i) => i % 4 === 3 && v > 127).length""", cpu, MARGIN)


def drawn(t):
    """What is drawn and said of it are the numbers of the tables: of CPUs, and of frames"""
    told = Told(t, 'drawn')
    for n in range(2000):
        for cpu in (0, 1, 1, 1, 1, 1):
            told.sample(n / 200, cpu, 5)
    told.figures()
    t.open('drawn')
    same('samples', [row[1] for row in t.rows('#cpu-table')], ['2,000', '10,000'])
    ratio = heights(t, 1) / heights(t, 0)
    if not 4.5 < ratio < 5.5:
        raise AssertionError('5 times the samples are drawn %.2f times as high' % ratio)
    # That it was read back.
    t.browser.complaints()
    t.open()
    t.browser.focus('#timeline')
    for cpu in range(4):
        t.browser.keys('Down')
        nr = sum(s[1] == cpu for s in t.given)
        same('CPU', re.sub(r' at .*: ([0-9,]+) samples: .*', r' \1', t.browser.text('#hover')),
             'CPU %d %s' % (cpu, format(nr, ',')))
    if not t.whole:
        return
    t.browser.drag('#cpus', 0.5, 0.7)
    start, end = t.selected()
    inside = t.within(start, end)
    frames_ = t.browser.run("""return [...document.querySelectorAll('#flame g.frame')].map((g) => {
        g.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
        return [g.getAttribute('name'), document.getElementById('frame').textContent,
                Number(g.querySelector('rect').getAttribute('width'))]; })""")
    wide = max(width for _, _, width in frames_)
    said = {}
    for name, text, width in frames_:
        nr = int(re.search(r': ([0-9,]+) samples, ', text)[1].replace(',', ''))
        if not text.endswith(', %.2f %%' % (100 * nr / len(inside))):
            raise AssertionError(text)
        # d3 leaves out a pixel between frames.
        if abs(width - wide * nr / len(inside)) > 1.5:
            raise AssertionError('%s is %.1f wide of %.1f' % (text, width, wide))
        said[name] = said.get(name, 0) + nr
    same('all', said['all'], len(inside))
    same('hot_function', said['hot_function'], sum(s[4] is STACKS['hot'] for s in inside))
    total = {row[0]: row[3] for row in t.rows('#functions')}
    for name, share in total.items():
        same(name, '%.2f %%' % (100 * said[name] / len(inside)), share)


def cgroups(t):
    """Many cgroups with long names, 30,000 tasks: 8 MiB; what is counted together is told"""
    for nr in 5000, 30000:
        figures = many_cgroups(t, nr)
        t.open('cgroups-%d' % nr)
        same('samples', t.total(), 120000)
        notes = t.browser.text('#notes')
        if ('"(other cgroups)"' in notes) != (nr > 10000) or '"(other tasks)"' not in notes:
            raise AssertionError(notes)
        names = dict(t.browser.run("""return [...document.querySelectorAll('#of-cgroup option')]
            .map((o) => [o.textContent, o.value])"""))
        # The end of a name is told.
        want = {name[-500:]: n for name, n in figures['cgroup_samples'].items()}
        told = {name: name[-500:] for name in names if name.endswith('-pod')}
        others = int((re.search(r'(\d+) cgroups', notes) or '00')[1])
        same('cgroups', len(told) + others, nr)
        if others:
            t.choose('#of-cgroup', names['(other cgroups)'])
            same('others', t.total(), 120000 - sum(want[end] for end in told.values()))
        for name in list(told)[:3]:
            t.choose('#of-cgroup', names[name])
            same(name, t.total(), want[told[name]])
        # A task of a finding is told, however rare it is.
        press(t, 'task-29999 (29999)')
        same('task', [row[:2] for row in t.rows('#tasks')], [['task-29999', '29999']])
        same('complaints', t.browser.complaints(), [])


def many_cgroups(t, nr):
    told = Told(t, 'cgroups-%d' % nr)
    for i in range(120000):
        tid = 1 + i % 30000
        told.sample(i / 10000, i % 8, tid, 'task-%d' % tid,
                    stack=STACKS['hot' if i % 3 else 'read'],
                    cgroup='/' + 'kubepods-%d.slice/' % (i % nr % 7) * 60 + '%d-pod' % (i % nr))
    told.verdict(findings=[
        {'kind': 'cpu', 'root': 'cpu', 'confidence': 'known', 'cost_ns': NSEC, 'waits': 1,
         'sentence': 'task-29999 (29999) waited 1.000 s for a CPU.', 'containers': [],
         'from': START, 'to': START + NSEC, 'victims': [{'comm': 'task-29999', 'tid': 29999}],
         'culprits': [], 'chain': []}])
    figures = told.figures()
    size = os.stat(os.path.join(t.directory.name, 'cgroups-%d.html' % nr)).st_size
    print('# %d cgroups of up to %d characters, 30000 tasks: %.1f MiB'
          % (nr, max(map(len, figures['cgroup_samples'])), size / 2 ** 20))
    if size > 8 << 20:
        raise AssertionError('%d bytes' % size)
    return figures


def many_findings(t):
    """Thousands of findings, with names of functions that are long: still 8 MiB"""
    told = Told(t, 'findings')
    long = lambda n: 'f_%d_' % n + 'x' * 40000
    for n in range(2000):
        told.sample(n / 200, n % 2, 1 + n, 'task-%d' % n, stack=frames(MAIN, (long(1), '/bin/x')))
    task = lambda n: {'comm': 'task-%d' % n, 'tid': 1 + n, 'ns': NSEC}
    times = {'start': START, 'end': START + NSEC, 'ns': NSEC}
    told.verdict(findings=[
        {'kind': 'wait', 'root': 'ran', 'confidence': 'known', 'cost_ns': NSEC, 'waits': 1,
         'sentence': 'task-%d (%d) waited for a futex: %s()' % (n, 1 + n, long(1)),
         'from': START, 'to': START + NSEC, 'containers': [], 'victims': [task(n)],
         'culprits': [task(n + 1)], 'chain': [
             dict(times, task=task(n), root='ran', text='ran in %s()' % long(1), function=long(1))]}
        for n in range(1999)], comparison={
            'compared': True, 'sentence': 'x', 'since': START, 'triggered': False,
            'part': {'from': START + 9 * NSEC, 'to': START + 10 * NSEC},
            'calm': [{'from': START + n * NSEC, 'to': START + (n + 1) * NSEC} for n in range(5)],
            'judged': 400, 'changes': [
                {'figure': 'self', 'function': long(n), 'dso': 'x', 'now': 9, 'median': 0,
                 'least': 0, 'most': 1} for n in range(400)]})
    same('all in JSON', len(told.figures()['verdict']['findings']), 1999)
    size = os.stat(os.path.join(t.directory.name, 'findings.html')).st_size
    print('# 1999 findings and 400 changes: %.1f MiB' % (size / 2 ** 20))
    if size > 8 << 20:
        raise AssertionError('%d bytes' % size)
    t.open('findings')
    same('findings', t.browser.run("return document.querySelectorAll('#findings > li').length"),
         100)
    if '1899 more findings are not on this page' not in t.browser.text('#notes'):
        raise AssertionError(t.browser.text('#notes'))
    same('changes', len(t.rows('#change-table')), 10)
    press(t, 'task-0 (1)')
    same('task', [row[:2] for row in t.rows('#tasks')], [['task-0', '1']])
    same('complaints', t.browser.complaints(), [])


CHECKS = (
    ('buttons, the wheel and double clicks zoom', zooms, False),
    ('a link to what is kept, and to a zoomed flame graph', linked, False),
    ('tasks of findings are clicked', tasks_clicked, False),
    ('stacks of findings are clicked', stacks_clicked, True),
    ('equal parts do not differ', equal, False),
    ('numbers that are drawn are those of the tables', drawn, False),
    ('thousands of findings', many_findings, False),
    ('5,000 and 30,000 cgroups, 30,000 tasks', cgroups, False),
)


if __name__ == '__main__':
    sys.exit(run(CHECKS))
