#!/usr/bin/env python3
"""Run a command whose standard output is a terminal; print what it wrote.

  terminal.py COLUMNS[+] COMMAND...         +: standard error, too

Under wine it is a console without a window: what that shows (tests/windows/start.c).
"""
import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
import tty


def console(columns, words):
    wine, start, *command = shlex.split(os.environ["SFT_COMMAND"])
    return subprocess.run([wine, start, "--console", columns, *command, *words[1:]],
                          stdin=subprocess.DEVNULL, check=False).returncode


def main():
    if os.environ.get("SFT_TARGET") == "windows" and sys.argv[2] in ("safetensors", os.environ["SFT"]):
        return console(sys.argv[1].strip("+"), sys.argv[2:])
    master, slave = pty.openpty()
    tty.setraw(slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1].strip("+")), 0, 0))
    child = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=slave,
                             stderr=slave if sys.argv[1].endswith("+") else None)
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
