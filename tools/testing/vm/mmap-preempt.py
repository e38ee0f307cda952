#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Map a ring buffer of 64 MiB on a CPU on which another task spins.

Exit with 0 if the spinning task hardly ran meanwhile, with 1 if it did. Needs root, as the
buffer is larger than kernel.perf_event_mlock_kb, and a kernel without preemption.
"""

import mmap
import os
import resource
import signal
import sys

from dummy_event import open_dummy


def preempted():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def main():
    os.sched_setaffinity(0, {0})
    fd = open_dummy()
    child = os.fork()
    if not child:
        while os.getppid() != 1:
            pass
        os._exit(0)
    before = preempted()
    pages = mmap.mmap(fd, (1 + 16384) * mmap.PAGESIZE)
    times = preempted() - before
    pages.close()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(f"preempted {times} times")
    # Any kernel may preempt it where mmap() begins and where it ends.
    sys.exit(0 if times <= 2 else 1)


main()
