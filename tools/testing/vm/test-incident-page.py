#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
The page of perf script report incident, in a headless Chromium without a network.

incident.py is fed with samples whose figures are known, as perf would feed it, so no kernel
and no recording is needed; a real dump is the matter of tests/shell/incident.sh. Prints TAP;
screenshots go to $OUT/incident-*.png.

usage: test-incident-page.py DIRECTORY-WITH-incident.py
"""
import io
import json
import os
import re
import sys
import time
from contextlib import redirect_stdout

sys.dont_write_bytecode = True
# Beside this script
from incident_page import (CLOCK, HOSTILE, MAIN, MANIFEST, NSEC, STACKS, START, SWITCH, Told, attr,
                           busy, eventually, frames, make, run, same, sample)


def figures(t):
    t.open()
    same('title', t.browser.text('#title'), 'Incident on db7, 2026-01-02 03:04:05.678 UTC')
    ran = busy(t.given)
    same('samples', t.total(), len(ran))
    same('samples of the summary', t.figures['on_cpu_samples'], len(t.given))
    same('idle samples', t.figures['idle_samples'], len(t.given) - len(ran))
    if 'without %s of idle CPUs' % format(len(t.given) - len(ran), ',') not in \
       t.browser.text('#matched'):
        raise AssertionError(t.browser.text('#matched'))
    want = [[f['comm'], str(f['tid']), str(f['pid']), format(f['samples'], ',')]
            for f in t.figures['tasks'] if f['samples'] and f['tid']]
    same('tasks', sorted(row[:4] for row in t.rows('#tasks')), sorted(want[:100]))
    same('functions', {r[0]: r[2:] for r in t.rows('#functions')},
         {f['name']: ['%.2f %%' % (100 * f[k] / len(ran)) for k in ('self', 'total')]
          for f in t.figures['functions'] if f['name'] not in ('do_idle', 'native_safe_halt')})
    same('lost', [row[5] for row in t.rows('#cpu-table')], ['0', '17', '0', '0'])
    t.shot('whole')


def header(t):
    """What happened is read without scrolling; the rest unfolds"""
    t.open()
    height = t.browser.run('''return document.querySelector('#timeline')
        .getBoundingClientRect().top''')
    if height > 300:
        raise AssertionError('the timeline begins at %d' % height)
    told = 'return [...document.querySelectorAll(arguments[0] + " dd")].map((d) => d.textContent)'
    if 'db7' not in t.browser.run(told, '#more') or 'signal, SIGUSR1 from pid 4711' not in \
       t.browser.run(told, '#what'):
        raise AssertionError('%r' % t.browser.run(told, 'header'))
    same('command', [c for c in t.browser.run(told, '#more') if c.startswith('perf')],
         ['perf record -a'])


def ring(t):
    """The ring of the focus is for the keyboard"""
    t.open()
    look = "return getComputedStyle(document.getElementById('timeline')).outlineStyle"
    t.browser.keys('Tab')
    t.browser.drag('#cpus', 0.3, 0.6)
    same('focus', t.browser.run('return document.activeElement.id'), 'timeline')
    same('after a drag', t.browser.run(look), 'none')
    t.browser.keys('Right')
    same('after a key', t.browser.run(look), 'solid')


def delayed(t):
    """With delay= the dump is younger than its trigger"""
    path = os.path.join(t.directory.name, 'delayed')
    with open(path + '.json', 'w', encoding='utf-8') as f:
        json.dump(dict(MANIFEST, trigger_time=START / NSEC + 5.25), f)
    told = Told(t, 'delayed')
    told.sample(1, 0, 5)
    told.sample(9, 0, 5)
    same('trigger', told.figures()['trigger'], START + 5250000000)


def idle_threads(t):
    """Kernel threads without work are not what to look at; those that wait in work are"""
    told = Told(t, 'kthreads')
    kthread = [('ret_from_fork_asm', '[kernel.kallsyms]'), ('kthread', '[kernel.kallsyms]')]

    def wait(at, tid, comm, state, stack):
        told.switch(at, 0, 0, tid, comm)
        told.script['trace_unhandled'](
            'x', None, {'prev_pid': tid, 'prev_comm': comm, 'prev_state': state, 'next_pid': 0,
                        'next_comm': 'swapper/0'},
            sample('sched:sched_switch', SWITCH, round((at + 0.1) * NSEC), 0, tid, comm,
                   frames(*stack)))
    wait(0, 11, 'ksoftirqd/0', 1, kthread + [('smpboot_thread_fn', '[kernel.kallsyms]')])
    wait(1, 12, 'kworker/0:1', 0x80, kthread + [('worker_thread', '[kernel.kallsyms]')])
    wait(2, 13, 'jbd2/vda-8', 2, kthread + [('wait_on_bit', '[kernel.kallsyms]')])
    wait(3, 14, 'server', 1, [MAIN, ('kthread', '/usr/bin/server')])
    told.sample(10, 0, 0)
    figures, said = told.figures(), io.StringIO()
    same('states', sorted((w['tid'], w['state']) for w in figures['waits']),
         [(11, 'waiting for work'), (12, 'waiting for work'), (13, 'uninterruptible'),
          (14, 'sleeping')])
    told.script['summary'](figures, said)
    off = said.getvalue().partition('Off the CPU')[2]
    if 'ksoftirqd' in off or 'server' not in off or 'Not listed' not in off:
        raise AssertionError(off)
    t.open('kthreads')
    t.browser.run('''const v = document.getElementById('view'); v.value = 'off';
                     v.dispatchEvent(new Event('change'))''')
    t.browser.settle()
    same('rows', [r[0] for r in t.rows('#tasks')], ['jbd2/vda-8', 'server'])
    if 'kernel threads waited for work' not in t.browser.text('#matched'):
        raise AssertionError(t.browser.text('#matched'))


def verdict(t):
    """Findings stand first, with what they rest on; a click selects their time"""
    path = os.path.join(t.directory.name, 'verdict')
    link = {'task': {'comm': 'server', 'tid': 1000}, 'start': START + 4 * NSEC,
            'end': START + 5 * NSEC, 'ns': NSEC}
    with open(path + '.told', 'w', encoding='utf-8') as f:
        json.dump({'version': 1, 'findings': [
            {'kind': 'wait', 'root': 'ran', 'confidence': 'likely', 'cost_ns': NSEC,
             'sentence': 'server (1000) waited 1.000 s for ' + HOSTILE, 'from': START + 4 * NSEC,
             'to': START + 6 * NSEC, 'victims': [], 'culprits': [],
             'containers': ['server (1000) is in container web (%s)' % ('0f' * 32)],
             'chain': [dict(link, text='server (1000) waited 1.000 s'),
                       dict(link, text='other (7) ran', function='hot_function')]}],
            'missing': [{'events': 'sched:sched_wakeup_new', 'what': 'who made new tasks'}],
            'notes': ['Not every switch is here. Unknown are 2.000 s of other (7).']}, f)
    os.environ['VERDICT'] = path + '.told'
    try:
        figures, given = make(t.scripts, path)
        said = io.StringIO()
        Told(t, 'verdict').script['summary'](figures, said)
    finally:
        del os.environ['VERDICT']
    for words in ('1. server (1000) waited 1.000 s', '(likely)',
                  '     server (1000) is in container web (0f', '       other (7) ran',
                  'Not recorded: who made new tasks (-e sched:sched_wakeup_new)',
                  'Note: Not every switch is here. Unknown are 2.000 s of other (7).'):
        if words not in said.getvalue():
            raise AssertionError('%r is not in %s' % (words, said.getvalue()[:2000]))
    t.open('verdict')
    same('complaints', t.browser.complaints(), [])
    same('script of a name has run', t.browser.run('return window.bad || 0'), 0)
    if 'sched:sched_wakeup_new' not in t.browser.run("return document.getElementById('missing').textContent"):
        raise AssertionError('what is missing is not told')
    if 'server (1000) is in container web (0f' not in t.browser.text('#findings'):
        raise AssertionError(t.browser.text('#findings'))
    same('findings', t.browser.run("return document.querySelectorAll('#findings > li').length"),
         1)
    t.shot('findings')
    t.browser.click('#findings button')
    t.browser.settle()
    start, end = t.selected()
    same('selected', (round(start / 1e8), round(end / 1e8)), (40, 60))
    same('samples', t.total(), sum(1 for s in busy(given) if start <= s[0] < end))
    t.browser.resize(400, 900)
    t.browser.settle()
    if t.browser.run('return document.documentElement.scrollWidth') > 400:
        raise AssertionError('it is wider than the window')
    t.shot('findings-narrow')


def offline(t):
    t.open()
    same('complaints', t.browser.complaints(), [])
    same('resources', t.browser.run("return performance.getEntriesByType('resource').length"), 0)
    with open(t.page + '.html', encoding='utf-8') as f:
        text = f.read()
    same('references', re.findall(r'<(?:script|link|img)[^>]+(?:src|href)=[^>]*>', text), [])
    same('mode', os.stat(t.page + '.html').st_mode & 0o777, 0o600)


def hostile(t):
    t.open()
    same('script of a name has run', t.browser.run('return window.bad || 0'), 0)
    if HOSTILE not in [row[0] for row in t.rows('#tasks')]:
        raise AssertionError('the task is not listed')


def select(t):
    t.open()
    t.browser.drag('#cpus', 0.3, 0.6)
    start, end = t.selected()
    if not 2 * NSEC < end - start < 4 * NSEC:
        raise AssertionError('selected %d .. %d' % (start, end))
    inside = t.within(start, end)
    same('samples', t.total(), len(inside))
    server = sum(1 for s in inside if s[2] == 1000)
    same('tid 1000', [r[3] for r in t.rows('#tasks') if r[1] == '1000'], [format(server, ',')])
    t.shot('selected')


def keyboard(t):
    t.open()
    t.browser.focus('#timeline')
    t.browser.keys('Left')
    first = t.selected()
    t.browser.keys('Left', 'Left')
    moved = t.selected()
    if not (moved[0] < first[0] and abs((moved[1] - moved[0]) - (first[1] - first[0])) < 3e6):
        raise AssertionError('%r moved to %r' % (first, moved))
    t.browser.keys('Right', 'Right', shift=True)
    same('start', t.selected()[0], moved[0])
    if t.selected()[1] <= moved[1]:
        raise AssertionError('not wider')
    same('samples', t.total(), len(t.within(*t.selected())))
    t.browser.keys('Home')
    same('home', t.selected()[0], 0)
    t.browser.keys('Escape')
    same('all', t.total(), len(busy(t.given)))
    t.browser.keys('/')
    same('focus', t.browser.run('return document.activeElement.id'), 'search')


def zoom(t):
    t.open()
    pixels = 'return document.getElementById("axis").toDataURL()'
    before = t.browser.run(pixels)
    t.browser.focus('#timeline')
    t.browser.keys('+', '+')
    if t.browser.run(pixels) == before:
        raise AssertionError('the axis is the same')
    same('samples', t.total(), len(busy(t.given)))
    t.browser.drag('#cpus', 0.5, 0.7)
    start, end = t.selected()
    # A quarter of the window is seen: a fifth of the width is a twentieth of it.
    if not 0.2 * NSEC < end - start < 0.8 * NSEC:
        raise AssertionError('selected %d ns' % (end - start))
    same('selected samples', t.total(), len(t.within(start, end)))
    t.browser.keys('Enter')
    t.shot('zoomed')
    t.browser.keys('Escape')
    same('axis', t.browser.run(pixels), before)


def search(t):
    t.open()
    t.browser.focus('#search')
    t.browser.type('hot_func')
    hot = sum(1 for s in t.given if s[4] is STACKS['hot'])
    same('matched', t.total(), hot)
    same('functions', [row[0] for row in t.rows('#functions')], ['hot_function'])
    if t.whole and not t.browser.run('''return [...document.querySelectorAll('#flame rect')]
            .filter((r) => r.getAttribute('fill') === '#ef6fe3').length'''):
        raise AssertionError('nothing is highlighted')
    t.shot('search')


def flame(t):
    t.open()
    frame = '''return [...document.querySelectorAll('#flame g.frame')]
        .filter((g) => g.getAttribute('name') === arguments[0])
        .map((g) => Number(g.querySelector('rect').getAttribute('width')))'''
    width = lambda name='hot_function': t.browser.run(frame, name)
    eventually('first', width, lambda now: now and now[0] > 100)
    before = width()
    t.browser.run('''[...document.querySelectorAll('#flame g.frame')]
        .find((g) => g.getAttribute('name') === 'server')
        .dispatchEvent(new MouseEvent('click', {bubbles: true}))''')
    eventually('zoomed', width, lambda now: max(now) > 2 * max(before))
    t.browser.click('#reset-flame')
    eventually('reset', width, lambda now: now == before)
    t.browser.focus('#flame')
    t.browser.keys('Down', 'Right', 'Left', 'Down', 'Enter')
    name = t.browser.text('#frame').split(':')[0].split(' (')[0]
    same('frame', name, 'main')
    eventually('zoomed with Enter', lambda: width(name), lambda now: max(now) > 1000)
    t.browser.keys('Escape')
    eventually('escape', width, lambda now: now == before)


def off_cpu(t):
    t.open()
    t.browser.run('''const v = document.getElementById('view'); v.value = 'off';
                     v.dispatchEvent(new Event('change'))''')
    t.browser.settle()
    server = [f['off_ns'] for f in t.figures['tasks'] if f['tid'] == 1002]
    row = [r for r in t.rows('#tasks') if r[1] == '1002'][0]
    if not server[0] or row[3] != '%.3f ms' % (server[0] / 1e6):
        raise AssertionError('%r, %r' % (row, server))
    t.shot('off-cpu')


def resize(t):
    t.open()
    for width in (1300, 800, 420, 1500):
        t.browser.resize(width, 900)
        t.browser.settle()
        for what, limit in (('document.documentElement.scrollWidth', width),
                            ('document.getElementById("cpus").getBoundingClientRect().right',
                             width)):
            if t.browser.run('return ' + what) > limit:
                raise AssertionError('%s is more than %d' % (what, limit))
        if t.whole:
            drawn = t.browser.run('return document.querySelector("#flame svg").clientWidth')
            room = t.browser.run('return document.getElementById("flame").clientWidth')
            if abs(drawn - room) > 20:
                raise AssertionError('%d of %d at %d' % (drawn, room, width))
        if width == 420:
            t.shot('narrow')


def dark(t):
    t.open()
    back = 'return getComputedStyle(document.body).backgroundColor'
    pixels = 'return document.getElementById("cpus").toDataURL()'
    light = t.browser.run(back), t.browser.run(pixels)
    t.browser.devtools('Emulation.setEmulatedMedia',
                       features=[{'name': 'prefers-color-scheme', 'value': 'dark'}])
    t.browser.settle()
    if t.browser.run(back) == light[0] or t.browser.run(pixels) == light[1]:
        raise AssertionError('still light')
    t.shot('dark')
    t.browser.devtools('Emulation.setEmulatedMedia', features=[])


def looks(t):
    """Wide and narrow, light and dark: nothing is cut off, and all text can be read"""
    t.open('page', '#search=serve')
    t.browser.drag('#cpus', 0.5, 0.6)
    t.look('whole')


def lost_part(t):
    """What is not known does not look idle: nothing but a hatch is where samples were lost"""
    t.open()
    window = t.figures['trigger'] - t.figures['oldest']
    known = max(s[0] for s in t.given if s[1] == 1 and s[0] < 2.5 * NSEC)
    # From [where a share of the window is, of the row of a CPU]: is it drawn on, and what is said?
    look = '''const c = document.getElementById("cpus"), box = c.getBoundingClientRect();
        const width = box.width - 140, height = box.height / 4, ratio = c.width / box.width;
        const x = 132 + arguments[0] * width, y = arguments[1] * height;
        const at = c.getContext("2d").getImageData(x * ratio, (y + 2) * ratio, 40 * ratio,
                                                   (height - 12) * ratio).data;
        c.dispatchEvent(new PointerEvent("pointermove",
            {bubbles: true, clientX: box.x + x, clientY: box.y + y + 10}));
        let drawn = 0;
        for (let i = 3; i < at.length; i += 4)
            drawn += at[i] > 0;
        return [drawn / at.length * 4, document.getElementById("hover").textContent];'''
    drawn, said = t.browser.run(look, (known + 0.1 * NSEC) / window, 1)
    if not 0.1 < drawn < 0.6:
        raise AssertionError('hatched: %r' % drawn)
    if 'no samples' not in said or not said.endswith('17 records were lost in %.3f ms'
                                                    % ((2.5 * NSEC - known) / 1e6)):
        raise AssertionError(said)
    drawn, said = t.browser.run(look, 2.6 * NSEC / window, 1)
    if drawn < 0.8 or 'lost' in said:
        raise AssertionError('beside it: %r %s' % (drawn, said))
    if 'no records' not in t.browser.text('#legend'):
        raise AssertionError('the legend does not tell')
    # That it was read back.
    t.browser.complaints()


def empty(t):
    for name, options in (('nothing', {'samples': 0, 'manifest': False}),
                          ('plain', {'switches': False, 'manifest': False})):
        make(t.scripts, os.path.join(t.directory.name, name), **options)
        t.open(name)
        same('complaints', t.browser.complaints(), [])
        if 'json' not in t.browser.text('#notes'):
            raise AssertionError('it does not say that there is no manifest')
        t.shot(name)
    t.open()
    t.browser.focus('#search')
    t.browser.type('nobody')
    if 'nobody' not in t.browser.text('#functions'):
        raise AssertionError('it does not say that nothing was found')


def without_library(t):
    make(t.scripts, os.path.join(t.directory.name, 'bare'), library=False)
    t.open('bare')
    same('complaints', t.browser.complaints(), [])
    if 'npm' not in t.browser.text('#flame'):
        raise AssertionError('it does not say what is missing')
    t.browser.drag('#cpus', 0.3, 0.6)
    if not 0 < t.total() < len(t.given):
        raise AssertionError('nothing is selected')


def drag_step(t):
    """ms of the main thread for a step of a drag, the 95th percentile of 200"""
    return t.browser.run("""const c = document.getElementById('cpus'), b = c.getBoundingClientRect();
        const send = (type, x) => c.dispatchEvent(new PointerEvent(type, {bubbles: true, button: 0,
            pointerId: 1, clientX: b.x + x, clientY: b.y + 20}));
        const took = [];
        c.setPointerCapture = () => {};
        send('pointerdown', 200);
        for (let i = 0; i < 200; i++) {
            const t = performance.now();
            send('pointermove', 210 + 4 * i);
            took.push(performance.now() - t);
        }
        send('pointerup', 1000);
        return took.sort((a, b) => a - b)[190];""")


def large(t):
    began = time.monotonic()
    _, given = make(t.scripts, os.path.join(t.directory.name, 'large'), samples=500000)
    made = time.monotonic()
    t.open('large')
    opened = time.monotonic()
    same('samples', t.total(), len(busy(given)))
    t.browser.drag('#cpus', 0.3, 0.6)
    start, end = t.selected()
    same('selected', t.total(), sum(1 for s in busy(given) if start <= s[0] < end))
    t.browser.run('''const v = document.getElementById('view'), t = performance.now();
        v.dispatchEvent(new Event('change'));
        requestAnimationFrame(() => { window.took = performance.now() - t; })''')
    t.browser.settle()
    took = t.browser.run('return window.took')
    nodes = t.browser.run('return document.querySelectorAll("*").length')
    step = drag_step(t)
    print('# %d samples: page made in %.1f s, %.1f MB, opened in %.2f s, a selection is counted '
          'and drawn in %.0f ms, a step of a drag takes %.1f ms (95th percentile), %d elements'
          % (len(given), made - began, os.stat(t.directory.name + '/large.html').st_size / 1e6,
             opened - made, took, step, nodes))
    if step > 8:
        raise AssertionError('a step of a drag takes %.1f ms' % step)
    if nodes > 25000:
        raise AssertionError('%d elements' % nodes)
    t.shot('large')


def some_tasks(t):
    """Switches away from one task, of all: when it came back is not known"""
    told = Told(t, 'some')
    for second in range(10):
        told.sample(second + 0.998, 0, 5)
        told.switch(second + 0.999, 0, 5, 0)
    same('times', told.times(), ({5: (0, 0)}, True))


def lost_switches(t):
    told = Told(t, 'lost', 'task 1 [000] 104.500000000: PERF_RECORD_LOST lost 9')
    told.switch(1, 0, 0, 5)
    told.switch(6, 0, 6, 0)
    told.switch(7, 0, 0, 6)
    told.switch(9, 0, 6, 0)
    same('times', told.times(), ({6: (2, 1)}, False))


def windows_differ(t):
    """It came back on a CPU whose part of the recording had not begun"""
    told = Told(t, 'windows')
    told.switch(0.5, 0, 0, 5)
    told.switch(1, 0, 5, 0)
    for n in range(60):
        told.sample(3 + n / 10, 1, 5)
    told.switch(9, 1, 5, 0)
    same('times', told.times(), ({5: (6.5, 0)}, False))


def one_row(t):
    """Met by the switch to it, which tells no pid; its samples do"""
    told = Told(t, 'met')
    told.switch(1, 0, 0, 5)
    told.switch(2, 0, 5, 0)
    told.switch(3, 0, 0, 5)
    told.sample(3.5, 0, 5)
    told.switch(4, 0, 5, 0)
    same('rows', [(f['pid'], f['tid'], f['samples'], f['switches'], f['on_ns'])
                  for f in told.figures()['tasks'] if f['tid']], [(5, 5, 1, 2, 2 * NSEC)])


def ids_differ(t):
    """In a container samples have other ids than the switches have"""
    told = Told(t, 'ids')
    for second in range(3):
        told.switch(second + 0.1, 0, 0, 4005)
        told.sample(second + 0.2, 0, 5)
        told.script['trace_unhandled'](
            'x', None, {'prev_pid': 4005, 'prev_comm': 'task', 'prev_state': 1, 'next_pid': 0,
                        'next_comm': 'swapper'},
            sample('sched:sched_switch', SWITCH, round((second + 0.6) * NSEC), 0, 5, 'task', []))
    told = told.figures()
    same('on', round(sum(f['on_ns'] for f in told['tasks']) / NSEC, 3), 1.5)


def switch_records(t):
    """--switch-events: who exits has no id when he goes, or has one still and an exit before"""
    told = Told(t, 'records', 'task 8 104.900000000: PERF_RECORD_EXIT(8:8):(1:1)')
    told.sample(0.5, 0, 5)
    told.switch_record(1, 0, 5, True)
    told.switch_record(1, 0, 7, False)
    told.switch_record(3, 0, -1, True)
    told.switch_record(3, 0, 5, False)
    told.switch_record(4, 0, 5, True)
    told.switch_record(4, 0, 8, False)
    told.switch_record(5, 0, 8, True)
    told.switch_record(5, 0, 0, False)
    told.sample(10, 1, 0)
    same('times', told.times(), ({5: (1.5, 2 + 6), 7: (2, 0), 8: (1, 0)}, False))


def some_switch_records(t):
    """Who leaves is not who came"""
    told = Told(t, 'some-records')
    told.switch_record(1, 0, 7, False)
    told.switch_record(2, 0, 5, True)
    told.sample(3, 1, 0)
    same('times', told.times(), ({5: (0, 1)}, True))


def clocks(t):
    for name, events, want in (
            ('misses', (('LLC-load-misses', attr(3, 2), 50), ('cpu-clock', CLOCK, 10),
                        ('instructions', attr(0, 1), 30), ('cycles', attr(0, 0), 20)),
             'cpu-clock'),
            ('hybrid', (('cpu_core/cycles/', attr(0, 4 << 32), 20),
                        ('cpu_atom/cycles/', attr(0, 8 << 32), 10)),
             'cpu_core/cycles/ + cpu_atom/cycles/'),
            ('raw', (('r1234', attr(4, 0x1234), 5), ('ibs_op//', attr(11, 0), 2)), 'ibs_op//'),
            ('none', (('LLC-load-misses', attr(3, 2), 50), ('r1234', attr(4, 0x1234), 5)), None)):
        told, n = Told(t, name), 0
        for event, of, count in events:
            for _ in range(count):
                n += 1
                told.sample(n / 100, 0, 5, name=event, of=of)
        got = told.figures()
        same(name, got['clock'], want)
        shown = want or 'LLC-load-misses'
        want = sum(count for event, _, count in events if event in shown.split(' + '))
        same(name + ' shown', (got['shown'], got['shown_samples']), (shown, want))
        same(name + ' of tasks', [f['samples'] for f in got['tasks']], [want])
        t.open(name)
        same(name + ' on the page', t.total(), want)
        same(name + ' complaints', t.browser.complaints(), [])


def many(t):
    """1100 CPUs, of which some are not there, 300 events, samples whose CPU is not known"""
    told = Told(t, 'many')
    for cpu in range(1100):
        told.sample(1 + cpu / 10000, cpu * 2, 5)
    for event in range(300):
        told.sample(2 + event / 1000, 0xffffffff, 6, name='x:event_%d' % event, of=attr(2, event))
    same('samples', told.figures()['samples'], 1400)
    t.open('many')
    same('complaints', t.browser.complaints(), [])
    same('CPUs', [row[:2] for row in t.rows('#cpu-table')][:3], [['?', '300'], ['0', '1'], ['2', '1']])
    drawn = t.browser.run("""const c = document.getElementById("cpus");
        const d = c.getContext("2d").getImageData(0, c.height - 40, 60, 40).data;
        return d.filter((v, i) => i % 4 === 3 && v).length""")
    if drawn < 50:
        raise AssertionError('%d pixels of the name of the last CPU are drawn' % drawn)
    t.browser.focus('#timeline')
    t.browser.keys(*['Down'] * 60)
    if not t.browser.text('#hover').startswith('CPU 116 at'):
        raise AssertionError(t.browser.text('#hover'))
    if t.browser.run('return document.getElementById("rows").scrollTop') < 200:
        raise AssertionError('the row is out of sight')
    right = t.browser.run("""const c = document.getElementById('cpus').getBoundingClientRect();
        return [c.right, document.getElementById('rows').clientWidth +
                document.getElementById('rows').getBoundingClientRect().left]""")
    if right[0] > right[1] + 1:
        raise AssertionError('the last samples are behind the scroll bar: %r' % right)


def odd_names(t):
    told = Told(t, 'odd')
    for n, name in enumerate((bytearray('日本'.encode()) + b'\0rest', bytearray(b'a\x1b[2Jb\0'),
                              'new\nline', bytearray('日'.encode()[:2]))):
        told.switch(n + 0.5, 0, 0, n + 1, name)
        told.switch(n + 1, 0, n + 1, 0, name)
    said = io.StringIO()
    counted = told.figures()
    same('names', sorted(f['comm'] for f in counted['tasks'] if f['tid']),
         sorted(('日本', 'a\x1b[2Jb', 'new\nline', '\ufffd')))
    told.script['summary'](counted, said)
    if '\x1b' in said.getvalue() or 'new\n' in said.getvalue():
        raise AssertionError('a name gets to the terminal as it is')
    t.open('odd')
    same('complaints', t.browser.complaints(), [])


def short_window(t):
    """Of 10 ms, selected to the microsecond"""
    told = Told(t, 'short')
    for n in range(100):
        told.sample(n / 10000, 0, 5)
    told.figures()
    t.open('short')
    t.browser.drag('#cpus', 0.3, 0.4)
    start, end = re.search(r'([\d.]+) s to ([\d.]+) s', t.browser.text('#selection')).groups()
    if not 0.0005 < float(end) - float(start) < 0.0015:
        raise AssertionError(t.browser.text('#selection'))


def task_clicked(t):
    """A task's name in the search: its functions stay; the keyboard stays where it is"""
    t.open()
    t.browser.run("""[...document.querySelectorAll('#tasks button')]
        .find((b) => b.textContent === 'worker-3').focus()""")
    t.browser.keys('Enter')
    same('functions', sorted(row[0] for row in t.rows('#functions')),
         sorted(('main', 'serve', 'read', 'do_syscall_64', 'vfs_read')))
    same('focus', t.browser.run('return document.activeElement.textContent'), 'worker-3')


