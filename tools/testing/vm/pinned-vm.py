#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Map a ring buffer, map it in a child as well, unmap it in the parent, then in the child.

Exit with 0 if VmPin of the child is off then, with 1 if it is 0. Needs root, as the
buffer is larger than kernel.perf_event_mlock_kb.
"""

import mmap
import os
import sys

from dummy_event import open_dummy


def pinned():
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmPin:"):
                return int(line.split()[1])
    sys.exit(2)


def main():
    fd = open_dummy()
    size = (1 + 512) * mmap.PAGESIZE
    ours = mmap.mmap(fd, size)
    mapped_read, mapped = os.pipe()
    unmapped_read, unmapped = os.pipe()
    child = os.fork()
    if not child:
        theirs = mmap.mmap(fd, size)
        os.write(mapped, b"1")
        os.read(unmapped_read, 1)
        theirs.close()
        kilobytes = pinned()
        print(f"VmPin of the child: {kilobytes} kB")
        os._exit(0 if kilobytes else 1)
    os.read(mapped_read, 1)
    ours.close()
    os.write(unmapped, b"1")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(status if status >= 0 else 2)


main()
