#!/usr/bin/env python3
"""Run the command's cases and compare what it says.

  tests/cli/run.py [--update] [--models DIR] [NAME...]

A case is COMMAND/CASE.txt: a transcript, whose form tests/README.md describes; general holds
what concerns every command. bash runs its commands, all in one shell (after lib.sh), in a
scratch folder that holds the example models. A case that gives something else is shown as a
difference. --update writes what the cases gave; look at the difference before you keep it.
NAME picks cases: cat/json, cat-json, or cat for the folder. With SFT_TARGET=check, cases whose
first line begins with "# Long:" do not run.

Takes SFT_COMMAND (shell words) or SFT_BUILD (a folder) from the environment; else
build/safetensors.
"""
import argparse
import concurrent.futures
import difflib
import glob
import os
import re
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

LIMIT = int(os.environ.get("SFT_LIMIT", "900")) / 2  # seconds: a share of the suite's
# What the Linux loader, and wine, say of wine itself, now and then, when wine ends.
OF_WINE = (b"Inconsistency detected by ld.so: dl-fini.c", b"wine client error:")
# A program that counts what it runs writes that as it ends, into files that these limit, or needs
# more stack than they allow.
UNCOUNTED = ("general/limits", "general/small-stack", "general/write-stopped")
UNWANTED = ("NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM", "COLUMNS", "BASH_ENV", "ENV")

# Behind each command both streams get a line with this; that of stdout ends with the status.
MARK = b"\x1e" + os.urandom(8).hex().encode()
PRELUDE = b"""sft_mark() {
    local status=$?
    printf '\\036%s %%d\\n' $status
    printf '\\036%s\\n' >&2
    return $status
}
""".replace(b"%s", MARK[1:]).replace(b"%%d", b"%d")


# ── Transcripts ──

PROMPT = re.compile(rb"(\d*)\$ ")
# Lines of output that would be read as something else.
MARKED = re.compile(rb"#|\d*\$ |>( |$)|\? |[12][>~-]( |$)")


class Step:
    """A command, the status and the output that it must give, and the text up to the next."""

    def __init__(self, line):
        prompt = PROMPT.match(line)
        self.status = prompt[1] or b"0"
        self.lines, self.want, self.rest = [line[prompt.end():]], [], []

    def command(self):
        return b"".join(self.lines)

    def shown(self, status):
        prompt = b"" if status == b"0" else status
        yield prompt + b"$ " + self.lines[0]
        for line in self.lines[1:]:
            yield b">\n" if line == b"\n" else b"> " + line


def lines_of(text):
    """With their ends; a carriage return ends none."""
    return re.findall(rb"[^\n]*\n|[^\n]+\Z", text)


def parse(text, name):
    """What precedes the first command, and the steps."""
    head, steps = [], []
    for number, line in enumerate(lines_of(text), 1):
        last = steps[-1] if steps else None
        if PROMPT.match(line):
            steps.append(Step(line))
        elif line.startswith(b"? "):
            sys.exit("tests/cli: %s:%d: what --update wrote of a step that failed" % (name, number))
        elif last and not last.want and not last.rest and line[:2] in (b"> ", b">\n"):
            last.lines.append(line[2:] or b"\n")
        elif line.startswith(b"#") or line == b"\n" and (not last or last.rest):
            (last.rest if last else head).append(line)
        elif last and not last.rest:
            last.want.append(line)
        else:
            sys.exit("tests/cli: %s:%d: expected a command" % (name, number))
    if not steps or not text.endswith(b"\n"):
        sys.exit("tests/cli: %s: expected whole lines, and a command" % name)
    for step in steps:  # empty lines before a comment or a command are no output
        while step.want and step.want[-1] == b"\n":
            step.rest.insert(0, step.want.pop())
    return head, steps


def rendered(stream, output):
    """The output of a command as lines of a transcript."""
    texts = output.split(b"\n")
    tail = texts.pop()
    text = output.rstrip(b"\n")
    last = text.count(b"\n") + 1 if text else 0  # what follows are lines without text
    for number, line in enumerate(texts):
        if stream == b"1" and number < last and not MARKED.match(line):
            yield line + b"\n"
        else:
            yield stream + (b"> " if line else b">") + line + b"\n"
    if tail:
        yield stream + b"- " + tail + b"\n"


def matches(pattern, line):
    """Whether a line of output is what a line with {{REGEX}} says."""
    if line[:3] == pattern[:1] + b"> ":
        line = line[3:]
    elif pattern.startswith(b"2") or MARKED.match(line):
        return False
    parts = re.split(rb"\{\{(.*?)\}\}", pattern[3:])
    regex = b"".join(part if i % 2 else re.escape(part) for i, part in enumerate(parts))
    return re.fullmatch(regex, line) is not None


def found(step, result):
    """The lines of the transcript for what a command gave; patterns stay where they match."""
    if result is None:
        return [*step.shown(step.status), b"? not run\n"]
    out, said, status = result
    lines = [*rendered(b"1", out), *rendered(b"2", said)]
    patterns = [line for line in step.want if line[:3] in (b"1~ ", b"2~ ")]
    for i, line in enumerate(lines):
        if patterns and matches(patterns[0], line):
            lines[i] = patterns.pop(0)
    if not status.isdigit():
        return [*step.shown(step.status), *lines, b"? " + status + b"\n"]
    return [*step.shown(status), *lines]


# ── Running ──

def command(folder):
    """The path of the command, which also is `safetensors` on PATH."""
    default = os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")), "safetensors")
    words = shlex.split(os.environ.get("SFT_COMMAND") or shlex.quote(default))
    words = [os.path.abspath(w) if os.path.exists(w) else w for w in words]
    path = os.path.join(folder, "safetensors")
    if len(words) == 1:
        os.symlink(words[0], path)
        return words[0]
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexec %s \"$@\"\n" % " ".join(map(shlex.quote, words)))
    os.chmod(path, 0o755)
    return path


