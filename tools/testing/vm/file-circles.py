#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
Do the files of a directory call each other in a circle? Reads the symbols of its objects.

usage: file-circles.py DIRECTORY [PART...]    of the build, with the objects

The files PART.c and PART_*.c count as one: a part calls no file that calls it.

Prints each circle with the symbols that lead from file to file. Exit status 1 if there is one.
"""
import glob
import os
import subprocess
import sys


def symbols(path):
    """What an object defines for others, and what it uses of others."""
    defined, used = set(), set()
    for line in subprocess.run(['nm', path], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines():
        *_, kind, name = line.split()
        if kind == 'U':
            used.add(name)
        elif kind in 'TDBRVW':
            defined.add(name)
    return defined, used


def part_of(name, parts):
    """The part that a file belongs to; it may be one by itself."""
    return next((part + '*' for part in parts if (name + '_').startswith(part + '_')), name)


def find_calls(directory, parts):
    """{ file: { file that it calls: [symbol] } }"""
    objects = {}
    for path in glob.glob(os.path.join(directory, '*.o')):
        name = os.path.basename(path)
        if name != 'built-in.o':
            of_part = objects.setdefault(part_of(name[:-2], parts), (set(), set()))
            for total, some in zip(of_part, symbols(path)):
                total |= some
    home = {symbol: name for name, (defined, _) in objects.items() for symbol in defined}
    calls = {name: {} for name in objects}
    for name, (_, used) in objects.items():
        for symbol in sorted(used):
            other = home.get(symbol, name)
            if other != name:
                calls[name].setdefault(other, []).append(symbol)
    return calls


def reaches(calls, start):
    """The files to which the calls of one lead."""
    seen, todo = set(), [start]
    while todo:
        for other in calls[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def main():
    calls = find_calls(sys.argv[1], sys.argv[2:])
    if len(calls) < 2:
        sys.exit('%s: there are no objects' % sys.argv[1])
    below = {name: reaches(calls, name) for name in calls}
    circle = sorted(name for name in calls if name in below[name])
    for name in circle:
        for other in sorted(calls[name]):
            if name in below[other]:
                print('%s.c calls %s.c: %s' % (name, other, ', '.join(calls[name][other])))
    print('%d files, %d of them in a circle' % (len(calls), len(circle)))
    sys.exit(bool(circle))


if __name__ == '__main__':
    main()
