#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Causes of waits, for the tests of the flight recorder

usage: waits.py NAME queue SECONDS	a real-time task keeps NAME from its CPU for so long
       waits.py NAME sleep SECONDS [TIMES]
       waits.py NAME poll MS TIMES THREADS
       waits.py NAME fsync FILE [TIMES [PAUSE]]	the file is held up, or not
       waits.py NAME exec32 FILE	is written to FILE and becomes it: a program for i386 that
					waits for a signal
       waits.py NAME getpid		without an end, and yields to every other task

NAME is that of the task. What was awaited, and for how long, is printed, and then the longest
time in ms for which the task may have waited at once: of a machine that stands still, that is
longer. The task waits for nothing else under that name: its code is in memory before, and it has
another name when it ends.
"""
import ctypes
import os
import select
import struct
import sys
import threading
import time


LONGEST, LAST = 0, 0


def note():
    """The task runs. Since the last time, it may have waited."""
    global LONGEST, LAST
    now = time.monotonic()
    LONGEST, LAST = max(LONGEST, now - LAST), now


def rename(name):
    with open("/proc/self/comm", "w") as f:
        f.write(name)


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def queue(seconds):
    """The last CPU, on which the recorder is least likely to be."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    child = os.fork()
    if not child:
        rename("hog")
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        spin(seconds)
        os._exit(0)
    while not os.waitpid(child, os.WNOHANG)[0]:
        note()


def sleep(seconds, times=1):
    for _ in range(int(times)):
        time.sleep(seconds)
        note()


def poll(ms, times, threads):
    """Unlike that of sleep(), its time is relative: each call lasts for all of it."""
    def again():
        for _ in range(times):
            select.poll().poll(ms)

    all_threads = [threading.Thread(target=again) for _ in range(threads)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()


def fsync(path, times=1, pause=0):
    for i in range(int(times)):
        time.sleep(float(pause) * (i > 0))
        with open(path, "w") as f:
            f.write("x")
            f.flush()
            os.fsync(f.fileno())


# mov $29, %eax (pause); int $0x80; jmp
PAUSE = bytes.fromhex("b81d000000cd80ebf7")


def exec32(path):
    """On x86-64, the system call's number is another one when execve() returns."""
    base, size = 0x400000, 52 + 32
    head = struct.pack("<4s12BHHIIIIIHHHHHH", b"\x7fELF", 1, 1, 1, *[0] * 9, 2, 3, 1, base + size,
                       52, 0, 0, 52, 32, 1, 0, 0, 0)
    load = struct.pack("<8I", 1, 0, base, base, size + len(PAUSE), size + len(PAUSE), 5, 4096)
    with open(path, "wb") as f:
        f.write(head + load + PAUSE)
    os.chmod(path, 0o755)
    os.execv(path, [path])


def getpid():
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    libc = ctypes.CDLL(None)
    while True:
        libc.getppid()


MCL_CURRENT = 1


def main():
    # Only a user with CAP_IPC_LOCK can.
    ctypes.CDLL(None).mlockall(MCL_CURRENT)
    global LAST
    began = LAST = time.monotonic()
    rename(sys.argv[1])
    if sys.argv[2] == "queue":
        queue(float(sys.argv[3]))
    elif sys.argv[2] == "sleep":
        sleep(float(sys.argv[3]), *sys.argv[4:])
    elif sys.argv[2] == "poll":
        poll(*map(int, sys.argv[3:]))
    elif sys.argv[2] == "exec32":
        exec32(sys.argv[3])
    elif sys.argv[2] == "getpid":
        getpid()
    else:
        fsync(*sys.argv[3:])
    took = time.monotonic() - began
    rename("waited")
    note()
    print(f"{sys.argv[1]} {sys.argv[2]} {took:.3f} s, at once {1000 * LONGEST:.0f} ms")


main()
