#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tell which reports of KCSAN are about our code.

A report has two accesses, each with its stack. It is ours if one of them was made by a function
of ours, or by a function of the kernel's library that a function of ours has called. Functions
of the base that have hooks count as ours; what the base itself does there is BASE_RACES.

usage: kcsan-reports.py FUNCTIONS LOG	reports of these functions, one a line in FUNCTIONS, are
					printed; exit 1 if there is one
       kcsan-reports.py --list LOG	all reports in short, with their number
"""
import collections
import re
import sys

# They access what their caller gives them.
LIBRARY = re.compile(r'^(_*mem(cpy|set|move|cmp)|_*str\w+|_*list_\w+|_*hlist_\w+|_*rb_\w+|'
                     r'_*bitmap_\w+|_*find_\w+_bit|_*copy_(to|from)_user\w*|_*tsan_\w+|'
                     r'v?s[cn]*printf|_*refcount_\w+|_*percpu_ref\w*|x[as]_\w+|idr_\w+)$')
ACCESS = re.compile(r'^(race at unknown origin, with )?(assert no \w+|read|write|read-write)( \([^)]*\))* to 0x')
FRAME = re.compile(r'^ ?([A-Za-z_][\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+')

# Neither access is in a line of ours, or depends on one.
BASE_RACES = {
    # fork() reads the state of its parent's event. It asks whether that is at least INACTIVE, and
    # a switch of tasks meanwhile changes it between INACTIVE and ACTIVE.
    frozenset({'inherit_event', 'perf_event_set_state'}),
    # fork() asks whether its parent has a context of events. A switch of tasks meanwhile swaps it
    # for that of a clone.
    frozenset({'perf_event_init_task', '__perf_event_task_sched_out'}),
    # perf_mmap() of the base fills the user page in after the event has its buffer, too, while
    # the event may be scheduled in on another CPU.
    frozenset({'perf_mmap_attach', 'arch_perf_update_userpage'}),
}


def reports(log):
    """The lines of each report."""
    lines = None
    with open(log, encoding='utf-8', errors='replace') as f:
        for line in f:
            text = re.sub(r'^(<\d+>)?\[[ \d.]+\](\[[ \w]+\])? ?', '', line.rstrip('\r\n'))
            if text.startswith('BUG: KCSAN: '):
                lines = [text]
            elif lines and text.startswith('======'):
                yield lines
                lines = None
            elif lines:
                lines.append(text)
    # The log ends, or the machine died, in the middle of one.
    if lines:
        yield lines


def accesses(lines):
    """The function that made each access, and who called it if it is of the library."""
    stack = None
    for line in lines[1:] + ['']:
        frame = FRAME.match(line)
        if ACCESS.match(line):
            stack = []
        elif stack is not None and frame:
            stack.append(frame.group(1).split('.')[0])
        elif stack:
            while len(stack) > 1 and LIBRARY.match(stack[0]):
                del stack[0]
            yield stack[0]
            stack = None


def main():
    """Print what is asked for."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == '--list':
        count = collections.Counter(lines[0] for lines in reports(sys.argv[2]))
        for text, number in count.most_common():
            print(f'{number:5d}  {text}')
        print(f'{sum(count.values())} reports, {len(count)} of them different')
        return
    with open(sys.argv[1], encoding='utf-8') as f:
        ours = set(f.read().split())
    bad = 0
    for lines in reports(sys.argv[2]):
        found = list(accesses(lines))
        # A report that cannot be read is not one of others.
        if not found or (ours.intersection(found) and frozenset(found) not in BASE_RACES):
            bad += 1
            print('\n'.join(lines))
    sys.exit(bad > 0)


if __name__ == '__main__':
    main()
