#!/usr/bin/env python3
"""The command's answer to "what is this file?", for models that the cases build.

  tests/info/run.py [--keep DIR] [GROUP[:CASE]…]      groups, and samples, strings,
                                                     hostile, long, excluded

Every case of make.py is written into a folder of its own and given to `info --json`; its
result must hold the facts of expected/GROUP.facts, which were written from the contract,
and the rules of shape.py and docs/schema/info.json, which hold for all results.
"""
import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import excluded  # noqa: E402
import facts  # noqa: E402
import hostile  # noqa: E402
import long  # noqa: E402
import make  # noqa: E402
import samples  # noqa: E402
import shape  # noqa: E402
import strings  # noqa: E402

LIMIT = 60


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, name, lines):
        lines = list(lines)
        if lines:
            self.failed += 1
            print("FAIL %s" % name)
            for line in lines:
                print("     %s" % line)
        else:
            self.passed += 1


def command():
    build = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
    return shlex.split(os.environ.get("SFT_COMMAND", os.path.join(build, "safetensors")))


def validator():
    """A function from a whole answer to lines, empty where there is no jsonschema."""
    try:
        import jsonschema
    except ImportError:
        return lambda answer: []
    with open(os.path.join(ROOT, "docs", "schema", "info.json"), encoding="utf-8") as f:
        checker = jsonschema.Draft202012Validator(json.load(f))

    def check(answer):
        for error in checker.iter_errors(answer):
            best = jsonschema.exceptions.best_match([error])
            yield "schema: %s: %s" % (best.json_path, best.message[:200])
            return
    return check


def run(words, cwd=None):
    return subprocess.run(command() + words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=LIMIT, cwd=cwd, check=False)


def answer(path, options):
    """(exit status, the answer or None, lines of stderr)"""
    try:
        made = run(["info", "--json", *options, "--", path])
    except subprocess.TimeoutExpired:
        return 124, None, ["no answer within %d seconds" % LIMIT]
    try:
        return made.returncode, json.loads(made.stdout), []
    except ValueError:
        return made.returncode, None, ["exit %d, no JSON: %r %r" % (
            made.returncode, made.stdout[:200], made.stderr[:200])]


def judge(path, options, rows, check):
    """Lines, one per fault of the answer for a path."""
    status, whole, lines = answer(path, options)
    if lines:
        return lines
    expected = {where: value for where, _, value in rows if where in ("exit", "count", "ok")}
    rows = [row for row in rows if row[0] not in expected]
    results = whole.get("results") or []
    lines = list(check(whole))
    if status != expected.get("exit", 0):
        lines.append("exit %d, expected %d" % (status, expected.get("exit", 0)))
    if len(results) != expected.get("count", 1):
        return lines + ["%d results, expected %d: %s" % (
            len(results), expected.get("count", 1), [r.get("path") for r in results])]
    for result in results:
        if result["ok"] != expected.get("ok", True):
            lines.append("ok is %s: %s" % (result["ok"], result.get("error")))
        if "model" in result:
            lines += shape.faults(result)
            for part in result.get("parts") or []:
                lines += shape.faults(part)
        elif result["ok"]:
            lines.append("no model in the result")
    subject = dict(results[0], results=results) if results else {"results": []}
    return lines + list(facts.differences(subject, rows))


def knows(options, known=[]):
    """Whether the command takes these options: some come with later parts of it."""
    if options and not known:
        known.append(run(["info", "--help"]).stdout.decode())
    return all(o in known[0] for o in options if o.startswith("--"))


def wanted(asked, group, name):
    return not asked or group in asked or "%s:%s" % (group, name) in asked


def composed(folder, asked, tally, check):
    expected = {group: facts.read(os.path.join(HERE, "expected", group + ".facts"))
                for group in make.GROUPS}
    seen = set()
    for group, name, files, path, options in make.cases():
        seen.add((group, name))
        if not wanted(asked, group, name):
            continue
        if not knows(options):
            tally.skipped += 1
            continue
        place = os.path.join(folder, group, name)
        make.write(place, files)
        rows = expected[group].get(name)
        lines = judge(os.path.join(place, path), options, rows or [], check)
        if not rows:
            lines.append("nothing is expected of it")
        tally.add("%s:%s" % (group, name), lines)
    for group, rows in expected.items():
        for name in rows:
            if (group, name) not in seen:
                tally.add("%s:%s" % (group, name), ["no such case"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", metavar="DIR", help="leave the composed models there")
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()
    folder = given.keep or tempfile.mkdtemp(prefix="info-")
    known = {"samples", "strings", "hostile", "long", "excluded"}
    for group, name, *_ in make.cases():
        known |= {group, "%s:%s" % (group, name)}
    unknown = [name for name in given.cases if name not in known]
    if unknown:
        sys.exit("tests/info: no case is called " + ", ".join(unknown))
    tally, check = Tally(), validator()
    try:
        composed(folder, given.cases, tally, check)
        if not given.cases or "samples" in given.cases:
            samples.run(folder, tally, check, judge, answer)
        if not given.cases or "strings" in given.cases:
            strings.check(folder, tally, run)
        if not given.cases or "hostile" in given.cases:
            hostile.check(folder, tally, run)
        if not given.cases or "long" in given.cases:
            long.check(folder, tally, run)
        if not given.cases or "excluded" in given.cases:
            excluded.check(folder, tally, run)
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print("%d passed, %d failed" % (tally.passed, tally.failed)
          + (", %d skipped" % tally.skipped if tally.skipped else ""))
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
