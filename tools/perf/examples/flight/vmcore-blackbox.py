#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Find the ring buffers of all open perf events in a memory dump of a Linux kernel, and write
them as an image of a black box, see Documentation/userspace-api/perf_blackbox.rst. Then

	perf data recover -o perf.data IMAGE

makes recordings of it. The kernel that died need not have persistent sessions.

The events that one process has opened become a session NAME-PID. perf reads a recording only if
all of its events have their ids at the same place of their records: where they do not, the
process has a second session, NAME-PID.2. Members of a persistent session keep their session.

The kernel's structures are read by the debug information of VMLINUX, with drgn (Debian:
python3-drgn). What is in the dump was left by a kernel that may have been damaged: a list that
ends in missing memory costs what comes after that place, and is counted.
"""
import argparse
import hashlib
import os
import re
import struct
import sys
import tempfile
import zlib

try:
    import drgn
    from drgn.helpers.linux.cpumask import for_each_possible_cpu
    from drgn.helpers.linux.fs import d_path
    from drgn.helpers.linux.list import list_for_each_entry
    from drgn.helpers.linux.mm import access_remote_vm
    from drgn.helpers.linux.percpu import per_cpu
    from drgn.helpers.linux.printk import get_printk_records
except ImportError:
    sys.exit('vmcore-blackbox.py: Python finds no drgn: install python3-drgn, and run this '
             'script with the Python that it is for, such as /usr/bin/python3.')

MACHINES = {'X86_64': 62, 'I386': 3, 'AARCH64': 183, 'ARM': 40, 'PPC64': 21, 'RISCV64': 243,
            'RISCV32': 243, 'S390X': 22, 'S390': 22}

# What perf data recover takes
MAX_SESSIONS = 256
MAX_EVENTS = 65536

# More entries than a list has that is whole
MAX_LIST = 1 << 22

# enum perf_event_sample_format
SAMPLE_IP, SAMPLE_TID, SAMPLE_TIME, SAMPLE_ADDR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
SAMPLE_ID, SAMPLE_CPU, SAMPLE_STREAM_ID, SAMPLE_IDENTIFIER = 1 << 6, 1 << 7, 1 << 9, 1 << 16

TYPE_TRACEPOINT = 2

# enum perf_event_type and its misc field
RECORD_COMM, RECORD_MMAP2, RECORD_KSYMBOL, RECORD_TRACING_DATA = 3, 10, 17, 66
MISC_KERNEL, MISC_USER, MISC_BUILD_ID = 1, 2, 1 << 14

# Of x86
START_KERNEL_MAP = 0xffffffff80000000

PF_KTHREAD = 0x200000
VM_EXEC = 0x4

PT_NOTE = 4
MAX_NOTES = 1 << 20
NT_GNU_BUILD_ID = 3

# perf_blackbox_life::state, perf_blackbox_death::kind, flags
STATE_DEAD = 3
DEATH_PANIC, DEATH_CRASH = 1, 2
TASK_KERNEL = 1
BUFFER_BACKWARD = 1

SUPER_SIZE, LIFE, DEATH, DEATH_SIZE = 512, 1024, 2048, 336
TASK_SIZE, SESSION_SIZE, BUFFER_SIZE, EVENT_SIZE = 32, 128, 96, 512
MAGIC, NOTES_MAGIC = 0x584f424246524550, 0x53544f4e


# What the kernel's log has of the end
PANIC = 'Kernel panic - not syncing: '


# What damaged memory may lead to: addresses and numbers that cannot be, lists without end
DAMAGE = (drgn.FaultError, drgn.ObjectAbsentError, OverflowError, RecursionError, ValueError,
          struct.error)


class Refused(Exception):
    """A sentence for the user."""


def warn(text):
    print(f'vmcore-blackbox.py: {text}', file=sys.stderr)


def why(err):
    """An error of drgn or of the system, in one line"""
    text = err.strerror if isinstance(err, OSError) and err.strerror else str(err)
    return ' '.join(text.split()).rstrip('.')


def text_of(pointer):
    return pointer.string_().decode(errors='replace')


def align(size, to):
    return -(-size // to) * to


def padded(text, to=8):
    """A NUL-terminated string that fills words."""
    data = text.encode(errors='replace') + b'\0'
    return data.ljust(align(len(data), to), b'\0')


def fixed(text, size):
    """A NUL-terminated string in a field of a fixed size."""
    return text.encode(errors='replace')[:size - 1].ljust(size, b'\0')


def each_note(notes, order):
    """Name, type and bytes of each of the ELF notes of a section"""
    pos = 0
    while pos + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from(order + 'III', notes, pos)
        name = pos + 12
        data = name + align(name_size, 4)
        pos = data + align(size, 4)
        yield notes[name:name + name_size].rstrip(b'\0'), kind, notes[data:data + size]


def find_build_id(notes, order):
    """The build-id among ELF notes, or b''"""
    for name, kind, data in each_note(notes, order):
        if name == b'GNU' and kind == NT_GNU_BUILD_ID:
            return data[:20]
    return b''


def elf_notes(read, order):
    """The sections of notes of an ELF file. @read: bytes of the file at (offset, size)"""
    ident = read(0, 64)
    if ident[:4] != b'\x7fELF' or len(ident) < 64:
        return
    if ident[4] == 2:
        phoff, = struct.unpack_from(order + 'Q', ident, 32)
        size, number = struct.unpack_from(order + 'HH', ident, 54)
        fields, where = order + 'IIQQQQ', (2, 5)
    else:
        phoff, = struct.unpack_from(order + 'I', ident, 28)
        size, number = struct.unpack_from(order + 'HH', ident, 42)
        fields, where = order + 'IIIII', (1, 4)
    for i in range(min(number, 64)):
        header = struct.unpack_from(fields, read(phoff + i * size, struct.calcsize(fields)))
        if header[0] == PT_NOTE:
            yield read(header[where[0]], min(header[where[1]], MAX_NOTES))


def elf_build_id(read, order):
    """The build-id of an ELF file, or b''"""
    for notes in elf_notes(read, order):
        build_id = find_build_id(notes, order)
        if build_id:
            return build_id
    return b''


def file_reader(file):
    def read(offset, size):
        file.seek(offset)
        return file.read(size)
    return read


def parse_info(text):
    """The lines NAME=VALUE of VMCOREINFO"""
    return dict(line.split('=', 1) for line in text.decode(errors='replace').splitlines()
                if '=' in line)


class Kernel:
    """The kernel in the dump."""

    def __init__(self, core, vmlinux):
        self.prog = drgn.Program()
        # Lists, and files of processes, that could not be read to their end
        self.broken = 0
        self.tops = set()
        self.open(core)
        platform = self.prog.platform
        self.order = '<' if platform.flags & drgn.PlatformFlags.IS_LITTLE_ENDIAN else '>'
        self.long_size = 8 if platform.flags & drgn.PlatformFlags.IS_64_BIT else 4
        self.long = 'Q' if self.long_size == 8 else 'I'
        self.machine = MACHINES.get(platform.arch.name, 0)
        self.find_page_tables(core)
        self.load(core, vmlinux)
        self.perf_fops = self.prog['perf_fops'].address_
        self.cpus = list(for_each_possible_cpu(self.prog))

    def open(self, core):
        try:
            self.prog.set_core_dump(core)
        except (OSError, ValueError, drgn.FaultError) as err:
            raise Refused(f'{core} cannot be read: {why(err)}.') from err
        if not self.prog.flags & drgn.ProgramFlags.IS_LINUX_KERNEL:
            raise Refused(f'{core} is not a memory dump of a Linux kernel, or lacks VMCOREINFO: '
                          'take one by kdump, or with "-device vmcoreinfo" of QEMU.')

    # drgn 0.0.22 looks for the top of page tables at its virtual address, which it can find only
    # by page tables, unless the dump has virtual addresses. Those of hypervisors have none.

    def find_page_tables(self, core):
        """Let drgn find the kernel's page tables."""
        if self.prog.platform.arch != drgn.Architecture.X86_64:
            return
        with open(core, 'rb') as file:
            for notes in elf_notes(file_reader(file), self.order):
                for name, _, data in each_note(notes, self.order):
                    if name == b'VMCOREINFO':
                        self.add_page_tables(parse_info(data))

    def add_page_tables(self, info):
        if not {'SYMBOL(swapper_pg_dir)', 'NUMBER(phys_base)'} <= info.keys():
            return
        address = int(info['SYMBOL(swapper_pg_dir)'], 16)
        physical = address - START_KERNEL_MAP + int(info['NUMBER(phys_base)'])
        self.prog.add_memory_segment(
            address, int(info['PAGESIZE']),
            lambda _, count, offset, __: self.prog.read(physical + offset, count, True))

    def find_user_tables(self, mm):
        """Let drgn find the page tables of a process."""
        top = mm.pgd.value_()
        if self.prog.platform.arch != drgn.Architecture.X86_64 or top in self.tops:
            return
        data = self.prog.read(top, self.page_size)
        self.prog.add_memory_segment(top, len(data),
                                     lambda _, count, offset, __: data[offset:offset + count])
        self.tops.add(top)

    def read_user(self, mm, address, size):
        mm = self.whole(mm)
        self.find_user_tables(mm)
        return access_remote_vm(mm, address, size)

    def load(self, core, vmlinux):
        """The debug information must be there, and be that of the kernel in the dump."""
        try:
            self.prog.load_debug_info([vmlinux])
        except (OSError, ValueError, drgn.MissingDebugInfoError) as err:
            raise Refused(f'{vmlinux} is no kernel with debug information: take the one of the '
                          f'package linux-image-RELEASE-dbg on Debian. {why(err)}.') from err
        self.page_size = self.prog['PAGE_SIZE'].value_()
        self.build_id = self.find_build_id()
        with open(vmlinux, 'rb') as file:
            build_id = elf_build_id(file_reader(file), self.order)
        if build_id != self.build_id:
            raise Refused(f'{vmlinux} is of another kernel than {core}: its build-id is '
                          f'{build_id.hex()}, and not {self.build_id.hex()}.')
        if not self.has_type('struct task_struct'):
            raise Refused(f'{vmlinux} is no kernel.')
        if not self.has_type('struct perf_buffer'):
            raise Refused('The kernel in the dump has no perf events.')

    def find_build_id(self):
        """Of the kernel in the dump. The debug information of another one leads nowhere."""
        try:
            info = parse_info(self.prog['vmcoreinfo_data'].string_())
        except (drgn.FaultError, LookupError):
            return b''
        return self.tried(bytes.fromhex, info.get('BUILD-ID', ''))

    def has_type(self, name):
        try:
            self.prog.type(name)
            return True
        except LookupError:
            return False

    def has_member(self, kind, member):
        return self.prog.type(kind).has_member(member)

    def whole(self, pointer):
        """A pointer to a struct with its members. drgn leaves them out where the debug
        information has several structs of that name, as after a build with a compiler's cache:
        the paths of the headers differ. The first one is taken."""
        kind = pointer.type_.type
        if not kind.is_complete():
            kind = self.prog.type(kind.type_name())
            pointer = drgn.cast(self.prog.pointer_type(kind), pointer)
        return pointer

    def symbol(self, name):
        try:
            return self.prog.symbol(name).address
        except LookupError:
            return 0

    def unpack(self, fields, address):
        """Fields of struct.unpack() at an address."""
        fields = self.order + fields
        return struct.unpack(fields, self.prog.read(address, struct.calcsize(fields)))

    def pack(self, fields, *values):
        return struct.pack(self.order + fields, *values)

    def guarded(self, items):
        """Yield what can be read of a list. Damage must neither end the search nor let it go
        on for ever."""
        try:
            for number, item in enumerate(items):
                if number == MAX_LIST:
                    self.broken += 1
                    return
                yield item
        except DAMAGE:
            self.broken += 1

    def tried(self, function, *args):
        """The result of a function, None if it lacks memory, or what is there is damaged."""
        try:
            return function(*args)
        except DAMAGE:
            return None

    def list(self, kind, head, member):
        return self.guarded(list_for_each_entry(kind, head, member))

    # Tasks

    def processes(self):
        """The leader of each thread group."""
        init = self.prog['init_task']
        yield init.address_of_()
        yield from self.list('struct task_struct', init.tasks.address_of_(), 'tasks')

    def threads(self, process):
        def walk():
            signal = self.whole(process.signal)
            yield from list_for_each_entry('struct task_struct',
                                           signal.thread_head.address_of_(), 'thread_node')
        return self.guarded(walk())

    # Memory of processes

    def vmas(self, mm):
        mm = self.whole(mm)
        if self.has_member('struct mm_struct', 'mm_mt'):
            kind = self.prog.type('struct vm_area_struct *')
            root = mm.mm_mt.ma_root.value_()
            # A tree of one entry has no node.
            entries = self.maple_entries(root, None) if root & 3 == 2 else [root] if root else []
            for entry in self.guarded(entries):
                yield drgn.Object(self.prog, kind, value=entry)
            return
        yield from self.guarded(self.listed_vmas(mm))

    def listed_vmas(self, mm):
        """Before 6.1 they are in a list."""
        vma = self.whole(mm.mmap)
        while vma:
            yield vma
            vma = vma.vm_next

    def maple_entries(self, node, top):
        """The entries below a node of a maple tree, in order; none is beyond index @top. A
        node's address is a multiple of 256; its type is in the bits below."""
        kind, node = node >> 3 & 15, node & ~255
        top = (1 << 8 * self.long_size) - 1 if top is None else top
        arange = kind == self.prog['maple_arange_64'].value_()
        is_leaf = kind == self.prog['maple_leaf_64'].value_()
        fields = drgn.Object(self.prog, 'struct maple_node', address=node).read_()
        fields = fields.ma64 if arange else fields.mr64
        slots = [slot.value_() for slot in fields.slot]
        pivots = [pivot.value_() for pivot in fields.pivot]
        end = fields.meta.end.value_()
        # The last slot of these nodes has the number of entries, unless it is in use.
        if not arange and pivots[-1]:
            end = len(pivots) - 1 if pivots[-1] == top else len(pivots)
        for slot, pivot in zip(slots[:end + 1], pivots + [top]):
            if is_leaf:
                if slot and not slot & 3:
                    yield slot
            elif slot:
                yield from self.maple_entries(slot, min(pivot or top, top))

    # The end of the kernel

    def now(self):
        """The last tick that the kernel has counted, by perf's clock, and the same by the
        others. The newest records may be some ticks later."""
        clock = 0
        for cpu in self.cpus:
            queue = per_cpu(self.prog['runqueues'], cpu)
            clock = max(clock, self.tried(queue.clock.value_) or 0)
        timekeeper = self.timekeeper()
        base = timekeeper.tkr_mono
        mono = base.base.value_() + (base.xtime_nsec.value_() >> base.shift.value_())
        return clock, mono, mono + timekeeper.offs_real.value_()

    def timekeeper(self):
        """That of the system's clocks. Newer kernels have others beside it."""
        try:
            return self.prog['tk_core'].timekeeper
        except LookupError:
            return self.prog['timekeeper_data'][0].timekeeper

    def log(self):
        records = self.tried(get_printk_records, self.prog) or []
        return [(record.timestamp, record.text.decode(errors='replace')) for record in records]

    def death_cpu(self):
        """The kind of the end, and its CPU; None if the memory of a running kernel was saved."""
        for kind, name in (DEATH_PANIC, 'panic_cpu'), (DEATH_CRASH, 'crashing_cpu'):
            try:
                cpu = self.prog[name]
            except LookupError:
                continue
            if cpu.type_.kind != drgn.TypeKind.INT:
                cpu = cpu.counter
            if cpu.value_() >= 0:
                return kind, cpu.value_()
        return None


