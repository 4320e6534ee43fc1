#!/usr/bin/env python3
"""What desktops know of the files: their type, by shared-mime-info and file(1), and thumbnails.

  tests/desktop/run.py [--service]

Installs the build to a prefix and asks there. Pictures are made here, and thumbnails are read here,
byte by byte. --service (make test-desktop): also xdg-mime, and tumbler, the thumbnailer of Xfce and
others, which finds the installed entry by itself, called over D-Bus.
"""
import argparse
import glob
import hashlib
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import xml.dom.minidom
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
TYPE = "application/x-safetensors"
LIMIT = 60
results = []


def check(good, what, detail=""):
    results.append(bool(good))
    if not good:
        print(f"FAILED: {what}\n    {detail}", flush=True)
    return good


def sh(words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=LIMIT * 4, **more)


# ── Files ──

def model(path, metadata=None, lead="", shapes=(("a", 2),)):
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, size in shapes:
        header[name] = {"dtype": "F32", "shape": [size], "data_offsets": [at, at + size * 4]}
        at += size * 4
    text = lead.encode() + json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + bytes(at))
    return path


def png(path, width, height, color=(0, 128, 255), alpha=None, rows=None):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixel = bytes(color) + (bytes([alpha]) if alpha is not None else b"")
    data = zlib.compress((b"\0" + pixel * width) * (height if rows is None else rows), 1)
    with open(path, "wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
            ">IIBBBBB", width, height, 8, 6 if alpha is not None else 2, 0, 0, 0))
            + chunk(b"IDAT", data) + chunk(b"IEND", b""))


