#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
System calls that are told apart by their numbers, not faster than anybody can read: closes
what is not open.

usage: close_files.py FIRST LAST [FILE [PAUSE]]
FILE: ends when that is there, too, and has the number of the last one so far in FILE.begun; PAUSE:
seconds after each 50 of them
"""
import os
import sys
import time


def main():
    first, last = int(sys.argv[1]), int(sys.argv[2])
    pause = float(sys.argv[4]) if len(sys.argv) > 4 else 0.003
    begun = None
    for fd in range(first, last + 1):
        try:
            os.close(fd)
        except OSError:
            pass
        if fd % 50 == 0:
            if os.path.exists(''.join(sys.argv[3:4])):
                break
            if not begun and ''.join(sys.argv[3:4]):
                begun = open(sys.argv[3] + '.begun', 'wb', buffering=0)
            if begun:
                os.pwrite(begun.fileno(), b'%d\n' % fd, 0)
            time.sleep(pause)


if __name__ == '__main__':
    main()
