"""Files that other programs have open, mapped or locked; two of our own processes at once."""
import concurrent.futures
import json
import os
import re
import stat
import struct

from world import WINDOWS, case, demand, held, hidden, read, run, scenes, sft, \
    small, write

M = "m.safetensors"
LONG = scenes.LONG
# Ways to write a file anew under its name.
REPLACES = (["meta", "set", M, "k", LONG, "--safe"],
            ["convert", M, "--dtype", "BF16", "-o", M, "--force"],
            ["rename", M, "--map", "a=first", "-o", M, "--force"])
TRACE = {"WINEDEBUG": "+file"}
OPENS = 256  # that are traced, of one file by one command: each is tried 64 times at most


def replaced(folder, how):
    """Each of these gives the file its new content; who had it sees the old one."""
    path = os.path.join(folder, M)
    for words in REPLACES:
        old = write(path, small()) and read(path)
        with held(how, path) as seen:
            sft(words, folder)
            demand(read(path) != old, " ".join(words), "changed nothing")
            sft(["check", M], folder)
        demand(seen[0] == old[:16], "who had it", how, "sees", seen[0], "expected", old[:16])
        sft(["repair", "--clean", "."], folder)
        demand(not hidden(folder), words, "left", hidden(folder))


@case
def replace_open(folder):
    replaced(folder, "open")


@case
def replace_mapped(folder):
    replaced(folder, "map")


@case
def replace_locked(folder):
    """A lock on bytes of the old file says nothing about the new one, which readers get."""
    path = os.path.join(folder, M)
    old = write(path, small()) and read(path)
    with held("lock", path):
        done = sft(["meta", "set", M, "k", LONG, "--safe"], folder, status=None)
    now = read(path)
    demand(done.returncode == 0 or now == old, "exit", done.returncode, "and the file changed")
    sft(["check", M], folder)


def opens(done):
    """How often it tried to open the model; run with TRACE."""
    return len(re.findall(rb'trace:file:CreateFileW L"[^"]*m\.safetensors', done.stderr))


def refused(folder, how):
    """Nobody can replace it: an error that says so, after some tries, and the old file stays."""
    path = os.path.join(folder, M)
    for words in REPLACES:
        write(path, small())
        old = read(path)
        with held(how, path) as seen:
            done = sft(words, folder, status=None, **TRACE)
            demand(done.returncode not in (0, 1), " ".join(words), "exit", done.returncode)
            named = re.search(rb"^safetensors: .*m\.safetensors", done.stderr, re.M)
            demand(named, "the message names no file:", done.stderr[-600:])
            demand(2 <= opens(done) <= OPENS, words, "%d tries" % opens(done))
        demand(read(path) == old and seen[0] == old[:16], "the file changed")
        demand(not hidden(folder), words, "left", hidden(folder))
        sft(words, folder)  # and now it can
        demand(not hidden(folder), words, "left", hidden(folder))


@case
def refuse_shut(folder):
    refused(folder, "shut")


@case
def refuse_shut_mapped(folder):
    refused(folder, "map-shut")


@case
def read_while_written(folder):
    """Readers and editors of one file at once: each read is a whole file."""
    path = write(os.path.join(folder, M), small())

    def edit(n):
        return [run(WINDOWS, ["meta", "set", M, "k%d" % (n % 2), "v" * (i % 7 * 40)], folder)
                for i in range(8)]

    def look(_):
        return [run(WINDOWS, ["check", M], folder) for _ in range(12)]

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(edit, 0), pool.submit(edit, 1), pool.submit(look, 0)]
        edits, looks = [d for j in jobs[:2] for d in j.result()], jobs[2].result()
    for done in looks:
        demand(done.returncode == 0, "a reader says", done.stdout, done.stderr)
    good = sum(done.returncode == 0 for done in edits)
    demand(good >= 4, "only %d of %d edits, the last:" % (good, len(edits)), edits[-1].stderr)
    demand(os.path.exists(path) and not hidden(folder), "left", hidden(folder))


