#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Instructions by function, of what profile-plugin.c counted in a guest.

The kernel's functions, those of modules and of BPF programs, are named by the guest's own
/proc/kallsyms. A function that the compiler split (.cold, .part, .isra) is one with its
origin. All of user space is one row: addresses alone do not tell one program from another.

usage: profile-report.py KALLSYMS COUNTS [PER]
	PER divides all figures: the number of calls that COUNTS has
"""
import bisect
import re
import sys
from collections import Counter

USER_END = 1 << 47
SPLIT = re.compile(r'\.(cold|part|isra|constprop|llvm)\b.*')
LEAST = 0.0005		# of all instructions: what has less is in the last row


def symbols(path):
    """(addresses, names) of the functions, sorted"""
    found = []
    with open(path, encoding='utf-8') as f:
        for line in f:
            words = line.split()
            if words[1] in 'tTwW':
                module = words[3] if len(words) > 3 else ''
                found.append((int(words[0], 16), f'{words[2]} {module}'.strip()))
    found.sort()
    if not found or not found[-1][0]:
        sys.exit('profile-report: kallsyms has no addresses')
    return [address for address, _ in found], [name for _, name in found]


def count(path, addresses, names):
    """(instructions, entries) by function"""
    instructions, entries = Counter(), Counter()
    with open(path, encoding='ascii') as f:
        for line in f:
            words = line.split()
            times = int(words[0])
            for word in words[1:]:
                address = int(word, 16)
                if address < USER_END:
                    instructions['[user space]'] += times
                    continue
                at = bisect.bisect_right(addresses, address) - 1
                name = SPLIT.sub('', names[at]) if at >= 0 else '[unknown]'
                instructions[name] += times
                if at >= 0 and addresses[at] == address and names[at] == name:
                    entries[name] += times
    return instructions, entries


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip().rsplit('\n\n', 1)[1])
    per = float(sys.argv[3]) if len(sys.argv) == 4 else 1
    if per <= 0:
        sys.exit('profile-report: PER must be a positive number')
    instructions, entries = count(sys.argv[2], *symbols(sys.argv[1]))
    total = sum(instructions.values())
    if not total:
        sys.exit('profile-report: nothing was counted')
    rest = total
    print(f'{"instructions":>14} {"share":>7} {"calls":>10}  function')
    for name, number in instructions.most_common():
        if number < LEAST * total:
            break
        rest -= number
        print(f'{number / per:14.1f} {100 * number / total:6.2f}% '
              f'{entries[name] / per:10.2f}  {name}')
    if rest:
        print(f'{rest / per:14.1f} {100 * rest / total:6.2f}% {"":>10}  [all others]')
    print(f'{total / per:14.1f} 100.00%             all')


if __name__ == '__main__':
    main()