class Event:
    """An event with a ring buffer."""

    def __init__(self, kernel, event):
        self.address = event.value_()
        self.id = event.id.value_()
        self.cpu = event.cpu.value_()
        self.rb = event.rb.value_()
        self.target = event.hw.target.value_()
        self.backward = bool(event.attr.write_backward.value_())
        self.pmu = text_of(kernel.whole(event.pmu).name)
        self.call = None
        self.attr = self.copy_attr(kernel, event)
        self.layout = self.find_layout(event.attr)
        self.name = self.find_name(kernel, event)
        self.owner, self.pid, self.comm = self.find_owner(kernel, event)

    def copy_attr(self, kernel, event):
        """As it was opened: without pointers, and with the type that the user has chosen."""
        attr = event.attr
        data = bytearray(kernel.prog.read(attr.address_, drgn.sizeof(attr))[:256])
        struct.pack_into(kernel.order + 'II', data, 0, event.orig_type.value_(), len(data))
        if self.pmu in ('kprobe', 'uprobe'):
            offset = drgn.offsetof(attr.type_, 'config1')
            data[offset:offset + 8] = bytes(8)
        return bytes(data)

    def find_layout(self, attr):
        """Equal for events whose records can be told apart in one recording."""
        sample = attr.sample_type.value_()
        if sample & SAMPLE_IDENTIFIER:
            place = SAMPLE_IDENTIFIER
        elif sample & SAMPLE_ID:
            place = (bin(sample & (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR)).count('1'),
                     bin(sample & (SAMPLE_STREAM_ID | SAMPLE_CPU)).count('1'))
        else:
            place = self.attr
        return place, attr.sample_id_all.value_(), attr.read_format.value_()

    def find_name(self, kernel, event):
        """SUBSYSTEM:EVENT of a tracepoint, else ''"""
        if event.attr.type != TYPE_TRACEPOINT or not event.tp_event:
            return ''
        call = self.call = kernel.whole(event.tp_event)
        name = call.name
        if call.flags & kernel.prog['TRACE_EVENT_FL_TRACEPOINT']:
            name = kernel.whole(call.tp).name
        system = kernel.whole(call.member_('class')).system
        return f'{text_of(system)}:{text_of(name)}'

    def find_owner(self, kernel, event):
        """Name, number and command of the process, or of the persistent session"""
        if kernel.has_member('struct perf_event', 'persistent') and event.persistent:
            member = kernel.whole(event.persistent)
            name = text_of(kernel.whole(member.session).name)
            return name, 0, name
        if not event.owner:
            return 'exited', 0, ''
        process = kernel.whole(kernel.whole(event.owner).group_leader)
        comm, pid = text_of(process.comm), process.pid.value_()
        return f'{comm}-{pid}', pid, comm


