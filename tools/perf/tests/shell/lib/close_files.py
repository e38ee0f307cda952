#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
System calls that are told apart by their numbers, not faster than anybody can read: closes
what is not open.

usage: close_files.py FIRST LAST [FILE]		FILE: ends when that is there, too
"""
import os
import sys
import time


def main():
    first, last = int(sys.argv[1]), int(sys.argv[2])
    for fd in range(first, last + 1):
        try:
            os.close(fd)
        except OSError:
            pass
        if fd % 50 == 0:
            if os.path.exists(''.join(sys.argv[3:])):
                break
            time.sleep(0.003)


if __name__ == '__main__':
    main()
