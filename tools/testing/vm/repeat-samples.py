#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
A large recording of a small one: the same samples again and again, one after the other in time,
until there are enough. The small one is of one event, without -a.

usage: repeat-samples.py FROM TO SAMPLES
"""
import struct, sys
with open(sys.argv[1], 'rb') as f:
    file = bytearray(f.read())
start, size = struct.unpack_from('<QQ', file, 40)
body, other, at = [], [], start
while at < start + size:
    kind, _, length = struct.unpack_from('<IHH', file, at)
    (body if kind == 9 else other).append(bytes(file[at:at + length]))
    at += length
# sample_type IP|TID|TIME|...: the time is the third word
times = [struct.unpack_from('<Q', r, 24)[0] for r in body]
order = sorted(range(len(body)), key=times.__getitem__)
span = max(times) - min(times) + 1000
# The task must not exit before its last sample.
other = [r for r in other if struct.unpack_from('<I', r)[0] not in (4, 68)]
out = bytearray(b''.join(other))
n = turn = 0
while n < int(sys.argv[3]):
    for i in order:
        record = bytearray(body[i])
        struct.pack_into('<Q', record, 24, times[i] + turn * span)
        out += record
    n += len(order)
    turn += 1
    out += struct.pack('<IHH', 68, 0, 8)
tail = file[start + size:]
moved = len(out) - size
struct.pack_into('<Q', file, 48, len(out))
# The sections of the features lie behind the data.
for at in range(0, 16 * 40, 16):
    if at + 16 > len(tail):
        break
    where, length = struct.unpack_from('<QQ', tail, at)
    if start + size <= where <= len(file):
        struct.pack_into('<QQ', tail, at, where + moved, length)
    else:
        break
with open(sys.argv[2], 'wb') as f:
    f.write(file[:start] + out + tail)
print(n, 'samples,', len({r[8:16] + r[32:] for r in body}), 'distinct')