class Finder:
    """Looks for the events wherever the kernel keeps them."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.events = {}
        self.seen = set()
        self.unreadable = 0

    def find(self):
        kernel = self.kernel
        for cpu in kernel.cpus:
            self.add_context(self.cpu_context(cpu))
        for process in kernel.processes():
            files = set()
            for task in kernel.threads(process):
                kernel.tried(self.add_task, task, files)
            kernel.tried(self.add_mappings, process)
        return sorted(self.events.values(), key=lambda event: event.id)

    def add(self, event):
        """@event: pointer to an event. Others write to the same buffer, maybe."""
        todo = [event]
        while todo:
            event = todo.pop()
            if event.value_() in self.seen:
                continue
            self.seen.add(event.value_())
            try:
                # Children write to the buffer of their parent, with its id.
                if event.parent:
                    todo.append(event.parent)
                elif event.rb:
                    self.events[event.value_()] = Event(self.kernel, event)
                    rb = self.kernel.whole(event.rb)
                    todo += self.kernel.list('struct perf_event', rb.event_list.address_of_(),
                                             'rb_entry')
            except drgn.FaultError:
                self.unreadable += 1

    def cpu_context(self, cpu):
        try:
            return per_cpu(self.kernel.prog['perf_cpu_context'], cpu).ctx.address_of_()
        except LookupError:
            # Before 6.2 each PMU has its own. The files lead to the events.
            return None

    def add_context(self, context):
        if context:
            head = self.kernel.whole(context).event_list.address_of_()
            for event in self.kernel.list('struct perf_event', head, 'event_entry'):
                self.add(event)

    def add_task(self, task, files):
        contexts = task.perf_event_ctxp
        if contexts.type_.kind != drgn.TypeKind.ARRAY:
            contexts = [contexts]
        for context in contexts:
            self.add_context(context)
        if task.files and task.files.value_() not in files:
            files.add(task.files.value_())
            self.add_files(task.files)

    def add_files(self, files):
        kernel = self.kernel
        table = kernel.whole(kernel.whole(files).fdt)
        number = min(table.max_fds.value_(), MAX_LIST)
        for file in kernel.unpack(f'{number}{kernel.long}', table.fd.value_()):
            if file:
                kernel.tried(self.add_file, file)

    def add_file(self, address):
        kernel = self.kernel
        f_op = address + drgn.offsetof(kernel.prog.type('struct file'), 'f_op')
        if kernel.unpack(kernel.long, f_op)[0] != kernel.perf_fops:
            return
        file = drgn.Object(kernel.prog, 'struct file', address=address)
        self.add(drgn.cast('struct perf_event *', file.private_data))

    def add_mappings(self, process):
        """A mapping keeps an event whose file was closed."""
        if process.mm:
            for vma in self.kernel.vmas(process.mm):
                if vma.vm_file:
                    self.add_file(vma.vm_file.value_())


class Formats:
    """The formats of tracepoints, as tracefs shows them."""

    def __init__(self, kernel):
        self.kernel = kernel

    def fields(self, head):
        """Lines of a list of fields; the first field is its last."""
        lines = []
        for field in self.kernel.list('struct ftrace_event_field', head, 'link'):
            kind, name = text_of(field.type), text_of(field.name)
            if '[' in kind and not kind.startswith('__data_loc'):
                length = field.len.value_() if self.kernel.has_member(
                    'struct ftrace_event_field', 'len') else 0
                length = length or re.search(r'\[(\w*)', kind).group(1)
                kind, name = kind.split('[', 1)[0], f'{name}[{length}]'
            lines.append(f'\tfield:{kind} {name};\toffset:{field.offset.value_()};'
                         f'\tsize:{field.size.value_()};'
                         f'\tsigned:{int(field.is_signed.value_() != 0)};\n')
        return ''.join(reversed(lines))

    def own_fields(self, call):
        kind = self.kernel.whole(call.member_('class'))
        if not kind.get_fields:
            return kind.fields.address_of_()
        if kind.get_fields.value_() == self.kernel.symbol('syscall_get_enter_fields'):
            return drgn.cast('struct syscall_metadata *',
                             call.data).enter_fields.address_of_()
        return None

    def text(self, event):
        """None if it is not known."""
        call = event.call
        own = self.own_fields(call)
        if not own:
            return None
        common = self.kernel.prog['ftrace_common_fields'].address_of_()
        return (f'name: {event.name.split(":", 1)[1]}\nID: {call.event.type.value_()}\n'
                f'format:\n{self.fields(common)}\n{self.fields(own)}\n'
                f'print fmt: {text_of(call.print_fmt)}\n')

    def record(self, events):
        """A record of perf.data with all formats, b'' if there are none."""
        kernel, texts = self.kernel, {}
        for event in events:
            if event.call and event.name not in texts:
                text = kernel.tried(self.text, event)
                if text:
                    texts[event.name] = text.encode(errors='replace')
        if not texts:
            return b''
        empty = kernel.pack('Q', 0)
        data = b'\x17\x08\x44tracing0.6\0' + bytes([kernel.order == '>', kernel.long_size])
        data += kernel.pack('I', kernel.page_size)
        data += b'header_page\0' + empty + b'header_event\0' + empty
        data += kernel.pack('II', 0, len(texts))
        for name, text in texts.items():
            data += name.split(':', 1)[0].encode() + b'\0' + kernel.pack('IQ', 1, len(text)) + text
        data += kernel.pack('IIQ', 0, 0, 0)
        return (kernel.pack('IHHII', RECORD_TRACING_DATA, 0, 16, len(data), 0) +
                data.ljust(align(len(data), 8), b'\0'))


class Names:
    """What the records do not tell: records of perf.data about tasks, what they have mapped,
    and modules."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.build_ids = {}
        self.special = kernel.symbol('special_mapping_vmops')

    def record(self, kind, misc, body):
        return self.kernel.pack('IHH', kind, misc, 8 + len(body)) + body

    def comm(self, process, task):
        body = self.kernel.pack('II', process.pid.value_(), task.pid.value_())
        return self.record(RECORD_COMM, 0, body + padded(text_of(task.comm)))

    def mmap2(self, misc, pid, start, size, offset, prot, name, build_id):
        pack = self.kernel.pack
        body = pack('iiQQQ', pid, 0 if pid < 0 else pid, start, size, offset)
        if build_id:
            misc |= MISC_BUILD_ID
            body += pack('BBH', len(build_id), 0, 0) + build_id.ljust(20, b'\0')
        else:
            body += bytes(24)
        return self.record(RECORD_MMAP2, misc, body + pack('II', prot, 2) + padded(name[:4000]))

    def user_build_id(self, mm, vma, starts):
        """From the start of the file, if that is mapped and in memory"""
        start = starts.get(vma.vm_file.value_())
        if start is None:
            return b''
        inode = self.kernel.whole(vma.vm_file).f_inode.value_()
        if inode not in self.build_ids:
            self.build_ids[inode] = self.kernel.tried(
                elf_build_id,
                lambda offset, size: self.kernel.read_user(mm, start + offset, size),
                self.kernel.order) or b''
        return self.build_ids[inode]

    def file_name(self, process, vma):
        """As the process sees it, which may have another root"""
        whole = self.kernel.whole
        name = d_path(whole(vma.vm_file).f_path).decode(errors='replace')
        root = d_path(whole(process.fs).root).decode(errors='replace') if process.fs else '/'
        return name[len(root):] if name.startswith(root + '/') else name

    def mapping_name(self, process, vma):
        if vma.vm_file:
            return self.file_name(process, vma)
        if self.special and vma.vm_ops.value_() == self.special:
            mapping = drgn.cast('struct vm_special_mapping *', vma.vm_private_data)
            return text_of(mapping.name)
        return '//anon'

    def mapping(self, process, vma, starts):
        name = self.mapping_name(process, vma)
        build_id = self.user_build_id(process.mm, vma, starts) if vma.vm_file else b''
        start = vma.vm_start.value_()
        offset = vma.vm_pgoff.value_() * self.kernel.page_size if vma.vm_file else 0
        return self.mmap2(MISC_USER, process.pid.value_(), start, vma.vm_end.value_() - start,
                          offset, vma.vm_flags.value_() & 7, name, build_id)

    def mappings(self, process):
        """Those of code: others tell nothing about a sample."""
        records, starts, code = [], {}, []
        for vma in self.kernel.vmas(process.mm):
            if vma.vm_file and vma.vm_pgoff == 0:
                starts.setdefault(vma.vm_file.value_(), vma.vm_start.value_())
            if vma.vm_flags & VM_EXEC:
                code.append(vma)
        for vma in code:
            records.append(self.kernel.tried(self.mapping, process, vma, starts) or b'')
        return b''.join(records)

    def process(self, process):
        records = [self.comm(process, process)]
        if process.mm:
            records.append(self.kernel.tried(self.mappings, process) or b'')
        for task in self.kernel.threads(process):
            if task.value_() != process.value_():
                records.append(self.kernel.tried(self.comm, process, task) or b'')
        return b''.join(records)

    def module_build_id(self, module):
        if not module.type_.type.has_member('notes_attrs') or not module.notes_attrs:
            return b''
        notes = self.kernel.whole(module.notes_attrs)
        for i in range(min(notes.notes.value_(), 16)):
            attr = notes.attrs[i]
            data = self.kernel.prog.read(attr.private.value_(), attr.size.value_())
            build_id = find_build_id(data, self.kernel.order)
            if build_id:
                return build_id
        return b''

    def module(self, module):
        if module.type_.type.has_member('mem'):
            code = module.mem[self.kernel.prog['MOD_TEXT'].value_()]
        else:
            code = module.core_layout
        build_id = self.kernel.tried(self.module_build_id, module) or b''
        return self.mmap2(MISC_KERNEL, -1, code.base.value_(), code.size.value_(), 0, 5,
                          f'[{text_of(module.name)}]', build_id)

    def ksymbol(self, symbol):
        """Of a BPF program"""
        start = symbol.start.value_()
        body = self.kernel.pack('QIHH', start, symbol.end.value_() - start, 1, 0)
        return self.record(RECORD_KSYMBOL, MISC_KERNEL, body + padded(text_of(symbol.name)))

    def of_kernel(self, variable, kind, member, function):
        try:
            head = self.kernel.prog[variable].address_of_()
        except LookupError:
            return b''
        return b''.join(self.kernel.tried(function, item) or b'' for item in
                        self.kernel.list(kind, head, member))

    def records(self):
        return (self.of_kernel('modules', 'struct module', 'list', self.module) +
                self.of_kernel('bpf_kallsyms', 'struct bpf_ksym', 'lnode', self.ksymbol) +
                b''.join(self.kernel.tried(self.process, process) or b''
                         for process in self.kernel.processes()))


