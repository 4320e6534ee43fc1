#!/usr/bin/env python3
"""The import against the libraries of the formats, over generated and mutated files.

usage: tests/differential/run.py [--format NAME,...] [--count N] [--seed S] [--workers W]
       tests/differential/run.py --format NAME [--seed S] --case I [--keep FILE]

Whenever both readers accept a file, tensors must have the same names, dtypes, shapes and bytes.
Where only the library refuses, what is left without the calls that fail must be the same, or its
reason one of those that the format's module lists.
Where only the import refuses, nothing is compared; but a share of the files must pass both.
Case I of a seed is always the same file; --case shows what both make of it.

A format is a module NAME_format.py of this folder, with

  SUFFIX             of its files' names
  OPTIONS            of the import, as tests/tools/import_dump.c spells them ("all,shared=copy")
  BOTH               share of the files, from 0 to 1, that both readers must accept at least
  make(rng)          bytes of one file, composed and perhaps mutated, of a random.Random
  read(path)         {name: (dtype, shape, bytes)} by the library, as a safetensors file has them;
                     raises whatever the library refuses with, or Skip for what cannot be compared
  allowed(why, data, report)
                     a reason in words why it is right to read what the library refuses with the
                     exception `why`; None: it is not
  forgiving(path)    optional: as read, of a file that read refuses: it goes on where a call fails,
                     and what it reads must be the same; raises what it cannot go on behind
  same(ours, theirs, report)
                     optional: None if the two dicts are the same, else the difference in words

A module whose packages are missing is skipped, or run with build/venv if that is there. A library
that crashes is its own fault, and counts as a refusal.
"""
import argparse
import collections
import glob
import importlib
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import resource
import shlex
import subprocess
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
DUMP = shlex.split(os.environ.get("SFT_DUMP")
                   or shlex.quote(os.path.join(BUILD, "tests", "import_dump")))
VENV = os.path.join(ROOT, "build", "venv", "bin", "python")
OUR_MEMORY, ITS_MEMORY = 4 << 30, 16 << 30  # of address space
MOST_SHOWN = 20
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "import")]

from plain import read_plain  # noqa: E402


class Skip(Exception):
    """What the library reads cannot be compared: it is too large, or no tensor."""


class Ours:
    """The import, in a process of its own."""

    def __init__(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (OUR_MEMORY, OUR_MEMORY))
        self.child = subprocess.Popen(DUMP, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      preexec_fn=limit)

    def read(self, options, path, out):
        """(report, tensors); tensors are None if it refuses; report is None if it died."""
        try:
            self.child.stdin.write(f"{options}\t{path}\t{out}\n".encode())
            self.child.stdin.flush()
        except BrokenPipeError:
            return None, None
        line = self.child.stdout.readline()
        if not line:
            return None, None
        report = json.loads(line)
        return report, None if "error" in report else read_plain(out)[0]

    def close(self):
        self.child.stdin.close()
        return self.child.wait()


def difference(ours, theirs, report):  # pylint: disable=unused-argument
    """None, or in words what two dicts of tensors do not share."""
    if ours.keys() != theirs.keys():
        return f"names: only ours {sorted(ours.keys() - theirs.keys())[:5]}, " \
               f"only its {sorted(theirs.keys() - ours.keys())[:5]}"
    for name, value in ours.items():
        if value[:2] != theirs[name][:2]:
            return f"{name!r}: {value[:2]}, the library {theirs[name][:2]}"
        if value[2] != theirs[name][2]:
            return f"{name!r}: bytes {value[2][:24].hex()}, " \
                   f"the library {theirs[name][2][:24].hex()}"
    return None


def judge(module, ours, folder, data):
    """(outcome, what is wrong or None) of one file."""
    path, out = os.path.join(folder, "in" + module.SUFFIX), os.path.join(folder, "out")
    with open(path, "wb") as file:
        file.write(data)
    report, tensors = ours.read(module.OPTIONS, path, out)
    if report is None:
        return "died", f"import_dump died with status {ours.close()}"
    try:
        theirs, why = module.read(path), None
    except Skip as error:
        return f"skipped: {error}", None
    except Exception as error:  # pylint: disable=broad-exception-caught
        theirs, why = None, error
    if tensors is None:
        return ("only its: " if theirs is not None else "neither: ") + report["error"], None
    same = getattr(module, "same", difference)
    if theirs is not None:
        return "both", same(tensors, theirs, report)
    words = f"the library refuses with {type(why).__name__}: {str(why)[:300]}"
    try:
        found = same(tensors, module.forgiving(path), report)
        return "only ours: the same without what fails", f"{found}; {words}" if found else None
    except Skip as error:
        return f"skipped: {error}", None
    except Exception:  # pylint: disable=broad-exception-caught
        reason = module.allowed(why, data, report)
        return f"only ours: {reason}", None if reason else f"read, but {words}"


