#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
What an ordinary machine does in 100 seconds, in each second: 10 records a second, a process each
5 seconds, every tenth of which executes a program, a cgroup each 5 minutes, a question for the
status of the recorder each minute, and a hit of its trigger each 100 seconds. What it has done is
printed at the end.

usage: busy_days.py CGROUP SOCKET SECONDS
SECONDS: how many of such seconds. They take longer on a machine that is slow or busy.
"""
import os
import socket
import sys
import time

STEP = 0.1
# In each step
RECORDS = 100
PROCESSES = 2
# Each so many steps
PROGRAM, CGROUP, REQUEST, HIT = 5, 30, 6, 10
HIT_FD = 1999999999


def close(fd):
    """A record with that number"""
    try:
        os.close(fd)
    except OSError:
        pass


def start(step, i, cgroup=None):
    """A process with a name of its own, which lives for a moment"""
    pid = os.fork()
    if pid:
        return pid
    try:
        if cgroup:
            with open(cgroup + '/cgroup.procs', 'w', encoding='ascii') as f:
                f.write('0')
        if i == 0 and step % PROGRAM == 0:
            os.execv('/bin/true', ['true'])
        with open('/proc/self/comm', 'w', encoding='ascii') as f:
            f.write(f'd{step % 1000000}-{i}')
    finally:
        os._exit(0)


def ask(path):
    """For the status of the recorder"""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        s.connect(path)
        s.sendall(b'status\n')
        return b'"ok": true' in s.recv(65536)


def main():
    """See above"""
    top, path, length = sys.argv[1:]
    done = {'records': 0, 'processes': 0, 'programs': 0, 'cgroups': 0, 'requests': 0}
    due = time.monotonic()
    for step in range(1, int(int(length) / STEP) + 1):
        for i in range(RECORDS):
            close(1000000 + i)
        done['records'] += RECORDS
        cgroup = None
        if step % CGROUP == 0:
            cgroup = f'{top}/day{step}'
            os.mkdir(cgroup)
        for i in range(PROCESSES):
            os.waitpid(start(step, i, cgroup), 0)
        done['processes'] += PROCESSES
        done['programs'] += step % PROGRAM == 0
        if cgroup:
            os.rmdir(cgroup)
            done['cgroups'] += 1
        if step % REQUEST == 0:
            done['requests'] += ask(path)
        if step % HIT == 0:
            close(HIT_FD)
        # Late is late: what was missed is not made up for.
        due = max(due + STEP, time.monotonic())
        time.sleep(max(0, due - time.monotonic()))
    for name, value in done.items():
        print(name, value)


main()