class Image:
    """Writes the image of a black box."""

    def __init__(self, kernel, sessions):
        self.kernel = kernel
        self.sessions = sessions
        self.events = [event for events in sessions.values() for event in events]
        self.buffers = {}
        self.missing_pages = 0
        self.lost_buffers = 0
        self.clock = kernel.pack('QQQ', *kernel.now())
        self.tasks = self.make_tasks()

    def entry(self, body):
        return self.kernel.pack('II', 1, zlib.crc32(body)) + body

    def put(self, pos, data):
        self.file.seek(pos)
        self.file.write(data)

    def alloc(self, size):
        pos = self.end
        self.end += align(size, self.kernel.page_size)
        return pos

    # What became of the kernel

    def make_task(self, process, task):
        # The idle tasks have the number 0.
        if not task.pid:
            return b''
        flags = TASK_KERNEL if task.flags.value_() & PF_KTHREAD else 0
        return self.kernel.pack('iiII', task.pid.value_(), process.pid.value_(), flags, 0) + \
            fixed(text_of(task.comm), 16)

    def make_tasks(self):
        kernel, tasks = self.kernel, []
        for process in kernel.processes():
            tasks += (kernel.tried(self.make_task, process, task) or b''
                      for task in kernel.threads(process))
        return b''.join(tasks)

    def reason(self):
        """The line of the panic, and that of an oops before"""
        oops = panic = ''
        for _, line in self.kernel.log():
            if line.startswith(PANIC):
                panic = line[len(PANIC):]
            elif not panic and re.match(r'Oops|BUG|kernel BUG|general protection', line):
                oops = line
        return ', '.join(text for text in (oops, panic) if text)

    def running(self, cpu):
        """Number, process and name of the task that ran on a CPU"""
        task = self.kernel.whole(per_cpu(self.kernel.prog['runqueues'], cpu).curr)
        return task.pid.value_(), task.tgid.value_(), text_of(task.comm)

    def death(self):
        kernel = self.kernel
        kind, cpu = kernel.death_cpu() or (0, -1)
        reason = self.reason() if kind else 'none: the memory of a running kernel was saved'
        pid, tgid, comm = (kernel.tried(self.running, cpu) if kind else None) or (0, 0, '')
        body = kernel.pack('Iiii', kind or DEATH_CRASH, cpu, pid, tgid) + self.clock
        body += fixed(comm, 16)
        body += kernel.pack('IIII', len(self.tasks) // TASK_SIZE, int(kernel.broken != 0),
                            zlib.crc32(self.tasks), 0)
        return self.entry(body + fixed(reason, 256))

    # Buffers

    def read_page(self, address):
        """A page of a buffer. What the dump has left out is zeros, which are no record."""
        try:
            return self.kernel.prog.read(address, self.kernel.page_size)
        except drgn.FaultError:
            self.missing_pages += 1
            return bytes(self.kernel.page_size)

    def data_pages(self, rb):
        """Addresses of the pages; those of the kernels with PERF_USE_VMALLOC are one area."""
        order = rb.page_order.value_() if self.kernel.has_member('struct perf_buffer',
                                                                 'page_order') else 0
        for area in self.areas(rb):
            for i in range(1 << order):
                yield area + i * self.kernel.page_size

    def areas(self, rb):
        kernel = self.kernel
        array = rb.value_() + drgn.offsetof(kernel.prog.type('struct perf_buffer'), 'data_pages')
        return kernel.unpack(f'{rb.nr_pages.value_()}{kernel.long}', array)

    def add_buffer(self, event):
        """Copy the buffer of an event. Return: its number."""
        kernel = self.kernel
        kind = kernel.prog.type('struct perf_buffer')
        rb = drgn.Object(kernel.prog, kernel.prog.pointer_type(kind), value=event.rb)
        size = drgn.offsetof(kind, 'data_pages')
        state = kernel.prog.read(event.rb, size)
        header = kernel.prog.read(rb.user_page.value_(), kernel.page_size)
        pages = list(self.data_pages(rb))
        places = [self.alloc(size), self.alloc(len(header)),
                  self.alloc(len(pages) * kernel.page_size)]
        self.put(places[0], state)
        self.put(places[1], header)
        self.file.seek(places[2])
        for page in pages:
            self.file.write(self.read_page(page))
        fields = (drgn.offsetof(kind, name) for name in ('head', 'nest', 'lost', 'paused'))
        flags = BUFFER_BACKWARD if event.backward else 0
        number = len(self.buffers)
        self.put(self.places['buffers'] + number * BUFFER_SIZE, self.entry(
            kernel.pack('iIQQQQ5I28s', event.cpu, flags, *places, len(pages) * kernel.page_size,
                        size, *fields, b'')))
        return number

    def buffer(self, event):
        """The number of the event's buffer, None if it cannot be read"""
        if event.rb not in self.buffers:
            try:
                self.buffers[event.rb] = self.add_buffer(event)
            except drgn.FaultError:
                self.lost_buffers += 1
                self.buffers[event.rb] = None
        return self.buffers[event.rb]

    # Sessions

    def add_event(self, number, event, session, index):
        buffer = self.buffer(event)
        if buffer is None:
            return
        self.put(self.places['events'] + number * EVENT_SIZE, self.entry(
            self.kernel.pack('QIIiIII', event.id, session, buffer, event.cpu, index,
                             len(event.attr), 0) +
            fixed(event.pmu, 32) + fixed(event.name, 184) + event.attr.ljust(256, b'\0')))

    def add_session(self, number, name):
        notes, size = self.notes
        self.put(self.places['sessions'] + number * SESSION_SIZE, self.entry(
            self.kernel.pack('II', number + 1, 0) + self.clock +
            self.kernel.pack('QQ', notes, size) + fixed(name, 64) + bytes(8)))

    def add_sessions(self):
        """An event has the same number on each CPU, and with each task, as perf opens them."""
        number = 0
        for session, (name, events) in enumerate(self.sessions.items()):
            self.add_session(session, name)
            indexes = {}
            for event in events:
                place = event.cpu, event.target
                indexes[place] = indexes.get(place, -1) + 1
                self.add_event(number, event, session, indexes[place])
                number += 1

    def add_notes(self, records):
        """The sessions have the same ones. The second slot stays empty."""
        kernel = self.kernel
        body = kernel.pack('IIQ', 1, zlib.crc32(records), len(records)) + self.clock + bytes(16)
        size = align(64 + len(records), kernel.page_size)
        pos = self.alloc(2 * size)
        self.put(pos, kernel.pack('II', NOTES_MAGIC, zlib.crc32(body)) + body + records)
        self.notes = pos, size

    # The image

    def lay_out(self):
        """Arrays with as many entries as there are"""
        self.end = 0
        self.places = {'super': self.alloc(DEATH + DEATH_SIZE),
                       'tasks': self.alloc(len(self.tasks)),
                       'sessions': self.alloc(len(self.sessions) * SESSION_SIZE),
                       'buffers': self.alloc(len(self.events) * BUFFER_SIZE),
                       'events': self.alloc(len(self.events) * EVENT_SIZE)}
        self.heap = self.end

    def uts(self, name):
        return text_of(getattr(self.kernel.prog['init_uts_ns'].name, name))

    def superblock(self):
        kernel, pack = self.kernel, self.kernel.pack
        # Equal for all dumps of one boot, unless the wall clock was set
        _, mono, real = kernel.now()
        boot = hashlib.sha256(kernel.build_id + pack('q', real - mono)).digest()[:16]
        body = pack('QIIQQQQQ', MAGIC, 1, SUPER_SIZE, 0, self.end, 0, self.end, 1) + boot
        body += self.clock
        body += pack('IIIIQQ', kernel.page_size, kernel.long_size, len(kernel.cpus),
                     kernel.machine, kernel.symbol('_text'), kernel.symbol('_etext'))
        body += kernel.build_id.ljust(20, b'\0') + pack('I', len(kernel.build_id))
        body += pack('6Q', LIFE, DEATH, *(self.places[name] for name in
                                          ('tasks', 'sessions', 'buffers', 'events')))
        body += pack('8I', len(self.tasks) // TASK_SIZE, len(self.sessions), len(self.events),
                     len(self.events), TASK_SIZE, SESSION_SIZE, BUFFER_SIZE, EVENT_SIZE)
        body += pack('Q', self.heap)
        body += fixed(self.uts('release'), 64) + fixed(self.uts('version'), 64)
        body += fixed('vmcore', 16)
        body = body.ljust(SUPER_SIZE - 4, b'\0')
        return body + pack('I', zlib.crc32(body))

    def write(self, file, records):
        self.file = file
        self.lay_out()
        self.add_notes(records)
        self.add_sessions()
        self.put(self.places['tasks'], self.tasks)
        self.put(DEATH, self.death())
        self.put(LIFE, self.kernel.pack('I', STATE_DEAD))
        self.put(0, self.superblock())
        file.truncate(self.end)


