#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Make recordings that are full of secrets, and list what recordings have

It shares no code with perf. Every secret has the letters "hush", in numbers as well, where the
format of a recording has room for it: so what a copy tells is found by a search for them.

  make FILE            a recording, and its manifest FILE.json
  make-readable FILE   its records and features that every perf can read
  make-words FILE      call chains with words of memory in them, for all of perf
  make-deferred FILE   a call chain whose user half is in a record of its own, and a broken one
  make-comms FILE      names of tasks in fields of both kinds, also out of place
  make-collisions FILE an event with ids that a simple hash table puts at one place
  make-old FILE        of events without PERF_SAMPLE_IDENTIFIER and sample_id_all
  make-compressed FILE, make-compressed2 FILE
                       a recording whose records are compressed, but not by zstd
  make-packed FILE, make-packed2 FILE
                       that of make, with its records compressed
  make-newer FILE      a recording of records that are not known
  make-large FILE N    N mappings with long names that have the name of the machine many times
  records FILE         type, misc and size of each record, and its texts
  deferral FILE        whether the first event has its call chains deferred, in hexadecimal
  words FILE TYPE      the words of the records of a type, in hexadecimal
  sizes FILE EVENT     the different sizes of the samples of an event
"""
import json
import re
import struct
import sys

HUSH = int.from_bytes(b'hushhush', 'little')
HUSH32 = int.from_bytes(b'hush', 'little')
HOST = 'hushhost'

(IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCH_STACK, REGS_USER,
 STACK_USER, WEIGHT, DATA_SRC, IDENTIFIER, TRANSACTION, REGS_INTR, PHYS_ADDR, AUX, CGROUP,
 DATA_PAGE_SIZE, CODE_PAGE_SIZE) = (1 << i for i in range(24))
COMMON = IDENTIFIER | IP | TID | TIME | CPU | PERIOD
SAMPLE_ID_ALL = 1 << 18
# defer_callchain and defer_output
DEFERRED = 3 << 38
KERNEL, USER = 1, 2
HARDWARE, SOFTWARE, TRACEPOINT, BREAKPOINT, PMU = 0, 1, 2, 5, 77

# Of the kernel; of user space: code, also of a mapping that is told later, words that a program
# without frame pointers has in its memory, in mappings without code, or that look like a context
CHAIN = (2 ** 64 - 128, 0xffffffff81000010, 2 ** 64 - 512, 0x401000, HUSH, 0x402000, HUSH32,
         0x601000, 0x701000, 2 ** 64 - 128, HUSH)

# Bytes of the fields of an event's id at the end of its other records
ID_FIELDS = (TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER)


def text(value, room=None, align=8):
    data = value.encode() + b'\0'
    if room:
        return data.ljust(room, b'\0')
    return data + bytes(-len(data) % align)


def hush(name, size=0):
    """A secret of at least that many bytes"""
    return ('hush-' + name).encode() + b'hush' * ((size - len(name) - 2) // 4)


def pad(data, align=8):
    return data + bytes(-len(data) % align)


class Event:
    """An event: its attributes, and the records that are its own"""
    def __init__(self, kind, config, sample_type, number, **more):
        self.kind, self.config, self.sample_type, self.id = kind, config, sample_type, number
        self.more = more

    def attr(self):
        m = self.more
        return struct.pack(
            '<IIQQQQQIIQQQQIiQIHHIIQQ', self.kind, 136, self.config, 1, self.sample_type,
            m.get('read_format', 0), m.get('flags', SAMPLE_ID_ALL), 1, m.get('bp_type', 0),
            m.get('config1', 0), m.get('config2', 0), m.get('branch', 0), m.get('regs', 0),
            m.get('stack', 0), 0, m.get('regs', 0), m.get('aux', 0), 0, 0, 0, 0,
            m.get('sig_data', 0), m.get('config3', 0))

    def sample_id(self, time=1):
        if not self.more.get('flags', SAMPLE_ID_ALL) & SAMPLE_ID_ALL:
            return b''
        words = {TID: (struct.pack('<II', 10, 11)), TIME: struct.pack('<Q', time),
                 ID: struct.pack('<Q', self.id), STREAM_ID: struct.pack('<Q', self.id),
                 CPU: struct.pack('<II', 1, 0), IDENTIFIER: struct.pack('<Q', self.id)}
        return b''.join(words[f] for f in ID_FIELDS if self.sample_type & f)

    def record(self, kind, body, misc=0, time=1):
        return record(kind, body + self.sample_id(time), misc)

    def read(self):
        """The values of an event, or of a group of two"""
        fmt = self.more['read_format']
        times = [1] * ((fmt & 3).bit_count())
        others = [self.id] * (fmt >> 2 & 1) + [0] * (fmt >> 4 & 1)
        words = [2, *times, 5, *others, 6, *others] if fmt & 8 else [5, *times, *others]
        return struct.pack('<%dQ' % len(words), *words)

    def sample(self, time, raw=b'', tid=(10, 11), misc=USER):
        t, out = self.sample_type, b''

        def put(field, fmt, *values):
            nonlocal out
            if t & field:
                out += struct.pack('<' + fmt, *values)
        put(IDENTIFIER, 'Q', self.id)
        put(IP, 'Q', 0x401000 + time)
        put(TID, 'II', *tid)
        put(TIME, 'Q', time)
        put(ADDR, 'Q', HUSH)
        put(ID, 'Q', self.id)
        put(STREAM_ID, 'Q', self.id)
        put(CPU, 'II', 1, 0)
        put(PERIOD, 'Q', 100 + time)
        if t & READ:
            out += self.read()
        chain = self.more.get('chain', CHAIN)
        put(CALLCHAIN, '%dQ' % (len(chain) + 1), len(chain), *chain)
        if t & RAW:
            size = len(raw) + (-(len(raw) + 4) % 8)
            out += struct.pack('<I', size) + raw.ljust(size, b'\0')
        put(BRANCH_STACK, 'QQQQ', 1, 0x401000, 0x402000, 0)
        put(REGS_USER, 'QQQ', 2, HUSH, HUSH)
        if t & STACK_USER:
            out += struct.pack('<Q', 64) + hush('stack', 64)[:64].ljust(64, b'h') + \
                struct.pack('<Q', 64)
        put(WEIGHT, 'Q', 7)
        put(DATA_SRC, 'Q', 0)
        put(TRANSACTION, 'Q', 0)
        put(REGS_INTR, 'QQQ', 2, HUSH, HUSH)
        put(PHYS_ADDR, 'Q', HUSH)
        put(CGROUP, 'Q', 1)
        put(DATA_PAGE_SIZE, 'Q', 4096)
        put(CODE_PAGE_SIZE, 'Q', 4096)
        if t & AUX:
            out += struct.pack('<Q', 16) + b'hush-aux-hush-16'
        return record(9, out, misc)


def record(kind, body, misc=0):
    body = pad(body)
    return struct.pack('<IHH', kind, misc, 8 + len(body)) + body


# Tracepoints: fields are (declaration, offset, size)
COMMON_FIELDS = (('unsigned short common_type', 0, 2), ('unsigned char common_flags', 2, 1),
                 ('unsigned char common_preempt_count', 3, 1), ('int common_pid', 4, 4))


def format_of(name, number, fields, print_fmt='""'):
    lines = ['name: ' + name, 'ID: %d' % number, 'format:']
    lines += ['\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:0;' % f for f in COMMON_FIELDS]
    lines += [''] + ['\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:0;' % f for f in fields]
    return '\n'.join(lines + ['', 'print fmt: ' + print_fmt, '']).encode()


SWITCH, PROBE, OPEN, EXEC, WAKEUP, WAKING, SYSCALL, HUSHED, REL, EPROBE, FORK = range(100, 111)
SYSTEMS = {
    'sched': [
        ('sched_switch', SWITCH, [
            ('char prev_comm[16]', 8, 16), ('pid_t prev_pid', 24, 4), ('int prev_prio', 28, 4),
            ('long prev_state', 32, 8), ('char next_comm[16]', 40, 16),
            ('pid_t next_pid', 56, 4), ('int next_prio', 60, 4),
            # Of a kernel that somebody has changed
            ('u64 hush_extra', 64, 8), ('struct hush * tail', 72, 8)],
         '"hush %s %d %s", REC->prev_comm, REC->prev_pid, (REC->prev_state & 0xff) ? '
         '__print_flags(REC->prev_state & 0xff, "|", { 0x00000001, "S" }, { 0x00000002, "D" }, '
         '{ 0x00000004, "hush" }) : "R"'),
        ('sched_process_exec', EXEC, [
            ('__data_loc char[] filename', 8, 4), ('pid_t pid', 12, 4),
            ('pid_t old_pid', 16, 4)], '"%s %d", __get_str(filename), REC->pid'),
        # As Linux 7.3 has it
        ('sched_process_fork', FORK, [
            ('__data_loc char[] parent_comm', 8, 4), ('pid_t parent_pid', 12, 4),
            ('__data_loc char[] child_comm', 16, 4), ('pid_t child_pid', 20, 4)],
         '"comm=%s pid=%d", __get_str(parent_comm), REC->parent_pid'),
        # Names that are known, of what is not a name of a task and no number
        ('sched_wakeup', WAKEUP, [('u8 comm[16]', 8, 16), ('u8 pid[8]', 24, 8),
                                  ('long long prio[2]', 32, 16), ('u8 target_cpu[4]', 48, 4)]),
        # What a user has defined, with names that are known
        ('sched_waking', WAKING, [('unsigned long __probe_ip', 8, 8), ('u64 prio', 16, 8)]),
        ('sched_stat_wait', EPROBE, [('u64 delay', 8, 8)], '" delay=%Lu", REC->delay'),
    ],
    'raw_syscalls': [
        ('sys_enter', SYSCALL, [('long id', 8, 8), ('unsigned long args[6]', 16, 48)]),
    ],
    'syscalls': [
        ('sys_enter_openat', OPEN, [('int __syscall_nr', 8, 4), ('u64 filename', 16, 8),
                                    ('u8 comm[16]', 24, 16), ('u64 pid', 40, 8)]),
    ],
    'hushprobes': [
        ('hushprobe', PROBE, [('unsigned long __probe_ip', 8, 8), ('u64 hushnumber', 16, 8),
                              ('__data_loc char[] hushtext', 24, 4)]),
    ],
    'task': [
        ('hushtask', HUSHED, [('pid_t pid', 8, 4), ('char comm[16]', 12, 16),
                              ('u64 number', 28, 8)]),
        ('task_rename', REL, [('__rel_loc char[] newcomm', 8, 4), ('pid_t pid', 12, 4)]),
    ],
}


def raw_of(number, body):
    return struct.pack('<HBBi', number, 0, 0, 10) + body


def switch_raw(prev, pid, following, next_pid, state=1):
    return raw_of(SWITCH, text(prev, 16) + struct.pack('<iiq', pid, 120, state) +
                  text(following, 16) + struct.pack('<ii', next_pid, 120) + b'hush' * 4)


def exec_raw(path):
    name = path.encode() + b'\0'
    return raw_of(EXEC, struct.pack('<Iii', len(name) << 16 | 20, 10, 10) + name)


def fork_raw(parent, child):
    names = parent.encode() + b'\0', child.encode() + b'\0'
    return raw_of(FORK, struct.pack('<IiIi', len(names[0]) << 16 | 24, 10,
                                    len(names[1]) << 16 | 24 + len(names[0]), 12) +
                  b''.join(names))


def sized(data):
    return struct.pack('<Q', len(data)) + data


def tracing_data():
    out = bytes((23, 8, 68)) + b'tracing' + b'0.6\0' + bytes((0, 8)) + struct.pack('<I', 4096)
    out += b'header_page\0' + sized(hush('page') + b'\n')
    out += b'header_event\0' + sized(hush('event') + b'\n')
    out += struct.pack('<I', 1) + sized(format_of('hush_ftrace', 1, []))
    out += struct.pack('<I', len(SYSTEMS))
    for system, formats in SYSTEMS.items():
        out += text(system, align=1) + struct.pack('<I', len(formats))
        out += b''.join(sized(format_of(*f)) for f in formats)
    symbols = b'ffffffff81000000 T hush_symbol\n'
    out += struct.pack('<I', len(symbols)) + symbols
    printk = b'0xffffffff81000000 : "hush %s"\n'
    out += struct.pack('<I', len(printk)) + printk
    return out + sized(b'10 hush-saved\n11 hushhost\n')


def string(value):
    data = text(value, align=64)
    return struct.pack('<I', len(data)) + data


def build_id(name, misc, pid=-1):
    return record(67, struct.pack('<i', pid) + b'hush' * 5 + bytes((20, 0, 0, 0)) + text(name),
                  misc)


def feature_data(number):
    known = {
        1: tracing_data(),
        2: build_id('[kernel.kallsyms]', KERNEL).replace(b'hush', b'kern') +
           build_id('/home/hush/x', USER) + build_id('[kernel.kallsyms]hush', KERNEL) +
           build_id('[', KERNEL),
        3: string('hushhost.hushdomain'), 4: string('6.12.5-hush'), 5: string('6.12.hush'),
        6: string('x86_64-hush'), 7: struct.pack('<II', 4, 4) + b'hush' * 4,
        15: b'', 21: struct.pack('<QQ', 1, 10 ** 9) + b'hush' * 2,
        23: struct.pack('<Q', 1) + b'hush' * 2,
        29: struct.pack('<IIQQ', 1, 1, 10 ** 18, 1) + b'hush' * 2,
    }
    return known.get(number, string('hush feature %d' % number))


def recording(events, records, features, ids=None):
    """A file: header, ids, attributes, records, table of features, features"""
    size = len(ids) if ids else 8
    ids = ids or b''.join(struct.pack('<Q', e.id) for e in events)
    attrs = b''.join(e.attr() + struct.pack('<QQ', 104 + size * i, size)
                     for i, e in enumerate(events))
    bits = bytearray(32)
    for number in features:
        bits[number // 8] |= 1 << number % 8
    start = 104 + len(ids) + len(attrs)
    header = b'PERFILE2' + struct.pack('<QQQQQQQQ', 104, 136 + 16, 104 + len(ids), len(attrs),
                                       start, len(records), 0, 0) + bytes(bits)
    at, table, data = start + len(records) + 16 * len(features), b'', b''
    for number in features:
        section = feature_data(number)
        table += struct.pack('<QQ', at + len(data), len(section))
        data += section
    return header + ids + attrs + records + table + data


EVERYTHING = (COMMON | ADDR | READ | CALLCHAIN | RAW | BRANCH_STACK | REGS_USER | STACK_USER |
              WEIGHT | DATA_SRC | TRANSACTION | REGS_INTR | PHYS_ADDR | AUX | CGROUP |
              DATA_PAGE_SIZE | CODE_PAGE_SIZE | ID | STREAM_ID)


def made_events():
    return [
        # perf's and BPF's own data
        Event(SOFTWARE, 10, EVERYTHING, 1, read_format=0x1f, branch=4, regs=3, stack=64, aux=16),
        Event(TRACEPOINT, SWITCH, COMMON | RAW, 3),
        Event(TRACEPOINT, PROBE, COMMON | RAW, 4, config1=HUSH),
        Event(TRACEPOINT, OPEN, COMMON | RAW, 5),
        Event(TRACEPOINT, EXEC, COMMON | RAW, 6),
        Event(TRACEPOINT, WAKEUP, COMMON | RAW, 7),
        Event(TRACEPOINT, WAKING, COMMON | RAW, 8),
        Event(TRACEPOINT, SYSCALL, COMMON | RAW, 9),
        Event(TRACEPOINT, HUSHED, COMMON | RAW, 10),
        Event(PMU, HUSH, COMMON, 11, config1=HUSH, config2=HUSH, config3=HUSH, sig_data=HUSH),
        Event(BREAKPOINT, HUSH, COMMON, 12, config1=HUSH, bp_type=HUSH32),
        Event(TRACEPOINT, REL, COMMON | RAW, 13),
        Event(TRACEPOINT, EPROBE, COMMON | RAW, 14),
    ]


def mmap(name, start=0x400000, pid=10):
    return struct.pack('<iiQQQ', pid, pid + 1, start, 0x10000, 0) + text(name)


def mmap2(name, start=0x400000, ids=b'hush' * 6, prot=5):
    return struct.pack('<iiQQQ', 10, 11, start, 0x10000, 0) + ids.ljust(24, b'\0') + \
        struct.pack('<II', prot, 2) + text(name)


def secret_records(e):
    """Records of the kernel and of perf, in the order of their numbers"""
    yield e.record(1, mmap('[kernel.kallsyms]_text', 0xffffffff81000000, -1), KERNEL)
    yield e.record(1, mmap('[hushmodule]', 0xffffffffc0000000, -1), KERNEL)
    yield e.record(1, mmap('/lib/modules/6.12-hush/hush.ko', 0xffffffffc0100000, -1), KERNEL)
    yield e.record(1, mmap('[hush] in brackets', 0x500000), USER)
    yield e.record(1, mmap('[vdso]hush', 0x510000), USER)
    yield e.record(2, struct.pack('<QQ', 3, 5) + b'hush' * 2)
    for comm in ('hush-comm', HOST, 'hush-comm', 'swapper/hush', 'kworker/0:1-hush', '[hush]'):
        yield e.record(3, struct.pack('<ii', 10, 11) + text(comm))
    yield e.record(3, struct.pack('<ii', 0, 0) + text('swapper/0'))
    yield e.record(3, struct.pack('<ii', 20, 20) + text('kworker/0:2'))
    for kind in (4, 7):
        yield e.record(kind, struct.pack('<iiiiQ', 12, 10, 12, 10, 1) + b'hush' * 2)
    for kind in (5, 6):
        yield e.record(kind, struct.pack('<QQQ', 1, 1, 1) + b'hush' * 2)
    yield e.record(8, struct.pack('<ii', 10, 11) + e.read() + b'hush' * 2)
    for name in ('/home/hushbob/x:/home/hushalice', '/usr/lib/x:/home/hushalice',
                 '/usr/lib/../home/hush', '/usr/lib/home/hush', '/usr/bin//home/hush',
                 '[hush', '[anon]hush', '//anon hush', '/lib/' + 4 * 'hush' + '/HOME/hush',
                 '/usr/bin/hushhost-agent', '/memfd:hush (deleted)', '/dev/hush'):
        yield e.record(10, mmap2(name), USER)
    yield e.record(10, mmap2('/usr/bin/hush-build-id', ids=bytes((20, 0, 0, 0)) + b'hush' * 5),
                   USER | 1 << 14)
    yield e.record(10, mmap2('[vdso]', 0x7ff000000000), USER)
    yield e.record(10, mmap2('/hush/data', HUSH32 & ~0xffff, prot=1), USER)
    yield e.record(1, mmap('/hush/data', 0x700000), USER | 1 << 13)
    yield e.record(11, struct.pack('<QQQ', HUSH, HUSH, 0))
    yield e.record(12, struct.pack('<ii', HUSH32, HUSH32))
    yield e.record(13, struct.pack('<Q', 2) + b'hush' * 2)
    yield e.record(14, b'hush' * 2, 1 << 13)
    yield e.record(15, struct.pack('<ii', 10, 11) + b'hush' * 2)
    yield e.record(16, struct.pack('<iiQQQ', 10, 11, 1, HUSH, HUSH))
    yield e.record(17, struct.pack('<QIHH', 0xffffffffc0200000, 64, 1, 0) +
                   text('bpf_prog_hush_hush'))
    yield e.record(18, struct.pack('<HHI', 1, 0, HUSH32) + b'hush' * 2)
    yield e.record(19, struct.pack('<Q', 1) + text('/hush.slice/home/hush'))
    yield e.record(20, struct.pack('<QHH', 0xffffffff81000000, 4, 4) + b'hushhush' + bytes(4))
    yield e.record(21, struct.pack('<Q', HUSH))
    # Of a newer kernel, and of a newer perf
    yield e.record(40, hush('newer', 40))
    yield record(100, hush('newer', 40))
    yield record(300, hush('newer', 40))
    yield record(64, hush('attr', 40))
    yield record(65, hush('type', 40))
    yield build_id('/home/hush/x', USER)
    yield build_id('/usr/bin/hush', USER)
    yield record(68, b'hush' * 2)
    yield record(69, struct.pack('<QQQQQ', 1, 1, 0, 1, 11) + b'hush' * 4)
    yield record(70, struct.pack('<II', 1, 0) + b'hush' * 8)
    yield record(71, struct.pack('<QQQIIII', 32, 0, 0, 0, 11, 1, 0)) + b'hush' * 8
    yield record(72, struct.pack('<IIIIIIQ', 1, 1, 1, 10, 11, 0, 0) + text('hush error', 64))
    yield record(73, struct.pack('<QQ', 1, 10) + text('hush-comm', 16))
    for kind in (74, 75, 76, 77):
        yield record(kind, b'hush' * 6)
    yield record(78, struct.pack('<QQ', 1, 3) + text('hush-event-name'))
    yield record(79, struct.pack('<QQQ', 1, 1, 1) + b'hush' * 4)
    yield record(80, struct.pack('<Q', 3) + string(HOST))
    yield record(82, b'hush' * 2)


def samples(events):
    for e, raw in zip(events, (
            b'hush-of-bpf-hush-of-bpf-hush', switch_raw('hush-prev', 10, 'hush-comm', 12),
            raw_of(PROBE, struct.pack('<QQI', HUSH, HUSH, 16 << 16 | 28) + hush('kprobe', 16)),
            raw_of(OPEN, struct.pack('<iiQ', 257, 0, HUSH) + b'hush' * 6),
            exec_raw('/home/hush/x'),
            raw_of(WAKEUP, b'hush' * 11), raw_of(WAKING, struct.pack('<QQ', HUSH, HUSH)),
            raw_of(SYSCALL, struct.pack('<Q', 1) + b'hushhush' * 6),
            raw_of(HUSHED, struct.pack('<i', HUSH32) + text('hush', 16) + b'hushhush'),
            b'', b'', raw_of(REL, struct.pack('<Ii', 12 << 16 | 4, 10) + hush('rename')),
            raw_of(EPROBE, b'hushhush'))):
        yield e, raw


FEATURES = [n for n in range(1, 32) if n not in (24, 27)] + [40, 200]


def all_records(events):
    return b''.join(secret_records(events[0])) + good_samples(events) + bad_samples(events)


def good_samples(events):
    records = b''
    for i, (e, raw) in enumerate(samples(events)):
        records += e.sample(1000 + i, raw)
    switch, execve = events[1], events[4]
    for i in range(8):
        tasks = [('hush-a', 10), ('hush-%d' % (i // 4), 12)]
        (prev, pid), (following, next_pid) = tasks[::-1] if i % 2 else tasks
        records += switch.sample(2000000 + 1000 * i, switch_raw(prev, pid, following, next_pid,
                                                                 state=0))
    # The length of a name tells which it is.
    for name in ('/hush', '/home/hushalice/' + 'hush/' * 100, '', '[', '[vdso]'):
        records += execve.sample(3000000, exec_raw(name))
    return records


def bad_samples(events):
    execve, records = events[4], b''
    # The place of a name that lies outside of the data, or in another field
    for where in (0xffff0010, 0x0010fff0, 0x00100000, 0):
        records += execve.sample(3000001, raw_of(EXEC, struct.pack('<Iii', where, 10, 10)) +
                                 hush('outside'))
    records += record(9, b'hush' * 8)
    # One that ends before its raw data, and what could be taken for these
    records += record(9, execve.sample(3000003)[8:56]) + events[0].record(12, b'hush' * 4)
    records += events[0].record(10, b'hush' * 2)
    # Of an event that the file does not have
    records += Event(SOFTWARE, 0, COMMON, 99).sample(3000002)
    return records + events[0].record(1, mmap('/hush/later', 0x600000), USER)


def make(path):
    events = made_events()
    with open(path, 'wb') as f:
        f.write(recording(events, all_records(events), FEATURES))
    with open(path + '.json', 'w', encoding='utf-8') as f:
        json.dump(manifest(path), f, indent=2)


def manifest(path):
    return {
        'file': path.rsplit('/', maxsplit=1)[-1], 'schema': 1, 'perf_version': '6.12.hush',
        'time': '2026-01-01T00:00:00Z', 'trigger_time': 1.5, 'host': 'hushhost.hushdomain',
        'kernel': '6.12.5-hush', 'boot_id': 'hush-boot', 'trigger': 'signal',
        'reason': 'hush reason \\" } of hushhost', 'value': 'hush', 'unit': 'hush',
        'trigger_pid': 11, 'trigger_comm': 'hush-comm', 'trigger_cgroup': '/hush.slice',
        'action': 'hush', 'window': 1.0, 'oldest': 0.5, 'newest': 1.5, 'events': 40,
        'session': 'hush-session', 'newer': 'hush', 'newer_too': {'events': 'hush'},
        'cpus': [{'cpu': 1, 'oldest': 0.5, 'newest': 1.5, 'events': 40, 'lost': 0,
                  'way': 'ring', 'newer': 'hush'},
                 {'cpu': 2, 'newest': 'hush', 'way': 'hush'}],
    }


def make_old(path):
    kind = IP | TID | TIME | ID | CPU | PERIOD
    events = [Event(SOFTWARE, 0, kind | READ, 21, flags=0, read_format=7),
              Event(SOFTWARE, 1, kind | READ, 22, flags=0, read_format=0xf)]
    records = events[0].record(3, struct.pack('<ii', 10, 11) + text('hush-comm'))
    for i in range(20):
        records += events[i % 2].sample(1000 + i)
    with open(path, 'wb') as f:
        f.write(recording(events, records, []))


def make_compressed(path, kind):
    e = Event(SOFTWARE, 0, COMMON, 1)
    body = struct.pack('<Q', 24) if kind == 83 else b''
    with open(path, 'wb') as f:
        f.write(recording([e], e.sample(1000) + record(kind, body + b'no zstd stream, it is'),
                          []))


def make_readable(path):
    events = made_events()
    records = b''.join(r for r in secret_records(events[0])
                       if struct.unpack_from('<I', r)[0] in (1, 3, 4, 7, 10, 13, 17))
    with open(path, 'wb') as f:
        f.write(recording(events, records + good_samples(events), (1, 2, 3, 4, 5, 6, 7)))


def make_words(path):
    e = Event(SOFTWARE, 0, COMMON | CALLCHAIN, 1, chain=CHAIN[2:7])
    records = e.record(3, struct.pack('<ii', 10, 10) + text('program')) + \
        e.record(10, mmap2('/usr/bin/program'), USER) + e.sample(1000) + e.sample(2000)
    with open(path, 'wb') as f:
        f.write(recording([e], records, []))


def make_deferred(path):
    """The user half of a call chain, a word of memory in it, and the number that leads to it"""
    chain = (2 ** 64 - 128, 0xffffffff81000010, 2 ** 64 - 640, 0x100000001)
    e = Event(SOFTWARE, 0, COMMON | CALLCHAIN, 1, chain=chain, flags=SAMPLE_ID_ALL | DEFERRED)
    half = struct.pack('<QQQQQQ', chain[-1], 4, 0x401000, HUSH, 0x402000, 2 ** 64 - 640)
    records = e.record(3, struct.pack('<ii', 10, 10) + text('program')) + \
        e.record(10, mmap2('/usr/bin/program'), USER) + e.sample(1)
    # It has fewer words than it says.
    records += e.record(22, struct.pack('<QQQ', chain[-1], 2 ** 24, HUSH), USER)
    records += e.record(22, half, USER)
    with open(path, 'wb') as f:
        f.write(recording([e], records, []))


def make_packed(path, kind):
    """A frame of zstd needs no compression: its blocks have their bytes as they are."""
    events = made_events()
    # What a trace is followed by is not compressed.
    traced, rest = cut_trace(all_records(events))
    parts = [rest[i:i + 1000] for i in range(0, len(rest), 1000)]
    frame = struct.pack('<IBB', 0xfd2fb528, 0, 0x50)
    records = traced
    for i, part in enumerate(parts):
        block = (len(part) << 3 | (i == len(parts) - 1)).to_bytes(3, 'little')
        data = (frame if not i else b'') + block + part
        if kind == 83:
            records += record(kind, struct.pack('<Q', len(data)) + data)
        else:
            # It has any size.
            records += struct.pack('<IHH', kind, 0, 8 + len(data)) + data
    with open(path, 'wb') as f:
        f.write(recording(events, records, FEATURES))


def cut_trace(records):
    at = 0
    while at < len(records):
        kind, _, length = struct.unpack_from('<IHH', records, at)
        if kind == 71:
            end = at + length + struct.unpack_from('<Q', records, at + 8)[0]
            return records[at:end], records[:at] + records[end:]
        at += length
    raise ValueError('there is no trace')


def make_newer(path):
    e = Event(SOFTWARE, 0, COMMON, 1)
    with open(path, 'wb') as f:
        f.write(recording([e], record(300, hush('newer', 40)) * 3, []))


def make_comms(path):
    events = [Event(TRACEPOINT, SWITCH, COMMON | RAW, 1), Event(TRACEPOINT, FORK, COMMON | RAW, 2)]
    switch, fork = events
    records = switch.record(3, struct.pack('<ii', 10, 10) + text('hush-a')) + \
        switch.sample(1000, switch_raw('hush-a', 10, 'hush-b', 12))
    for i, names in enumerate((('hush-a', 'hush-b'), ('swapper/0', ''),
                               ('hush-longer-than-a-name', 600 * 'hush'))):
        records += fork.sample(2000 + i, fork_raw(*names))
    # Outside, longer than the data, without an end, in front of the data, in another field
    for where in (0xffff0018, 0x0010fff0, 0x00040018, 0x00200018, 0x00100000, 0x00040008, 0):
        records += fork.sample(3000, raw_of(FORK, struct.pack('<IiIi', where, 10, where, 12) +
                                            b'hush'))
    # Of a sample that ends before the second name
    records += fork.sample(4000, raw_of(FORK, struct.pack('<Ii', 4 << 16 | 8, 10)))
    with open(path, 'wb') as f:
        f.write(recording(events, records, (1, 2)))


def make_collisions(path):
    """Times the usual odd factor, they are small numbers."""
    inverse = pow(0x9e3779b97f4a7c15, -1, 2 ** 64)
    ids = [n * inverse % 2 ** 64 for n in range(1, 400000)]
    e = Event(SOFTWARE, 0, COMMON, ids[-1])
    with open(path, 'wb') as f:
        f.write(recording([e], e.sample(1000), [], struct.pack('<%dQ' % len(ids), *ids)))


def make_large(path, number):
    e = Event(SOFTWARE, 0, COMMON, 1)
    name = '/usr/lib/' + (HOST + '-') * 400
    records = e.record(10, mmap2(name), USER) * number
    with open(path, 'wb') as f:
        f.write(recording([e], records + e.sample(1000), [3]))


def walk(data):
    start, size = struct.unpack_from('<QQ', data, 40)
    at = start
    while at < start + size:
        kind, misc, length = struct.unpack_from('<IHH', data, at)
        yield kind, misc, data[at:at + length]
        if kind == 71:
            length += struct.unpack_from('<Q', data, at + 8)[0]
        at += length


def main():
    command, path = sys.argv[1:3]
    if command == 'make':
        make(path)
    elif command == 'make-old':
        make_old(path)
    elif command == 'make-readable':
        make_readable(path)
    elif command == 'make-newer':
        make_newer(path)
    elif command == 'make-collisions':
        make_collisions(path)
    elif command == 'make-comms':
        make_comms(path)
    elif command == 'make-deferred':
        make_deferred(path)
    elif command == 'make-words':
        make_words(path)
    elif command.startswith('make-packed'):
        make_packed(path, 83 if command[-1] == '2' else 81)
    elif command.startswith('make-compressed'):
        make_compressed(path, 83 if command[-1] == '2' else 81)
    elif command == 'make-large':
        make_large(path, int(sys.argv[3]))
    else:
        with open(path, 'rb') as f:
            data = f.read()
        if command == 'records':
            for kind, misc, body in walk(data):
                words = [w.decode() for w in re.findall(rb'[ -~]{4,}', body)]
                print(kind, misc, len(body), *words)
        elif command == 'deferral':
            attr = struct.unpack_from('<Q', data, 24)[0]
            print('%x' % (struct.unpack_from('<Q', data, attr + 40)[0] & DEFERRED))
        elif command == 'words':
            for kind, _, body in walk(data):
                if kind == int(sys.argv[3]):
                    print(*('%x' % w for w, in struct.iter_unpack('<Q', body[8:])))
        elif command == 'sizes':
            print(*sorted({len(body) for kind, _, body in walk(data) if kind == 9 and
                           struct.unpack_from('<Q', body, 8)[0] == int(sys.argv[3])}))
        else:
            sys.exit('unknown: ' + command)


main()
