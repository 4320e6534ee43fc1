#!/usr/bin/env python3
"""Run the command's cases and compare what it says.

  tests/cli/run.py [--update] [--models DIR] [NAME...]

A case is FOLDER/CASE.sh; the folder is the command it is about, or general. bash runs it
(after lib.sh) in a scratch folder that holds the example models; CASE.stdout, CASE.stderr
and CASE.exit next to it are what it must give (absent: nothing, and 0). $SFT is the command,
$MODELS the folder of the example models. --update writes what the cases gave; look at the
difference before you keep it. NAME picks cases: cat/json, cat-json, or cat for the folder.

Takes SFT_COMMAND (shell words) or SFT_BUILD (a folder) from the environment; else
build/safetensors.
"""
import argparse
import concurrent.futures
import difflib
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "windows"))
from skips import Skips  # noqa: E402

LIMIT = int(os.environ.get("SFT_LIMIT", "900")) / 3  # seconds: a share of the suite's
# What the Linux loader says of wine itself, now and then, when wine ends.
LOADER = b"Inconsistency detected by ld.so: dl-fini.c"
UNWANTED = ("NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM", "COLUMNS", "BASH_ENV", "ENV")


def read(path, default):
    if not os.path.exists(path):
        return default
    with open(path, "rb") as f:
        return f.read()


def write(path, content, absent):
    if content == absent:
        if os.path.exists(path):
            os.remove(path)
        return
    with open(path, "wb") as f:
        f.write(content)


def command(folder):
    """One executable path, even for a command of several words."""
    default = os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")), "safetensors")
    words = shlex.split(os.environ.get("SFT_COMMAND") or shlex.quote(default))
    words = [os.path.abspath(w) if os.path.exists(w) else w for w in words]
    if len(words) == 1:
        return words[0]
    path = os.path.join(folder, "safetensors")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexec %s \"$@\"\n" % " ".join(map(shlex.quote, words)))
    os.chmod(path, 0o755)
    return path


def environment(sft, models):
    env = {k: v for k, v in os.environ.items() if k not in UNWANTED}
    env.update(SFT=sft, MODELS=models, BASH_ENV=os.path.join(HERE, "lib.sh"), TERM="xterm",
               LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1")
    return env


def of_the_command(stderr):
    """Without what is of wine."""
    if not os.environ.get("SFT_EMULATE"):
        return stderr
    return b"".join(line for line in stderr.splitlines(True) if not line.startswith(LOADER))


def run_once(name, env):
    """The output of a case: (stdout, stderr, exit), each bytes."""
    scratch = tempfile.mkdtemp(prefix="sft-cli-")
    try:
        shutil.copytree(env["MODELS"], scratch, dirs_exist_ok=True)
        done = subprocess.run(["bash", os.path.join(HERE, name + ".sh")], cwd=scratch,
                              env=dict(env, HOME=scratch), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT)
        return done.stdout, done.stderr, b"%d\n" % done.returncode
    except subprocess.TimeoutExpired:
        return b"", b"", b"killed after %d s\n" % LIMIT
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", scratch], check=False)
        shutil.rmtree(scratch, ignore_errors=True)


def run_case(name, env, skips):
    """Its output without what is of wine. Where that made it another than expected, the case
    runs again, at most twice; the last time counts."""
    if skips.not_run(name):
        return b"", b"", b"not run\n"
    for _ in range(3):
        out, said, status = run_once(name, env)
        got = out, of_the_command(said), status
        if got[1] == said or got == expected(name):
            break
        print("%s again: %s" % (name, said.decode("utf-8", "backslashreplace")), flush=True)
    return got


PARTS = (("stdout", b""), ("stderr", b""), ("exit", b"0\n"))


def expected(name):
    return tuple(read(os.path.join(HERE, "%s.%s" % (name, part)), default)
                 for part, default in PARTS)


def show(name, want, got):
    for (part, _), w, g in zip(PARTS, want, got):
        if w == g:
            continue
        lines = [text.decode("utf-8", "backslashreplace").splitlines(True) for text in (w, g)]
        sys.stdout.writelines(difflib.unified_diff(*lines, "%s.%s" % (name, part), "found"))
        print()


def update(name, got):
    for (part, default), content in zip(PARTS, got):
        write(os.path.join(HERE, "%s.%s" % (name, part)), content, default)


def example_models(given):
    models = given or os.path.join(ROOT, "examples", "models")
    if not os.path.isfile(os.path.join(models, "every-dtype.safetensors")):
        sys.exit("tests/cli: expected the example models in %s, found none; "
                 "python3 examples/models/make.py makes them" % models)
    return os.path.abspath(models)


def all_cases():
    return sorted(os.path.relpath(path, HERE)[:-len(".sh")]
                  for path in glob.glob(os.path.join(HERE, "*", "*.sh")))


def chosen_cases(wanted):
    """The cases that the names pick, each once; all without names."""
    cases = all_cases()
    unknown = [name for name in wanted if not any(picks(name, case) for case in cases)]
    if unknown:
        sys.exit("tests/cli: no case is called " + ", ".join(unknown))
    return [case for case in cases if not wanted or any(picks(name, case) for name in wanted)]


def picks(name, case):
    folder, _, rest = case.partition("/")
    return name in (case, folder, "%s-%s" % (folder, rest)) or folder == "general" and name == rest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--models")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    names = chosen_cases(args.names)
    skips, totals = Skips("cli"), {"passed": 0, "failed": 0, "skipped": 0}
    with tempfile.TemporaryDirectory() as folder:
        env = environment(command(folder), example_models(args.models))
        workers = 6 if os.environ.get("SFT_EMULATE") else 2  # an emulator waits, too
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for name, got in zip(names, pool.map(lambda n: run_case(n, env, skips), names)):
                want = expected(name)
                if args.update:
                    update(name, got)
                elif want != got and name not in skips:
                    show(name, want, got)
                totals[skips.verdict(name, want == got)] += 1
        tables = subprocess.run([sys.executable, os.path.join(HERE, "tables.py")],
                                env=dict(env, SFT_COMMAND=shlex.quote(env["SFT"])),
                                stdout=subprocess.PIPE)
    sys.stdout.write(tables.stdout.decode())
    totals[skips.verdict("tables", tables.returncode == 0)] += 1
    totals["failed"] += 0 if args.names else skips.unused()
    print("%d passed, %d failed" % (totals["passed"], totals["failed"])
          + (", %d skipped" % totals["skipped"] if totals["skipped"] else ""))
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
