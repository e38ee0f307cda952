#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
CPU time of the steps of a drag over the timeline of an incident page, in headless Chromium.

A step is a movement of the mouse, sent by the browser, and the frame that it leads to. Its CPU
time is that of all tasks of the page's main thread: scripts, style, layout and paint. Once the
mouse rests for longer than 120 ms, the page counts what is selected, and keeps it in its address.
On a busy machine that also happens between two steps; such a step is tried again. Prints the
median, the 95th percentile and the maximum in ms, and what that count takes.

usage: drag-page.py PAGE [STEPS]
"""
import sys

sys.dont_write_bytecode = True
from webdriver import Browser  # beside this script


def main():
    browser = Browser()
    try:
        browser.resize(1300, 1000)
        browser.open(sys.argv[1])
        browser.settle()
        took = drag(browser, int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    finally:
        browser.close()
    counted, steps = took[-1], sorted(took[:-1])
    print('%.2f %.2f %.2f %.1f' % (steps[len(steps) // 2], steps[len(steps) * 95 // 100],
                                   steps[-1], counted))


def drag(browser, steps):
    """ms of each step, and at the end those of what follows the drag"""
    x, y, width = browser.run('''const b = document.getElementById('cpus').getBoundingClientRect();
        return [b.x, b.y + 20, b.width]''')
    browser.devtools('Performance.enable', timeDomain='threadTicks')

    def used():
        metrics = browser.devtools('Performance.getMetrics')['metrics']
        return 1000 * next(m['value'] for m in metrics if m['name'] == 'TaskDuration')

    def mouse(what, share):
        browser.devtools('Input.dispatchMouseEvent', type=what, x=x + width * share, y=y,
                         button='left', buttons=1, clickCount=1)

    def settled():
        """Two frames later: CPU time, and the address"""
        browser.settle()
        return used(), browser.run('return location.hash')

    mouse('mousePressed', 0.15)
    settled()
    idle = [settled()[0] for _ in range(21)]
    rest = sorted(b - a for a, b in zip(idle, idle[1:]))[10]
    took, tries, (before, address) = [], 0, settled()
    while len(took) < steps:
        tries += 1
        if tries > 5 * steps:
            raise RuntimeError('this machine is too busy: the mouse always rests')
        mouse('mouseMoved', 0.16 + 0.7 * (tries % steps) / steps)
        now, address_now = settled()
        if address_now == address:
            took.append(max(now - before - rest, 0))
        before, address = now, address_now
    mouse('mouseReleased', 0.86)
    took.append(settled()[0] - before - rest)
    if 'Selected' not in browser.text('#selection'):
        raise RuntimeError('nothing was selected')
    return took


if __name__ == '__main__':
    main()
