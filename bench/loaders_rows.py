"""What loaders.py measures in processor time: columns of text, bytes and lists beside Parquet, lists
shuffled beside MosaicML Streaming, loaders with workers, KV mode, an object store. Each contestant
is a process that answers to the name of a mode (worker.h) with the processor time of all its
threads and children, and a sum that all must agree on."""
import os
import resource
import shutil
import sys

from contest import Worker, few, table, take_modes

HERE = os.path.dirname(os.path.abspath(__file__))
SEED, BATCH = 7, 256
# name: (title, rows, mean bytes or elements, rows of a file)
KINDS = {
    "short": ("text of 16 bytes", 1_000_000, 16, 65536),
    "text": ("text of 100 bytes", 500_000, 100, 16384),
    "bytes": ("bytes of 20 kB", 10_000, 20_000, 1024),
    "tokens": ("lists of 64 I32", 1_000_000, 64, 16384),
}


def used():
    """Nanoseconds of the processor, of this process and of children that have ended."""
    return int(1e9 * sum(one.ru_utime + one.ru_stime for one in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))))


# ── The rows ──

def rows_of(kind, part):
    """A column of rows that differ in length, and an I64."""
    import numpy
    import pyarrow
    _, count, mean, _ = KINDS[kind]
    count = int(count * part)
    chance = numpy.random.default_rng(3)
    ends = numpy.zeros(count + 1, "i4")
    numpy.cumsum(chance.integers(mean // 2, mean * 3 // 2 + 1, count), out=ends[1:])
    labels = pyarrow.array(numpy.arange(count, dtype="i8"))
    if kind == "tokens":
        values = pyarrow.array(numpy.resize(chance.integers(0, 50_000, (1 << 20) - 3, "i4"), ends[-1]))
        return pyarrow.table({"x": pyarrow.ListArray.from_arrays(ends, values), "label": labels})
    letters = numpy.resize(chance.integers(97, 123, (1 << 20) - 3, "u1"), ends[-1])
    made = pyarrow.binary()
    if kind != "bytes":
        made = pyarrow.string()
        places = ends[:-1:4]  # every fourth text begins with a character of two bytes
        letters[places], letters[places + 1] = 0xc3, 0xa9
    return pyarrow.table({"x": pyarrow.Array.from_buffers(made, count, [
        None, pyarrow.py_buffer(ends), pyarrow.py_buffer(letters)]), "label": labels})


def sum_of(values, ends, labels):
    """All values, lengths and labels."""
    import numpy
    return int(values.sum(dtype="i8")) + int(ends[-1] - ends[0]) + int(numpy.asarray(labels).sum())


def sum_of_arrow(batch):
    import numpy
    x, labels = batch.column(0), batch.column(1).to_numpy()
    ends = numpy.frombuffer(x.buffers()[1], "i4")[x.offset:x.offset + len(x) + 1]
    values = x.values.to_numpy() if hasattr(x, "values") else numpy.frombuffer(x.buffers()[2], "u1")
    return sum_of(values[ends[0]:ends[-1]], ends, labels)


# ── Columns: written and read ──

class Ours:
    def __init__(self, kind, part, folder):
        self.rows, self.each, self.folder = None, KINDS[kind][3], folder
        self.made = lambda: rows_of(kind, part)

    def table(self):
        if self.rows is None:
            self.rows = self.made()
        return self.rows

    def write(self):
        from libsafetensors import dataset
        dataset.write(self.table(), self.folder, mode="overwrite", batch_size=self.each, sync=False)
        return 0

    def read(self):
        from libsafetensors import dataset
        with dataset.open(self.folder) as data:
            return sum(sum_of(one["x"].values, one["x"].offsets, one["label"])
                       for one in data.batches())


class OursArrow(Ours):
    def read(self):
        from libsafetensors import dataset
        with dataset.open(self.folder) as data:
            return sum(map(sum_of_arrow, data.arrow_batches()))


class Parquet(Ours):
    how = {"compression": "none", "use_dictionary": False}

    def write(self):
        import pyarrow.parquet
        pyarrow.parquet.write_table(self.table(), os.path.join(self.folder, "rows.parquet"),
                                    row_group_size=self.each, **self.how)
        return 0

    def read(self):
        import pyarrow.parquet
        file = pyarrow.parquet.ParquetFile(os.path.join(self.folder, "rows.parquet"))
        return sum(map(sum_of_arrow, file.iter_batches(self.each)))


class ParquetHashed(Parquet):
    """With what a manifest has of each shard: the SHA-256 of the file."""

    def write(self):
        import hashlib
        super().write()
        with open(os.path.join(self.folder, "rows.parquet"), "rb") as file:
            hashlib.file_digest(file, "sha256")
        return 0


class ParquetAsItComes(Parquet):
    how = {}


# ── Lists, all rows shuffled ──

class Shuffled:
    """Rows of an epoch; the sum of each batch must be that of its labels."""

    def __init__(self, kind, part, folder):
        import numpy
        self.folder, rows = folder, rows_of(kind, part)
        x = rows.column("x").chunk(0)
        ends = x.offsets.to_numpy()
        whole = numpy.concatenate([[0], numpy.cumsum(x.values.to_numpy(), dtype="i8")])
        self.sums, self.lengths = numpy.diff(whole[ends]), numpy.diff(ends)
        self.most = max(BATCH, int(self.part_of_epoch * len(self.sums)))

    def epoch(self):
        import torch
        torch.set_num_threads(1)
        done = 0
        for values, labels in self.batches():
            labels = labels.reshape(-1).numpy()
            if int(values.sum()) != self.sums[labels].sum() or \
                    len(values) != self.lengths[labels].sum():
                raise SystemExit("other rows")
            done += len(labels)
            if done >= self.most:
                break
        return done


class ShuffledOurs(Shuffled):
    part_of_epoch = 1

    def batches(self):
        import torch
        from libsafetensors import dataset
        for batch in dataset.TorchBatches(self.folder, BATCH, seed=SEED, ends="uneven").loader():
            yield torch.cat(batch["x"]), batch["label"]


class ShuffledMosaic(Shuffled):
    part_of_epoch = .1

    @staticmethod
    def put(rows, folder):
        from loaders_sides import import_streaming
        columns = {"x": "ndarray:int32", "label": "int"}
        x = rows.column("x").chunk(0)
        ends, values = x.offsets.to_numpy().tolist(), x.values.to_numpy()
        with import_streaming().MDSWriter(out=folder, columns=columns, size_limit=4 << 20) as out:
            for label in range(len(x)):
                out.write({"x": values[ends[label]:ends[label + 1]], "label": label})

    def batches(self):
        import numpy
        import torch
        from loaders_sides import import_streaming
        streaming = import_streaming()
        streaming.base.util.clean_stale_shared_memory()
        data = streaming.StreamingDataset(
            local=self.folder, batch_size=BATCH, shuffle=True, shuffle_algo="naive",
            shuffle_seed=SEED, num_canonical_nodes=1)

        def collated(rows):
            return (torch.from_numpy(numpy.concatenate([row["x"] for row in rows])),
                    torch.tensor([int(row["label"]) for row in rows]))
        yield from streaming.StreamingDataLoader(data, batch_size=BATCH, num_workers=0,
                                                collate_fn=collated)


# ── KV mode ──

KEYED, WIDTH = 200_000, 64


class Keyed:
    """The same rows as tensors of their own, and in batches."""

    def __init__(self, kind, part, folder):
        import numpy
        import pyarrow
        self.folder, self.count, self.options = folder, int(KEYED * part), self.made_by[kind]
        flat = pyarrow.array(numpy.arange(self.count * WIDTH, dtype="f4") % 251)
        self.rows = pyarrow.table({
            "key": ["sample/%08d" % i for i in range(self.count)],
            "x": pyarrow.FixedSizeListArray.from_arrays(flat, WIDTH)})
        self.more = 0

    made_by = {"kv": {"name_col": "key"}, "kv, indexed": {"name_col": "key", "generate_index": True},
               "batch": {"batch_size": 8192}}

    def write(self):
        from libsafetensors import dataset
        dataset.write(self.rows, self.folder, mode="overwrite", sync=False, keep_old=0,
                      **self.options)
        return 0

    def append(self):
        from libsafetensors import dataset
        self.more += 1
        row = self.rows.slice(0, 1).set_column(0, "key", [["more/%d/%d" % (os.getpid(), self.more)]])
        dataset.write(row, self.folder, mode="append", sync=False, keep_old=0, **self.options)
        return 0

    def opened(self):
        from libsafetensors import dataset
        return dataset.open(self.folder)

    def open(self):
        with self.opened() as data:
            return len(data)

    def read(self):
        with self.opened() as data:
            return sum(int(one["x"].sum()) for one in data.batches(BATCH))

    def random(self):
        import numpy
        chance = numpy.random.default_rng(SEED)
        with self.opened() as data:
            return sum(int(data.take(chance.integers(0, self.count, BATCH))["x"].sum())
                       for _ in range(16))

    def named(self):
        if "name_col" not in self.options:
            return -1
        with self.opened() as data:
            return sum(int(data["sample/%08d" % (i * 97 % self.count)]["x"].sum())
                       for i in range(256))


# ── Loaders with workers ──

class WithWorkers:
    """A side of loaders_sides.py, all rows mixed."""
    count = 2

    def __init__(self, kind, part, folder):
        import loaders_sides
        from loaders import plans
        loaders_sides.WORKERS = self.count
        self.side = loaders_sides.SIDES[kind](plans(part)["wide"], folder)

    def epoch(self):
        from loaders import summed
        return summed(self.side.epoch("mixed"))


class WithoutWorkers(WithWorkers):
    count = 0


# ── A process that is a contestant: loaders_rows.py SIDE KIND PART FOLDER ──

SIDES = {"ours": Ours, "ours, as Arrow": OursArrow, "Parquet": Parquet,
         "Parquet and SHA-256": ParquetHashed, "Parquet as it comes": ParquetAsItComes,
         "shuffled ours": ShuffledOurs, "shuffled MosaicML": ShuffledMosaic, "keyed": Keyed,
         "2 workers": WithWorkers, "no workers": WithoutWorkers}


def serve(side, kind, part, folder):
    answers, sys.stdout = sys.stdout, sys.stderr
    turns = SIDES[side](kind, float(part), folder)
    print("memory 0 0", file=answers, flush=True)
    for line in sys.stdin:
        mode = line.strip()
        if mode == "write":
            turns.table() if hasattr(turns, "table") else None
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        before = used()
        total = getattr(turns, mode)()
        print("%d %d" % (used() - before, total), file=answers, flush=True)


# ── Tables ──

class Rows:
    def __init__(self, args, missed):
        self.args, self.missed = args, missed

    def worker(self, side, kind, folder):
        return Worker([sys.executable, os.path.abspath(__file__), side, kind, str(self.args.part),
                       folder])

    def folder(self, *names):
        found = os.path.join(self.args.data, "-".join(names).replace(" ", "-").replace(",", ""))
        os.makedirs(found, exist_ok=True)
        return found

    def turns(self, workers, mode, repeats=None):
        for worker in workers.values():
            worker.run(mode)  # imports, and the page cache
        got = take_modes({side: (worker, mode) for side, worker in workers.items()},
                         repeats or self.args.repeats)
        if len({frozenset(one.sums) for one in got.values()}) != 1:
            self.missed.append("%s: the sums differ" % mode)
        return got

    def floor(self, what, other, ours, floor):
        """A ratio by the best; one below the floor is told."""
        found = min(other.samples) / min(ours.samples)
        if found < floor:
            self.missed.append("%s: %.2f, the floor is %g" % (what, found, floor))
        return "%s×" % few(found)

    def columns(self):
        rows = {"write": [], "read": []}
        sides = ("ours", "Parquet", "Parquet and SHA-256", "Parquet as it comes", "ours, as Arrow")
        for kind, (title, *_) in KINDS.items():
            workers = {side: self.worker(side, kind, self.folder(kind, side.replace(
                ", as Arrow", ""))) for side in sides}
            arrow = workers.pop("ours, as Arrow")
            got = self.turns(workers, "write")
            rows["write"].append([title, *(one.cell() for one in got.values()), *(
                self.floor("%s, written beside %s" % (title, side), got[side], got["ours"], 1)
                for side in sides[1:4])])
            del workers["Parquet and SHA-256"]
            workers["ours, as Arrow"] = arrow
            got = self.turns(workers, "read")
            rows["read"].append([title, *(got[side].cell() for side in (
                "ours", "ours, as Arrow", "Parquet", "Parquet as it comes")), *(
                self.floor("%s, read %s" % (title, side), got["Parquet"], got[side], 1.5)
                for side in ("ours", "ours, as Arrow"))])
            for worker in workers.values():
                worker.close()
        return (table(["written, ms", *sides[:4], *("%s ÷ ours" % side for side in sides[1:4])],
                      rows["write"]) + "\n" +
                table(["read, ms", "ours", "ours, as Arrow", "Parquet", "Parquet as it comes",
                       "Parquet ÷ ours", "Parquet ÷ ours, as Arrow"], rows["read"]) + self.told(
            "%s, each with an I64 beside it; files (Parquet: row groups) of %s rows. Parquet: "
            "uncompressed, without dictionaries; as it comes: pyarrow's defaults (Snappy, "
            "dictionaries). Every value that is read is summed by numpy."
            % (", ".join("%s rows of %s" % (format(int(one[1] * self.args.part), ","), one[0])
                         for one in KINDS.values()),
               ", ".join(format(one[3], ",") for one in KINDS.values()))))

    def told(self, text):
        return "\nProcessor time of all threads, the median and the best of %d rounds. %s " \
            "Load average %.1f at the end.\n" % (self.args.repeats, text, os.getloadavg()[0])

    def ragged(self):
        folders = {side: self.folder("shuffled", side) for side in ("ours", "MosaicML")}
        for side, folder in folders.items():
            if not os.listdir(folder):
                if side == "ours":
                    Ours("tokens", self.args.part, folder).write()
                else:
                    ShuffledMosaic.put(rows_of("tokens", self.args.part), folder)
        speeds, rows = {}, []
        workers = {side: self.worker("shuffled " + side, "tokens", folder)
                   for side, folder in folders.items()}
        for _ in range(min(3, self.args.repeats)):
            for side, worker in workers.items():
                milliseconds, count = worker.run("epoch")
                speeds.setdefault(side, []).append(count / milliseconds)
        best = {side: max(found) for side, found in speeds.items()}
        if best["ours"] < 3 * best["MosaicML"]:
            self.missed.append("lists shuffled: %.2f times MosaicML, the floor is 3"
                               % (best["ours"] / best["MosaicML"]))
        for side in workers:
            rows.append([side, few(sorted(speeds[side])[len(speeds[side]) // 2]), few(best[side])])
            workers[side].close()
        rows[0].append("%s×" % few(best["ours"] / best["MosaicML"]))
        rows[1].append("")
        return table(["", "median", "best", "ours ÷ MosaicML"], rows) + (
            "\nThousands of rows a processor second: %s lists of 64 I32 on average and an I64, all "
            "rows shuffled, batches of %d, whose values are concatenated; the sums of each batch "
            "are compared with those of its labels. No workers. Ours: whole epochs; MosaicML "
            "(`naive`): the first tenth of one, opened anew. Load average %.1f at the end.\n"
            % (format(int(1_000_000 * self.args.part), ","), BATCH, os.getloadavg()[0]))

    def kv(self):
        kinds = ("kv", "kv, indexed", "batch")
        workers = {kind: self.worker("keyed", kind, self.folder("keyed", kind)) for kind in kinds}
        rows, got = [], {}
        titles = {"write": "written", "append": "one row appended", "open": "opened",
                  "read": "read in order, %d at a time" % BATCH,
                  "random": "16 times %d random rows" % BATCH, "named": "256 rows by name"}
        for mode, title in titles.items():
            able = workers if mode != "named" else {
                kind: one for kind, one in workers.items() if kind != "batch"}
            got = self.turns(able, mode)
            rows.append([title, *(got[kind].cell() if kind in got else "–" for kind in kinds)])
            if mode == "append" and min(got["kv"].samples) > 200:
                self.missed.append("append to KV: %.0f ms, the floor is 200"
                                   % min(got["kv"].samples))
        for worker in workers.values():
            worker.close()
        return table(["ms", "KV", "KV with an index", "batches"], rows) + self.told(
            "%s rows of %d F32, in KV mode each a tensor with a name. Read and by name: opened "
            "anew." % (format(int(KEYED * self.args.part), ","), WIDTH))


    def workers(self, plan, folders):
        rows, sides = [], ("ours", "MosaicML", "WebDataset", "HF datasets")
        found = {side: folder for side, folder in folders(plan).items() if side in sides}
        speeds = {}
        for count in ("no workers", "2 workers"):
            workers = {side: self.worker(count, side, folder) for side, folder in found.items()}
            got = self.turns(workers, "epoch", min(3, self.args.repeats))
            speeds[count] = {side: plan.count / min(one.samples) for side, one in got.items()}
            rows.append([count, *(few(speeds[count][side]) for side in sides), "%s×" % few(
                speeds[count]["ours"] / max(speeds[count][side] for side in sides[1:]))])
            for worker in workers.values():
                worker.close()
        return table(["", *sides, "ours ÷ the next"], rows) + (
            "\nThousands of rows a processor second, of the process and its workers, the best of "
            "%d epochs: the rows of the first table, of %d shards mixed. Load average %.1f at the "
            "end.\n" % (min(3, self.args.repeats), plan.open_shards, os.getloadavg()[0]))


if __name__ == "__main__":
    serve(*sys.argv[1:])