def nothing_stays(t):
    """When a page cannot be written"""
    told = Told(t, 'stays')
    told.sample(1, 0, 5)

    def fails(*_):
        raise MemoryError
    told.script['Page'].write = fails
    try:
        told.figures()
    except MemoryError:
        pass
    same('files', [f for f in os.listdir(t.directory.name) if f.startswith('stays')], [])


def own_modules(t):
    """Modules of others that have the names of ours"""
    elsewhere, before = os.path.join(t.directory.name, 'elsewhere'), list(sys.path)
    os.mkdir(elsewhere)
    with open(os.path.join(elsewhere, 'cells.py'), 'w', encoding='utf-8') as f:
        f.write('raise SystemExit("this module is not ours")\n')
    sys.modules.pop('cells', None)
    sys.path.insert(0, elsewhere)
    try:
        make(t.scripts, os.path.join(t.directory.name, 'own'), samples=0)
    finally:
        sys.path[:] = before
        sys.modules.pop('cells', None)


def runs(t):
    """On and off the CPU as the summary has them"""
    told = Told(t, 'runs')
    for second in range(4):
        told.switch(second, 0, 0, 5)
        told.switch(second + 0.25, 0, 5, 6)
        told.switch(second + 0.75, 0, 6, 0)
    figures = told.figures()
    same('times', {f['tid']: (f['on_ns'], f['off_ns']) for f in figures['tasks'] if f['tid']},
         {5: (NSEC, 2.75 * NSEC), 6: (2 * NSEC, 1.5 * NSEC)})
    t.open('runs')
    same('rows', [row[1:] for row in t.rows('#run-table') if row[1] != '0'],
         [['6', '4', '2.000 s', '1.500 s'], ['5', '4', '1.000 s', '2.750 s']])


