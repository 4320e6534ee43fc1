#!/usr/bin/env python3
"""Every file of the corpus through the library, at each level and in every way to open it.

Compares verdict, code, tensors, metadata and notes with manifest.json, sft_scan with
sft_open, and the files themselves with what make.py writes. Options: --no-large.
"""
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import driver
import make

HERE, LEVELS = driver.HERE, driver.LEVELS
passed, failures = 0, []


def demand(ok, what):
    global passed
    passed += bool(ok)
    if not ok:
        failures.append("\n".join(line[:400] for line in what.splitlines()))


def load():
    with open(os.path.join(HERE, "manifest.json"), encoding="utf-8") as f:
        return json.load(f)


def content(name):
    with open(os.path.join(HERE, name), "rb") as f:
        return f.read()


def parsed(line):
    """(code or None, tensors and metadata or None) of a line of the driver."""
    if not line.startswith(b"ok "):
        return line.decode(), None
    tensors, metadata = json.loads(line[3:])
    return None, ([[t[0], t[1], t[2], t[3:5]] for t in tensors], metadata)


def by_offset(tensors):
    return sorted(tensors, key=lambda t: (t[3], t[0]))


def compare(name, level, line, want, row):
    code, found = parsed(line)
    good = code in ([want] + row.get("either", []) if want else [None])
    demand(good, "%s, %s: expected %s, found %s" % (name, level, want or "ok", code or "ok"))
    if good and found and "tensors" in row:
        demand(by_offset(found[0]) == by_offset(row["tensors"]) and found[1] == row["metadata"],
               "%s, %s: expected %s, found %s" % (name, level,
                                                  [row["tensors"], row["metadata"]], found))
        demand([t[3] for t in found[0]] == [t[3] for t in row["tensors"]],
               "%s, %s: not in offset order" % (name, level))


def compare_scan(name, level, line, opened, row):
    """The scan's verdict is open's."""
    _, code, findings, notes = line.decode().split(" ")
    want = row.get("scan")
    opened = "ok" if opened.startswith(b"ok ") else opened.decode()
    demand(code == (want or opened),
           "%s, %s: scan says %s, expected %s" % (name, level, code, want or opened))
    found = [] if findings == "-" else findings.split(",")
    demand((code == "ok") == (not found), "%s, %s: scan %s with findings %s" % (
        name, level, code, findings))
    demand(want or code in ["ok"] + found, "%s, %s: scan's %s is not among its findings %s" % (
        name, level, code, findings))
    if opened != "ok":
        return
    notes = set() if notes == "-" else set(notes.split(","))
    demand(set(row.get("notes", ())) <= notes and (row.get("notes") != [] or not notes),
           "%s, %s: expected the notes %s, found %s" % (name, level, row.get("notes"), notes))


def levels_of(row):
    if "code" in row and isinstance(row["code"], dict):
        return [row["code"][level] for level in LEVELS]
    return [row["code"]] * 3


