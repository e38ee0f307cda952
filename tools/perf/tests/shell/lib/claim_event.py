# SPDX-License-Identifier: GPL-2.0
"""Take one event back from a persistent session: claim_event.py CPU INDEX SESSION-ID

The event ends when its files are closed: that of this program, and those of its readers.
"""
import ctypes
import fcntl
import os
import platform
import struct
import sys

CLAIM = ord('$') << 8 | 33
NR = {'x86_64': 298, 'aarch64': 241, 's390x': 331}[platform.machine()]
FD_CLOEXEC = 8

with open('/sys/bus/event_source/devices/persistent/type', encoding='ascii') as f:
    pmu_type = int(f.read())
cpu, index, session = (int(arg, 0) for arg in sys.argv[1:])
# type, size, config, then config1 at byte 56
attr = bytearray(128)
struct.pack_into('=IIQ', attr, 0, pmu_type, len(attr), session)
struct.pack_into('=Q', attr, 56, index)
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(NR, (ctypes.c_char * len(attr)).from_buffer(attr), -1, cpu, -1, FD_CLOEXEC)
if fd < 0:
    sys.exit('open: ' + os.strerror(ctypes.get_errno()))
fcntl.ioctl(fd, CLAIM)
