#!/usr/bin/env python3
"""Attacks on edits by another user of a shared (sticky) folder.

  tests/attack/run.py [-v] [NAME...]

Needs root, who plays a model's owner, an attacker and himself; else all is skipped. In each, the
attacker leaves something next to or in place of a model, and the owner or root works there: no
byte of a model but the attacker's own may become what the attacker wrote, and nobody waits.
"""
import ctypes
import fcntl
import hashlib
import itertools
import json
import os
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OWNER, ATTACKER = 12001, 12002
RACES = 300
FOLDER_RACE = 10  # seconds; what it is for is found within as many
AT_FDCWD, EXCHANGE = -100, 2
LIMIT = 20
HEAD = b'{"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}'
EVIL = b'{"v":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}'
results = {"passed": 0, "failed": 0, "skipped": 0}
verbose = "-v" in sys.argv


class Wrong(Exception):
    pass


class Skip(Exception):
    pass


def become(user):
    """In a child: become this user, without root's groups."""
    def switch():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        os.umask(0o022)
    return switch


def as_user(user, play, *args):
    """Run play(*args) in a child that is this user; its exit status."""
    child = os.fork()
    if child == 0:
        try:
            become(user)()
            play(*args)
            os._exit(0)
        except PermissionError:
            os._exit(3)
        except BaseException as error:  # told by the status; the child must not go on here
            print("attacker: %r" % error, file=sys.stderr)
            os._exit(4)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def write(path, content, mode=0o644):
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)


def framed(head):
    return struct.pack("<Q", len(head)) + head


def journal(inode, size, old, new, ranges=(), magic=b"sft-edit"):
    """A journal of ranges (at, old bytes, new bytes), with a correct checksum."""
    data = sum(len(one[1]) for one in ranges)
    text = magic + struct.pack("<10Q", 2, 1, inode.st_dev, inode.st_ino, size, 0, len(old), len(new),
                               len(ranges), data)
    text += b"".join(struct.pack("<2Q", one[0], len(one[1])) for one in ranges) + old + new
    text += b"".join(one[1] + one[2] for one in ranges)
    return text + struct.pack("<Q", zlib.crc32(text))


def evil_journal(path):
    """A journal made from what the attacker may read: it takes each byte of the file for old or
    new, so that completing the edit gives the file another tensor name and other data."""
    with open(path, "rb") as file:
        content = file.read()
    # w -> v in the name: pretend that the name was half written: the file is old there, new in
    # the data, where its bytes are given out as the new ones but for the last four.
    data = content[-8:]
    return journal(os.stat(path), len(content), framed(HEAD), framed(EVIL),
                   [(len(content) - 8, b"oooo" + data[4:], data[:4] + b"EVIL")])


class Place:
    """A folder that all may write to, with the owner's model, and a folder of the owner."""

    def __init__(self, scratch, sft):
        self.sft = sft
        self.scratch = scratch
        self.shared = os.path.join(scratch, "shared")
        self.home = os.path.join(scratch, "home")
        self.model = os.path.join(self.shared, "m.safetensors")
        self.journal = os.path.join(self.shared, ".m.safetensors.sft-journal")
        self.victim = os.path.join(self.home, "v.safetensors")
        for folder in (self.shared, self.home):
            shutil.rmtree(folder, ignore_errors=True)
            os.mkdir(folder)
        os.chmod(self.shared, 0o1777)
        os.chmod(self.home, 0o755)
        os.chown(self.home, OWNER, OWNER)
        self.content = framed(HEAD) + b"weights!"
        for path in (self.model, self.victim):
            write(path, self.content)
            os.chown(path, OWNER, OWNER)

    def run(self, user, *words, stdin=b"abcdefgh"):
        try:
            return subprocess.run(self.sft + list(words), input=stdin, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=LIMIT, cwd=self.shared,
                                  preexec_fn=None if user == 0 else become(user), check=False)
        except subprocess.TimeoutExpired:
            raise Wrong("%s: waits" % " ".join(words)) from None

    def expect_content(self, path, what):
        with open(path, "rb") as file:
            found = file.read()
        if found != self.content:
            raise Wrong("%s: the file is now %r" % (what, found))