def lanes(t):
    """What a task did: it ran, was blocked, waited for a CPU, slept; the histograms, too"""
    told = Told(t, 'lanes')
    told.sample(0, 0, 0, 'swapper')
    told.switch(1, 0, 0, 5)
    told.switch(2, 0, 5, 0, state=2)
    told.wake(4, 0, 5)
    told.switch(4.5, 0, 0, 5)
    told.switch(6, 0, 5, 0, state=1)
    told.wake(9, 0, 5)
    told.switch(9.25, 0, 0, 5)
    told.sample(10, 0, 5)
    told.figures()
    t.open('lanes')
    same('complaints', t.browser.complaints(), [])
    look = """const c = document.getElementById('lanes'), r = c.width / c.clientWidth;
        const x = 132 + arguments[0] / 10 * (c.clientWidth - 140);
        return [...c.getContext('2d').getImageData(x * r, 9 * r, 1, 1).data]"""
    colour = """const d = document.createElement('canvas').getContext('2d');
        d.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(arguments[0]);
        d.fillRect(0, 0, 1, 1); return [...d.getImageData(0, 0, 1, 1).data]"""
    for at, name in ((1.5, '--ran'), (3, '--blocked'), (4.25, '--runnable'), (5, '--ran'),
                     (7.5, '--slept'), (9.1, '--runnable'), (9.7, '--ran')):
        same('at %g s' % at, t.browser.run(look, at), t.browser.run(colour, name))
    t.browser.complaints()
    t.browser.focus('#states-view')
    t.browser.keys('Down')
    same('in words', re.sub(r'.* s: | of 10.00. s$', '', t.browser.text('#lane-hover')),
         'ran 3.250 s, could run, and waited for a CPU 750.000 ms, was blocked 2.000 s, '
         'slept 3.000 s')
    bars = lambda: [t.browser.text('#%s-bars figcaption' % which) for which in ('delay', 'wait')]
    same('histograms', bars(),
         ['Waited for a CPU: 2 waits, half of them below 262 ms, the longest below 524 ms',
          'Slept or was blocked: 2 waits, half of them below 2.1 s, the longest below 4.2 s'])
    t.choose('#view', 'queue')
    same('run queue', [row[3] for row in t.rows('#tasks')], ['750.000 ms'])
    t.browser.drag('#lanes', (132 + 4.2 / 10 * 1100) / 1240, (132 + 4.7 / 10 * 1100) / 1240, y=8)
    same('selected', bars(), ['Waited for a CPU: 1 wait, it was below 524 ms',
                              'Slept or was blocked: 1 wait, it was below 2.1 s'])
    start, end = re.search(r'([\d.]+) s to ([\d.]+) s', t.browser.text('#selection')).groups()
    waited = float(t.rows('#tasks')[0][3].replace(' ms', '')) / 1e3
    if abs(waited - (4.5 - float(start))) > 0.002 or float(end) < 4.5:
        raise AssertionError('%r of %s .. %s' % (waited, start, end))
    t.shot('lanes')


