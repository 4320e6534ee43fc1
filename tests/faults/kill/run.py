#!/usr/bin/env python3
"""Kill the commands that write, and look at what they leave.

  tests/faults/kill/run.py [--long] [--seed N] [-v] [SCENE...]

KILL at each call of the system that touches files (by strace, where it is there) and at
random times: every file is then the old or the new one, if need be after the `meta recover`
that the message names; at most one hidden file is left, which `repair --clean` removes. INT,
TERM and HUP leave nothing at all, and the exit status is 128 and the signal's number.
Without --long (or SFT_TARGET=kill): some twenty of these runs.
"""
import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import scenes  # noqa: E402
from scenes import Scene, Wrong, run  # noqa: E402

CALLS = ("openat,write,pwrite64,fsync,fdatasync,linkat,rename,renameat,renameat2,unlink,unlinkat,"
         "ftruncate,fallocate,copy_file_range,fchmod,mkdir,rmdir,utimensat,flock,fcntl,ioctl,close,"
         "exit_group")
LINE = re.compile(r"^\d+ +(\w+)\((.*)")
SCALE = 17 << 20  # from 16 MiB on headers grow by inserted blocks
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RANDOM_KILLS, RANDOM_STOPS = 240, 120  # of the long run


def find_strace():
    path = shutil.which("strace")
    if not path:
        return None
    probe = subprocess.run([path, "-f", "-qq", "-o", "/dev/null", "true"], check=False,
                           stderr=subprocess.DEVNULL)
    return path if probe.returncode == 0 else None


def points(scene, strace):
    """(call, n) for each call from the first on that names a file of the folder."""
    folder, log = scene.fresh_folder(), os.path.join(scene.scratch, "log")
    run(scene.words, folder, scene.stdin, [strace, "-f", "-qq", "-o", log, "-e", "trace=" + CALLS])
    counts, found, begun = {}, [], False
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            match = LINE.match(line)
            if not match:
                continue
            name = match.group(1)
            counts[name] = counts.get(name, 0) + 1
            begun = begun or name == "openat" and '"/' not in match.group(2)[:16]
            if begun:
                found.append((name, counts[name]))
    return found


def at_call(scene, strace, point, number):
    """The command, sent the signal as it makes that call."""
    folder = scene.fresh_folder()
    inject = "inject=%s:signal=%d:when=%d" % (point[0], number, point[1])
    before = [strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + point[0], "-e", inject]
    return folder, run(scene.words, folder, scene.stdin, before).returncode


def at_time(scene, seconds, number):
    """The command, sent the signal after a time."""
    folder = scene.fresh_folder()
    with subprocess.Popen([*scenes.command(), *scene.words], cwd=folder, stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            child.stdin.write(scene.stdin)
            child.stdin.close()
        except BrokenPipeError:
            pass
        time.sleep(seconds)
        child.send_signal(number)
        status = child.wait(scenes.LIMIT)
    return folder, status


def judge(scene, folder, status, number):
    if number == signal.SIGKILL:
        if status not in (0, -number):
            raise Wrong("exit %d" % status)
        return scene.judge(folder, status == 0)
    # Once it has cleaned up it dies of the signal: a shell says 128 and the number.
    if status not in (0, -number):
        raise Wrong("exit %d, expected death by signal %d" % (status, number))
    return scene.judge_exact(folder, status != 0, True)


def duration(scene):
    folder, begin = scene.fresh_folder(), time.monotonic()
    run(scene.words, folder, scene.stdin)
    return time.monotonic() - begin


def plan(all_scenes, strace, long, rng):
    """(scene, what, signal): what is a call's (name, n) or a share of the command's time."""
    kills, stops = [], []
    for scene in all_scenes:
        for i, point in enumerate(points(scene, strace) if strace else []):
            kills.append((scene, point, signal.SIGKILL))
            stops.append((scene, point, STOPS[i % len(STOPS)]))
    if not long:
        kills = rng.sample(kills, min(14, len(kills)))
        stops = rng.sample(stops, min(6, len(stops)))
    timed = [(scene, rng.random(), signal.SIGKILL) for scene in all_scenes
             for _ in range(-(-RANDOM_KILLS // len(all_scenes)))]
    timed += [(scene, rng.random(), rng.choice(STOPS)) for scene in all_scenes
              for _ in range(-(-RANDOM_STOPS // len(all_scenes)))]
    return kills + stops + (timed if long else rng.sample(timed, min(6, len(timed))))


def play(runs, strace, verbose):
    failed, took, seen = 0, {}, {}
    for scene, what, number in runs:
        if isinstance(what, float):
            took.setdefault(scene.name, duration(scene))
            where = "at %.1f ms" % (what * took[scene.name] * 1e3)
            folder, status = at_time(scene, what * took[scene.name], number)
        else:
            where = "at %s %d" % what
            folder, status = at_call(scene, strace, what, number)
        name = signal.Signals(number).name
        key = (name, "died" if status else "done")
        seen[key] = seen.get(key, 0) + 1
        try:
            judge(scene, folder, status, number)
        except Wrong as wrong:
            failed += 1
            print("%s, %s %s (exit %d): %s" % (scene.name, name, where, status, wrong))
        else:
            if verbose:
                print("%s, %s %s: exit %d" % (scene.name, name, where, status))
    print("# " + ", ".join("%s %s %d" % (*key, n) for key, n in sorted(seen.items())))
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int)
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("names", nargs="*", metavar="SCENE")
    args = parser.parse_args()
    long = args.long or os.environ.get("SFT_TARGET") == "kill"
    seed = args.seed if args.seed is not None else time.time_ns() % 10**6 if long else 1
    rng, strace = random.Random(seed), find_strace()
    scratch = tempfile.mkdtemp(prefix="sft-kill-")
    try:
        files = scenes.make_models(SCALE)
        chosen = [Scene(row, files, scratch) for row in scenes.SCENES
                  if not args.names or row[0] in args.names]
        if not chosen:
            sys.exit("tests/faults/kill: no scene is called " + ", ".join(args.names))
        runs = plan(chosen, strace, long, rng)
        print("# seed %d, %d commands, %d runs%s" % (seed, len(chosen), len(runs),
                                                     "" if strace else ", no strace"))
        failed = play(runs, strace, args.verbose)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    skipped = "" if strace else ", 1 skipped"
    print("%d passed, %d failed%s" % (len(runs) - failed, failed, skipped))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