WRITERS = (["meta", "recover", "m.safetensors"], ["meta", "recover", "--force", "m.safetensors"],
           ["meta", "set", "m.safetensors", "k", "v"], ["put", "m.safetensors", "w"],
           ["rename", "m.safetensors", "--map", "w=x"], ["repair", "m.safetensors", "--in-place"],
           ["meta", "set", "--safe", "m.safetensors", "k", "v"])
READERS = (["ls", "m.safetensors"], ["check", "m.safetensors"], ["info", "m.safetensors"],
           ["hash", "m.safetensors"], ["cat", "m.safetensors", "w"])


def expect_unharmed(place, what):
    """The model stays as it was whoever works there, and can still be read."""
    for user in (OWNER, 0):
        for words in WRITERS:
            done = place.run(user, *words)
            told = "%s: user %d: %s" % (what, user, " ".join(words))
            place.expect_content(place.model, told)
            said = done.stderr.decode()
            if done.returncode == 0 or "meta recover" in said:
                raise Wrong("%s: exit %d: %s" % (told, done.returncode, said))
        for words in READERS:
            done = place.run(user, *words)
            if done.returncode or b"recover" in done.stdout + done.stderr:
                raise Wrong("%s: user %d: %s: exit %d: %s"
                            % (what, user, " ".join(words), done.returncode, done.stderr.decode()))


def plant(place, mode=0o644):
    write(place.journal, evil_journal(place.model), mode)


def play_planted(place):
    if as_user(ATTACKER, plant, place):
        raise Wrong("no journal planted")
    expect_unharmed(place, "a planted journal")
    out = os.path.join(place.home, "out.safetensors")
    done = place.run(OWNER, "meta", "set", "m.safetensors", "k", "v", "-o", out)
    if done.returncode or not os.path.exists(out):
        raise Wrong("no changed copy: exit %d: %s" % (done.returncode, done.stderr.decode()))
    done = place.run(OWNER, "check", "m.safetensors", "--json")
    if b"foreign_journal" not in done.stdout:
        raise Wrong("check does not tell: %s" % done.stdout.decode())


def play_unreadable(place):
    if as_user(ATTACKER, plant, place, 0o000):
        raise Wrong("no journal planted")
    expect_unharmed(place, "an unreadable journal")


def play_leased(place):
    """The attacker holds a lease on the planted journal and renews it: each open of it blocks
    for three quarters of a minute."""
    ready, told = os.pipe()

    def hold():
        plant(place)
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        while True:
            fd = os.open(place.journal, os.O_RDWR)
            try:
                fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            except BlockingIOError:
                continue
            finally:
                os.write(told, b"x")
            while fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_WRLCK:
                time.sleep(0.001)
            os.close(fd)

    child = os.fork()
    if child == 0:
        try:
            become(ATTACKER)()
            hold()
        finally:
            os._exit(0)
    try:
        os.read(ready, 1)
        expect_unharmed(place, "a leased journal")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(told)


def play_link(place):
    """The journal is a symbolic link to a journal of the owner in another folder."""
    def link():
        os.symlink(os.path.join(place.home, "kept"), place.journal)
    write(os.path.join(place.home, "kept"), evil_journal(place.model))
    os.chown(os.path.join(place.home, "kept"), OWNER, OWNER)
    if as_user(ATTACKER, link):
        raise Wrong("no link made")
    for user in (OWNER, 0):
        for words in WRITERS[:2]:
            place.run(user, *words)
            place.expect_content(place.model, "a link as the journal")