def bars(t):
    """The bars of a histogram are as high as they are many; their limits do not overlap"""
    told, at, counts = Told(t, 'bars'), 0, {}
    told.sample(0, 0, 0, 'swapper')
    for power in range(5, 21):
        counts[power] = 1 + power * 7 % 16
        for _ in range(counts[power]):
            told.switch(at + 0.001, 0, 5, 0)
            at += 0.002 + 0.75e-6 * 2 ** power
            told.switch(at, 0, 0, 5)
    told.figures()
    t.open('bars')
    look = """return [...document.querySelectorAll('#wait-bars .plot div')].map((d) => {
        const range = document.createRange();
        range.selectNodeContents(d.querySelector('span'));
        const r = range.getBoundingClientRect();
        return [d.querySelector('i').getBoundingClientRect().height, r.left, r.width]; })"""
    for width in (1300, 400):
        t.browser.resize(width, 1000)
        t.browser.settle()
        found = t.browser.run(look)
        labels = [(left, wide) for _, left, wide in found if wide]
        if len(labels) < 4 or any(left + wide > following for (left, wide), (following, _)
                                  in zip(labels, labels[1:])):
            raise AssertionError('%r at %d' % (labels, width))
        heights = [height for height, _, _ in found]
        said = [int(n) for n in t.browser.run("""return [...document.querySelectorAll(
            '#wait-bars .plot div')].map((d) => parseInt(d.title))""")]
        for a, b in zip(range(len(said)), range(1, len(said))):
            if (heights[a] > heights[b]) != (said[a] > said[b]):
                raise AssertionError('%r of %r' % (heights, said))
        same('most', max(heights), 96)
    same('waits', sum(said), sum(counts.values()))