def gif(path, width, height, color=(200, 30, 60), said=None):
    """Frames of one colour; said: the sides that the head says."""
    bits = [(4, 3)]  # clear
    for _ in range(width * height):
        bits += [(0, 3), (4, 3)]
    bits.append((5, 3))
    number = at = 0
    for value, size in bits:
        number |= value << at
        at += size
    data = number.to_bytes((at + 7) // 8, "little")
    blocks = b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255))
    wide, high = said or (width, height)
    with open(path, "wb") as out:
        out.write(b"GIF89a" + struct.pack("<HHBBB", wide, high, 0x91, 0, 0) + bytes(color) + bytes(9)
                  + b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\2" + blocks + b"\0;")


def pixels(path):
    """Width, height and rows of (r, g, b, a) of what we write: RGBA, Sub in each row."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    at, chunks = 8, {}
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if zlib.crc32(kind + body) != struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]:
            raise ValueError(f"CRC of {kind}")
        chunks.setdefault(kind, b"")
        chunks[kind] += body
        at += 12 + size
    width, height, depth, kind = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    if (depth, kind) != (8, 6):
        raise ValueError("no RGBA")
    raw, rows = zlib.decompress(chunks[b"IDAT"]), []
    if len(raw) != (width * 4 + 1) * height:
        raise ValueError("bytes of rows")
    for y in range(height):
        row = bytearray(raw[y * (width * 4 + 1) + 1:(y + 1) * (width * 4 + 1)])
        if raw[y * (width * 4 + 1)] != 1:
            raise ValueError("filter")
        for i in range(4, len(row)):
            row[i] = (row[i] + row[i - 4]) & 255
        rows.append([tuple(row[i:i + 4]) for i in range(0, len(row), 4)])
    return width, height, rows


# ── Types ──

def install(prefix):
    done = sh(["cmake", "--install", BUILD, "--prefix", prefix])
    if not check(done.returncode == 0, "cmake --install", done.stderr[-800:]):
        sys.exit(1)
    for path in ("share/mime/packages/safetensors.xml", "share/thumbnailers/safetensors.thumbnailer",
                 "share/file/magic/safetensors"):
        check(os.path.isfile(os.path.join(prefix, path)), f"{path} installed")
    xml.dom.minidom.parse(os.path.join(prefix, "share/mime/packages/safetensors.xml"))


def samples(folder):
    """Paths of what is one, and of what is none; names tell nothing."""
    good = [model(os.path.join(folder, "g1")), model(os.path.join(folder, "g2"), {"format": "pt"}),
            model(os.path.join(folder, "g3"), lead=" \n\t"), model(os.path.join(folder, "g4"), shapes=())]
    bad = {"json": b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}', "zero": bytes(64),
           "huge": struct.pack("<Q", 1 << 40) + b'{"a":1}', "list": struct.pack("<Q", 8) + b"[1,2,3] ",
           "text": b"12345678{ not quite", "zip": b"PK\3\4" + bytes(60), "word": struct.pack("<Q", 9) + b"{word: 1}",
           "gguf": b"GGUF\3\0\0\0" + bytes(56)}
    for name, data in bad.items():
        with open(os.path.join(folder, "b-" + name), "wb") as out:
            out.write(data)
    return good, [os.path.join(folder, "b-" + name) for name in bad]


def by_file(prefix, folder):
    if not shutil.which("file"):
        print("no file(1): its entry is not tried")
        return
    magic = os.path.join(prefix, "share/file/magic/safetensors")
    good, bad = samples(folder)
    check(sh(["file", "-c", "-m", magic]).returncode == 0, "file -c")
    for path in good + sorted(glob.glob(os.path.join(ROOT, "examples/models/**/*.safetensors"), recursive=True)):
        said = sh(["file", "-b", "--mime-type", "-m", magic, path]).stdout.strip()
        check(said == TYPE, f"file -m of {os.path.basename(path)}", said)
    for path in bad:
        said = sh(["file", "-b", "--mime-type", "-m", magic, path]).stdout.strip()
        check(said != TYPE, f"file -m of {os.path.basename(path)}", said)
    with open(good[1], "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
    said = sh(["file", "-b", "-m", magic, good[1]]).stdout.strip()
    check(said == f"Safetensors model, header of {size} bytes, with metadata", "file -m says", said)


def by_mime(prefix, folder, xdg):
    """The type by the database that update-mime-database makes."""
    if not shutil.which("update-mime-database"):
        print("no update-mime-database: the type is not tried")
        return
    done = sh(["update-mime-database", os.path.join(prefix, "share/mime")])
    check(done.returncode == 0 and "rror" not in done.stderr.replace("not in the search path", ""),
          "update-mime-database", done.stderr)
    env = dict(os.environ, XDG_DATA_DIRS=prefix + "/share:/usr/share", XDG_DATA_HOME=folder + "/home",
               XDG_CURRENT_DESKTOP="GNOME")
    tools = [("gio", ["gio", "info", "-a", "standard::content-type"])]
    if xdg:
        tools.append(("xdg-mime", ["xdg-mime", "query", "filetype"]))
    for tool, words in tools:
        if not shutil.which(tool):
            print(f"no {tool}: it is not asked")
            check(not xdg, f"{tool} is there")
            continue
        good, bad = samples(folder)
        for path in good:
            said = sh(words + [path], env=env).stdout
            check(TYPE in said, f"{tool}: by contents, {os.path.basename(path)}", said)
        for path in bad:
            check(TYPE not in sh(words + [path], env=env).stdout, f"{tool}: {os.path.basename(path)}")
        for name in ("empty.safetensors", "x.sft"):
            named = os.path.join(folder, name)
            with open(named, "wb") as out:
                out.write(bytes(range(128, 256)) * 8)
            if tool == "gio":  # without contents: by the name alone
                said = sh(["gio", "info", "-a", "standard::fast-content-type", named], env=env).stdout
                check(TYPE in said, f"gio: by name, {name}", said)
        index = os.path.join(folder, "m.safetensors.index.json")
        with open(index, "w", encoding="utf-8") as out:
            out.write('{"weight_map": {}}')
        check(TYPE not in sh(words + [index], env=env).stdout, f"{tool}: an index is JSON")


# ── Thumbnails ──

def thumbnails(prefix, folder):
    """As the entry says, by one who has it from the installed file."""
    with open(os.path.join(prefix, "share/thumbnailers/safetensors.thumbnailer"), encoding="utf-8") as file:
        entry = dict(line.strip().split("=", 1) for line in file if "=" in line)
    check(entry["MimeType"] == TYPE + ";", "type of the entry", entry)
    env = dict(os.environ, PATH=os.path.join(prefix, "bin") + ":" + os.environ["PATH"])
    check(shutil.which(entry["TryExec"], path=env["PATH"]) is not None, "TryExec")
    version = sh([os.path.join(prefix, "bin/safetensors"), "--version"]).stdout
    decodes = "gdk-pixbuf: not found" not in version
    check("gdk-pixbuf: " in version, "--version tells of gdk-pixbuf", version)
    out = os.path.join(folder, "out.png")

    def make(path, size=256, more=None):
        with open(out, "wb"):  # it is there already, as a service makes it
            pass
        places = {"%s": str(size), "%i": path, "%o": out}
        words = [places.get(word, word) for word in shlex.split(entry["Exec"])]
        inode = os.stat(out).st_ino
        done = sh(words, env=dict(env, **(more or {})))
        if os.stat(out).st_ino != inode:  # services read it by a descriptor that they have
            check(False, "another file is there", path)
        return done

    name = os.path.join(folder, "it's a model; $(touch x) 名前.safetensors")
    model(name, {"modelspec.title": "A name"})
    done = make(name)
    if not check(done.returncode == 0, "a card", done.stderr):
        return
    width, height, rows = pixels(out)
    check((width, height) == (256, 256), "a card's sides", (width, height))
    ground = rows[128][4]
    check(sum(p == (255, 255, 255, 255) for row in rows for p in row) > 100, "letters on a card")
    check(all(p[3] == 255 for row in rows for p in row) and ground != (255, 255, 255, 255), "a card has no holes")
    for size in (16, 17, 33, 64, 128, 1023, 2048):
        done = make(name, size)
        check(done.returncode == 0 and pixels(out)[:2] == (size, size), f"a card of {size}", done.stderr)
    for size in ("0", "15", "2049", "-1", "x", "99999999999999999999"):
        done = make(name, size)
        check(done.returncode == 2 and os.path.getsize(out) == 0, f"size {size}", done.stderr)
    if not decodes:
        print("no gdk-pixbuf: no picture is decoded")
        return

    stem = name[:-len(".safetensors")]

    def picture(end, make_it, size, want, why, color=None):
        for old in glob.glob(glob.escape(stem) + ".*"):
            if old != name:
                os.remove(old)
        make_it(stem + end)
        done = make(name, size)
        found = pixels(out)
        at = found[2][found[1] // 2][found[0] // 2]
        check(done.returncode == 0 and found[:2] == want and why in done.stdout
              and (color is None or all(abs(a - b) < 4 for a, b in zip(at, color))),
              f"{end}: {want} {why}", (found[:2], at, done.stdout, done.stderr))

    picture(".png", lambda p: png(p, 400, 200), 256, (256, 128), "of sidecar:", (0, 128, 255, 255))
    picture(".preview.png", lambda p: png(p, 30, 500), 100, (6, 100), "of sidecar:", (0, 128, 255, 255))
    picture(".png", lambda p: png(p, 40, 40), 256, (40, 40), "of sidecar:", (0, 128, 255, 255))  # not enlarged
    picture(".png", lambda p: png(p, 1, 5000), 64, (1, 64), "of sidecar:")
    picture(".png", lambda p: png(p, 300, 300, alpha=0), 64, (64, 64), "of sidecar:")
    picture(".gif", lambda p: gif(p, 50, 20), 256, (50, 20), "of sidecar:", (200, 30, 60, 255))
    # What is made to harm: the card, and why.
    picture(".png", lambda p: png(p, 65535, 65535, rows=1), 256, (256, 256), "it is too large")
    picture(".png", lambda p: png(p, 7000, 7000, rows=1), 256, (256, 256), "it is too large")
    picture(".png", lambda p: png(p, 6000, 6000, rows=3), 256, (256, 256), "")  # a part is decoded
    picture(".gif", lambda p: gif(p, 4, 4, said=(65535, 65535)), 256, (256, 256), "it is too large")

    def cut(path):
        gif(path, 200, 200)
        os.truncate(path, 20)
    picture(".gif", cut, 256, (256, 256), "it cannot be decoded")

    def longer(path):
        png(path, 20, 20)
        os.truncate(path, 65 << 20)
    picture(".png", longer, 256, (256, 256), "it is too large")
    png(os.path.join(folder, "elsewhere.png"), 90, 90)
    os.mkdir(os.path.join(folder, "below"))
    linked = model(os.path.join(folder, "below", "linked.safetensors"))
    os.symlink("../elsewhere.png", os.path.join(folder, "below", "linked.png"))
    done = make(linked)
    check(pixels(out)[:2] == (256, 256), "a picture beyond the folder is not read", done.stdout)
    # One in the file itself; then the library is one that cannot be loaded.
    png(os.path.join(folder, "set.png"), 120, 60, (9, 200, 9))
    own = model(os.path.join(folder, "own.safetensors"))
    sh([os.path.join(prefix, "bin/safetensors"), "meta", "set", own, "--thumbnail", os.path.join(folder, "set.png")])
    done = make(own, 64)
    found = pixels(out)
    check(found[:2] == (64, 32) and all(abs(a - b) < 4 for a, b in zip(found[2][16][60], (9, 200, 9))),
          "a picture in the file", (found[:2], done.stdout))
    fake = os.path.join(folder, "fake")
    os.mkdir(fake)
    with open(os.path.join(fake, "libgdk_pixbuf-2.0.so.0"), "wb"):
        pass
    done = make(own, 64, {"LD_LIBRARY_PATH": fake})
    check(pixels(out)[:2] == (64, 64) and "there is no gdk-pixbuf" in done.stdout, "without the library", done.stdout)
    # What goes wrong leaves what was there.
    bad = os.path.join(folder, "bad.safetensors")
    with open(bad, "wb") as file:
        file.write(b"nonsense")
    done = make(bad)
    check(done.returncode == 2 and os.path.getsize(out) == 0, "no model", done.stderr)
    command = os.path.join(prefix, "bin/safetensors")
    check(sh([command, "thumbnail", own, out]).returncode == 2 and os.path.getsize(out) == 0, "nothing is replaced unasked")
    check(not [n for n in os.listdir(folder) if ".sft-" in n], "nothing is left", os.listdir(folder))
    check(not os.path.exists(os.path.join(folder, "x")) and not os.path.exists("x"), "a name is no command")


# ── A service ──

def service(prefix, folder):
    """tumbler, with the installed entry, under Xvfb on a bus of its own."""
    daemon = next(iter(glob.glob("/usr/lib/*/tumbler-1/tumblerd")), None)
    needs = [daemon, shutil.which("dbus-run-session"), shutil.which("gdbus"), shutil.which("xvfb-run")]
    if not check(all(needs), "tumbler, D-Bus and Xvfb are there (tools/setup.sh desktop)", needs):
        return
    paths = [model(os.path.join(folder, "served.safetensors"), {"modelspec.title": "Served"}),
             model(os.path.join(folder, "pictured one.safetensors"))]
    png(os.path.join(folder, "pictured one.png"), 500, 250)
    home = os.path.join(folder, "home")
    uris = ["file://" + urllib.parse.quote(path) for path in paths]
    script = f"""for i in $(seq 100); do gdbus call --session -d org.freedesktop.thumbnails.Thumbnailer1 \\
    -o /org/freedesktop/thumbnails/Thumbnailer1 -m org.freedesktop.thumbnails.Thumbnailer1.GetSupported >supported 2>/dev/null && break; sleep .1; done
gdbus call --session -d org.freedesktop.thumbnails.Thumbnailer1 -o /org/freedesktop/thumbnails/Thumbnailer1 \\
    -m org.freedesktop.thumbnails.Thumbnailer1.Queue {shlex.quote(json.dumps(uris))} {shlex.quote(json.dumps([TYPE] * len(uris)))} large default 0
for i in $(seq 300); do [ "$(find home/.cache/thumbnails/large -name '*.png' | wc -l)" -ge {len(uris)} ] && break; sleep .1; done"""
    env = dict(os.environ, HOME=home, XDG_CACHE_HOME=home + "/.cache", XDG_DATA_HOME=home + "/.local",
               XDG_CONFIG_HOME=home + "/.config", XDG_RUNTIME_DIR=folder,
               XDG_DATA_DIRS=prefix + "/share:/usr/share", PATH=prefix + "/bin:" + os.environ["PATH"])
    os.makedirs(home + "/.cache/thumbnails/large", exist_ok=True)
    os.chmod(folder, 0o700)
    done = sh(["xvfb-run", "-a", "dbus-run-session", "--", "bash", "-c", script], env=env, cwd=folder)
    with open(os.path.join(folder, "supported"), encoding="utf-8") as file:
        check(TYPE in file.read(), "tumbler supports the type", done.stderr)
    for path, uri, sides in zip(paths, uris, ((256, 256), (256, 128))):
        made = os.path.join(home, ".cache/thumbnails/large", hashlib.md5(uri.encode()).hexdigest() + ".png")
        if not check(os.path.isfile(made), f"tumbler's thumbnail of {os.path.basename(path)}", done.stdout + done.stderr):
            continue
        with open(made, "rb") as file:
            data = file.read()
        check(struct.unpack(">II", data[16:24]) == sides and uri.encode() in data, "its sides and address",
              struct.unpack(">II", data[16:24]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--service", action="store_true")
    options = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sft-desktop-") as scratch:
        prefix = os.path.join(scratch, "prefix")
        install(prefix)
        for part in (by_file, lambda p, f: by_mime(p, f, options.service), thumbnails,
                     *([service] if options.service else [])):
            folder = tempfile.mkdtemp(dir=scratch)
            part(prefix, folder)
    if time.monotonic() - started > LIMIT * 5:
        print("slow")
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
