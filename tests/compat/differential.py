#!/usr/bin/env python3
"""The library against the official package, which must be safetensors 0.8.0.

    differential.py [--count N] [--minutes M] [--seed S] [--workers W]

Compares verdict, names, order, shapes, dtypes and metadata at level compat, through
safe_open, for every file of the corpus, every line of headers.tsv (where it is there) and
N generated headers (400,000 unless told; with --minutes as many as fit). The other levels
are run too, so that the table of codes at the end counts theirs. No difference is allowed
but those of exceptions.tsv. Where headers.tsv and the package differ, headers.tsv is right.
"""
import argparse
import collections
import json
import multiprocessing
import os
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "corpus"))
sys.path.insert(0, HERE)
import driver
import generate

BATCH = 2000
OFFICIAL = "0.8.0"
# Codes no header on its own can reach.
UNREACHED = {"index_type", "index_path", "index_shard_missing", "index_tensor_missing",
             "index_tensor_misplaced", "index_tensor_duplicate"}


class Official:
    """The official package's view of a file's bytes."""

    def __init__(self):
        from safetensors import safe_open
        self.safe_open = safe_open
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.fd, self.path = tempfile.mkstemp(".safetensors", "sft-differential-", folder)

    def close(self):
        os.close(self.fd)
        os.unlink(self.path)

    def look(self, data):
        """None and the error's text, or (keys, [name, dtype, shape], metadata)."""
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, data, 0)
        try:
            opened = self.safe_open(self.path, framework="np")
        except Exception as error:  # any refusal is one
            return None, "%s: %s" % (type(error).__name__, error)
        with opened as f:
            rows = []
            for name in f.offset_keys():
                part = f.get_slice(name)
                rows.append([name, part.get_dtype(), part.get_shape()])
            return (sorted(f.keys()), rows, f.metadata()), ""


def ours(line):
    """(code, None) or (None, parsed) of a line of the driver."""
    if not line.startswith(b"ok "):
        return line.decode(), None
    return None, json.loads(line[3:])


def difference(line, theirs, why):
    """What is not equal, or None."""
    code, found = ours(line)
    if theirs is None or found is None:
        if (theirs is None) == (found is None):
            return None
        return "we say %s, the official package %s" % (code or "ok", why or "accepts it")
    keys, rows, metadata = theirs
    tensors = {t[0]: t for t in found[0]}
    if sorted(tensors) != keys or len(tensors) != len(found[0]):
        return "names: %r, officially %r" % (sorted(tensors), keys)
    for name, dtype, shape in rows:
        if tensors[name][1:3] != [dtype, shape]:
            return "%r: %s, officially %s" % (name, tensors[name][1:3], [dtype, shape])
    # Tensors at one place may stand in any order.
    order = [tensors[row[0]][3:5] for row in rows]
    if order != sorted(order) or [t[3:5] for t in found[0]] != order:
        return "order: %s, officially %s" % ([t[0] for t in found[0]], [r[0] for r in rows])
    if found[1] != metadata:
        return "metadata: %r, officially %r" % (found[1], metadata)
    return None


def run_batch(official, records, options):
    """(differences, codes, accepted) of some records at all levels."""
    lines, said = driver.lines(records, *options)
    found, codes, accepted = [], collections.Counter(), 0
    if said:
        found.append(("", said))
    if len(lines) != 3 * len(records):
        raise driver.Stopped("%d lines for %d records" % (len(lines), len(records)))
    for i, record in enumerate(records):
        theirs, why = official.look(record)
        accepted += theirs is not None
        for name in {ours(line)[0] for line in lines[3 * i:3 * i + 3]}:
            codes[name or "ok"] += 1
        what = difference(lines[3 * i], theirs, why)
        if what:
            found.append((record.hex(), what))
    return found, codes, accepted


def work(seed, jobs, results):
    official = Official()
    try:
        for number in iter(jobs.get, None):
            records = generate.batch(seed, number, BATCH)
            options = ["--mode-check"] if number % 4 == 0 else []
            try:
                results.put((number, len(records)) + run_batch(official, records, options))
            except Exception as error:
                results.put((number, 0, [("", "batch %d: %s" % (number, error))],
                             collections.Counter(), 0))
    finally:
        official.close()


