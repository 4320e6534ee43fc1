#!/usr/bin/env python3
"""Run the fuzz harnesses.

    run.py --replay             every seed and corpus file once through each harness, with the
                                programs of SFT_BUILD (default: build), SFT_EMULATE before them
    run.py --seconds N          libFuzzer for N seconds in all, shared between the harnesses and
                                the comparison with the official package
           [--only NAME,...]    only these
           [--jobs J]           so many at once (default: one per processor)
           [--build DIR]        of the libFuzzer programs (default: build/fuzz)

What is found lies in DIR/crashes, new inputs in DIR/corpus. Ends with
"N passed, N failed".
"""
import argparse
import concurrent.futures
import glob
import os
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SEEDS = os.path.join(ROOT, "fuzz", "corpus")
HARNESSES = {"open": "open", "walk": "open", "scan": "open", "slice": "slice", "json": "json",
             "index": "index", "info": "info", "beside": "beside", "dataset": "dataset",
             "import": "import", "command": "command", "answer": "answer",
             "remote": "remote", "records": "records"}  # name: its seeds
DICTIONARIES = {"info": "info.dict", "beside": "info.dict", "dataset": "command.dict",
                "command": "command.dict", "import": "import.dict", "answer": "answer.dict",
                "remote": "remote.dict", "records": "records.dict"}


def replay_inputs(name):
    """Seeds, and the conformance corpus for those that read whole files."""
    inputs = [os.path.join(SEEDS, HARNESSES[name])]
    if HARNESSES[name] == "open":
        inputs += sorted(glob.glob(os.path.join(ROOT, "tests", "corpus", "*", "")))
    if name == "index":
        inputs += sorted(glob.glob(os.path.join(ROOT, "tests", "corpus", "**", "*.json"),
                                   recursive=True))
    return inputs


def replay(name):
    build = os.environ.get("SFT_BUILD") or os.path.join(ROOT, "build")
    command = shlex.split(os.environ.get("SFT_EMULATE", ""))
    command.append(os.path.join(build, "fuzz", "replay_" + name))
    done = subprocess.run(command + replay_inputs(name), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def fuzz(name, seconds, build):
    found, crashes = os.path.join(build, "corpus", name), os.path.join(build, "crashes")
    for folder in (found, crashes):
        os.makedirs(folder, exist_ok=True)
    done = subprocess.run(
        [os.path.join(build, "fuzz", "fuzz_" + name), found, os.path.join(SEEDS, HARNESSES[name]),
         "-max_total_time=%d" % seconds, "-timeout=20", "-rss_limit_mb=4096", "-max_len=65536",
         "-dict=" + os.path.join(ROOT, "fuzz", DICTIONARIES.get(name, "json.dict")),
         "-print_final_stats=1",
         "-artifact_prefix=%s/%s-" % (crashes, name)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def differential(seconds):
    """The same machines as `make test`, for as long as there is."""
    script = os.path.join(ROOT, "tests", "compat", "differential.py")
    done = subprocess.run([sys.executable, script, "--minutes", "%.2f" % (seconds / 60)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def last_words(name, output):
    if name == "differential":
        return output.strip().splitlines()[-1:] or [""]
    wanted = ("stat::number_of_executed_units", "inputs replayed")
    return [line.strip() for line in output.splitlines() if any(w in line for w in wanted)]


def plan(args):
    """(name, function, arguments) of each piece of work."""
    names = args.only.split(",") if args.only else list(HARNESSES)
    if args.replay:
        return [(name, replay, (name,)) for name in names]
    compare = os.path.exists(os.path.join(ROOT, "build", "tests", "verdict"))
    pieces = len(names) + (compare and not args.only)
    share = max(1, args.seconds * args.jobs // pieces)
    work = [(name, fuzz, (name, share, args.build)) for name in names]
    if pieces > len(names):
        work.append(("differential", differential, (share,)))
    return work


def main():
    parser = argparse.ArgumentParser(usage=__doc__.replace("%", "%%"))
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "fuzz"))
    args = parser.parse_args()
    failed, work = 0, plan(args)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        running = [(name, pool.submit(function, *rest)) for name, function, rest in work]
        for name, future in running:
            status, output = future.result()
            failed += status != 0
            said = "; ".join(last_words(name, output))
            print("%-14s %s  %s" % (name, "ok" if status == 0 else "FAILED", said), flush=True)
            if status:
                print("\n".join("    " + line for line in output.splitlines()[-40:]), flush=True)
    print("%d passed, %d failed" % (len(work) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
