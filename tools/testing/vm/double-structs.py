#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Copy a kernel with debug information, and give every second compilation unit other directories.
Each struct is then defined in two places, as after a build with a compiler's cache.

usage: double-structs.py VMLINUX OUTPUT
"""
import struct
import sys

DW_LNCT_PATH, DW_FORM_LINE_STRP = 1, 0x1f


def sections(data):
    """Place and size of the sections of a 64-bit ELF file, by name"""
    start, = struct.unpack_from('<Q', data, 40)
    size, number, names = struct.unpack_from('<HHH', data, 58)
    headers = [struct.unpack_from('<II4Q', data, start + i * size) for i in range(number)]
    table = headers[names][4]
    found = {}
    for name, _, _, _, place, length in headers:
        begin = table + name
        found[bytes(data[begin:data.index(b'\0', begin)]).decode()] = place, length
    return found


def uleb(data, pos):
    value = shift = 0
    while True:
        value |= (data[pos] & 127) << shift
        shift, pos = shift + 7, pos + 1
        if data[pos - 1] < 128:
            return value, pos


def directories(data, unit):
    """Places of the names of a unit's directories, as offsets into .debug_line_str"""
    opcodes = data[unit + 17]
    pos = unit + 18 + opcodes - 1
    if data[pos] != 1:
        raise ValueError('directories have more than their names')
    kind, pos = uleb(data, pos + 1)
    form, pos = uleb(data, pos)
    if (kind, form) != (DW_LNCT_PATH, DW_FORM_LINE_STRP):
        raise ValueError('names of directories are not in .debug_line_str')
    number, pos = uleb(data, pos)
    return [pos + 4 * i for i in range(number)]


def double(data):
    """Return: how many names of directories were changed"""
    found = sections(data)
    strings = found['.debug_line_str'][0]
    pos, size = found['.debug_line']
    end, number, changed = pos + size, 0, 0
    while pos < end:
        length, version = struct.unpack_from('<IH', data, pos)
        if version != 5 or length >= 0xfffffff0:
            raise ValueError('not 32-bit DWARF 5')
        number += 1
        if number % 2:
            # The first one is where the compiler ran.
            for place in directories(data, pos)[1:]:
                name, = struct.unpack_from('<I', data, place)
                # Without its first letter: another directory
                if data[strings + name] and data[strings + name + 1]:
                    struct.pack_into('<I', data, place, name + 1)
                    changed += 1
        pos += 4 + length
    return changed


def main():
    with open(sys.argv[1], 'rb') as file:
        data = bytearray(file.read())
    if not double(data):
        raise ValueError('no directory to change')
    with open(sys.argv[2], 'wb') as file:
        file.write(data)


main()