def environment(sft, models, folder):
    env = {k: v for k, v in os.environ.items() if k not in UNWANTED}
    env.update(SFT=sft, MODELS=models, CASES=HERE, BASH_ENV=os.path.join(HERE, "lib.sh"),
               PATH=folder + os.pathsep + os.environ["PATH"], TERM="xterm", LC_ALL="C.UTF-8",
               PYTHONDONTWRITEBYTECODE="1")
    return env


def of_the_command(stderr):
    """Without what is of wine."""
    if not os.environ.get("SFT_EMULATE"):
        return stderr
    return b"".join(line for line in stderr.splitlines(True) if not line.startswith(OF_WINE))


def run_shell(script, env):
    """What the shell wrote to both streams, and its status."""
    scratch = tempfile.mkdtemp(prefix="sft-cli-")
    try:
        shutil.copytree(env["MODELS"], scratch, dirs_exist_ok=True)
        done = subprocess.run(["bash", script], cwd=scratch, env=dict(env, HOME=scratch),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LIMIT)
        return done.stdout, done.stderr, b"%d" % done.returncode
    except subprocess.TimeoutExpired as late:
        return late.stdout or b"", late.stderr or b"", b"killed after %d s" % LIMIT
    finally:
        try:
            shutil.rmtree(scratch)
        except OSError:
            subprocess.run(["chmod", "-R", "u+rwx", scratch], check=False)
            shutil.rmtree(scratch, ignore_errors=True)


def run_once(name, steps, env):
    """(stdout, stderr, status) of each step, None for those not reached; and whether wine spoke."""
    script = os.path.join(env["SCRIPTS"], name.replace("/", "-"))
    with open(script, "wb") as out:
        out.write(PRELUDE + b"".join(step.command() + b"sft_mark\n" for step in steps))
    out, said, status = run_shell(script, env)
    outs = re.split(MARK + rb" (\d+)\n", out)
    saids = said.split(MARK + b"\n")
    results = list(zip(outs[::2], map(of_the_command, saids), [*outs[1::2], status]))
    if len(results) > len(steps):  # what came after the last command belongs to it
        (out, told, last), (more, tail, ended) = results[-2:]
        results[-2:] = [(out + more, told + tail, last if ended == last else ended)]
    results += [None] * (len(steps) - len(results))
    return results, of_the_command(said) != said


def run_case(name, env, skips):
    """Its transcript as it is and as it would be with what it gave, and how many steps differ.
    Where what wine says made them differ, the case runs again, at most twice; the last counts."""
    with open(os.path.join(HERE, name + ".txt"), "rb") as f:
        want = f.read()
    head, steps = parse(want, name)
    if skips.not_run(name):
        return want, None, len(steps), 0
    for _ in range(3):
        results, wine = run_once(name, steps, env)
        shown = [found(step, result) for step, result in zip(steps, results)]
        got = b"".join(head + [line for step, lines in zip(steps, shown)
                               for line in lines + step.rest])
        if got == want or not wine:
            break
        print("%s again" % name, flush=True)
    bad = sum(result is None or not result[2].isdigit()
              or lines != [*step.shown(step.status), *step.want]
              for step, result, lines in zip(steps, results, shown))
    return want, got, len(steps), bad


# ── Cases ──

def show(name, want, got):
    lines = [text.decode("utf-8", "backslashreplace").splitlines(True) for text in (want, got)]
    sys.stdout.writelines(difflib.unified_diff(*lines, "tests/cli/%s.txt" % name, "found"))
    print()


def update(name, got):
    with open(os.path.join(HERE, name + ".txt"), "wb") as f:
        f.write(got)


def example_models(given):
    models = given or os.path.join(ROOT, "examples", "models")
    if not os.path.isfile(os.path.join(models, "every-dtype.safetensors")):
        sys.exit("tests/cli: expected the example models in %s, found none; "
                 "python3 examples/models/make.py makes them" % models)
    return os.path.abspath(models)


def all_cases():
    return sorted(os.path.relpath(path, HERE)[:-len(".txt")]
                  for path in glob.glob(os.path.join(HERE, "*", "*.txt")))


def chosen_cases(wanted):
    """The cases that the names pick, each once; all without names."""
    cases = all_cases()
    unknown = [name for name in wanted if not any(picks(name, case) for case in cases)]
    if unknown:
        sys.exit("tests/cli: no case is called " + ", ".join(unknown))
    if not wanted and os.environ.get("SFT_TARGET") == "check":
        return [case for case in cases if not is_long(case)]
    if not wanted and os.environ.get("SFT_TARGET") == "coverage":
        return [case for case in cases if case not in UNCOUNTED]
    return [case for case in cases if not wanted or any(picks(name, case) for name in wanted)]


def is_long(case):
    """Whether its first line begins with "# Long:": `make check` leaves it out."""
    with open(os.path.join(HERE, case + ".txt"), "rb") as f:
        return f.readline().startswith(b"# Long:")


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
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scripts:
        env = environment(command(folder), example_models(args.models), folder)
        env["SCRIPTS"] = scripts
        workers = 6 if os.environ.get("SFT_EMULATE") else 2  # an emulator waits, too
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for name, (want, got, steps, bad) in zip(
                    names, pool.map(lambda n: run_case(n, env, skips), names)):
                if args.update and got is not None:
                    update(name, got)
                elif want != got and name not in skips:
                    show(name, want, got)
                verdict = skips.verdict(name, want == got)
                wrong = {"passed": 0, "failed": bad or 1, "skipped": steps}[verdict]
                totals[verdict] += wrong
                totals["passed"] += steps - wrong
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
