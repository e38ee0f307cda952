#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
A client and a server on two machines that a serial port connects: for test-machines.sh.

usage: peers.py client|server PORT DIRECTORY

The client sets its clock by that of the server, and tells the kernel the error, as chrony would.
Both start a recorder. The client sends requests. At one of them the server stalls: another
process, the compactor, holds a lock for 300 ms. Whoever notices triggers a dump. The dump goes to
the directory with NAME.truth, what has happened when, on the clock of the records.
"""
import ctypes
import fcntl
import glob
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
import tty

STALL, REQUESTS, BAD_ONE, PINGS = 0.3, 30, 20, 20
# Of the server, which has the time
SERVER_ERROR = 0.0001
ADJ_MAXERROR, ADJ_STATUS = 4, 16


class Port:
    def __init__(self, path):
        self.fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.fd, termios.TCSANOW)
        self.rest = b''

    def send(self, *words):
        os.write(self.fd, (' '.join(map(str, words)) + '\n').encode())

    def receive(self, seconds=None):
        """The words of a line; None: it has not come in time"""
        while b'\n' not in self.rest:
            if not select.select([self.fd], [], [], seconds)[0]:
                return None
            self.rest += os.read(self.fd, 4096)
        line, self.rest = self.rest.split(b'\n', 1)
        return line.decode('ascii', 'replace').split() or ['']

    def ask(self, *words):
        self.send(*words)
        answer = ['here']
        while answer == ['here']:
            answer = self.receive()
        return answer

    def meet(self):
        """The other machine may boot for longer: what is sent to it until then is lost"""
        while True:
            self.send('hello')
            if self.receive(1) == ['here']:
                return


def tell_error(error):
    """The clock is synchronized, with that error in seconds"""
    timex = ctypes.create_string_buffer(256)
    struct.pack_into('=I', timex, 0, ADJ_MAXERROR | ADJ_STATUS)
    struct.pack_into('=q', timex, 24, round(error * 1e6))
    if ctypes.CDLL(None, use_errno=True).adjtimex(timex) < 0:
        raise OSError(ctypes.get_errno(), 'adjtimex')


def set_clock(port):
    """By the fastest answer of several; the error is half of the time that it took"""
    best = None
    for _ in range(PINGS):
        began = time.monotonic_ns()
        there = int(port.ask('time')[1])
        took = time.monotonic_ns() - began
        if best is None or took < best[0]:
            best = (took, there + took // 2 - began)
    took, offset = best
    time.clock_settime_ns(time.CLOCK_REALTIME, time.monotonic_ns() + offset)
    error = took / 2e9 + 0.0001
    tell_error(error)
    return error


class Recorder:
    def __init__(self, name, directory):
        self.name, self.directory = name, directory
        self.out = '/tmp/' + name
        self.log = open(self.out + '.log', 'w+', encoding='utf-8')
        self.perf = subprocess.Popen(
            ['perf', 'record', '-M', '16M', '-a', '-g', '-e', 'cpu-clock/freq=99/', '-e',
             'sched:sched_switch,sched:sched_waking', '-o', self.out], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log)
        self.wait('it starts', lambda: 'flight recorder ' in self.said())

    def said(self):
        with open(self.log.name, encoding='utf-8') as f:
            return f.read()

    def wait(self, what, done):
        for _ in range(1000):
            if done():
                return
            time.sleep(0.1)
        sys.exit('waited in vain until %s: %s' % (what, self.said()))

    def trigger(self):
        self.perf.send_signal(signal.SIGUSR1)

    def finish(self, truth):
        dumps = lambda: glob.glob(self.out + '.sample.*.json')
        self.wait('there is a dump', dumps)
        dump = min(dumps())
        shutil.copy(dump[:-5], os.path.join(self.directory, self.name))
        shutil.copy(dump, os.path.join(self.directory, self.name + '.json'))
        with open(os.path.join(self.directory, self.name + '.truth'), 'w', encoding='utf-8') as f:
            json.dump(truth, f)
        self.perf.send_signal(signal.SIGINT)
        self.perf.wait(60)


def client(port, directory):
    port.meet()
    error = set_clock(port)
    recorder, waited = Recorder('client', directory), None
    for n in range(REQUESTS):
        began = time.monotonic_ns()
        port.ask('work', n)
        ended = time.monotonic_ns()
        if n == BAD_ONE:
            recorder.trigger()
            waited = [began, ended]
        time.sleep(0.05)
    port.send('end')
    recorder.finish({'error': error, 'waited': waited})


def name_task(name):
    with open('/proc/self/comm', 'w', encoding='ascii') as f:
        f.write(name)


def compactor(lock, begin, holds):
    """Takes the lock, and computes for a while"""
    name_task('compactor')
    os.read(begin, 1)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.write(holds, b'x')
    end = time.monotonic() + STALL
    while time.monotonic() < end:
        pass
    fcntl.flock(lock, fcntl.LOCK_UN)
    os._exit(0)


def server(port, directory):
    name_task('server')
    while port.receive() != ['hello']:
        pass
    port.send('here')
    tell_error(SERVER_ERROR)
    (begin, begun), (holding, holds) = os.pipe(), os.pipe()
    if not os.fork():
        compactor(os.open('/tmp/lock', os.O_RDWR | os.O_CREAT), begin, holds)
    lock = os.open('/tmp/lock', os.O_RDWR | os.O_CREAT)
    recorder, stalled = Recorder('server', directory), None
    while True:
        words = port.receive()
        if words[0] == 'end':
            break
        if words[0] == 'hello':
            port.send('here')
        elif words[0] == 'time':
            port.send('time', time.time_ns())
        else:
            bad = words == ['work', str(BAD_ONE)]
            if bad:
                os.write(begun, b'x')
                os.read(holding, 1)
            began = time.monotonic_ns()
            fcntl.flock(lock, fcntl.LOCK_EX)
            ended = time.monotonic_ns()
            fcntl.flock(lock, fcntl.LOCK_UN)
            if bad:
                recorder.trigger()
                stalled = [began, ended]
            port.send('done', words[1])
    recorder.finish({'error': SERVER_ERROR, 'waited': stalled})


if __name__ == '__main__':
    {'client': client, 'server': server}[sys.argv[1]](Port(sys.argv[2]), sys.argv[3])
