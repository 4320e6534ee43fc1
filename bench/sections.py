"""What the benches have in common as programs: options, sections one after the other, --write."""
import argparse
import os
import sys
import time

from contest import machine, put

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "measured.md")


def options(doc, sections, data, repeats, part=False, cpu=False, more=()):
    """Arguments of the command line, with `chosen`: the sections of --only, in their order. data:
    the folder's name under build/bench; more: further options, each (name, default)."""
    parser = argparse.ArgumentParser(usage=doc)
    parser.add_argument("--only", default=",".join(sections))
    parser.add_argument("--repeats", type=int, default=repeats)
    parser.add_argument("--data", default=os.path.join(ROOT, "build", "bench", data))
    parser.add_argument("--write", nargs="?", const=PAGE)
    if part:
        parser.add_argument("--part", type=float, default=1.0)
    if cpu:
        parser.add_argument("--cpu", action="store_true")
    for name, default in more:
        parser.add_argument(name, type=type(default), default=default)
    args = parser.parse_args()
    unknown = set(args.only.split(",")) - set(sections)
    if unknown:
        parser.error("no section " + ", ".join(sorted(unknown)))
    args.chosen = [name for name in sections if name in args.only.split(",")]
    args.data = os.path.abspath(args.data)
    os.makedirs(args.data, exist_ok=True)
    return args


def count_processor_time(wanted):
    """Workers (worker.h, worker.py) and run_process look at BENCH_CPU."""
    os.environ.pop("BENCH_CPU", None)
    if wanted:
        os.environ["BENCH_CPU"] = "1"


def publish(args, script, name, text, cpu=False, beside=None):
    """Print a section; with --write, put it between its markers, which begin with the script's
    name unless that is compare. beside: what else stands in the line of its origin."""
    print("## %s\n\n%s" % (name, text), flush=True)
    if args.write:
        marker = name if script == "compare" else "%s-%s" % (script, name)
        origin = "Measured on %s, %s%s, by `bench/%s.py --only %s%s`%s.\n\n" % (
            time.strftime("%Y-%m-%d"), machine(), ", with " + beside if beside else "", script,
            name, " --cpu" * cpu, " (processor time)" * cpu)
        put(args.write, marker, origin + text)
        if args.write == PAGE: # on HEAD: what is not committed is no place to measure
            sys.path.insert(0, os.path.join(ROOT, "tests"))
            import figures
            figures.stamp(marker)


def load_since(before):
    """A line about other work on the machine, between before (of os.getloadavg()) and now."""
    return "\nLoad average %.1f before, %.1f after.\n" % (before, os.getloadavg()[0])


def status_of(missed):
    """Print the floors that were missed; the exit status of the bench."""
    for line in missed:
        print("missed: " + line)
    return 1 if missed else 0