def play_hard_link(place):
    """The same with a hard link, where the system lets the attacker make one."""
    def link():
        os.link(os.path.join(place.home, "kept"), place.journal)
    write(os.path.join(place.home, "kept"), evil_journal(place.model), 0o666)
    os.chown(os.path.join(place.home, "kept"), OWNER, OWNER)
    if as_user(ATTACKER, link):
        link()  # by root: what is judged is the journal, not the system
    for user in (OWNER, 0):
        for words in WRITERS[:2]:
            place.run(user, *words)
            place.expect_content(place.model, "a hard link as the journal")


def play_open_journal(place):
    """The owner's own journal, which others may write to."""
    write(place.journal, evil_journal(place.model), 0o666)
    os.chown(place.journal, OWNER, OWNER)
    for user in (OWNER, 0):
        for words in WRITERS[:2]:
            place.run(user, *words)
            place.expect_content(place.model, "a journal that others may write to")


def play_pipe(place):
    if as_user(ATTACKER, os.mkfifo, place.journal, 0o666):
        raise Wrong("no pipe made")
    for user in (OWNER, 0):
        for words in WRITERS + READERS:
            place.run(user, *words)
            if words in WRITERS[:2]:
                place.expect_content(place.model, "a pipe as the journal")


def play_own(place):
    """The opposite case: the owner's own journal is applied, by the owner and by root."""
    for user in (OWNER, 0):
        for owner in (OWNER, user):
            write(place.model, place.content)
            write(place.journal, evil_journal(place.model))
            os.chown(place.journal, owner, owner)
            done = place.run(user, "meta", "recover", "m.safetensors")
            with open(place.model, "rb") as file:
                found = file.read()
            if done.returncode or not found.endswith(b"weigEVIL") or os.path.exists(place.journal):
                raise Wrong("user %d, journal of %d: exit %d: %s"
                            % (user, owner, done.returncode, done.stderr.decode()))


COPIES = (["meta", "set", "-r", "src", "-o", "out/", "k", "v"],
          ["convert", "-r", "src", "-o", "out/", "--dtype", "I8", "--copy"],
          ["select", "-r", "src", "-o", "out/", "--keep", "*", "--copy"],
          ["repair", "-r", "src", "-o", "out/", "--copy"])


def play_planted_outputs(place):
    """Links, pipes and folders wait in the folder of -o under the names of the results: nothing
    is written through them, and other results are written all the same."""
    source, out = os.path.join(place.shared, "src"), os.path.join(place.shared, "out")
    names = ["link", "dangling", "hard", "pipe", "folder", "free"]

    def plant_outputs():
        os.mkdir(out)
        os.chmod(out, 0o1777)
        os.symlink(place.victim, os.path.join(out, "link.safetensors"))
        os.symlink(os.path.join(place.home, "new"), os.path.join(out, "dangling.safetensors"))
        os.mkfifo(os.path.join(out, "pipe.safetensors"), 0o666)
        os.mkdir(os.path.join(out, "folder.safetensors"))

    os.mkdir(source)
    for name in names:
        write(os.path.join(source, name + ".safetensors"), place.content)
        os.chown(os.path.join(source, name + ".safetensors"), OWNER, OWNER)
    for words in COPIES:
        for force in ([], ["--force"], ["--force", "--keep-mtime"]):
            if as_user(ATTACKER, plant_outputs):
                raise Wrong("nothing planted")
            os.link(place.victim, os.path.join(out, "hard.safetensors"))
            told = " ".join(words + force)
            done = place.run(0, *words, *force)
            expect_home(place)
            if done.returncode != 2:
                raise Wrong("%s: exit %d: %s" % (told, done.returncode, done.stderr.decode()))
            if not os.path.exists(os.path.join(out, "free.safetensors")):
                raise Wrong("%s: the free name was not written: %s" % (told, done.stderr.decode()))
            left = [name for name in os.listdir(out) if name.startswith(".")]
            if left:
                raise Wrong("%s: left %r" % (told, left))
            shutil.rmtree(out)


# ── Races ──

