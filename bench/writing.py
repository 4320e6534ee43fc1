"""The sections of compare.py that write large files: save, edit, reshape. Wall time, for the
disk is what counts; each round has an order of its own."""
import os
import shutil
import subprocess
import sys
import time

import gen
from contest import Worker, cell, few, ratio, table, take_modes, take_turns

FLOOR_DURABLE, FLOOR_PLACE, FLOOR_GROWTH, WORTH_DIRECT = 1.5, 1000.0, 100.0, 1.3
METHODS = {0: "none", 1: "in place", 2: "reflink", 3: "insert", 4: "copy"}

REWRITE = ("import sys\n"
           "from safetensors import safe_open\n"
           "from safetensors.numpy import load_file, save_file\n"
           "path, value = sys.argv[1:]\n"
           "with safe_open(path, 'np') as f:\n"
           "    metadata = dict(f.metadata() or {})\n"
           "metadata['modelspec.title'] = value\n"
           "save_file(load_file(path), path, metadata)\n")


def best(result, ours):
    return min(result.samples) / min(ours.samples)


class Writing:
    """What Bench is given besides its own sections."""

    def size(self):
        """2 GiB, or half of that where it would be tight."""
        with open("/proc/meminfo", encoding="ascii") as f:
            memory = next(int(line.split()[1]) for line in f if line.startswith("MemAvailable"))
        disk = shutil.disk_usage(self.args.data).free
        return 1 << 31 if memory > 10 << 20 and disk > 12 << 30 else 1 << 30

    def whole(self):
        """A file of that size in tensors of 32 MiB, every byte there; and its path."""
        path = os.path.join(self.args.data, "whole")
        if not os.path.exists(path) or os.path.getsize(path) < self.size():
            gen.write(path, *gen.entries(gen.rows(self.size() >> 25, 1 << 25)), gen.pattern())
        return path

    def scratch(self, name):
        return os.path.join(self.args.data, "scratch-" + name)

    def forget(self, *names):
        for name in names:
            path = self.scratch(name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)

    def workers(self, **commands):
        """{name: Worker}, without those that do not start."""
        out = {}
        for name, command in commands.items():
            try:
                out[name] = Worker(command)
            except (RuntimeError, FileNotFoundError) as error:
                self.notes.append("%s: %s" % (name, error))
        return out

    def modes(self, workers, wanted, repeats):
        """wanted: {title: (worker, mode)}."""
        there = {title: (workers[who], mode) for title, (who, mode) in wanted.items()
                 if who in workers}
        return take_modes(there, repeats)

    # ── save ──

    def save(self):
        size = self.size()
        rows = {"this library": ("ours", "return", "durable"),
                "this library, `direct`": ("ours", "direct-return", "direct"),
                "write(2), 8 MiB each": ("ours", "plain-return", "plain"),
                "official `save_file`": ("others", "official", "official-synced"),
                "`torch.save`": ("torch", "torch", "torch-synced"),
                "`numpy.save`, one array": ("others", "numpy", "numpy-synced")}
        workers = self.workers(
            ours=[self.tool("bench_save"), self.scratch("ours"), str(size)],
            others=self.python("save", self.scratch("others"), str(size)))
        if "others" in workers and self.has_torch():
            workers["torch"] = workers["others"]
        wanted = {(title, i): (who, modes[i]) for title, (who, *modes) in rows.items()
                  for i in (0, 1)}
        got = self.modes(workers, wanted, max(5, self.args.repeats))
        for worker in set(workers.values()):
            worker.close()
        ours, direct = [[got.get((title, i)) for i in (0, 1)] for title in list(rows)[:2]]
        official = got.get(("official `save_file`", 1))
        if official:
            self.floor("save, durable, against official and fsync",
                       best(official, ours[1]), FLOOR_DURABLE, True)
        body = [[title, *[cell(got.get((title, i))) for i in (0, 1)],
                 *[ratio(got.get((title, i)), ours[i]) for i in (0, 1)]] for title in rows]
        gain = ours[1].median / direct[1].median
        return table(["", "to return, ms", "durable, ms", "to return ÷ ours",
                      "durable ÷ ours"], body) + (
            "\n%.1f GB in tensors of 32 MiB, in memory; the file is new each time. Durable: the "
            "file is on the disk with its name when the call returns; of the others, when an "
            "fsync of file and folder returns. This library: `sft_save_parts` to "
            "`sft_sink_path`, to return with `no_sync`.\n\n`direct`, past the page cache, is %s× "
            "as fast as the default when durable. It would have to be %s× to be the default: it "
            "is %s.\n" % (size / 1e9, few(gain), few(WORTH_DIRECT),
                          "worth it" if gain >= WORTH_DIRECT else "not"))

    def has_torch(self):
        return subprocess.run([sys.executable, "-c", "import torch"], check=False,
                              stderr=subprocess.DEVNULL).returncode == 0

    # ── read ──

    def read(self):
        path = self.whole()
        modes = ("pread", "direct", "run", "run-fresh", "slots", "discard")
        body, most = [], os.cpu_count()
        for threads in sorted({1, 2, min(most, 4), most}):
            for state in ("warm", "cold"):
                workers = self.workers(ours=[self.tool("bench_read"), path, str(threads),
                                             *["cold"] * (state == "cold")])
                got = self.modes(workers, {mode: ("ours", mode) for mode in modes},
                                 max(3, self.args.repeats // 2))
                for worker in workers.values():
                    worker.close()
                body.append(["%d, %s" % (threads, state), *[cell(got.get(m)) for m in modes],
                             ratio(got.get("pread"), got["run"])])
        return table(["threads, page cache", "`pread`, 8 MiB each, ms", "with `O_DIRECT`, ms",
                      "`sft_read_plan_run`, ms", "into fresh memory, ms", "by slots, ms",
                      "by slots, no copies, ms", "pread ÷ run"], body) + (
            "\n%.1f GB in tensors of 32 MiB, each to a multiple of 512 bytes of one block in huge "
            "pages. Cold: dropped from the page cache before each run.\n" % (self.size() / 1e9))

    # ── edit ──

    def edit(self):
        for name in ("ours", "others"):
            shutil.copyfile(self.whole(), self.scratch(name))
        ours, others = self.scratch("ours"), self.scratch("others")
        workers = self.workers(ours=[self.tool("bench_edit"), ours],
                               others=self.python("rewrite", others))
        few_times = max(3, self.args.repeats // 2)
        got = self.modes(workers, {"place": ("ours", "place"), "cached": ("others", "cached"),
                                   "synced": ("others", "cached-synced")}, few_times)
        processes = self.edit_processes(ours, others, few_times)
        got.update(self.modes(workers, {
            "grow": ("ours", "grow"), "uncached": ("ours", "uncached"), "copy": ("ours", "copy"),
            "cold": ("others", "uncached"), "cold-synced": ("others", "uncached-synced")},
            few_times))
        for worker in workers.values():
            worker.close()
        self.forget("ours", "others")
        return self.edit_table(got, processes)

    def edit_processes(self, ours, others, repeats):
        commands = {"ours": [self.command(), "meta", "set", ours, "modelspec.title", ""],
                    "official": [sys.executable, "-c", REWRITE, others, ""]}
        if not self.official:
            del commands["official"]
        turn = iter(range(1000))

        def before(name):
            commands[name][-1] = "%040d" % next(turn)
            os.sync()
            time.sleep(2)
        return {name: wall for name, (wall, _) in take_turns(commands, repeats, before).items()}

    def edit_table(self, got, processes):
        def row(title, ours, plain, synced):
            mine, method = got[ours], "–"
            if mine.sums:
                method = ", ".join(METHODS[n] for n in sorted(mine.sums))
            return [title, method, cell(mine), cell(got.get(plain)), cell(got.get(synced)),
                    ratio(got.get(synced), mine)]
        rows = [row("into the spare bytes", "place", "cached", "synced"),
                row("growing, nothing cached", "uncached", "cold", "cold-synced"),
                row("growing, all cached", "grow", "cached", "synced"),
                row("growing, `safe`", "copy", "cached", "synced")]
        rows.append(["into the spare bytes, as a command", "in place", cell(processes["ours"]),
                     cell(processes.get("official")), "–",
                     ratio(processes.get("official"), processes["ours"])])
        if "synced" in got:
            self.floor("edit in place, against a rewrite",
                       best(got["synced"], got["place"]), FLOOR_PLACE, True)
            self.floor("growing edit, nothing cached, against a rewrite",
                       best(got["cold-synced"], got["uncached"]), FLOOR_GROWTH, True)
        return table(["one key of the metadata", "method", "ours, ms", "official, ms",
                      "official and fsync, ms", "÷ ours"], rows) + (
            "\nA file of %.1f GB. Ours: open, set, apply, durable. Official: `load_file` and "
            "`save_file` to the same path, because there is no other way. \"Nothing cached\": the "
            "file's pages were dropped before. The last row is of whole processes: `safetensors "
            "meta set` and Python.\n" % (self.size() / 1e9))

    # ── reshape ──

    def reshape(self):
        whole, parts = self.whole(), self.scratch("parts")
        self.forget("out", "parts")
        subprocess.run([self.command(), "split", whole, "-o", parts, "--count", "4"],
                       stdout=subprocess.DEVNULL, check=True)
        index = next(os.path.join(parts, name) for name in os.listdir(parts)
                     if name.endswith(".index.json"))
        out, ours = self.scratch("out"), self.command()
        split = [ours, "split", whole, "-o", out, "--count", "4"]
        merge = [ours, "merge", index, "-o", out]
        commands = {
            "`cp`": ["cp", whole, out], "`split`, `--no-sync`": split + ["--no-sync"],
            "`merge`, `--no-sync`": merge + ["--no-sync"],
            "`cp` and `sync FILE`": ["sh", "-c", 'cp "$0" "$1" && sync "$1"', whole, out],
            "`split`": split, "`merge`": merge}

        def before(name):
            del name
            self.forget("out")
            os.sync()
        got = {name: wall for name, (wall, _) in
               take_turns(commands, max(5, self.args.repeats // 2), before).items()}
        before(None)
        subprocess.run(merge, stdout=subprocess.DEVNULL, check=True)
        if subprocess.run(["cmp", "-s", whole, out], check=False).returncode:
            self.missed.append("reshape: split and merged is not what it was")
        self.forget("out", "parts")
        rows = [[name, cell(wall), ratio(wall, got["`cp`" if i < 3 else "`cp` and `sync FILE`"])]
                for i, (name, wall) in enumerate(got.items())]
        return table(["", "wall, ms", "÷ `cp`"], rows) + (
            "\n%.1f GB, cached; four shards. Whole processes; the second half of the rows is "
            "durable, and its `cp` is followed by `sync` of the file.\n" % (self.size() / 1e9))
