#!/usr/bin/env python3
"""The corpus through every reader of readers.tsv; writes docs/conformance.md.

    run.py [--only ID,...] [--keep]

Each reader is installed into build/conformance/ID, runs every file in a process of its own
(drivers/host.py), and is removed again, unless --keep says otherwise. Results stay in
build/conformance/ID.json, so that --only renews some and the page still has all. A case passes
when the driver has an answer; what fails is an environment that does not install, a driver that
accepts or refuses everything, and any disagreement of this library's own.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import cases
import report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = cases.ROOT
HOST = os.path.join(HERE, "drivers", "host.py")
BUILD = os.path.join(ROOT, "build", "conformance")
OURS = "libsafetensors"


def readers():
    with open(os.path.join(HERE, "readers.tsv"), encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    return [dict(zip(("id", "where", "what", "driver", "packages", "note"), row)) for row in rows]


def install(reader, folder):
    """The command that runs the reader's driver in an environment made for it."""
    driver = os.path.join(HERE, "drivers", reader["driver"])
    packages = reader["packages"].split()
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    if reader["where"] == "PyPI":
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        python = os.path.join(folder, "bin", "python")
        subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--python",
                        python, "install", "-qq", "--no-deps", "--no-compile", "--only-binary",
                        ":all:"] + packages, check=True)
        if driver.endswith(".mjs"):
            return [sys.executable, HOST, "--", "node", driver]
        return [python, HOST, reader["driver"]]
    if reader["where"] == "npm":
        with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as f:
            f.write("{}")
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--omit=optional",
                        "--ignore-scripts"] + packages, cwd=folder, check=True)
        return [sys.executable, HOST, "--", "node", driver]
    return [sys.executable, HOST, reader["driver"]]


def ask(command, folder, chosen):
    """One answer per case."""
    env = dict(os.environ, SFT_ENVIRONMENT=folder, HOME=folder, PYTHONDONTWRITEBYTECODE="1",
               OMP_NUM_THREADS="1")
    done = subprocess.run(["nice", "-n", "10"] + command, env=env, stdout=subprocess.PIPE,
                          input="".join(case.path + "\n" for case in chosen).encode())
    found = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or len(found) != len(chosen):
        raise RuntimeError("the driver ended with %d after %d answers" % (done.returncode,
                                                                          len(found)))
    return found


def run(reader, chosen):
    """{"cases": [[name, rule, outcome, word], ...]} or {"failed": why}."""
    folder = os.path.join(BUILD, reader["id"])
    try:
        found = ask(install(reader, folder), folder, chosen)
        rows = [[case.name, case.rule, *cases.outcome(case, answer)]
                for case, answer in zip(chosen, found)]
        if len({bool(answer.get("accept")) for answer in found}) < 2:
            raise RuntimeError("one verdict on all: %s" % json.dumps(found[-1])[:300])
        return {"cases": rows}
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        return {"failed": str(error)[:500]}


def path_of(reader):
    return os.path.join(BUILD, reader["id"] + ".json")


def main(argv):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args(argv[1:])
    table = readers()
    only = set(filter(None, args.only.split(","))) or {reader["id"] for reader in table}
    os.makedirs(BUILD, exist_ok=True)
    chosen = cases.load(os.path.join(BUILD, "probes"))
    passed, failures = 0, []
    for reader in table:
        if reader["id"] not in only:
            continue
        result = run(reader, chosen)
        if not args.keep:
            shutil.rmtree(os.path.join(BUILD, reader["id"]), ignore_errors=True)
        if "failed" in result:
            failures.append("%s: %s" % (reader["id"], result["failed"]))
            continue
        with open(path_of(reader), "w", encoding="utf-8") as f:
            json.dump(result, f, indent=0)
        rows = result["cases"]
        wrong = [row for row in rows if row[2] != "agrees"]
        if reader["id"] == OURS:
            failures += ["%s: %s: %s %s" % (OURS, row[0], row[2], row[3]) for row in wrong]
        passed += len(rows) - (len(wrong) if reader["id"] == OURS else 0)
        print("%-18s %5d agree, %4d do not" % (reader["id"], len(rows) - len(wrong), len(wrong)),
              flush=True)
    results = {}
    for reader in table:
        if os.path.exists(path_of(reader)):
            with open(path_of(reader), encoding="utf-8") as f:
                results[reader["id"]] = json.load(f)["cases"]
    report.write(os.path.join(ROOT, "docs", "conformance.md"), table, results)
    for failure in failures:
        print("FAIL", failure)
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
