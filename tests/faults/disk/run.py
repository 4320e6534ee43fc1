#!/usr/bin/env python3
"""Real disk failures under the commands that write.

  tests/faults/disk/run.py [-v] [KIND...]

  tmpfs     a small one, filled up to some bytes (needs root)
  ext4      the same with an image on a loop device (needs root and mkfs.ext4)
  fsize     RLIMIT_FSIZE, with SIGXFSZ's default action
  readonly  a folder nobody may write to, for a user who is not root; a file system that is
            mounted for reading only (needs root)
  norename  renaming fails as on a mounted object store (needs strace)
  times     both times are set, for some file systems set no single one (needs strace)
  nofile    RLIMIT_NOFILE, from what is too few descriptors for anything to enough

Each time: exit 2 and a message that says why and names the output; what stood there is the same, byte for byte, and
nothing else is there. Or, where there was enough space: exit 0 and the new files.
"""
import argparse
import functools
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "kill"))
import scenes  # noqa: E402
from scenes import SCENES, Scene, Wrong, look, run  # noqa: E402

SCALE = 1 << 20
NOBODY = 65534
results = {"passed": 0, "failed": 0, "skipped": 0}
verbose = False


class Skip(Exception):
    pass


def tell(name, scene, text):
    print("%s, %s: %s" % (name, scene.name, text))


def judge(scene, folder, done, reasons):
    """The outcome: "done" or "refused"."""
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode == 0:
        scene.judge_exact(folder, False, True)
        return "done"
    if done.returncode != 2:
        raise Wrong("exit %d: %s" % (done.returncode, said))
    if not said.startswith("safetensors: ") or not any(r in said for r in reasons):
        raise Wrong("does not say why: %s" % said)
    if "-o" in scene.words and scene.words[scene.words.index("-o") + 1] not in said \
            and "Too many open files" not in said:
        raise Wrong("does not name the output: %s" % said)
    scene.judge_exact(folder, True, False)
    return "refused"


def attempt(name, scene, folder, done, reasons, wanted=None):
    """Judge one run; wanted: the state it must leave, if that is known."""
    try:
        came = judge(scene, folder, done, reasons)
        if wanted and came != wanted:
            raise Wrong("expected it %s, found it %s" % (wanted, came))
        results["passed"] += 1
        if verbose:
            tell(name, scene, "%s %s" % (came, done.stderr.decode("utf-8", "replace").strip()))
        return came
    except Wrong as wrong:
        results["failed"] += 1
        tell("failed: " + name, scene, wrong)
        return None


def make_scenes(scratch, scale=SCALE):
    files = scenes.make_models(scale)
    return [Scene(row, files, scratch) for row in SCENES]


# ── A full disk ──

def system(*words):
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Skip("%s: %s" % (words[0], done.stdout.decode("utf-8", "replace").strip()))


def fill(path, space):
    """A file that leaves `space` bytes free on the disk, to a block. Until none is free twice, because ext4 frees
    blocks of removed files later. (One may be kept for what it notes itself.)"""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        full = 0
        for turn in range(200):
            for size in (1 << 20, 4096, 512):
                os.sync()
                try:
                    while os.write(fd, b"\xff" * size):
                        os.fsync(fd)
                except OSError:
                    pass
            full = full + 1 if os.statvfs(path).f_bavail <= 1 else 0
            if full == 2:
                break
            time.sleep(0.01 * (turn > 1))
        else:
            raise Skip("%s: %d blocks stay free" % (os.path.dirname(path), os.statvfs(path).f_bavail))
        if space:
            os.ftruncate(fd, max(0, os.fstat(fd).st_size - space))
        os.fsync(fd)
    finally:
        os.close(fd)


def play_full(name, all_scenes, mount):
    """Each command with no free space, then with more and more."""
    came = []
    for scene in all_scenes:
        for space in (0, 4096, 12288, 65536, 400000, 1 << 20):
            filler, folder = os.path.join(mount, "filler"), os.path.join(mount, "work")
            scenes.make_folder(folder, scene.files, scene.wanted)
            fill(filler, space)
            done = run(scene.words, folder, scene.stdin)
            came.append(attempt("%s, %d bytes free" % (name, space), scene, folder, done,
                                ["No space left on device"], "refused" if space == 0 else None))
            os.unlink(filler)
            shutil.rmtree(folder)
    print("# %s: %d refused, %d done" % (name, came.count("refused"), came.count("done")))
    if not came.count("done"):
        raise Wrong("no command was done: the test is not what it says")


