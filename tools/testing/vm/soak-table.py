#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
A table, in reStructuredText, of what soak.sh logged: about ten lines, from the first
to the last.

usage: soak-table.py FILE
"""
import json
import sys

# Heading, and the field of the log
COLUMNS = [('seconds', 'seconds'), ('dumps', 'dumps'), ('kills', 'kills'), ('made', 'made'),
           ('read', 'reads'), ('ended', 'ended'), ('refused', 'refused'),
           ('verified', 'verified'), ('hotplug', 'hotplug'), ('epochs', 'epochs'),
           ('faults', 'faults'), ('bad', 'bad'), ('free MiB', 'available_kb'),
           ('slab MiB', 'slab_kb')]
ROWS = 10


def cell(line, field):
    value = line.get(field, '')
    return str(value // 1024) if field.endswith('_kb') else str(value)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding='utf-8') as f:
        lines = [json.loads(line) for line in f]
    if not lines:
        sys.exit(f'{sys.argv[1]} is empty')
    step = max(1, len(lines) // ROWS)
    shown = lines[::step]
    if shown[-1] is not lines[-1]:
        shown.append(lines[-1])
    rows = [[heading for heading, _ in COLUMNS]]
    rows += [[cell(line, field) for _, field in COLUMNS] for line in shown]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    rule = '  '.join('=' * width for width in widths)
    print(rule)
    for i, row in enumerate(rows):
        print('  '.join(text.rjust(width) for text, width in zip(row, widths)))
        if i == 0:
            print(rule)
    print(rule)


if __name__ == '__main__':
    main()