def make_sessions(events):
    """Events by the names of their sessions"""
    layouts, sessions = {}, {}
    for event in events:
        name = re.sub(r'[^!-.0-~]', '_', event.owner)[:56] or '_'
        numbers = layouts.setdefault(name, {})
        number = numbers.setdefault(event.layout, len(numbers) + 1)
        full_name = name if number == 1 else f'{name}.{number}'
        sessions.setdefault(full_name, []).append(event)
    return sessions


def select(events, args):
    if args.pid is not None:
        events = [event for event in events if event.pid == args.pid]
    if args.comm is not None:
        events = [event for event in events if event.comm == args.comm]
    return events


def list_sessions(kernel, sessions):
    print(f'{"SESSION":24} {"PID":>7} {"EVENTS":>7} {"BUFFERS":>8} {"KIB":>8}  KINDS')
    for name, events in sessions.items():
        buffers = {event.rb for event in events}
        kind = kernel.prog.type('struct perf_buffer *')
        pages = 0
        for rb in buffers:
            pages += kernel.tried(
                lambda rb=rb: drgn.Object(kernel.prog, kind, value=rb).nr_pages.value_()) or 0
        kinds = sorted({event.name or event.pmu for event in events})
        print(f'{name:24} {events[0].pid or "-":>7} {len(events):>7} {len(buffers):>8} '
              f'{pages * kernel.page_size // 1024:>8}  {",".join(kinds)}')