def run_files(rows, records):
    out, said = driver.lines(records, "--scan", "--mode-check")
    demand(not said, "ways to open differ:\n" + said)
    demand(len(out) == 6 * len(rows), "%d lines for %d files" % (len(out), len(rows)))
    for i, row in enumerate(rows[:len(out) // 6]):
        for j, (level, want) in enumerate(zip(LEVELS, levels_of(row))):
            verdict, scan = out[6 * i + 2 * j], out[6 * i + 2 * j + 1]
            foreign = row.get("scan", "").startswith("found_")
            compare(row["file"], level, verdict, row["scan"] if foreign else want, row)
            compare_scan(row["file"], level, scan, verdict, row)


def run_legacy(rows, records):
    """With the option, files of the first layout are read; nothing else changes."""
    plain, _ = driver.lines(records)
    out, said = driver.lines(records, "--legacy", "--mode-check")
    demand(not said, "ways to open differ with legacy:\n" + said)
    for i, row in enumerate(rows):
        for j, level in enumerate(LEVELS):
            if "legacy" in row:
                compare(row["file"] + " (legacy)", level, out[3 * i + j], row["legacy"]["code"], {})
            else:
                demand(out[3 * i + j] == plain[3 * i + j],
                       "%s, %s: the option legacy changes the verdict" % (row["file"], level))


def run_large():
    options = [] if os.environ.get("SFT_TARGET") == "check" else ["--mode-check"]
    for name, data, code in make.large():
        out, said = driver.lines([data], *options)
        demand(not said, "%s: ways to open differ:\n%s" % (name, said))
        want = [None, None, make.RULES[29]] if code == "strict only" else [code] * 3
        for level, line, expected in zip(LEVELS, out, want):
            demand(parsed(line)[0] == expected, "%s, %s: expected %s, found %s" % (
                name, level, expected or "ok", line[:60].decode()))


def run_sets(rows):
    paths = [os.path.join(HERE, row["file"]) for row in rows]
    done = subprocess.run(driver.program() + ["--set"] + paths, stdout=subprocess.PIPE)
    out = done.stdout.decode().splitlines()
    demand(done.returncode == 0 and len(out) == 3 * len(rows), "the driver's --set failed")
    for i, row in enumerate(rows[:len(out) // 3]):
        for level, line in zip(LEVELS, out[3 * i:]):
            code, _, names = line.partition(" ")
            want = row["code"] or "ok"
            demand(code == want and (code != "ok" or json.loads(names) == row["tensors"]),
                   "%s, %s: expected %s %s, found %s" % (row["file"], level, want,
                                                         row["tensors"] or "", line))


def check_json(paths, level):
    """Results of `safetensors check --json`, in order."""
    command = shlex.split(os.environ.get("SFT_COMMAND",
                                         os.path.join(driver.ROOT, "build", "safetensors")))
    status, results = 0, []
    for at in range(0, len(paths), 200):  # Windows takes 32,767 characters
        done = subprocess.run(command + ["check", "--level", level, "--json", "--"]
                              + paths[at:at + 200], stdout=subprocess.PIPE)
        status = max(status, done.returncode)
        results += json.loads(done.stdout)["results"]
    return status, results


def run_command(rows):
    """The command says the same, with the exit status that follows."""
    paths = [os.path.join(HERE, row["file"]) for row in rows]
    for j, level in enumerate(LEVELS):
        status, results = check_json(paths, level)
        demand(status == 1 and len(results) == len(rows),
               "check --level %s: exit %d, %d results" % (level, status, len(results)))
        for row, path, result in zip(rows, paths, results):
            want = levels_of(row)[j]
            good = [want and row.get("command", row.get("scan", want))]
            good += row.get("either", []) if want else []
            code = result["error"]["code"] if result["error"] else None
            demand(result["path"] == path and result["ok"] == (want is None) and code in good,
                   "check --level %s %s: expected %s, found %s" % (level, row["file"],
                                                                   want or "ok", code or "ok"))


def run_probes():
    """headers.tsv through the command at level compat."""
    path = driver.shared("conformance", "headers.tsv")
    if not os.path.exists(path):
        print("skipped: %s is not there" % path)
        return
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for row in rows:
            paths.append(os.path.join(folder, row[0] + ".safetensors"))
            with open(paths[-1], "wb") as f:
                f.write(bytes.fromhex(row[2]))
        _, results = check_json(paths, "compat")
    demand(len(results) == len(rows), "%d results for %d probes" % (len(results), len(rows)))
    for row, result in zip(rows, results):
        demand(result["ok"] == (row[3] == "OK"), "headers.tsv %s (%s): it says %s, check %s" % (
            row[0], row[1], row[3], result["error"]))


def main(argv):
    begin = time.monotonic()
    manifest = load()
    rows = manifest["files"]
    records = [content(row["file"]) for row in rows]
    demand(make.check(HERE) == 0, "the folder is not what make.py writes")
    demand(len(rows) >= 400, "only %d files" % len(rows))
    try:
        run_files(rows, records)
        run_legacy(rows, records)
        run_sets(manifest["sets"])
        if "--no-large" not in argv and not os.environ.get("SFT_EMULATE"):
            run_large()
        run_command(rows)
        run_probes()
    except driver.Stopped as stopped:
        demand(False, "the driver stopped: %s" % stopped)
    for what in failures:
        print("FAIL", what)
    print("%d files at %d levels in %.1f s" % (len(rows), len(LEVELS), time.monotonic() - begin))
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
