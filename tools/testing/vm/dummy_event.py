# SPDX-License-Identifier: GPL-2.0
"""An event that counts nothing, for those who want its ring buffer"""

import ctypes
import struct
import sys

PERF_EVENT_OPEN = 298
DUMMY = 9


def open_dummy():
    """Open it on CPU 0, for all tasks. Exits with 2 if it cannot be opened."""
    attr = bytearray(136)
    struct.pack_into("<IIQ", attr, 0, 1, len(attr), DUMMY)
    buffer = (ctypes.c_char * len(attr)).from_buffer(attr)
    fd = ctypes.CDLL(None, use_errno=True).syscall(PERF_EVENT_OPEN, buffer, -1, 0, -1, 0)
    if fd < 0:
        sys.exit(2)
    return fd
