#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Deadlines of perf record -M: a dump if a step takes too long.

    with Deadline("/var/lib/perf-flight/blackbox.sock", "checkout-17", 0.5, "cart of 3 items"):
        ...

As a program it gives a command a deadline: deadline.py SOCKET ID SECONDS COMMAND...
"""
import socket
import subprocess
import sys


class Deadline:
    """A deadline of SECONDS. If there is no recorder, nothing is watched."""

    def __init__(self, path, name, seconds, text=""):
        if "\n" in name + text:
            raise ValueError("a newline would begin another request")
        self.request = f"arm {name} {int(seconds * 1000)}ms {text}\n".encode()
        self.name = name
        self.path = path
        self.socket = None

    def __enter__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(1)
        try:
            self.socket.connect(self.path)
            self.socket.sendall(self.request)
        except OSError as error:
            print(f"{self.path}: {error}; {self.name} is not watched", file=sys.stderr)
        return self

    # The end of the connection disarms it.
    def __exit__(self, *_):
        self.socket.close()


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    with Deadline(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]):
        status = subprocess.run(sys.argv[4:], check=False).returncode
    sys.exit(status)