@case
def locks_of_two_processes(folder):
    """Every edit that says it was done is in the file."""
    write(os.path.join(folder, M), small())

    def edit(who):
        names = []
        for i in range(10):
            name = "%s%d" % (who, i)
            if run(WINDOWS, ["meta", "set", M, name, "x" * 30], folder).returncode == 0:
                names.append(name)
        return names

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = [name for names in pool.map(edit, "ab") for name in names]
    keys = sft(["meta", "list", M], folder).stdout.decode()
    lost = [name for name in done if name not in keys]
    demand(len(done) >= 5 and not lost, "%d edits," % len(done), "lost", lost)
    demand(not hidden(folder), "left", hidden(folder))


@case
def denial_takes_some_tries(folder):
    """A file that nobody else may open: some tries, then an error."""
    path = write(os.path.join(folder, M), small())
    for words in (["info", M], ["check", M], ["meta", "set", M, "k", "w"], ["hash", M]):
        with held("alone", path):
            done = sft(words, folder, status=None, **TRACE)
        demand(done.returncode not in (0, 1), words, "exit", done.returncode)
        demand(2 <= opens(done) <= 64, words, "%d tries" % opens(done))


@case
def denial_that_ends(folder):
    """As of a scanner, which has a new file for a moment."""
    path = write(os.path.join(folder, M), small())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with held("alone", path):
            job = pool.submit(sft, ["info", M], folder, None)
            try:
                job.result(0.4)
            except concurrent.futures.TimeoutError:
                pass
        demand(job.result().returncode == 0, "it gave up:", job.result().stderr)


@case
def read_only_target(folder):
    """As on Linux, where the folder says who replaces a file; it stays read-only."""
    path = os.path.join(folder, M)
    for words in REPLACES:
        write(path, small())
        os.chmod(path, 0o444)
        sft(words, folder)
        demand(not os.stat(path).st_mode & stat.S_IWUSR or "--force" in words,
               words, "it is not read-only any more")
        os.chmod(path, 0o644)
        sft(["check", M], folder)
        demand(not hidden(folder), words, "left", hidden(folder))
        os.remove(path)


@case
def sparse_beyond_4_gb(folder):
    """Offsets are 64 bits wide: read, changed and found behind 4 GB of a hole."""
    size, at = 5 << 30, (4 << 30) + 12345
    head = model_head({"big": ("U8", [size], [0, size]), "end": ("F32", [2], [size, size + 8])})
    path = os.path.join(folder, M)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + size + 8)
        file.seek(len(head) + at)
        file.write(b"here")
        file.seek(len(head) + size)
        file.write(b"\x00\x00\x80\x3f\x00\x00\x00\x40")
    sft(["check", M], folder)
    found = sft(["cat", M, "end"], folder).stdout
    demand(b"1" in found and b"2" in found, "cat says", found)
    found = sft(["cat", "--as", "raw", M, "big[%d:%d]" % (at, at + 4)], folder).stdout
    demand(found == b"here", "cat says", found)
    sft(["meta", "set", M, "k", "v"], folder)
    sft(["put", M, "end"], folder, stdin=b"\x00\x00\x40\x40" * 2)
    with open(path, "rb") as file:
        file.seek(-8, os.SEEK_END)
        demand(file.read() == b"\x00\x00\x40\x40" * 2, "put wrote elsewhere")
    demand(os.path.getsize(path) >= size, "the file is short")
    demand(os.stat(path).st_blocks * 512 < 1 << 30, "the hole was filled")


def model_head(tensors):
    header = {name: {"dtype": row[0], "shape": row[1], "data_offsets": row[2]}
              for name, row in tensors.items()}
    text = json.dumps(header).encode()
    text += b" " * (4096 - 8 - len(text))
    return struct.pack("<Q", len(text)) + text
