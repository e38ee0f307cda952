#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Map a ring buffer of 64 MiB on a CPU on which another task spins.

Exit with 0 if the spinning task hardly ran meanwhile, with 1 if it did. Needs root, as the
buffer is larger than kernel.perf_event_mlock_kb, and a kernel without preemption.
"""

import ctypes
import mmap
import os
import resource
import signal
import struct
import sys

PERF_EVENT_OPEN = 298
DUMMY = 9


def preempted():
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def main():
    os.sched_setaffinity(0, {0})
    attr = bytearray(136)
    struct.pack_into("<IIQ", attr, 0, 1, len(attr), DUMMY)
    buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
    fd = ctypes.CDLL(None, use_errno=True).syscall(PERF_EVENT_OPEN, buffer, -1, 0, -1, 0)
    if fd < 0:
        sys.exit(2)
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
    # Twice on entry and exit, whatever the kernel does in between
    sys.exit(0 if times <= 2 else 1)


main()
