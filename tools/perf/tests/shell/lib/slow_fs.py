#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""
A file system in memory that can be held up, and can fail, spoken to through /dev/fuse

usage: slow_fs.py MOUNTPOINT CONTROL

CONTROL is a file with "OPERATION SECONDS". The next such operation, and all that come behind
it, are held up for that long, or until CONTROL is gone. After that CONTROL is empty, and the
line "held OPERATION" is printed. Operations: see NAMES. With "OPERATION SECONDS TEXT", it is the
next one at a file with TEXT in its name.

With "OPERATION ERROR N", such as "write EIO 2", that operation returns the error, but for the
first N of them; with "OPERATION ERROR TEXT", the first one at a file with TEXT in its name. After
that CONTROL is empty, and the line "failed OPERATION" is printed.

With "hang", requests are taken and not answered, as long as CONTROL says so: not even SIGKILL
ends who waits for such an answer. For each, the line "hanging OPERATION" is printed.
"""
import ctypes
import errno
import os
import select
import stat
import struct
import sys
import time

NAMES = {1: 'lookup', 3: 'getattr', 4: 'setattr', 5: 'readlink', 6: 'symlink', 9: 'mkdir',
         10: 'unlink', 11: 'rmdir', 12: 'rename', 13: 'link',
         14: 'open', 15: 'read', 16: 'write', 17: 'statfs', 18: 'release', 20: 'fsync',
         25: 'flush', 26: 'init', 27: 'opendir', 28: 'readdir', 29: 'releasedir',
         30: 'fsyncdir', 35: 'create', 45: 'rename'}
# Their requests have a name.
NAMED = ('lookup', 'symlink', 'mkdir', 'unlink', 'rmdir', 'rename', 'link', 'create')
FORGET, BATCH_FORGET = 2, 42
NO_REPLY = (FORGET, 36, BATCH_FORGET)
ROOT = 1


class Node:
    """A file, a directory or a link"""
    def __init__(self, mode):
        self.mode = mode
        self.links = 1
        self.data = bytearray()


class SlowFs:
    """The file system"""
    def __init__(self, control):
        self.control = control
        self.nodes = {ROOT: Node(stat.S_IFDIR | 0o777)}
        # By the directory and the name in it
        self.names = {}
        self.last = ROOT

    def attr(self, node_id):
        """struct fuse_attr"""
        node, now = self.nodes[node_id], int(time.time())
        return struct.pack('<6Q10I', node_id, len(node.data), len(node.data) // 512, now, now,
                           now, 0, 0, 0, node.mode, node.links, 0, 0, 0, 4096, 0)

    def entry(self, node_id):
        """struct fuse_entry_out"""
        return struct.pack('<4Q2I', node_id, 0, 0, 0, 0, 0) + self.attr(node_id)

    def add(self, parent, name, mode):
        """Something new"""
        if (parent, name) in self.names:
            raise OSError(errno.EEXIST, '')
        self.last += 1
        self.nodes[self.last] = Node(mode)
        self.names[parent, name] = self.last
        return self.last

    def drop(self, parent, name):
        """A name of a file goes. Processes that have it open keep its content."""
        self.nodes[self.names.pop((parent, name))].links -= 1

    def forget(self, opcode, node_id, body):
        """The kernel knows these files no more: what has no name goes"""
        nodes = [node_id]
        if opcode == BATCH_FORGET:
            nodes = [n for n, _ in struct.iter_unpack('<2Q', body[8:])]
        for n in nodes:
            if n in self.nodes and not self.nodes[n].links:
                del self.nodes[n]

    def lookup(self, parent, body):
        """By name"""
        return self.entry(self.names[parent, body[:-1]])

    def getattr(self, node_id, _):
        """Size and mode"""
        return struct.pack('<Q2I', 0, 0, 0) + self.attr(node_id)

    def setattr(self, node_id, body):
        """Size and mode"""
        valid, node = struct.unpack_from('<I', body)[0], self.nodes[node_id]
        if valid & 8:
            size = struct.unpack_from('<Q', body, 16)[0]
            node.data = node.data[:size] + bytes(max(0, size - len(node.data)))
        if valid & 1:
            node.mode = stat.S_IFMT(node.mode) | \
                struct.unpack_from('<I', body, 68)[0] & 0o7777
        return self.getattr(node_id, body)

    def create(self, parent, body):
        """A new file, open"""
        mode, name = struct.unpack_from('<I', body, 4)[0], body[16:-1]
        node_id = self.add(parent, name, stat.S_IFREG | mode & 0o7777)
        return self.entry(node_id) + struct.pack('<Q2I', 0, 0, 0)

    def mkdir(self, parent, body):
        """A new directory"""
        mode, name = struct.unpack_from('<I', body)[0], body[8:-1]
        return self.entry(self.add(parent, name, stat.S_IFDIR | mode & 0o7777))

    def symlink(self, parent, body):
        """A new symbolic link"""
        name, target = body.split(b'\0')[:2]
        node_id = self.add(parent, name, stat.S_IFLNK | 0o777)
        self.nodes[node_id].data.extend(target)
        return self.entry(node_id)

    def readlink(self, node_id, _):
        """Its target"""
        return bytes(self.nodes[node_id].data)

    def link(self, parent, body):
        """One more name"""
        node_id, name = struct.unpack_from('<Q', body)[0], body[8:-1]
        if (parent, name) in self.names:
            raise OSError(errno.EEXIST, '')
        self.names[parent, name] = node_id
        self.nodes[node_id].links += 1
        return self.entry(node_id)

    def unlink(self, parent, body):
        """One name less"""
        self.drop(parent, body[:-1])
        return b''

    def rmdir(self, parent, body):
        """A directory goes"""
        node_id = self.names[parent, body[:-1]]
        if any(directory == node_id for directory, _ in self.names):
            raise OSError(errno.ENOTEMPTY, '')
        return self.unlink(parent, body)

    def move(self, parent, body, offset):
        """Another name"""
        new_parent = struct.unpack_from('<Q', body)[0]
        old, new = body[offset:].split(b'\0')[:2]
        node_id = self.names.pop((parent, old))
        if (new_parent, new) in self.names:
            self.drop(new_parent, new)
        self.names[new_parent, new] = node_id
        return b''

    def read(self, node_id, body):
        """Content"""
        _, offset, size = struct.unpack_from('<2QI', body)
        return bytes(self.nodes[node_id].data[offset:offset + size])

    def write(self, node_id, body):
        """Content"""
        _, offset, size = struct.unpack_from('<2QI', body)
        data = self.nodes[node_id].data
        data.extend(bytes(max(0, offset - len(data))))
        data[offset:offset + size] = body[40:40 + size]
        return struct.pack('<2I', size, 0)

    def readdir(self, parent, body):
        """Names"""
        _, offset, size = struct.unpack_from('<2QI', body)
        out = b''
        names = sorted((n, i) for (d, n), i in self.names.items() if d == parent)
        for i, (name, node_id) in list(enumerate(names))[offset:]:
            kind = stat.S_IFMT(self.nodes[node_id].mode) >> 12
            entry = struct.pack('<2Q2I', node_id, i + 1, len(name), kind) + name
            entry += bytes(-len(entry) % 8)
            if len(out) + len(entry) > size:
                break
            out += entry
        return out

    def answer(self, opcode, node_id, body):
        """The body of the answer"""
        name = NAMES.get(opcode)
        if opcode == 26:
            return struct.pack('<4I2H2I2H8I', 7, 31, 65536, 1 << 5, 16, 12, 131072, 1, 32, 0,
                               *[0] * 8)
        if opcode in (14, 27):
            return struct.pack('<Q2I', 0, 0, 0)
        if opcode == 17:
            return struct.pack('<5Q4I6I', 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 4096,
                               255, 4096, 0, *[0] * 6)
        if opcode in (12, 45):
            return self.move(node_id, body, 8 if opcode == 12 else 16)
        if opcode in (18, 20, 25, 29, 30):
            return b''
        if not name:
            raise OSError(errno.ENOSYS, '')
        return getattr(self, name)(node_id, body)

    def is_meant(self, name, node_id, body, text):
        """Is it an operation at a file with this in its name?"""
        names = [n for (_, n), i in self.names.items() if i == node_id]
        return any(text.encode() in n for n in ([body] if name in NAMED else names))

    def hold(self, opcode, node_id, body):
        """Wait, if that is wanted now"""
        name = NAMES.get(opcode)
        try:
            with open(self.control, encoding='utf-8') as f:
                words = f.read().split()
            if len(words) < 2 or name != words[0] or not words[1].isdigit():
                return
            if len(words) == 3 and not self.is_meant(name, node_id, body, words[2]):
                return
            end = time.monotonic() + float(words[1])
            print('holding', name, flush=True)
            while time.monotonic() < end and os.path.exists(self.control):
                time.sleep(0.05)
            with open(self.control, 'w', encoding='utf-8'):
                pass
            print('held', name, flush=True)
        except FileNotFoundError:
            pass

    def fail(self, opcode, node_id, body):
        """The error that is wanted now, or 0"""
        try:
            with open(self.control, encoding='utf-8') as f:
                words = f.read().split()
            if len(words) != 3 or NAMES.get(opcode) != words[0] or words[1].isdigit():
                return 0
            is_number = words[2].isdigit()
            if not is_number and not self.is_meant(words[0], node_id, body, words[2]):
                return 0
            skip = int(words[2]) if is_number else 0
            with open(self.control, 'w', encoding='utf-8') as f:
                if skip:
                    print(words[0], words[1], skip - 1, file=f)
            if skip:
                return 0
            print('failed', words[0], flush=True)
            return getattr(errno, words[1])
        except FileNotFoundError:
            return 0

    def hangs(self):
        """Is nothing to be answered now?"""
        try:
            with open(self.control, encoding='utf-8') as f:
                return f.read().split() == ['hang']
        except FileNotFoundError:
            return False

    def serve(self, fd):
        """Until it is unmounted"""
        waiting = []
        while True:
            hangs = self.hangs()
            while waiting and not hangs:
                self.reply(fd, waiting.pop(0))
            if hangs and not select.select([fd], [], [], 0.05)[0]:
                continue
            try:
                request = os.read(fd, 1 << 18)
            except OSError as e:
                if e.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return
            opcode, _, node_id = struct.unpack_from('<I2Q', request, 4)
            if opcode in NO_REPLY:
                if opcode in (FORGET, BATCH_FORGET):
                    self.forget(opcode, node_id, request[40:])
                continue
            # It may have been written while this was waited for.
            if self.hangs():
                waiting.append(request)
                print('hanging', NAMES.get(opcode), flush=True)
            else:
                self.reply(fd, request)

    def reply(self, fd, request):
        """Do what is asked for, when it is time"""
        _, opcode, unique, node_id = struct.unpack_from('<2I2Q', request)
        self.hold(opcode, node_id, request[40:])
        error, out = -self.fail(opcode, node_id, request[40:]), b''
        try:
            if not error:
                out = self.answer(opcode, node_id, request[40:])
        except KeyError:
            error = -errno.ENOENT
        except OSError as e:
            error = -e.errno
        try:
            os.write(fd, struct.pack('<IiQ', 16 + len(out), error, unique) + out)
        except OSError:
            # Whoever asked was killed meanwhile.
            pass


def main():
    """See above"""
    mountpoint, control = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open('/dev/fuse', os.O_RDWR)
    options = f'fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other'
    if libc.mount(b'slowfs', mountpoint.encode(), b'fuse', 6, options.encode()):
        sys.exit(f'mount {mountpoint}: {os.strerror(ctypes.get_errno())}')
    print('mounted', flush=True)
    SlowFs(control).serve(fd)


main()
