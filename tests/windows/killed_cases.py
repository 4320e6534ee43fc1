"""A process under wine is killed while it writes: what it leaves, and that it is recovered."""
import glob
import os
import random
import signal
import subprocess
import time

from world import DIRECT, WINDOWS, Wrong, case, demand, held, hidden, read, scenes, sft, small, \
    write

SCALE = 4 << 20
RUNS = 8  # of each command
M = "m.safetensors"


def is_open(folder):
    """Whether a process has files of a folder open."""
    for link in glob.iglob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link).startswith(folder + "/"):
                return True
        except OSError:  # closed, or ended
            continue
    return False


def killed_at(scene, seconds):
    """Its folder after a death at that time, and whether it had come to its end."""
    folder = scene.fresh_folder()
    with subprocess.Popen([*DIRECT, *scene.words], cwd=folder, stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            child.stdin.write(scene.stdin)
            child.stdin.close()
        except BrokenPipeError:
            pass
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        status = child.wait(scenes.LIMIT)
    late = time.monotonic() + scenes.LIMIT
    while is_open(folder) and time.monotonic() < late:  # wine's server closes its files
        time.sleep(0.05)
    return folder, status


def scene_case(row):
    def one(folder):
        rng = random.Random(row[0])
        try:
            scene = scenes.Scene(row, scenes.make_models(SCALE), folder)
        except Wrong as wrong:
            raise Wrong("%s: %s" % (row[0], wrong)) from wrong
        begin = time.monotonic()
        scenes.run(scene.words, scene.fresh_folder(), scene.stdin)
        whole = time.monotonic() - begin
        ends = {0: 0, -9: 0}
        for _ in range(RUNS):
            at = rng.uniform(0.15, 1.0) * whole
            where, status = killed_at(scene, at)
            demand(status in ends, "exit", status)
            ends[status] += 1
            try:
                scene.judge(where, status == 0)
            except Wrong as wrong:
                raise Wrong("killed after %.3f of %.3f s: %s" % (at, whole, wrong)) from wrong
    one.__name__ = "kill_" + row[0].replace("-", "_")
    return case(one)


for _row in scenes.SCENES:
    scene_case(_row)


# ── Ctrl-C ──

STOPPED = 0xC000013A & 255  # the exit status that cmd and PowerShell know, as Linux sees it
STOPS = 12  # tries to be in time


def has_temporary(folder):
    return any(name.startswith(".") for _, _, names in os.walk(folder) for name in names)


def stopped_at_work(scene):
    """Its folder after a Ctrl-C that is typed once there is a temporary file; its status."""
    folder, sign = scene.fresh_folder(), os.path.join(scene.scratch, "sign")
    if os.path.exists(sign):
        os.remove(sign)
    words = [*WINDOWS[:-1], "--ctrl-c", sign, WINDOWS[-1], *scene.words]
    with subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as child:
        while child.poll() is None and not has_temporary(folder):
            time.sleep(0.001)
        write(sign, b"")
        said = child.communicate(timeout=scenes.LIMIT)[1]
    return folder, child.returncode, said


def stop_case(name):
    def one(folder):
        row = next(row for row in scenes.SCENES if row[0] == name)
        scene = scenes.Scene(row, scenes.make_models(64 << 20), folder)
        stopped = 0
        for _ in range(STOPS):
            where, status, said = stopped_at_work(scene)
            demand(status in (0, STOPPED), "exit", status, said)
            scene.judge_exact(where, status != 0, True)
            stopped += status != 0 and scenes.look(where) == scene.old
            if stopped:
                return
        raise Wrong("not stopped in time, %d times" % STOPS)
    one.__name__ = "stop_" + name.replace("-", "_")
    return case(one)


for _name in ("convert-over", "safe"):
    stop_case(_name)


@case
def kill_while_replacing_mapped(folder):
    """The target is mapped, so that it is moved away first: between the two renames there is no
    file of that name, and everybody is told what to do."""
    rng = random.Random(7)
    path = os.path.join(folder, M)
    old = small()
    words = ["meta", "set", M, "k", scenes.LONG, "--safe"]
    write(path, old)
    sft(words, folder)
    new = read(path)
    for _ in range(24):
        for name in os.listdir(folder):
            os.remove(os.path.join(folder, name))
        write(path, old)
        with held("map", path):
            with subprocess.Popen([*DIRECT, *words], cwd=folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as child:
                time.sleep(rng.uniform(0.05, 0.5))
                child.kill()
            time.sleep(0.05)
            judge_moved(folder, path, old, new)
        sft(["repair", "--clean", "."], folder)
        demand(not hidden(folder), "left", hidden(folder))


def judge_moved(folder, path, old, new):
    """Old or new, if need be after the recovery that a reader is told of."""
    if not os.path.exists(path):
        done = sft(["check", M], folder, status=None)
        demand(done.returncode and b"meta recover" in done.stdout + done.stderr,
               "a reader is not told:", done.stdout, done.stderr, os.listdir(folder))
        sft(["meta", "recover", M], folder)
    demand(read(path) in (old, new), "neither old nor new")
    sft(["check", M], folder)


@case
def between_two_renames(folder):
    """The state that step 3a of os_win32_replace.c leaves, made by hand."""
    path, old = os.path.join(folder, M), small()
    parked = os.path.join(folder, "." + M + ".sft-0a9v1b2c.old")
    for spoiled in (False, True):
        write(parked, old[:-1] if spoiled else old)
        for words in (["info", M], ["check", M], ["ls", M]):
            done = sft(words, folder, status=None)
            demand(done.returncode and b"meta recover" in done.stdout + done.stderr,
                   words, "does not tell:", done.stdout, done.stderr)
        sft(["meta", "recover", M], folder)
        demand(read(path) == (old[:-1] if spoiled else old) and not hidden(folder),
               "not recovered:", os.listdir(folder))
        os.remove(path)
    write(parked, old)
    done = sft(["meta", "set", M, "k", "w"], folder, status=None)  # it may have been removed since
    demand(done.returncode and b"meta recover" in done.stdout + done.stderr, done.stdout, done.stderr)
    demand(not os.path.exists(path) and read(parked) == old, "restored by an edit")
    write(parked, old)
    write(path, small(2))  # the new one came; the old one is a leftover
    sft(["check", M], folder)
    sft(["repair", "--clean", "."], folder)
    demand(read(path) == small(2) and not hidden(folder), "left", hidden(folder))