def filters(t):
    """A cgroup or a task alone; what is seen is in the link"""
    told, want = Told(t, 'cgroups'), {}
    for n in range(3000):
        cgroup, tid = '/slice/%s' % 'ab'[n % 3 == 0], 5 + n % 2
        told.sample(n / 1000, 0, tid, 'task-%d' % tid, cgroup=cgroup)
        want[cgroup] = want.get(cgroup, 0) + 1
    same('summary', told.figures()['cgroup_samples'], want)
    t.open('cgroups')
    same('all', t.total(), 3000)
    names = t.browser.run("""return [...document.querySelectorAll('#of-cgroup option')]
        .map((o) => [o.textContent, o.value])""")
    for name, value in names:
        if name in want:
            t.choose('#of-cgroup', value)
            same(name, t.total(), want[name])
    t.choose('#of-cgroup', dict(names)['/slice/a'])
    t.choose('#of-task', t.browser.run("""return [...document.querySelectorAll('#of-task option')]
        .find((o) => o.textContent === 'task-5').value"""))
    same('both', t.total(), sum(n % 3 != 0 and n % 2 == 0 for n in range(3000)))
    t.browser.drag('#cpus', 0.3, 0.6)
    t.browser.focus('#search')
    t.browser.type('hot_f')
    seen = t.browser.text('#selection'), t.total(), t.rows('#tasks')
    link = t.browser.run('return location.hash')
    t.open('cgroups', link)
    same('by the link', (t.browser.text('#selection'), t.total(), t.rows('#tasks')), seen)
    t.open('cgroups', '#part=9-1&see=a&task=nobody&view=none&compare=kept')
    same('a broken link', t.total(), 3000)
    t.open()
    if t.browser.run("return document.getElementById('of-cgroup').offsetParent !== null"):
        raise AssertionError('there are no cgroups to choose from')


