#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Take pictures of what picture-session.sh made, in a headless Chromium.

DIRECTORY holds incident.html, incident.samples and terminal.txt; incident.png and
terminal.png are written there, too. Their sizes do not depend on what is in them: where
something does not fit, no picture is taken.

usage: take-pictures.py DIRECTORY
"""
import base64
import html
import json
import os
import re
import sys

sys.dont_write_bytecode = True
import png  # beside this script
from webdriver import Browser

# In CSS pixels; each is 1.5 pixels of the picture, so that text can be read at half the size.
WIDTH, RATIO = 1080, 1.5
INCIDENT_HEIGHT = 900
TERMINAL_HEIGHT = 780
# Seconds of the time before, and after, that are selected with the incident.
BEFORE, AFTER = 0.15, 0.02
# Of the timeline's canvas, as in incident.js: left and right of the samples, and a CPU's row.
LEFT, RIGHT, ROW = 64, 8, 60

TERMINAL = '''<!DOCTYPE html><meta charset="utf-8"><style>
body { margin: 0; background: #14181d; color: #d5dae0; }
pre {
	margin: 0; padding: 18px 20px; display: inline-block; font-size: 14px; line-height: 1.4;
	font-family: "DejaVu Sans Mono", monospace;
}
i { color: #6cc070; font-style: normal; }
b { color: #ffffff; }
</style><body data-ready="yes"><pre>%s</pre>'''


def set_size(browser, height):
    browser.devtools('Emulation.setDeviceMetricsOverride', width=WIDTH, height=height,
                     deviceScaleFactor=RATIO, mobile=False)
    browser.settle()


def take(browser, path, top, height):
    """A picture of the page's part from @top on"""
    browser.settle()
    shot = browser.devtools('Page.captureScreenshot', format='png', captureBeyondViewport=True,
                            clip={'x': 0, 'y': top, 'width': WIDTH, 'height': height, 'scale': 1})
    with open(path, 'wb') as f:
        f.write(png.small(base64.b64decode(shot['data'])))


def bottom(browser, selector):
    return browser.run('''const boxes = [...document.querySelectorAll(arguments[0])];
        return window.scrollY + Math.max(...boxes.map((e) => e.getBoundingClientRect().bottom));
        ''', selector)


class Timeline:
    """With the mouse, as a reader of the page would"""

    def __init__(self, browser):
        self.browser = browser
        self.data = json.loads(browser.text('#data'))
        self.bins = self.data['width'] // self.data['bin'] + 1

    def share(self, second):
        """Of the width of the canvas"""
        box = self.box()
        at = (second * 1e9 - self.data['start']) / self.data['bin'] / self.bins
        return (LEFT + min(max(at, 0), 1) * (box[2] - LEFT - RIGHT)) / box[2]

    def box(self):
        return self.browser.run('''const b = document.getElementById('cpus')
            .getBoundingClientRect(); return [b.x, b.y, b.width]''')

    def select(self, start, end):
        self.browser.drag('#cpus', self.share(start), self.share(end))
        if not self.browser.text('#selection').startswith('Selected'):
            sys.exit('nothing is selected: ' + self.browser.text('#selection'))

    def hover(self, cpu, second):
        box = self.box()
        self.browser.call('POST', '/actions', {'actions': [
            {'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'}, 'actions': [
                {'type': 'pointerMove', 'duration': 30, 'y': round(box[1] + ROW * (cpu + 0.5)),
                 'x': round(box[0] + box[2] * self.share(second))}]}]})
        self.browser.settle()


def zoom_to_waits(browser, task):
    """The flame graph of what the task waited for"""
    browser.run('''const view = document.getElementById('view');
        view.selectedIndex = [...view.options].findIndex((o) => o.text.startsWith('Off-CPU'));
        view.dispatchEvent(new Event('change'));''')
    browser.settle()
    browser.run('''[...document.querySelectorAll('#flame g.frame')]
        .find((g) => g.textContent.includes(arguments[0]))
        .dispatchEvent(new MouseEvent('click', {bubbles: true}))''', task)
    browser.settle()
    if not browser.text('#frame').startswith(task + ':'):
        sys.exit('the flame graph is of: ' + browser.text('#frame'))


def incident(browser, directory):
    # Those of its cause.
    with open(directory + '/incident.samples', encoding='utf-8') as f:
        samples = [(int(cpu), float(time)) for cpu, time in map(str.split, f)]
    set_size(browser, 2000)
    browser.open(directory + '/incident.html')
    timeline = Timeline(browser)
    timeline.select(samples[0][1] - BEFORE, samples[-1][1] + AFTER)
    zoom_to_waits(browser, 'http-worker')
    timeline.hover(*samples[len(samples) // 2])
    # No focus ring.
    browser.run('document.activeElement.blur(); window.scrollTo(0, 0)')
    top = browser.run('''return window.scrollY - 12 +
        document.getElementById('h-timeline').parentNode.getBoundingClientRect().top''')
    if bottom(browser, '#flame g.frame') > top + INCIDENT_HEIGHT:
        sys.exit('the flame graph is too deep for the picture')
    take(browser, directory + '/incident.png', top, INCIDENT_HEIGHT)


def terminal(browser, directory):
    with open(directory + '/terminal.txt', encoding='utf-8') as f:
        text = html.escape(f.read().rstrip())
    text = re.sub('^# (.*)$', r'<i>#</i> <b>\1</b>', text, flags=re.M)
    page = directory + '/terminal.html'
    with open(page, 'w', encoding='utf-8') as f:
        f.write(TERMINAL % text)
    set_size(browser, TERMINAL_HEIGHT)
    browser.open(page)
    os.unlink(page)
    right = browser.run('return document.querySelector("pre").getBoundingClientRect().right')
    if right > WIDTH or bottom(browser, 'pre') > TERMINAL_HEIGHT:
        sys.exit('the text of the terminal, %d x %d, is too large for the picture'
                 % (right, bottom(browser, 'pre')))
    take(browser, directory + '/terminal.png', 0, TERMINAL_HEIGHT)


def main():
    browser = Browser()
    try:
        incident(browser, sys.argv[1])
        terminal(browser, sys.argv[1])
    finally:
        browser.close()


main()
