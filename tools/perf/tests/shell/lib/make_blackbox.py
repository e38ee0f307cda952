#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Write a black box image as of linux/perf_blackbox.h. It shares no code with perf.

Each session has cpu-clock on two CPUs, with samples of the tasks 'noted' (2001), which the
notes name, and 'alive' (2002), which the table of the death names.
"""
import argparse
import struct
import sys
import zlib

PAGE = 4096
RING = 16384
SLOT = 16384
TEXT = 0xffffffff9a000000
START = 5000000000
STATES = {'reset': 1, 'clean': 2, 'dead': 3, 'released': 4}
PLACES = {'life': 1024, 'death': 2048, 'tasks': 4096, 'sessions': 8192, 'buffers': 12288,
          'events': 16384, 'heap': 65536, 'notes': 65536}
ENTRIES = {'sessions': 128, 'buffers': 96, 'events': 512}

# Of a scattered image
ROOT = 0x10000
LINKS = 3072
LINEAR_MAP = 0xffff888000000000
KINDS = {'session': 1, 'events': 2, 'notes': 3}


def text(value, size):
    return value.encode().ljust(size, b'\0')


def entry(body):
    """An entry of a directory: state, CRC, and what the CRC covers."""
    return struct.pack('=II', 1, zlib.crc32(body)) + body


class Image:
    def __init__(self, args):
        self.args = args
        self.bytes = bytearray(args.size)
        self.heap = PLACES['heap']
        self.nr = {'sessions': 0, 'buffers': 0, 'events': 0}

    def put(self, pos, data):
        self.bytes[pos:pos + len(data)] = data

    def alloc(self, size):
        pos = self.heap
        self.heap += -(-size // PAGE) * PAGE
        return pos

    def add(self, kind, size, body):
        number = self.nr[kind]
        self.put(PLACES[kind] + number * size, entry(body))
        self.nr[kind] += 1
        return number

    def clock(self, perf):
        return struct.pack('=QQQ', perf, perf, 1700000000 * 10**9 + perf)

    def superblock(self):
        args = self.args
        body = struct.pack('=QIIQQQQQ16s', 0x584f424246524550, args.version, 512, args.phys,
                           args.size, args.region, 2 * args.size, args.generation,
                           args.boot.encode())
        body += self.clock(10**9)
        body += struct.pack('=IIIIQQ20sI', PAGE, 8, 2, 62, TEXT, TEXT + 0x1000000,
                            bytes.fromhex(args.build_id), 20)
        body += struct.pack('=6Q', *(PLACES[p] for p in
                            ('life', 'death', 'tasks', 'sessions', 'buffers', 'events')))
        body += struct.pack('=8I', 32, 8, 32, 64, 32, 128, 96, 512)
        body += struct.pack('=Q', PLACES['heap'])
        body += text('6.12.0-made', 64) + text('#1 made', 64) + text('made', 16) + bytes(124)
        self.put(0, body + struct.pack('=I', zlib.crc32(body)))
        self.put(PLACES['life'], struct.pack('=I', STATES[args.state]))

    def death(self):
        task = struct.pack('=iiII16s', 2002, 2002, 0, 0, b'alive')
        self.put(PLACES['tasks'], task)
        body = struct.pack('=Iiii', 1, 1, 2002, 2002) + self.clock(START + 10**9)
        body += text('alive', 16) + struct.pack('=IIII', 1, self.args.tasks_left_out,
                                                 zlib.crc32(task), 0)
        body += text(self.args.reason, 256)
        self.put(PLACES['death'], entry(body))

    def notes(self, pos):
        base = struct.pack('=IHHII8s', 3, 0, 24 + 32, 2001, 2001, b'noted') + bytes(32)
        rest = struct.pack('=IIQ', 1, zlib.crc32(base), len(base)) + self.clock(START) + bytes(16)
        self.put(pos, struct.pack('=II', 0x53544f4e, zlib.crc32(rest)) + rest + base)

    def samples(self, ident, cpu):
        """The ring's bytes, and data_head: positions decrease."""
        ring, head = bytearray(RING), 0
        for i in range(self.args.samples):
            tid = 2001 + i % 2
            record = struct.pack('=IHHQQIIQII', 9, 1, 48, ident, TEXT + 16 * (i % 4), tid, tid,
                                 START + 1000000 * i + cpu, cpu, 0)
            head -= len(record)
            for j, byte in enumerate(record):
                ring[(head + j) % RING] = byte
        return ring, head % 2**64

    def session(self, name):
        notes = self.alloc(2 * SLOT)
        number = self.add('sessions', 128, struct.pack('=II', 1 + self.nr['sessions'], 0) +
                          self.clock(10**9) + struct.pack('=QQ', notes, SLOT) +
                          text(name, 64) + bytes(8))
        self.notes(notes)
        for cpu in range(2):
            ident = 100 * (1 + number) + cpu
            rb, page, data = self.alloc(64), self.alloc(PAGE), self.alloc(RING)
            ring, head = self.samples(ident, cpu)
            self.put(data, ring)
            self.put(rb + 8, struct.pack('=Q', head))
            self.put(page + 1024, struct.pack('=Q', head))
            buf = self.add('buffers', 96, struct.pack('=iIQQQQ', cpu, 1, rb, page, data, RING) +
                           struct.pack('=5I28s', 64, 8, 16, 24, 32, b''))
            # type, size, config, period, sample_type, read_format, flags
            kind, config, event = (2, 4711, 'made:event') if self.args.tracepoint else (1, 0, '')
            attr = struct.pack('=IIQQQQQ', kind, 136, config, 1, 0x10087, 0, 1 << 18 | 1 << 27)
            self.add('events', 512, struct.pack('=QIIiIII', ident, number, buf, cpu, 0, 136, 0) +
                     text('software', 32) + text(event, 184) + attr.ljust(256, b'\0'))

    def make(self):
        self.superblock()
        if self.args.state == 'dead':
            self.death()
        for name in self.args.sessions.split(','):
            self.session(name)
        if self.args.swap:
            self.bytes[:8] = self.bytes[:8][::-1]
        if self.args.damage:
            self.bytes[200] ^= 1
        for place in self.args.flip:
            kind, number = place.split(':')
            self.bytes[PLACES[kind] + int(number) * ENTRIES.get(kind, 0) + 16] ^= 1
        return self.bytes