def flip(place, path, until):
    """The name switches between the attacker's model and a link to the victim's."""
    own, link = path + ".own", path + ".link"
    while time.monotonic() < until:
        write(own, place.content)
        os.rename(own, path)
        os.symlink(place.victim, link)
        os.rename(link, path)


def race(place, user, words, journalled):
    path = os.path.join(place.shared, "x.safetensors")

    def attack():
        # Even a checksum and the victim's inode are right.
        if journalled:
            write(os.path.join(place.shared, ".x.safetensors.sft-journal"), evil_journal(place.victim))
        flip(place, path, time.monotonic() + 60)

    child = os.fork()
    if child == 0:
        try:
            become(ATTACKER)()
            attack()
        finally:
            os._exit(0)
    try:
        while not os.path.lexists(path):
            time.sleep(0.001)
        for _ in range(RACES):
            place.run(user, *words)
            place.expect_content(place.victim, "%s on a name that changes" % " ".join(words))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def play_race_recover(place):
    race(place, 0, ["meta", "recover", "x.safetensors"], True)


def play_race_set(place):
    race(place, 0, ["meta", "set", "x.safetensors", "k", "v"], False)


def play_race_output(place):
    """-o --force replaces what is there, and follows no link that comes to be there."""
    race(place, 0, ["meta", "set", "m.safetensors", "-o", "x.safetensors", "--force", "k", "v"],
         False)
    race(place, 0, ["select", "m.safetensors", "-o", "./", "--force", "--copy", "--keep", "w",
                    "x.safetensors"], False)


def play_race_put(place):
    race(place, 0, ["put", "x.safetensors", "w"], False)


def swap(one, other):
    """Exchange the two names in a loop."""
    libc = ctypes.CDLL(None, use_errno=True)
    a, b = os.fsencode(one), os.fsencode(other)
    while libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, EXCHANGE) == 0:
        pass


def race_folder(place, words):
    """The folder of the attacker's model switches between a folder and a link to the owner's:
    what was checked in one is neither replaced nor written in the other."""
    folder, link = os.path.join(place.shared, "w"), os.path.join(place.shared, "l")
    victim = os.path.join(place.home, "v.safetensors")

    def attack():
        os.mkdir(folder)
        write(os.path.join(folder, "v.safetensors"), framed(EVIL) + b"EVILEVIL")
        write(os.path.join(place.shared, "o.safetensors"), framed(HEAD) + b"weights!")
        write(os.path.join(place.shared, "x.safetensors.index.json"),
              b'{"weight_map":{"v":"w/v.safetensors","w":"o.safetensors"}}')
        os.symlink(place.home, link)

    if as_user(ATTACKER, attack):
        raise Wrong("no folder made")
    child = os.fork()
    if child == 0:
        try:
            become(ATTACKER)()
            swap(folder, link)
        finally:
            os._exit(0)
    try:
        until = time.monotonic() + FOLDER_RACE
        for i in itertools.count():
            place.run(0, *words(i), "--no-sync")
            with open(victim, "rb") as file:
                found = file.read()
            if b"EVIL" in found or b'"v"' in found:
                raise Wrong("run %d: %s: the file is now %r" % (i, " ".join(words(0)), found[:200]))
            if time.monotonic() > until:
                return found
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def expect_home(place):
    place.expect_content(place.victim, "a folder that becomes a link")
    if os.listdir(place.home) != ["v.safetensors"]:
        raise Wrong("left in the folder of another: %r" % os.listdir(place.home))


def play_race_folder(place):
    """If root names the other user's model, it is changed, but only as asked."""
    race_folder(place, lambda i: ["meta", "set", "--safe", "w/v.safetensors", "k", "v" * (5000 + i)])


def play_race_folder_of_index(place):
    index = "x.safetensors.index.json"
    race_folder(place, lambda i: ["meta", "set", "--safe", "--each-shard", index, "k",
                                  "v" * (5000 + i)])
    expect_home(place)


def play_race_folder_of_shards(place):
    index = "x.safetensors.index.json"
    race_folder(place, lambda i: [["put", index, "v"], ["rename", index, "--add-prefix", "v"]][i % 2])
    expect_home(place)


