#!/usr/bin/env python3
"""Draw docs/pictures/*.svg: the command at work, from what it really prints.

usage: tools/pictures.py [--check]

Each picture is a session in a scratch folder with the models of tools/collection.py, shown as a
terminal of 80 columns. --check draws nothing and fails if a picture is not what would be drawn."""
import fcntl
import html
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = 80
STYLES = {"1": "font-weight:bold", "2": "fill:#8b949e", "31": "fill:#ff7b72", "32": "fill:#7ee787"}

TOUR = (
    "safetensors info -r loras/flux loras/pony loras/sd15 vae",
    "safetensors check -r loras",
    "cp loras/pony/velvet_night.safetensors night.safetensors",
    'safetensors meta set night.safetensors modelspec.title "Velvet Night II"',
    "safetensors diff loras/pony/velvet_night.safetensors night.safetensors",
)
PICTURES = {"tour": TOUR}


def command_folder(folder):
    words = shlex.split(os.environ.get("SFT_COMMAND") or shlex.quote(
        os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")), "safetensors")))
    os.mkdir(folder)
    with open(os.path.join(folder, "safetensors"), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec %s \"$@\"\n" % " ".join(map(shlex.quote, words)))
    os.chmod(os.path.join(folder, "safetensors"), 0o755)
    return folder


def read_all(fd):
    said = b""
    while True:
        try:
            more = os.read(fd, 65536)
        except OSError:
            more = b""
        if not more:
            return said
        said += more


def output(line, folder, programs):
    """The lines that a terminal of COLUMNS columns shows."""
    env = dict(os.environ, PATH=programs + ":" + os.environ["PATH"], TERM="xterm", LC_ALL="C.UTF-8")
    for name in ("NO_COLOR", "COLUMNS"):
        env.pop(name, None)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    with subprocess.Popen(["bash", "-c", line], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                          stdout=theirs, stderr=theirs):
        os.close(theirs)
        said = read_all(ours).decode("utf-8")
    os.close(ours)
    return said.replace("\r\n", "\n").splitlines()


def session(lines):
    """What a terminal shows: the lines typed and their output."""
    with tempfile.TemporaryDirectory(prefix="sft-picture-") as folder:
        programs = command_folder(os.path.join(folder, "bin"))
        place = os.path.join(folder, "place")
        subprocess.run([sys.executable, os.path.join(ROOT, "tools", "collection.py"), place,
                        "--no-pictures"], check=True)
        shown = []
        for line in lines:
            shown.append("\x1b[32m$\x1b[0m \x1b[1m%s\x1b[0m" % line)
            shown += output(line, place, programs)
        return shown


def wrapped(line):
    """Pieces of COLUMNS characters at most, broken between words; escape sequences take none."""
    piece, used, style = "", 0, ""
    for part in re.findall(r"\x1b\[[0-9;]*m|[^ \x1b]+| +", line):
        if part.startswith("\x1b"):
            style = "" if part == "\x1b[0m" else part
            piece += part
            continue
        if used + len(part) > COLUMNS and part.strip():
            yield piece
            piece, used = style, 0
        piece, used = piece + part, used + len(part)
    yield piece


def spans(line):
    """A line's text as SVG. What follows two blanks or more has its place told, so that columns are
    straight in any font."""
    out, style, column = "", "", 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            codes = part[2:-1].split(";")
            style = ";".join(STYLES[code] for code in codes if code in STYLES)
            continue
        for chunk in re.split(r"( {2,})", part):
            if chunk.strip():
                out += '<tspan x="%d"%s>%s</tspan>' % (
                    18 + 9 * column, ' style="%s"' % style if style else "",
                    html.escape(chunk, quote=False))
            column += len(chunk)
    return out


def draw(lines):
    rows = [piece for line in lines for piece in wrapped(line)]
    height, width = 20 * len(rows) + 48, 9 * COLUMNS + 36
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
           'role="img">' % (width, height, width, height),
           '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>']
    out += ['<circle cx="%d" cy="16" r="5" fill="%s"/>' % (18 + 18 * i, color)
            for i, color in enumerate(("#ff5f56", "#ffbd2e", "#27c93f"))]
    out.append('<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="15" '
               'fill="#e6edf3" xml:space="preserve">')
    for i, row in enumerate(rows):
        out.append('<text y="%d">%s</text>' % (20 * i + 48, spans(row)))
    return "\n".join(out + ["</g>", "</svg>", ""])


def main():
    status = 0
    for name, lines in PICTURES.items():
        path = os.path.join(ROOT, "docs", "pictures", name + ".svg")
        made = draw(session(lines))
        if "--check" not in sys.argv[1:]:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(made)
        elif not os.path.exists(path) or open(path, encoding="utf-8").read() != made:
            print("docs/pictures/%s.svg is not what tools/pictures.py draws: run `make docs`" % name)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