def write_file(image, records, out):
    """The image has the records of all users: only its owner may read it."""
    part = tempfile.NamedTemporaryFile(dir=os.path.dirname(out) or '.', delete=False)
    try:
        with part:
            image.write(part, records)
        os.replace(part.name, out)
    except BaseException:
        os.unlink(part.name)
        raise


def write_image(kernel, sessions, out):
    events = [event for events in sessions.values() for event in events]
    records = Formats(kernel).record(events) + Names(kernel).records()
    image = Image(kernel, sessions)
    try:
        write_file(image, records, out)
    except OSError as err:
        raise Refused(f'{out} cannot be written: {err.strerror}.') from err
    if image.missing_pages:
        warn(f'{image.missing_pages} pages of buffers are not in the dump: makedumpfile has left '
             'them out, or it was cut short. The records in them, and older ones, are missing.')
    if image.lost_buffers:
        warn(f'{image.lost_buffers} buffers are left out: their headers are not in the dump.')
    number = sum(buffer is not None for buffer in image.buffers.values())
    print(f'[ vmcore-blackbox: {len(events)} events in {number} buffers of {len(sessions)} '
          f'sessions: perf data recover -o FILE {out} ]')


def check_number(events, sessions):
    if not events:
        raise Refused('No event has a ring buffer: see what there is by --list.')
    if len(sessions) > MAX_SESSIONS or len(events) > MAX_EVENTS:
        raise Refused(f'There are {len(events)} events of {len(sessions)} sessions, and an image '
                      f'takes {MAX_EVENTS} of {MAX_SESSIONS}: choose some by --pid or --comm.')


