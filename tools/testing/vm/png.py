# SPDX-License-Identifier: GPL-2.0
"""
Make a PNG small: 256 colours are enough for a picture of text and charts.

Chromium writes 8 bits for each of red, green, blue and, at times, opacity, without
interlacing; nothing else is read here.
"""
import struct
import zlib
from collections import Counter

SIGNATURE = b'\x89PNG\r\n\x1a\n'


def chunk(name, body):
    return struct.pack('>I', len(body)) + name + body + struct.pack('>I', zlib.crc32(name + body))


def chunks(png):
    at = len(SIGNATURE)
    while at < len(png):
        size, name = struct.unpack_from('>I4s', png, at)
        yield name, png[at + 8:at + 8 + size]
        at += size + 12


def paeth(a, b, c):
    pa, pb, pc = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    if pa <= pb and pa <= pc:
        return a
    return b if pb <= pc else c


def unfilter(kind, line, above, step):
    """In place: @line as it was before the filter"""
    if kind == 1:
        for i in range(step, len(line)):
            line[i] = (line[i] + line[i - step]) & 255
    elif kind == 2:
        for i, up in enumerate(above):
            line[i] = (line[i] + up) & 255
    elif kind == 3:
        for i, up in enumerate(above):
            left = line[i - step] if i >= step else 0
            line[i] = (line[i] + (left + up) // 2) & 255
    elif kind == 4:
        for i, up in enumerate(above):
            left, corner = (line[i - step], above[i - step]) if i >= step else (0, 0)
            line[i] = (line[i] + paeth(left, up, corner)) & 255


def read(png):
    """width, and a list of lines, each a list of (red, green, blue)"""
    if not png.startswith(SIGNATURE):
        raise ValueError('not a PNG')
    parts = list(chunks(png))
    width, height, bits, colour, _, _, interlaced = struct.unpack('>IIBBBBB', parts[0][1])
    if bits != 8 or colour not in (2, 6) or interlaced:
        raise ValueError('a PNG of %d bits, kind %d' % (bits, colour))
    step = 3 if colour == 2 else 4
    raw = zlib.decompress(b''.join(body for name, body in parts if name == b'IDAT'))
    size, lines, above = width * step, [], bytearray(width * step)
    for y in range(height):
        at = y * (size + 1)
        line = bytearray(raw[at + 1:at + 1 + size])
        unfilter(raw[at], line, above, step)
        lines.append(list(zip(line[0::step], line[1::step], line[2::step])))
        above = line
    return width, lines


def nearest(colour, palette):
    return min(range(len(palette)),
               key=lambda i: sum((a - b) ** 2 for a, b in zip(colour, palette[i])))


def small(png):
    """The same picture with at most 256 colours: the most frequent ones, else the nearest"""
    width, lines = read(png)
    counts = Counter()
    for line in lines:
        counts.update(line)
    palette = [colour for colour, _ in counts.most_common(256)]
    index = {colour: i for i, colour in enumerate(palette)}
    for colour in counts:
        if colour not in index:
            index[colour] = nearest(colour, palette)
    raw = b''.join(b'\0' + bytes(index[colour] for colour in line) for line in lines)
    return (SIGNATURE +
            chunk(b'IHDR', struct.pack('>IIBBBBB', width, len(lines), 8, 3, 0, 0, 0)) +
            chunk(b'PLTE', b''.join(bytes(colour) for colour in palette)) +
            chunk(b'IDAT', zlib.compress(raw, 9)) + chunk(b'IEND', b''))