def case_of(module, name, seed, i):
    return module.make(random.Random(f"{name} {seed} {i}"))


def work(name, seed, begin, end, step, pipe):
    """Cases begin, begin + step, … in a process that a crash of the library may end."""
    module = importlib.import_module(name + "_format")
    resource.setrlimit(resource.RLIMIT_AS, (ITS_MEMORY, ITS_MEMORY))
    ours = Ours()
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="sft-differential-", dir=base) as folder:
        for i in range(begin, end, step):
            pipe.send((i, None, None))
            try:
                data = case_of(module, name, seed, i)
                outcome, wrong = judge(module, ours, folder, data)
            except Exception:  # pylint: disable=broad-exception-caught
                outcome, wrong = "broken", traceback.format_exc()
            if outcome in ("died", "broken"):
                ours = Ours()
            pipe.send((i, outcome, wrong))
    ours.close()
    pipe.send((end, "end", None))


class Worker:
    """A process for every step-th case, begun anew behind each that ends it."""

    def __init__(self, name, seed, begin, end, step):
        self.args, self.step = (name, seed), step
        self.at, self.end = begin, end
        self.start()

    def start(self):
        self.pipe, other = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(
            target=work, args=(*self.args, self.at, self.end, self.step, other))
        self.process.start()
        other.close()

    def next(self):
        """(case, outcome, what is wrong), or None at the end."""
        while True:
            try:
                i, outcome, wrong = self.pipe.recv()
            except EOFError:
                self.process.join()
                crashed, self.at = self.at, self.at + self.step
                self.start()
                return crashed, "the library crashed", None
            if outcome == "end":
                self.process.join()
                return None
            self.at = i
            if outcome is not None:
                return i, outcome, wrong


def run_format(name, args):
    """(passed, failed) of a format."""
    module = importlib.import_module(name + "_format")
    outcomes, wrongs = collections.Counter(), []
    workers = [Worker(name, args.seed, i, args.count, args.workers) for i in range(args.workers)]
    while workers:
        for pipe in multiprocessing.connection.wait([w.pipe for w in workers]):
            worker = next(w for w in workers if w.pipe is pipe)
            result = worker.next()
            if result is None:
                workers.remove(worker)
                continue
            i, outcome, wrong = result
            outcomes[outcome] += 1
            if wrong:
                wrongs.append(i)
                if len(wrongs) <= MOST_SHOWN:
                    print(f"{name}: --seed {args.seed} --case {i}: {wrong}", flush=True)
    print(f"{name}: {args.count} files")
    for outcome, count in outcomes.most_common():
        print(f"  {count:7}  {outcome}")
    share = outcomes["both"] / max(args.count, 1)
    if share < module.BOTH:
        wrongs.append(-1)
        print(f"{name}: both accept {share:.0%} of the files, expected {module.BOTH:.0%} or more")
    return args.count - len(wrongs), len(wrongs)


def show_case(name, args):
    module = importlib.import_module(name + "_format")
    data = case_of(module, name, args.seed, args.case)
    if args.keep:
        with open(args.keep, "wb") as file:
            file.write(data)
    if hasattr(module, "show"):
        module.show(data)
    with tempfile.TemporaryDirectory() as folder:
        print(*judge(module, Ours(), folder, data), sep="\n")


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--format", default="")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--case", type=int)
    parser.add_argument("--keep")
    args = parser.parse_args()
    every = sorted(os.path.basename(path).removesuffix("_format.py")
                   for path in glob.glob(os.path.join(HERE, "*_format.py")))
    names = list(filter(None, args.format.split(","))) or every
    if args.case is not None:
        return show_case(names[0], args)
    totals = [0, 0, 0]
    for name in names:
        try:
            passed, failed = run_format(name, args)
        except ImportError as error:
            if os.path.exists(VENV) and "SFT_DIFFERENTIAL_HERE" not in os.environ:
                os.environ["SFT_DIFFERENTIAL_HERE"] = "1"
                os.execv(VENV, [VENV, os.path.abspath(__file__), *sys.argv[1:]])
            print(f"{name}: skipped: {error}")
            totals[2] += 1
            continue
        totals = [totals[0] + passed, totals[1] + failed, totals[2]]
    print(f"{totals[0]} passed, {totals[1]} failed" +
          (f", {totals[2]} skipped" if totals[2] else ""))
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.modules["run"] = sys.modules["__main__"]  # Skip is one class
    sys.exit(main())