def run(args):
    kernel = Kernel(args.vmcore, args.vmlinux)
    finder = Finder(kernel)
    events = select(finder.find(), args)
    sessions = make_sessions(events)
    if kernel.broken or finder.unreadable:
        warn(f'{kernel.broken} lists of the kernel could not be read to their end, and '
             f'{finder.unreadable} events not at all: the dump lacks them, or they are damaged.')
    if args.list:
        list_sessions(kernel, sessions)
        return
    check_number(events, sessions)
    write_image(kernel, sessions, args.out)


def main():
    parser = argparse.ArgumentParser(
        description='Write the ring buffers of all perf events in a memory dump as an image '
                    'for perf data recover.')
    parser.add_argument('vmcore', metavar='VMCORE',
                        help='memory dump, by kdump or by a hypervisor, with VMCOREINFO')
    parser.add_argument('vmlinux', metavar='VMLINUX', help='its kernel, with debug information')
    parser.add_argument('out', metavar='OUT', nargs='?', help='the image to write')
    parser.add_argument('--list', action='store_true', help='print what there is, write nothing')
    parser.add_argument('--pid', type=int, help='take the events of this process alone')
    parser.add_argument('--comm', help='take those of processes, or of a session, of this name')
    args = parser.parse_intermixed_args()
    if args.list == bool(args.out):
        parser.error('give either OUT or --list')
    try:
        run(args)
    except Refused as err:
        warn(err)
        return 1
    except drgn.FaultError as err:
        warn(f'{args.vmcore} lacks memory without which nothing is found: it is cut short, or '
             f'makedumpfile has left out pages of the kernel. {why(err)}.')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
