#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Copy those files of the host that a guest opens most into a folder.

usage: near-files.py FOLDER PROGRAM...

FOLDER gets the programs of the list below, the PROGRAMs' libraries, and what Python has compiled
of the modules that the tests import, with all symbolic links on the way. The source of a module is
not copied: Python compiles it anew if its time is another one, and what the initramfs has is of the
time of the boot. See mount_root() in init.c.
"""
import os
import shutil
import subprocess
import sys

NAMES = '''awk basename bash bzip2 cat chmod cmp comm cp cut date dd df diff dirname env find grep
    head id kill ln ls md5sum mkdir mktemp mount mountpoint mv nice nproc od pgrep printf ps
    python3 readlink rm rmdir sed seq setpriv setsid sh sha1sum sleep socat sort stat strace
    strings sync sysctl tail tar taskset tee test timeout touch tr true umount uname uniq unshare
    wc xargs'''.split()
FOLDERS = ['/bin', '/usr/bin', '/sbin', '/usr/sbin']
# What the tests' programs import
IMPORTS = '''argparse bisect collections ctypes datetime fcntl glob hashlib io itertools json mmap
    os random re resource select shutil signal socket struct subprocess sys tempfile threading
    time zlib'''.split()


class Folder:
    def __init__(self, path):
        self.path = path
        self.has = set()

    def add(self, path):
        """The file, and each symbolic link that leads to it."""
        at = ''
        parts = path.strip('/').split('/')
        for i, part in enumerate(parts):
            at += '/' + part
            if not os.path.islink(at):
                continue
            to = os.readlink(at)
            self.put(at, lambda copy, to=to: os.symlink(to, copy))
            self.add(os.path.normpath(os.path.join(os.path.dirname(at), to, *parts[i + 1:])))
            return
        if os.path.isfile(at):
            self.put(at, lambda copy: shutil.copy2(at, copy))

    def put(self, path, make):
        if path not in self.has:
            self.has.add(path)
            os.makedirs(os.path.dirname(self.path + path), exist_ok=True)
            make(self.path + path)


def words(*command):
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return run.stdout.split()


def main():
    near = Folder(sys.argv[1])
    programs = sys.argv[2:]
    for name in NAMES:
        paths = [p for p in (os.path.join(f, name) for f in FOLDERS) if os.path.isfile(p)]
        programs += paths[:1]
        for path in paths:
            near.add(path)
    for path in {w for p in programs for w in words('ldd', p) if w.startswith('/')}:
        near.add(path)
    near.add('/etc/ld.so.cache')
    for path in words('/usr/bin/python3', '-c', f'''
import sys, {', '.join(IMPORTS)}
for m in list(sys.modules.values()):
    print(getattr(m, '__cached__', None) or getattr(m, '__file__', None) or '')'''):
        near.add(path)


if __name__ == '__main__':
    main()
