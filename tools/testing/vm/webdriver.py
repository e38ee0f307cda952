# SPDX-License-Identifier: GPL-2.0
"""
The few commands of WebDriver that the test of a page needs, over HTTP to chromedriver.

A Browser is a headless Chromium without a network: whatever a page asks for beyond its own
file fails, and is counted by the page's tests.
"""
import base64
import json
import os
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'
KEYS = {'Enter': '\ue007', 'Escape': '\ue00c', 'Left': '\ue012', 'Up': '\ue013',
        'Right': '\ue014', 'Down': '\ue015', 'Home': '\ue011', 'End': '\ue010',
        'Shift': '\ue008', 'Control': '\ue009', 'Backspace': '\ue003', 'Tab': '\ue004'}


class Browser:
    def __init__(self, dark=False, width=1400, height=1000):
        self.profile = tempfile.TemporaryDirectory()
        with open(os.path.join(self.profile.name, 'log'), 'wb') as log:
            self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdout=log, stderr=log)
        self.url = 'http://127.0.0.1:%d' % self.port()
        arguments = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
                     '--host-resolver-rules=MAP * ~NOTFOUND', '--hide-scrollbars',
                     '--user-data-dir=' + self.profile.name,
                     '--window-size=%d,%d' % (width, height)]
        if dark:
            arguments.append('--blink-settings=preferredColorScheme=0')
        session = self.call('POST', '/session', {'capabilities': {'alwaysMatch': {
            'browserName': 'chrome', 'goog:loggingPrefs': {'browser': 'ALL'},
            'goog:chromeOptions': {'args': arguments}}}})
        self.url += '/session/' + session['sessionId']

    def port(self):
        for _ in range(3000):
            with open(os.path.join(self.profile.name, 'log'), encoding='utf-8') as log:
                for line in log:
                    if 'successfully on port' in line:
                        return int(line.split()[-1].rstrip('.'))
            time.sleep(0.1)
        raise RuntimeError('chromedriver does not start')

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method,
                                         headers={'Content-Type': 'application/json'},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as err:
            raise RuntimeError(json.load(err)['value']['message'].splitlines()[0]) from err

    def open(self, path):
        self.call('POST', '/url', {'url': 'file://' + os.path.abspath(path)})
        self.wait("return document.body.dataset.ready === 'yes'")

    def run(self, script, *args):
        return self.call('POST', '/execute/sync', {'script': script, 'args': list(args)})

    def devtools(self, command, **params):
        return self.call('POST', '/goog/cdp/execute', {'cmd': command, 'params': params})

    def wait(self, script):
        for _ in range(3000):
            if self.run(script):
                return
            time.sleep(0.1)
        raise RuntimeError('waited in vain for: ' + script)

    def settle(self):
        """Two frames later all has been drawn"""
        self.call('POST', '/execute/async', {'script':
                  'const done = arguments[0];'
                  'requestAnimationFrame(() => requestAnimationFrame(() => done()))', 'args': []})

    def text(self, selector):
        return self.run('return document.querySelector(arguments[0]).textContent', selector)

    def click(self, selector):
        self.run('document.querySelector(arguments[0]).click()', selector)
        self.settle()

    def focus(self, selector):
        self.run('document.querySelector(arguments[0]).focus()', selector)

    def keys(self, *names, shift=False):
        actions = [{'type': 'keyDown', 'value': KEYS['Shift']}] if shift else []
        for name in names:
            actions += [{'type': what, 'value': KEYS.get(name, name)}
                        for what in ('keyDown', 'keyUp')]
        if shift:
            actions.append({'type': 'keyUp', 'value': KEYS['Shift']})
        self.call('POST', '/actions', {'actions': [
            {'type': 'key', 'id': 'keys', 'actions': actions}]})
        self.settle()

    def type(self, text):
        self.keys(*text)

    def middle(self, selector, share=0.5, y=None):
        """A point of an element in sight: at a share of its width, y below its top"""
        box = self.run('''const e = document.querySelector(arguments[0]);
                          e.scrollIntoView({block: "center"});
                          const b = e.getBoundingClientRect();
                          return [b.x, b.y, b.width, b.height];''', selector)
        return {'x': round(box[0] + box[2] * share),
                'y': round(box[1] + (box[3] / 2 if y is None else y))}

    def mouse(self, selector, share=0.5, y=None, clicks=1):
        """Clicks with the mouse"""
        self.call('POST', '/actions', {'actions': [
            {'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'}, 'actions':
             [dict(self.middle(selector, share, y), type='pointerMove', duration=30)] +
             [{'type': what, 'button': 0} for what in ('pointerDown', 'pointerUp') * clicks]}]})
        self.settle()

    def wheel(self, selector, share, delta, control=True):
        """Turns the wheel of the mouse, with the control key held"""
        at = self.middle(selector, share, 20)
        pause, key = {'type': 'pause'}, {'value': KEYS['Control']}
        actions = [{'type': 'wheel', 'id': 'wheel', 'actions': [pause, dict(
            at, type='scroll', deltaX=0, deltaY=delta, duration=0, origin='viewport'), pause]}]
        if control:
            actions.append({'type': 'key', 'id': 'keys', 'actions': [
                dict(key, type='keyDown'), pause, dict(key, type='keyUp')]})
        self.call('POST', '/actions', {'actions': actions})
        self.settle()

    def drag(self, selector, start, end, y=20):
        """From and to a share of the element's width, with the mouse"""
        box = self.run('''const e = document.querySelector(arguments[0]);
                          e.scrollIntoView({block: "center"});
                          const b = e.getBoundingClientRect(); return [b.x, b.y, b.width];''',
                       selector)
        x = [round(box[0] + box[2] * share) for share in (start, (start + end) / 2, end)]
        y = round(box[1] + y)
        move = [{'type': 'pointerMove', 'duration': 30, 'x': at, 'y': y} for at in x]
        self.call('POST', '/actions', {'actions': [
            {'type': 'pointer', 'id': 'mouse', 'parameters': {'pointerType': 'mouse'}, 'actions':
             [move[0], {'type': 'pointerDown', 'button': 0}, move[1], move[2],
              {'type': 'pointerUp', 'button': 0}]}]})
        self.settle()

    def resize(self, width, height):
        self.devtools('Emulation.setDeviceMetricsOverride', width=width, height=height,
                      deviceScaleFactor=1, mobile=False)
        self.settle()

    def screenshot(self, path, whole=True):
        shot = self.devtools('Page.captureScreenshot', format='png', captureBeyondViewport=whole)
        with open(path, 'wb') as f:
            f.write(base64.b64decode(shot['data']))

    def complaints(self):
        """What the page or the browser has logged"""
        log = self.call('POST', '/se/log', {'type': 'browser'})
        return [entry['message'] for entry in log]

    def close(self):
        try:
            self.call('DELETE', '')
        except (OSError, RuntimeError):
            pass
        self.driver.terminate()
        self.driver.wait(30)
        self.profile.cleanup()