def play_race_journal(place):
    """The attacker replaces the owner's journal while it is read. A sticky folder prevents that,
    so the test uses one that is not sticky."""
    os.chmod(place.shared, 0o777)

    def attack():
        evil, good = evil_journal(place.model), place.journal + ".good"
        until = time.monotonic() + 60
        while time.monotonic() < until:
            write(place.journal + ".evil", evil)
            try:
                os.rename(place.journal, good)
            except FileNotFoundError:
                pass
            os.rename(place.journal + ".evil", place.journal)

    child = os.fork()
    if child == 0:
        try:
            become(ATTACKER)()
            attack()
        finally:
            os._exit(0)
    try:
        for i in range(RACES):
            text = b"%08d" % i
            place.run(OWNER, "put", "m.safetensors", "w", stdin=text)
            with open(place.model, "rb") as file:
                found = file.read()
            if b"EVIL" in found or b'"v"' in found:
                raise Wrong("put: the file is now %r" % found)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def play_race_cache(place):
    """A shard's name switches between two files: the cache keeps the digests of each apart."""
    models, cache = os.path.join(place.shared, "s"), os.path.join(place.home, "cache")

    def attack():
        os.mkdir(models)
        for name, data in (("a", b"weights!"), ("b", b"EVILEVIL")):
            write(os.path.join(models, name), framed(HEAD) + data)
            os.symlink(name, os.path.join(models, "to-" + name))
        write(os.path.join(models, "m.safetensors.index.json"), b'{"weight_map":{"w":"to-a"}}')

    if as_user(ATTACKER, attack):
        raise Wrong("no models made")
    true = {}
    for name in "ab":
        with open(os.path.join(models, name), "rb") as file:
            true[os.fstat(file.fileno()).st_ino] = hashlib.sha256(file.read()).hexdigest()
    child = os.fork()
    if child == 0:
        try:
            become(ATTACKER)()
            swap(os.path.join(models, "to-a"), os.path.join(models, "to-b"))
        finally:
            os._exit(0)
    try:
        until = time.monotonic() + FOLDER_RACE
        while time.monotonic() < until:
            if os.path.exists(cache):
                os.remove(cache)
            place.run(OWNER, "hash", "--cache", cache, os.path.join(models, "m.safetensors.index.json"))
            if not os.path.exists(cache):
                continue
            with open(cache, encoding="utf-8") as file:
                for one in list(map(json.loads, file))[1:]:
                    if one["hashes"]["sha256"] != true.get(one["inode"], one["hashes"]["sha256"]):
                        raise Wrong("another file's digest is remembered: %r" % one)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


PLAYS = {name[5:]: play for name, play in list(globals().items()) if name.startswith("play_")}


def command(scratch):
    """The command where any user may run it."""
    words = shlex.split(os.environ.get("SFT_COMMAND") or os.path.join(ROOT, "build", "safetensors"))
    place = os.path.join(scratch, "safetensors")
    shutil.copy(words[-1], place)
    os.chmod(place, 0o755)
    return words[:-1] + [place]


def main():
    wanted = [name for name in sys.argv[1:] if name != "-v"] or list(PLAYS)
    if os.geteuid() != 0:
        print("attack: skipped: only root can be other users")
        print("0 passed, 0 failed, %d skipped" % len(wanted))
        return 0
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    scratch = tempfile.mkdtemp(prefix="sft-attack-")
    os.chmod(scratch, 0o755)
    try:
        sft = command(scratch)
        for name in wanted:
            try:
                PLAYS[name](Place(scratch, sft))
                results["passed"] += 1
                if verbose:
                    print("%s: passed" % name)
            except Skip as why:
                results["skipped"] += 1
                print("%s: skipped: %s" % (name, why))
            except Wrong as wrong:
                results["failed"] += 1
                print("%s: %s" % (name, wrong))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % results)
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