def butterfly(t):
    """Callers and callees of a function: the chains that have the call, each once"""
    t.open()
    amount = lambda n: '%s samples' % format(n, ',')
    ran = busy(t.given)
    hot = sum(1 for s in ran if s[4] is STACKS['hot'])
    if not t.browser.run("return document.getElementById('butterfly').hidden"):
        raise AssertionError('nothing is searched for')
    t.browser.focus('#search')
    t.browser.type('serve')
    part = lambda n: '%.2f %%' % (100 * n / len(ran))
    same('callers', t.rows('#callers'), [['main', 'server', amount(len(ran)), part(len(ran))]])
    same('callees', sorted(t.rows('#callees')), sorted(
        [name, dso, amount(n), part(n)] for name, dso, n in (
            ('hot_function', 'server', hot), ('read', 'libc.so.6', len(ran) - hot))))
    t.shot('butterfly')
    t.browser.run("""[...document.querySelectorAll('#callees button')]
        .find((b) => b.textContent === 'hot_function').focus()""")
    t.browser.keys('Enter')
    same('next', [t.rows(of)[0][0] for of in ('#callers', '#callees')], ['serve', 'itself'])
    link = t.browser.run('return location.hash')
    t.open('page', link)
    same('by the link', [t.rows(of)[0][0] for of in ('#callers', '#callees')],
         ['serve', 'itself'])
    t.browser.drag('#cpus', 0.5, 0.6)
    start, end = t.selected()
    same('of a part', [t.rows(of)[0][2] for of in ('#callers', '#callees')],
         [amount(sum(1 for s in t.within(start, end) if s[4] is STACKS['hot']))] * 2)
    t.browser.resize(400, 900)
    t.browser.settle()
    if t.browser.run('return document.documentElement.scrollWidth') > 400:
        raise AssertionError('it is wider than the window')
    told = Told(t, 'recursive')
    f, g = ('f', '/usr/bin/server'), ('g', '/usr/bin/server')
    for n, stack in enumerate(((f, g, f, f), (f, g), (MAIN, g))):
        told.sample(n, 0, 5, stack=frames(*stack))
    told.figures()
    t.open('recursive', '#search=f')
    same('recursive', [sorted((r[0], r[2]) for r in t.rows(of)) for of in ('#callers', '#callees')],
         [[('f', '1 samples'), ('g', '1 samples'), ('no other function', '2 samples')],
          [('f', '1 samples'), ('g', '2 samples'), ('itself', '1 samples')]])