def need_root():
    if os.geteuid() != 0:
        raise Skip("only root can mount")


def with_mount(words, scratch, use):
    mount = os.path.join(scratch, "mount")
    os.makedirs(mount, exist_ok=True)
    system("mount", *words, mount)
    try:
        use(mount)
    finally:
        system("umount", "-l", mount)


def play_tmpfs(scratch):
    need_root()
    all_scenes = make_scenes(scratch)
    with_mount(["-t", "tmpfs", "-o", "size=4m", "tmpfs"], scratch,
               lambda mount: play_full("tmpfs", all_scenes, mount))


def make_image(scratch, size):
    if not shutil.which("mkfs.ext4"):
        raise Skip("no mkfs.ext4")
    image = os.path.join(scratch, "image")
    with open(image, "wb") as file:
        file.truncate(size)
    system("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", image)
    return image


def play_ext4(scratch):
    need_root()
    image = make_image(scratch, 6 << 20)
    all_scenes = make_scenes(scratch)
    with_mount(["-o", "loop", image], scratch,
               lambda mount: play_full("ext4", all_scenes, mount))
    os.unlink(image)


def play_insert(scratch):
    """A header that grows by inserted blocks when no block is free."""
    need_root()
    image = make_image(scratch, 26 << 20)
    files = scenes.make_models(17 << 20)
    grow = [Scene(row, files, scratch) for row in SCENES if row[0] == "grow"]
    with_mount(["-o", "loop", image], scratch,
               lambda mount: play_full("ext4, insert", grow, mount))
    os.unlink(image)


# ── RLIMIT_FSIZE ──

def limit_files(size):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


def play_fsize(scratch):
    came = []
    for scene in make_scenes(scratch):
        for size in (0, 100, 5000, 100000, 300000):
            folder = scene.fresh_folder()
            done = run(scene.words, folder, scene.stdin, preexec_fn=limit_files(size))
            came.append(attempt("files of %d bytes" % size, scene, folder, done,
                                ["File too large"], "refused" if size == 0 else None))
    print("# fsize: %d refused, %d done" % (came.count("refused"), came.count("done")))


# ── Nobody may write there ──