class Memory:
    """The image as it is in the kernel's memory: parts, linked by physical addresses."""

    def __init__(self, args):
        self.image = Image(args)
        self.image.make()
        self.bytes = bytearray(ROOT + PAGE)
        self.parts = {}

    def put(self, data):
        phys = len(self.bytes)
        self.bytes += data + bytes(-len(data) % PAGE)
        return phys

    def pages(self, pos, size, base=0):
        """Copy pages of the image. Return: their addresses."""
        return b''.join(struct.pack('=Q', base + self.put(self.image.bytes[p:p + PAGE]))
                        for p in range(pos, pos + size, PAGE))

    def part(self, kind, number, session, links, body):
        """links: next, events, notes"""
        phys = len(self.bytes)
        self.parts[f'{kind}:{number}'] = phys
        return self.put(struct.pack('=8sQII5Q', b'PERFPART', phys, KINDS[kind], session, *links,
                                    0) + body)

    def body(self, kind, number):
        pos = PLACES[kind] + number * ENTRIES[kind]
        return self.image.bytes[pos + 8:pos + ENTRIES[kind]]

    def member(self, number):
        event, buf = self.body('events', number), self.body('buffers', number)
        cpu, flags, rb, page, data, size = struct.unpack_from('=iIQQQQ', buf)
        rb = self.put(self.image.bytes[rb:rb + PAGE])
        page, = struct.unpack('=Q', self.pages(page, PAGE))
        data = self.put(self.pages(data, size, LINEAR_MAP))
        struct.pack_into('=iIQQQQ', buf, 0, cpu, flags | 2, rb, page, data, size)
        event[8:16] = bytes(8)
        return entry(event) + entry(buf)

    def session(self, number, link):
        """Each event in a part of its own, the newest first"""
        body = self.body('sessions', number)
        notes, events = struct.unpack_from('=Q', body, 32)[0], 0
        notes = self.part('notes', number, number + 1, (0, 0, 0, 0), self.pages(notes, SLOT))
        for i in (2 * number, 2 * number + 1):
            member = self.member(i)
            events = self.part('events', i, number + 1, (events, 0, 0, 0), member)
        body[32:48] = bytes(16)
        return self.part('session', number, number + 1, (link, events, notes, 0), entry(body))

    def make(self):
        root, link = self.image.bytes[:PAGE], 0
        for number in range(self.image.nr['sessions']):
            link = self.session(number, link)
        struct.pack_into('=4Q', root, 16, ROOT, PAGE, 0, 0)
        struct.pack_into('=3I', root, 204, 0, 0, 0)
        struct.pack_into('=QI', root, 384, LINEAR_MAP, 1)
        struct.pack_into('=I', root, 508, zlib.crc32(root[:508]))
        tasks, = struct.unpack('=Q', self.pages(PLACES['tasks'], PAGE))
        struct.pack_into('=QQ', root, LINKS, link, tasks)
        self.bytes[ROOT:ROOT + PAGE] = root
        for name in self.image.args.lose:
            self.bytes[self.parts[name]:self.parts[name] + PAGE] = bytes(PAGE)
        return self.bytes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--size', type=int, default=256 * 1024)
    parser.add_argument('--phys', type=int, default=0x7c000000)
    parser.add_argument('--region', type=int, default=0x7c000000)
    parser.add_argument('--generation', type=int, default=1)
    parser.add_argument('--boot', default='boot', help='bytes of the UUID')
    parser.add_argument('--version', type=int, default=1)
    parser.add_argument('--state', choices=STATES, default='dead')
    parser.add_argument('--reason', default='made up')
    parser.add_argument('--build-id', default='ab' * 20)
    parser.add_argument('--sessions', default='flight')
    parser.add_argument('--samples', type=int, default=200)
    parser.add_argument('--tracepoint', action='store_true')
    parser.add_argument('--tasks-left-out', action='store_true', help='of the table of the death')
    parser.add_argument('--swap', action='store_true')
    parser.add_argument('--damage', action='store_true')
    parser.add_argument('--flip', action='append', default=[], metavar='KIND:NUMBER',
                        help='flip a bit of an entry; notes:0 are those of the first session')
    parser.add_argument('--scatter', action='store_true',
                        help='a memory from physical address 0, with a scattered image')
    parser.add_argument('--lose', action='append', default=[], metavar='KIND:NUMBER',
                        help='zero a part of the scattered image')
    args = parser.parse_args()
    sys.stdout.buffer.write((Memory if args.scatter else Image)(args).make())


main()
