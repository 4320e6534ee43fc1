#!/usr/bin/env python3
"""Run a command whose standard output is a terminal; print what it wrote.

  terminal.py COLUMNS COMMAND...
"""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import tty


def main():
    master, slave = pty.openpty()
    tty.setraw(slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=slave)
    os.close(slave)
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:  # Linux says so at the end
            break
        if not data:
            break
        sys.stdout.buffer.write(data)
    return child.wait()


if __name__ == "__main__":
    sys.exit(main())