def as_nobody():
    """The words before a command that run it as another user."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    return ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]


def lock_folder(folder, open_again=False):
    for at, folders, names in os.walk(folder):
        os.chmod(at, 0o755 if open_again else 0o555)
        for name in names:
            os.chmod(os.path.join(at, name), 0o644)
            if os.geteuid() == 0:
                os.chown(os.path.join(at, name), NOBODY, NOBODY)


def play_folder(scratch):
    """The folder is read-only; the files in it are not."""
    before = as_nobody()
    os.chmod(scratch, 0o755)
    words = scenes.command()
    copy = os.path.join(scratch, "command")
    shutil.copy(words[-1], copy)  # where nobody can reach it
    os.environ["SFT_COMMAND"] = shlex.join(words[:-1] + [copy])
    for scene in make_scenes(scratch):
        folder = scene.fresh_folder()
        lock_folder(folder)
        done = run(scene.words, folder, scene.stdin, before)
        lock_folder(folder, True)
        attempt("read-only folder", scene, folder, done, ["Permission denied"], "refused")
    if before:
        folder = os.path.join(scratch, "work")
        os.chmod(os.path.join(folder, "out"), 0o700)
        with open(os.path.join(folder, "n.safetensors"), "wb") as file:
            file.write(scenes.model({"a": ("U8", [1], b"x")}))
        done = run(["mv", "n.safetensors", "out/x.safetensors", "--number"], folder, b"", before)
        good = done.returncode == 2 \
            and b"out/x.safetensors: cannot check whether it exists: Permission denied" in done.stderr
        results["passed" if good else "failed"] += 1
        if not good:
            print("closed folder, mv: exit %d: %s" % (done.returncode, done.stderr))
    os.environ["SFT_COMMAND"] = shlex.join(words)


def play_mounted(scratch):
    """The file system is read-only."""
    need_root()
    all_scenes = make_scenes(scratch)

    def use(mount):
        for scene in all_scenes:
            folder = os.path.join(mount, "work")
            scenes.make_folder(folder, scene.files, scene.wanted)
            system("mount", "-o", "remount,ro", mount)
            done = run(scene.words, folder, scene.stdin)
            system("mount", "-o", "remount,rw", mount)
            attempt("read-only mount", scene, folder, done, ["Read-only file system"], "refused")
            shutil.rmtree(folder)
        for words in ["trash", scenes.M], ["mv", scenes.M, "out/"]:
            scenes.make_folder(folder, all_scenes[0].files, "m.")
            old = look(folder)
            system("mount", "-o", "remount,ro", mount)
            done = run(words, folder)
            system("mount", "-o", "remount,rw", mount)
            told = b"safetensors: " + (scenes.M.encode() if words[0] == "trash" else folder.encode())
            good = done.returncode == 2 and look(folder) == old and done.stderr.startswith(told) \
                and b"Read-only file system" in done.stderr
            results["passed" if good else "failed"] += 1
            if not good:
                print("read-only mount, %s: exit %d: %s" % (words[0], done.returncode, done.stderr))
            shutil.rmtree(folder)

    with_mount(["-t", "tmpfs", "-o", "size=8m", "tmpfs"], scratch, use)


# ── No file takes another's name ──

def play_norename(scratch):
    strace = shutil.which("strace")
    if not strace:
        raise Skip("no strace")
    came = []
    for error, text in (("ENOSYS", "Function not implemented"),
                        ("EPERM", "Operation not permitted"),
                        ("EOPNOTSUPP", "Operation not supported")):
        before = [strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=rename,renameat,renameat2",
                  "-e", "inject=rename,renameat,renameat2:error=" + error]
        for scene in make_scenes(scratch):
            folder = scene.fresh_folder()
            done = run(scene.words, folder, scene.stdin, before)
            came.append(attempt("rename: " + error, scene, folder, done, [text]))
    print("# norename: %d refused, %d done" % (came.count("refused"), came.count("done")))
    if came.count("refused") < 15:
        raise Wrong("few commands were refused: the test is not what it says")


# ── Times ──

def play_times(scratch):
    if not shutil.which("strace"):
        raise Skip("no strace")
    folder, log = os.path.join(scratch, "work"), os.path.join(scratch, "log")
    scenes.make_folder(folder, scenes.make_models(4096), "m.")
    done = run(["meta", "set", scenes.M, "k", "w", "--keep-mtime"], folder, b"",
               ["strace", "-f", "-qq", "-o", log, "-e", "trace=utimensat"])
    with open(log, encoding="utf-8", errors="replace") as file:
        told = file.read()
    good = done.returncode == 0 and "utimensat(" in told and "UTIME_OMIT" not in told
    results["passed" if good else "failed"] += 1
    if not good:
        print("times: exit %d: %s" % (done.returncode, told))


# ── Few descriptors ──

MOST_FILES = 24


def play_nofile(scratch):
    came = []
    for scene in make_scenes(scratch, 4096):
        outcomes = []
        for most in range(4, MOST_FILES):
            folder = scene.fresh_folder()
            limit = functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (most, most))
            done = run(scene.words, folder, scene.stdin, preexec_fn=limit)
            outcomes.append(attempt("%d files" % most, scene, folder, done,
                                    ["Too many open files"]))
        came += outcomes
        if outcomes[-1] != "done":
            raise Wrong("%s: not done with %d files" % (scene.name, MOST_FILES - 1))
    print("# nofile: %d refused, %d done" % (came.count("refused"), came.count("done")))
    if came.count("refused") < 40:
        raise Wrong("few commands were refused: the test is not what it says")


KINDS = {"tmpfs": [play_tmpfs], "ext4": [play_ext4, play_insert], "fsize": [play_fsize],
         "readonly": [play_folder, play_mounted], "norename": [play_norename],
         "times": [play_times], "nofile": [play_nofile]}


def play(test, kind):
    scratch = tempfile.mkdtemp(prefix="sft-disk-")
    try:
        test(scratch)
    except Skip as why:
        results["skipped"] += 1
        print("%s: skipped: %s" % (kind, why))
    except Wrong as wrong:
        results["failed"] += 1
        print("%s: %s" % (kind, wrong))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main():
    global verbose
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    args = parser.parse_args()
    verbose = args.verbose
    for kind in args.kinds or KINDS:
        for test in KINDS[kind]:
            play(test, kind)
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % results)
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
