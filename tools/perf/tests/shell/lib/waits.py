#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Causes of waits, for the tests of the flight recorder

usage: waits.py NAME queue SECONDS	a real-time task keeps NAME from its CPU for so long
       waits.py NAME sleep SECONDS [TIMES]
       waits.py NAME poll MS TIMES THREADS
       waits.py NAME fsync FILE		the file is held up, or not

NAME is that of the task. What was awaited, and for how long, is printed, and then the longest
time in ms for which the task may have waited at once: of a machine that stands still, that is
longer. The task waits for nothing else under that name: its code is in memory before, and it has
another name when it ends.
"""
import ctypes
import os
import select
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


def fsync(path):
    with open(path, "w") as f:
        f.write("x")
        f.flush()
        os.fsync(f.fileno())


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
    else:
        fsync(sys.argv[3])
    took = time.monotonic() - began
    rename("waited")
    note()
    print(f"{sys.argv[1]} {sys.argv[2]} {took:.3f} s, at once {1000 * LONGEST:.0f} ms")


main()
