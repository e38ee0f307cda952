#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Forward connections to a server, with the faults of a network and of a store.

usage: faulty-proxy.py PORT SERVER-PORT FAULT-FILE

FAULT-FILE has one line, which is read for each connection:

  pass             forward everything
  refuse           close the connection at once
  stall            say nothing, for ever
  answer STATUS    read the request, and answer with this status
  cut BYTES        forward so much of what the client sends, then reset both connections
  mute             forward the request, and reset the connection in the place of the answer
  slow RATE        forward so many bytes a second of what the client sends

A further number is a count: the fault takes so many connections, then all pass. FAULT-FILE.log
gets a line for each connection with a fault.
"""
import asyncio
import os
import re
import socket
import struct
import sys

PORT, SERVER, FAULTS = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
OPERANDS = {'pass': 0, 'refuse': 0, 'stall': 0, 'answer': 1, 'cut': 1, 'mute': 0, 'slow': 1}


def next_fault():
    """The fault of this connection and its operand; a count goes down."""
    with open(FAULTS, encoding='ascii') as f:
        words = f.read().split()
    name, operands = words[0], words[1:]
    count = operands[OPERANDS[name]:]
    if count:
        left = int(count[0]) - 1
        line = [name] + operands[:OPERANDS[name]] + [str(left)] if left else ['pass']
        with open(FAULTS + '.new', 'w', encoding='ascii') as f:
            print(*line, file=f)
        os.rename(FAULTS + '.new', FAULTS)
    if name != 'pass':
        with open(FAULTS + '.log', 'a', encoding='ascii') as f:
            print(name, *operands, file=f)
    return name, int(operands[0]) if OPERANDS[name] else 0


def reset(writer):
    """Close with a RST, as when the other side has lost its state."""
    sock = writer.get_extra_info('socket')
    if sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    writer.transport.abort()


async def forward(reader, writer, limit=None, rate=None):
    """Until the end, or for LIMIT bytes. True if the limit was reached."""
    size = 65536 if rate is None else max(1, rate // 20)
    while limit is None or limit > 0:
        data = await reader.read(size if limit is None else min(size, limit))
        if not data:
            if writer.can_write_eof():
                writer.write_eof()
            return False
        writer.write(data)
        await writer.drain()
        if limit is not None:
            limit -= len(data)
        if rate is not None:
            await asyncio.sleep(len(data) / rate)
    return True


async def read_request(reader, writer):
    """The head and the body; who waits for a go-ahead gets it."""
    head = await reader.readuntil(b'\r\n\r\n')
    if re.search(rb'(?im)^expect: *100', head):
        writer.write(b'HTTP/1.1 100 Continue\r\n\r\n')
    length = re.search(rb'(?im)^content-length: *(\d+)', head)
    await reader.readexactly(int(length.group(1)) if length else 0)


async def serve(reader, writer):
    """One connection."""
    name, operand = next_fault()
    if name == 'refuse':
        reset(writer)
        return
    if name == 'stall':
        await asyncio.sleep(1e6)
    if name == 'answer':
        await read_request(reader, writer)
        writer.write(b'HTTP/1.1 %d Injected\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' %
                     operand)
        await writer.drain()
        writer.close()
        return
    there, back = await asyncio.open_connection('127.0.0.1', SERVER)
    if name == 'mute':
        asyncio.ensure_future(forward(reader, back))
        # The answer of the server says that it has done what was asked.
        while b' 100 ' in (await there.readuntil(b'\r\n')):
            await there.readuntil(b'\r\n')
        reset(writer)
        back.close()
        return
    answers = asyncio.ensure_future(forward(there, writer))
    if await forward(reader, back, operand if name == 'cut' else None,
                     operand if name == 'slow' else None):
        answers.cancel()
        reset(back)
        reset(writer)
        return
    await answers
    writer.close()


async def serve_quietly(reader, writer):
    """What the other side closes early is no error of this program."""
    try:
        await serve(reader, writer)
    except (OSError, asyncio.IncompleteReadError):
        writer.transport.abort()


async def main():
    """Serve until killed."""
    server = await asyncio.start_server(serve_quietly, '127.0.0.1', PORT)
    async with server:
        await server.serve_forever()

asyncio.run(main())