def generated(args, totals):
    """Give the workers batches until the count or the time is reached."""
    jobs, results = multiprocessing.Queue(), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(args.seed, jobs, results))
               for _ in range(args.workers)]
    for worker in workers:
        worker.start()
    begin, sent, back, failures = time.monotonic(), 0, 0, []
    wanted = -(-args.count // BATCH)

    def more():
        if args.minutes:
            return time.monotonic() - begin < 60 * args.minutes
        return sent < wanted

    while back < sent or (more() and len(failures) < 10):
        while sent - back < 2 * args.workers and more() and len(failures) < 10:
            jobs.put(sent)
            sent += 1
        number, count, found, codes, accepted = results.get()
        back += 1
        failures += found
        totals["records"] += count
        totals["accepted"] += accepted
        totals["codes"] += codes
    for _ in workers:
        jobs.put(None)
    for worker in workers:
        worker.join()
    return failures


def exceptions():
    """Records, as hex, that may differ; each with its reason."""
    rows = {}
    with open(os.path.join(HERE, "exceptions.tsv"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                probe, reason = line.rstrip("\n").split("\t")
                rows[probe] = reason
    return rows


def corpus(official):
    with open(os.path.join(driver.HERE, "manifest.json"), encoding="utf-8") as f:
        rows = json.load(f)["files"]
    records = []
    for row in rows:
        with open(os.path.join(driver.HERE, row["file"]), "rb") as f:
            records.append(f.read())
    found, _, _ = run_batch(official, records, [])
    failures = list(found)
    for row, record in zip(rows, records):
        accepts = official.look(record)[0] is not None
        if accepts != (row["verdict"]["compat"] == "accept"):
            failures.append((record.hex(), row["file"] + ": the manifest is not official"))
    return len(rows), failures


def probes(official):
    """headers.tsv: its own verdict decides; the package's is compared where they agree."""
    path = driver.shared("conformance", "headers.tsv")
    if not os.path.exists(path):
        return 0, []
    with open(path, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]
    failures = []
    for row in rows:
        record = bytes.fromhex(row[2])
        line = driver.lines([record], "--level", "compat")[0][0]
        accepts = row[3] == "OK"
        if line.startswith(b"ok ") != accepts:
            failures.append((row[2], "headers.tsv %s (%s): it says %s, we %s" % (
                row[0], row[1], row[3], line[:80])))
        theirs, why = official.look(record)
        if (theirs is not None) != accepts:
            print("headers.tsv %s (%s): the package differs: %s" % (
                row[0], row[1], why or "accepts"))
            continue
        what = difference(line, theirs, why)
        if what:
            failures.append((row[2], "headers.tsv %s (%s): %s" % (row[0], row[1], what)))
    return len(rows), failures


def report(name, count, failures, excused):
    left = [f for f in failures if f[0] not in excused]
    print("%-12s %8d compared, %d differ" % (name, count, len(left)))
    for record, what in left[:10]:
        print("  DIFFERS %s\n    %s" % (what, record[:2000]))
    return count - len(left), len(left)


def histogram(totals):
    """The table of codes; those that occurred too rarely."""
    need = 1000 * totals["records"] // 200000
    seldom = []
    family = [row["name"] for row in driver.codes()
              if row["rule"] != "-" and row["name"] not in UNREACHED]
    print("codes at any level:")
    for name in ["ok"] + family:
        count = totals["codes"].get(name, 0)
        print("  %-24s %8d%s" % (name, count, "" if count >= need else "  too few"))
        if count < need:
            seldom.append(name)
    return seldom


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=400000)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seed", default=None)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    args.seed = args.seed or str(int.from_bytes(os.urandom(4), "little"))
    try:
        import safetensors
    except ImportError:
        print("the official package is not installed: nothing to compare with")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    print("seed %s, official package %s" % (args.seed, safetensors.__version__))
    if safetensors.__version__ != OFFICIAL:
        print("expected version %s\n0 passed, 1 failed" % OFFICIAL)
        return 1
    begin = time.monotonic()
    excused, passed, failed = exceptions(), 0, 0
    totals = {"records": 0, "accepted": 0, "codes": collections.Counter()}
    official = Official()
    try:
        parts = [("corpus",) + corpus(official), ("headers.tsv",) + probes(official)]
    finally:
        official.close()
    failures = generated(args, totals)
    parts.append(("generated", totals["records"], failures))
    for name, count, failures in parts:
        good, bad = report(name, count, failures, excused)
        passed, failed = passed + good, failed + bad
    share = totals["accepted"] / max(totals["records"], 1)
    seldom = histogram(totals)
    seconds = time.monotonic() - begin
    print("%.1f %% accepted, %.0f s, %.0f records a second" % (
        100 * share, seconds, totals["records"] / seconds))
    if share < 0.30:
        print("FAIL: fewer than 30 % accepted")
    for name in seldom:
        print("FAIL: too few of", name)
    failed += (share < 0.30) + len(seldom)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