def compares(t):
    """What is not usual in the calm parts, and nothing else"""
    told, given = Told(t, 'change'), []
    stacks = {name: frames(MAIN, (name, '/usr/bin/server')) for name in ('usual', 'varies', 'burn')}
    for n in range(20000):
        at, late = n / 2000, n >= 18000
        # In turns of a second, a tenth to a half of the samples; in the last one six tenths.
        name = 'burn' if late and n % 4 == 0 else (
            'varies' if n % 10 < (1, 5, 3, 2, 4, 1, 5, 2, 3, 6)[n // 2000] else 'usual')
        given.append((n, name))
        told.sample(at, n % 2, 5, 'server', stack=stacks[name])
    told.figures()
    t.open('change')
    bins = t.browser.run("""return JSON.parse(document.getElementById('data').textContent).bin""")
    second = NSEC // bins
    t.open('change', '#part=%d-%d&compare=rest' % (9 * second, 10 * second))
    same('complaints', t.browser.complaints(), [])
    if 'with 8 calm parts' not in t.browser.text('#compared-how'):
        raise AssertionError(t.browser.text('#compared-how'))
    counts = lambda name: [sum(s == name and n // 2000 == second for n, s in given)
                           for second in range(10)]
    burn = counts('burn')
    row = ['server', '%d' % burn[9]] + ['0'] * 3
    same('changed', [r for r in t.rows('#changed-functions') if r[0] == 'burn'],
         [['burn', row[0], of] + row[1:] for of in ('self', 'total')])
    same('others', sorted({r[0] for r in t.rows('#changed-functions')}), ['burn'])
    same('tasks', t.rows('#changed-tasks')[0][0], 'Nothing changed by more than calm parts differ.')
    if t.whole:
        fills = t.browser.run("""return Object.fromEntries([...document.querySelectorAll(
            '#flame g.frame')].map((g) => [g.getAttribute('name'),
            g.querySelector('rect').getAttribute('fill')]))""")
        if not fills['burn'].startswith('hsl(6') or any(
                not fills[name].startswith('hsl(215 8%') for name in ('varies', 'usual', 'main')):
            raise AssertionError('%r' % fills)
    t.shot('compared')
    # Too long, for the rest to tell what is usual.
    t.open('change', '#part=%d-%d&compare=rest' % (7 * second, 10 * second))
    if 'Nothing is compared: it takes 5 calm parts' not in t.browser.text('#compared-how'):
        raise AssertionError(t.browser.text('#compared-how'))
    same('tables', t.browser.run("return document.getElementById('compared-tables').hidden"), True)
    # Two selections: the first is kept.
    t.open('change', '#part=0-%d' % (6 * second))
    t.browser.click('#keep')
    t.browser.run('location.hash = arguments[0]',
                  '#kept=0-%d&part=%d-%d' % (6 * second, 9 * second, 10 * second))
    t.browser.settle()
    t.choose('#compare', 'kept')
    if 'with 6 calm parts' not in t.browser.text('#compared-how'):
        raise AssertionError(t.browser.text('#compared-how'))
    same('kept', sorted({r[0] for r in t.rows('#changed-functions')}), ['burn'])


def told_change(t):
    """What perf verdict says that changed; a click shows it"""
    path = os.path.join(t.directory.name, 'told-change')
    part = lambda a, b: {'from': START + round(a * NSEC), 'to': START + round(b * NSEC)}
    with open(path + '.told', 'w', encoding='utf-8') as f:
        json.dump({'findings': [], 'missing': [], 'notes': [], 'comparison': {
            'compared': True, 'sentence': '0.400 s, from 4.0', 'since': START, 'triggered': True,
            'part': part(4, 4.4), 'calm': [part(3 + n / 8, 3.1 + n / 8) for n in range(5)],
            'judged': 9, 'changes': [
                {'figure': 'self', 'function': HOSTILE, 'dso': 'a', 'now': 1234, 'median': 2,
                 'least': 1, 'most': 3},
                {'figure': 'runnable', 'comm': 'late-1', 'tid': 9, 'tasks': 2, 'now': 2 * NSEC,
                 'median': 0, 'least': 0, 'most': 5000000}]}}, f)
    os.environ['VERDICT'] = path + '.told'
    try:
        make(t.scripts, path)
    finally:
        del os.environ['VERDICT']
    t.open('told-change')
    same('script of a name has run', t.browser.run('return window.bad || 0'), 0)
    same('rows', t.rows('#change-table'),
         [[HOSTILE, 'Samples of the function itself', '1,234', '2', '1', '3'],
          ['late-1', 'Waited for a CPU', '2.000 s', '0.0 µs', '0.0 µs', '5.000 ms']])
    t.browser.click('#show-changes')
    t.browser.settle()
    start, end = t.selected()
    same('selected', (round(start / 1e8), round(end / 1e8)), (40, 44))
    same('mode', t.browser.run("return document.getElementById('compare').value"), 'chosen')
    if 'with 5 calm parts' not in t.browser.text('#compared-how'):
        raise AssertionError(t.browser.text('#compared-how'))
    t.browser.drag('#cpus', 0.3, 0.33)
    same('another part', t.browser.run("return document.getElementById('compare').value"), 'rest')


def bounded(t):
    """Whatever the dump, 8 MiB; no sample is left out, and what is counted together is told"""
    told, n = Told(t, 'bounded'), 60000
    for i in range(n):
        names = [('f_%d_%s' % (i // 4 ** level, 'x' * 450), '/usr/bin/server') for level in range(3)]
        told.sample(i / 10000, i % 64, 1 + i % 15000, 'task-%d' % (i % 15000),
                    stack=frames(MAIN, *reversed(names)))
        if i % 3 == 0:
            told.switch(i / 10000 + 1e-5, i % 64, 1 + i % 15000, 1 + (i + 64) % 15000)
    figures = told.figures()
    size = os.stat(os.path.join(t.directory.name, 'bounded.html')).st_size
    print('# %d samples and %d switches with other call chains each: %.1f MiB'
          % (n, n // 3, size / 2 ** 20))
    if size > 8 << 20:
        raise AssertionError('%d bytes' % size)
    t.open('bounded')
    same('complaints', t.browser.complaints(), [])
    same('samples', t.total(), n)
    same('of main', [r[3] for r in t.rows('#functions') if r[0] == 'main'], ['100.00 %'])
    same('of the summary', figures['on_cpu_samples'], n)
    notes = t.browser.text('#notes')
    for words in ('not larger than 8 MiB', 'in steps of', '"(other tasks)"', '"(other functions)"'):
        if words not in notes:
            raise AssertionError(notes)
    t.open()
    if '8 MiB' in t.browser.text('#notes'):
        raise AssertionError('a small page tells of what it does not do')


CHECKS = (
    ('its figures are those of the summary', figures, False),
    ('the header is short', header, False),
    ('the ring of the focus is for the keyboard', ring, False),
    ('the trigger of a delayed dump', delayed, False),
    ('kernel threads that wait for work', idle_threads, False),
    ('findings are told first', verdict, False),
    ('it needs no network', offline, False),
    ('names are text, whatever is in them', hostile, False),
    ('a part is selected with the mouse', select, False),
    ('a part is selected with the keyboard', keyboard, False),
    ('the timeline zooms', zoom, False),
    ('search counts and highlights', search, False),
    ('the flame graph zooms', flame, True),
    ('off-CPU time', off_cpu, False),
    ('it follows the size of the window', resize, False),
    ('dark mode', dark, False),
    ('wide and narrow, light and dark', looks, False),
    ('what was lost does not look idle', lost_part, False),
    ('times on and off the CPU, for the whole window', runs, False),
    ('some tasks alone: no time that is not known', some_tasks, False),
    ('lost switches: no time that is not known', lost_switches, False),
    ('windows that begin at different times', windows_differ, False),
    ('one row for a task that a switch told first', one_row, False),
    ('ids of a name space', ids_differ, False),
    ('--switch-events, and tasks that exit', switch_records, False),
    ('--switch-events that are not all there', some_switch_records, False),
    ('which event is a clock', clocks, False),
    ('1100 CPUs, 300 events, no CPU', many, False),
    ('names that are no UTF-8, and that a terminal would obey', odd_names, False),
    ('a window of 10 ms', short_window, False),
    ('a task is clicked', task_clicked, False),
    ('nothing stays of a page that could not be written', nothing_stays, False),
    ('a module of the same name elsewhere', own_modules, False),
    ('nothing to show is said', empty, False),
    ('without d3 the rest works', without_library, False),
    ('lanes of tasks, and histograms of their waits', lanes, False),
    ('bars of histograms, and their limits', bars, False),
    ('cgroups and tasks alone, and the link to it', filters, False),
    ('callers and callees', butterfly, False),
    ('a part is compared with calm ones', compares, False),
    ('what perf verdict says that changed', told_change, False),
    ('a page of at most 8 MiB', bounded, False),
    ('500,000 samples', large, False),
)


if __name__ == '__main__':
    sys.exit(run(CHECKS))
