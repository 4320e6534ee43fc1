#!/usr/bin/env python3
"""Compare Spark writing and reading datasets with Spark's own Parquet, uncompressed, of the
same frame: one session of local[2] does both in turns.

    spark.py [--only write,rows,read] [--part 1.0] [--repeats 5] [--memory 8g]
             [--data DIR] [--write [FILE]]

Run it by build/spark/bin/python (make bench-spark). The frame is held in Spark's memory (2 GB;
--memory is the session's) before the first turn. --part: a part of the full size. Cells, ratios
and --write as in compare.py. Floor, by the best (exit status 1 when missed): not slower than
Parquet that is synced where ours is.
"""
import glob
import os
import shutil
import sys
import tempfile
import time
import traceback

from contest import Worker, cell, ratio, table, take_modes
from sections import load_since, options, publish, status_of

ROWS, KEYED, WIDTH, BATCH, PARTS = 1_000_000, 200_000, 512, 8192, 8


# Of docs/spark.md, "Settings": what makes reading faster.
TUNED = {"spark.python.unix.domain.socket.enabled": "true"}
TUNED_JAVA = " -Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"


# ── The session: spark.py work ROWS KEYED FOLDER MEMORY [tuned] ──

def session(memory, scratch, tuned):
    from pyspark.sql import SparkSession
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_DIRS=scratch,
                      PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    conf = {"spark.driver.memory": memory, "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false", "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-Djava.io.tmpdir=" + scratch + tuned * TUNED_JAVA,
            "spark.sql.warehouse.dir": os.path.join(scratch, "warehouse"),
            **(TUNED if tuned else {})}
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for name, value in conf.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def frame(spark, count):
    """key, x: floats that no two rows share, held in memory."""
    def fill(batches):
        import numpy
        import pyarrow
        for batch in batches:
            ids = batch.column(0).to_numpy()
            for begin in range(0, len(ids), 4096):
                some = ids[begin:begin + 4096]
                x = numpy.random.default_rng(int(some[0])).random((len(some), WIDTH), "f4")
                ends = numpy.arange(len(some) + 1, dtype="i4") * WIDTH
                yield pyarrow.RecordBatch.from_arrays(
                    [pyarrow.array(["sample/%08d" % i for i in some]),
                     pyarrow.ListArray.from_arrays(ends, x.reshape(-1))], ["key", "x"])
    made = spark.range(0, count, 1, PARTS).mapInArrow(fill, "key string, x array<float>")
    made = made.persist()
    assert made.count() == count
    held = spark.sparkContext._jsc.sc().getRDDStorageInfo()
    if any(one.numCachedPartitions() < one.numPartitions() or one.diskSize() for one in held):
        raise RuntimeError("the frame does not fit into memory: give more with --memory")
    return made


def bare_source():
    """A data source in Python that only returns one batch of so many rows, again and again."""
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    parts, width = PARTS, WIDTH

    class Reader(DataSourceReader):
        def __init__(self, rows, batch, kind):
            self.rows, self.batch, self.kind = rows, batch, kind

        def partitions(self):
            return [InputPartition(part) for part in range(parts)]

        def read(self, partition):
            import numpy
            import pyarrow
            batch = self.batch
            ends = numpy.arange(batch + 1, dtype="i4") * width
            values = numpy.ones(batch * width, "f4")
            if self.kind == "binary":
                x = pyarrow.Array.from_buffers(pyarrow.binary(), batch, [
                    None, pyarrow.py_buffer(ends * 4), pyarrow.py_buffer(values)])
            else:
                x = pyarrow.ListArray.from_arrays(ends, values)
            whole = pyarrow.RecordBatch.from_arrays([x], ["x"])
            for begin in range(0, self.rows // parts, batch):
                yield whole.slice(0, min(batch, self.rows // parts - begin))

    class Bare(DataSource):
        @classmethod
        def name(cls):
            return "bare"

        def schema(self):
            return "x " + self.options["kind"]

        def reader(self, schema):
            return Reader(int(self.options["rows"]), int(self.options["batch"]),
                          self.options["kind"])
    return Bare


def sync_all(folder):
    for path in [*glob.glob(os.path.join(folder, "*")), folder]:
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def as_bytes(batches):
    """Arrays of floats as binary."""
    import numpy
    import pyarrow
    for batch in batches:
        values = batch.column(0).flatten()
        ends = numpy.arange(len(batch) + 1, dtype="i4") * (WIDTH * 4)
        yield pyarrow.RecordBatch.from_arrays([pyarrow.Array.from_buffers(
            pyarrow.binary(), len(batch), [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(
                values.to_numpy())])], ["x"])


def numbers(batches):
    """The greatest number of each batch, by numpy: of arrays, or of their bytes."""
    import pyarrow

    from libsafetensors.spark import binary_to_numpy
    for batch in batches:
        x = batch.column(0)
        found = binary_to_numpy(x, "F32", [WIDTH]) if not pyarrow.types.is_list(x.type) \
            else x.flatten().to_numpy()
        most = pyarrow.array([found.max().item()], pyarrow.float32())
        yield pyarrow.RecordBatch.from_arrays([most], ["most"])


class Modes:
    """What a session is told to do, by name: WHAT-WHO[-sync]."""

    def __init__(self, spark, rows, keyed, folder):
        self.spark, self.folder = spark, folder
        self.counts = {"write": rows, "rows": keyed}
        self.frames = {}

    def frame(self, what):
        if what not in self.frames:
            self.frames[what] = frame(self.spark, self.counts[what])
        return self.frames[what] if what == "rows" else self.frames[what].select("x")

    def place(self, mode):
        return os.path.join(self.folder, mode)

    # ── Writing ──

    def prepare(self, mode):
        if mode.startswith(("write", "rows")):
            self.frame(mode.split("-")[0])
            shutil.rmtree(self.place(mode), ignore_errors=True)
            os.sync()

    def run(self, mode):
        what, who, *more = mode.split("-")
        return getattr(self, ("read_" if what.startswith("read") else "write_") + who)(
            what, mode, bool(more))

    def options(self, what, sync):
        chosen = {"name_col": "key"} if what == "rows" else {"batch_size": BATCH}
        return {**chosen, "sync": sync}

    def write_source(self, what, mode, sync):
        writer = self.frame(what).write.format("safetensors").mode("overwrite")
        for name, value in self.options(what, sync).items():
            writer = writer.option(name, value)
        writer.save(self.place(mode))

    def write_function(self, what, mode, sync):
        from libsafetensors.spark import write_safetensors
        write_safetensors(self.frame(what), self.place(mode), **self.options(what, sync))

    def write_Parquet(self, what, mode, sync):
        self.write_rows(self.frame(what), mode, sync)

    def write_bytes(self, what, mode, sync):
        """Parquet of binary."""
        self.write_rows(self.frame(what).mapInArrow(as_bytes, "x binary"), mode, sync)

    def write_rows(self, rows, mode, sync):
        rows.write.mode("overwrite").option("compression", "none").parquet(self.place(mode))
        if sync:
            sync_all(self.place(mode))

    def write_python(self, what, mode, sync):
        """The way to Python alone: batches arrive, and are let go."""
        def drop(batches):
            import pyarrow
            rows = sum(batch.num_rows for batch in batches)
            yield pyarrow.RecordBatch.from_arrays([pyarrow.array([rows])], ["rows"])
        self.frame(what).mapInArrow(drop, "rows bigint").collect()

    # ── Reading: an exclusive or of hashes of all rows; equal bytes have equal ones ──

    def hashed(self, rows, column):
        return rows.selectExpr("bit_xor(xxhash64(%s)) h" % column).first()["h"]

    def taken(self, what, rows):
        """Of readnumbers, in Python; of read, in the JVM."""
        if what == "readnumbers":
            most = rows.mapInArrow(numbers, "most float").selectExpr("max(most) m").first()["m"]
            return int(most * 2 ** 24)
        return self.hashed(rows, "x")

    def samples(self, kind):
        rows = self.spark.read.format("safetensors")
        rows = rows.option("layout", "samples").option("as", kind)
        return rows.load(self.place("write-source")).select("x")

    def read_arrays(self, what, mode, sync):
        return self.taken(what, self.samples("array"))

    def read_binary(self, what, mode, sync):
        return self.taken(what, self.samples("binary"))

    def read_bytes(self, what, mode, sync):
        return self.taken(what, self.spark.read.parquet(self.place("write-bytes")))

    def bare(self, batch, kind="array<float>"):
        self.spark.dataSource.register(bare_source())
        options = {"rows": self.counts["write"], "batch": batch, "kind": kind}
        return self.hashed(self.spark.read.format("bare").options(**options).load(), "x") * 0

    def read_bare(self, what, mode, sync):
        return self.bare(BATCH)

    def read_baresmall(self, what, mode, sync):
        return self.bare(BATCH // 16)

    def read_barelarge(self, what, mode, sync):
        return self.bare(BATCH * 8)

    def read_barebinary(self, what, mode, sync):
        return self.bare(BATCH, "binary")

    def read_tensors(self, what, mode, sync):
        rows = self.spark.read.format("safetensors")
        if what == "read":
            rows = rows.option("layout", "samples").load(self.place("write-source"))
            return self.hashed(rows, "x.data") * 0
        rows = rows.option("layout", "tensors").load(self.place("rows-source"))
        return self.hashed(rows, "tensor_key, data") * 0

    def read_Parquet(self, what, mode, sync):
        if what == "readnumbers":
            return self.taken(what, self.spark.read.parquet(self.place("write-Parquet")))
        rows = self.spark.read.parquet(
            self.place("write-Parquet" if what == "read" else "rows-Parquet"))
        return self.hashed(rows, "x" if what == "read" else "key, x") * (what == "read")


def work(rows, keyed, folder, memory, tuned=""):
    answers, errors = os.dup(1), os.dup(2)
    scratch = tempfile.mkdtemp(prefix="scratch-", dir=folder)
    log = os.open(os.path.join(folder, "spark%s.log" % tuned),
                  os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    out = os.fdopen(answers, "w", buffering=1)
    try:
        spark = session(memory, scratch, bool(tuned))
        modes = Modes(spark, int(rows), int(keyed), folder)
        out.write("memory 0 0\n")
        for line in sys.stdin:
            mode = line.strip()
            modes.prepare(mode)
            start = time.perf_counter_ns()
            total = modes.run(mode)
            out.write("%.1f %d\n" % (time.perf_counter_ns() - start, total or 0))
        spark.stop()
    except Exception:
        os.write(errors, traceback.format_exc().encode())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


# ── Tables ──

class Bench:
    def __init__(self, args):
        self.args, self.missed = args, []
        self.rows = max(BATCH, int(ROWS * args.part))
        self.keyed = max(BATCH, int(KEYED * args.part))
        self.worker = self.session()

    def session(self, *tuned):
        return Worker([sys.executable, os.path.abspath(__file__), "work", str(self.rows),
                       str(self.keyed), self.args.data, self.args.memory, *tuned])

    def contest(self, modes, others=()):
        """After one turn of each that is not counted: the JVM compiles what runs often.
        others: (name, session, mode)."""
        turns = {**{mode: (self.worker, mode) for mode in modes},
                 **{name: (other, mode) for name, other, mode in others}}
        for worker, mode in turns.values():
            worker.run(mode)
        return take_modes(turns, self.args.repeats)

    def floor(self, title, got, ours, theirs):
        best = min(got[theirs].samples) / min(got[ours].samples)
        if best < 1.0:
            self.missed.append("%s: %s: %.2f× of Parquet's speed" % (title, ours, best))

    def written(self, what, note):
        modes = ["%s-%s%s" % (what, who, sync) for sync in ("", "-sync")
                 for who in ("source", "function", "Parquet")]
        got = self.contest([*modes, what + "-python"])
        lines = []
        for title, sync in (("no sync", ""), ("on disk", "-sync")):
            source, function, theirs = ("%s-%s%s" % (what, who, sync)
                                        for who in ("source", "function", "Parquet"))
            for mode in (source, function):
                self.floor(title, got, mode, theirs)
            lines.append([title, *(cell(got[one]) for one in (source, function, theirs)),
                          ratio(got[theirs], got[source]), ratio(got[theirs], got[function])])
        return table(["", "data source, ms", "`write_safetensors`, ms", "Parquet, ms",
                      "Parquet ÷ data source", "Parquet ÷ function"], lines) + (
            "\n" + note + " Ours also takes a digest of each file and commits a manifest; on "
            "disk: Parquet is followed by fsync of each file and the folder. The same rows "
            "through Arrow to Python, and dropped there: %s ms.\n" % cell(got[what + "-python"]))

    def write(self):
        return self.written("write", "%s rows of %d F32 (%d MB), held in Spark's memory, of %d "
                            "partitions; `batch_size` %d." % (
                                format(self.rows, ","), WIDTH, self.rows * WIDTH * 4 // 10**6,
                                PARTS, BATCH))

    def rows_by_name(self):
        return self.written("rows", "%s rows of a name and %d F32 (%d MB), each a tensor of its "
                            "own." % (format(self.keyed, ","), WIDTH,
                                      self.keyed * WIDTH * 4 // 10**6))

    def read(self):
        for mode in ("write-source", "write-Parquet", "write-bytes", "rows-source",
                     "rows-Parquet"):
            if not glob.glob(os.path.join(self.args.data, mode, "*")):
                self.worker.run(mode)
        bare = ["read-baresmall", "read-bare", "read-barelarge", "read-barebinary"]
        ours = [mine for _, mine, _ in READS]
        modes = list(dict.fromkeys([*ours, *bare, *(theirs for _, _, theirs in READS)]))
        tuned = self.session("tuned")
        got = self.contest(modes, [("tuned-" + mode, tuned, mode) for mode in ours])
        tuned.close()
        lines = []
        for title, mine, theirs in READS:
            if got[mine].sums != got[theirs].sums and "tensors" not in mine:
                raise SystemExit("read: what was read differs: %s" % {
                    mode: got[mode].sums for mode in modes})
            self.floor(title, got, mine, theirs)
            lines.append([title, cell(got[mine]), cell(got["tuned-" + mine]), cell(got[theirs]),
                          ratio(got[theirs], got[mine]),
                          ratio(got[theirs], got["tuned-" + mine])])
        return table(["", "ours, ms", "ours with settings, ms", "Parquet, ms", "Parquet ÷ ours",
                      "Parquet ÷ ours with settings"], lines) + (
            "\nWith settings: %s. What was written above, warm cache; every byte goes into "
            "`xxhash64` of its row, or goes to a Python task, whose numpy takes the maximum. "
            "Parquet's are arrays of floats for arrays and tensors, binary for binary; results "
            "of the same kind agree. A data source in Python that hands over the same batch again "
            "and again and reads nothing: %s ms for arrays, %s of Parquet (in batches of %d rows; "
            "%s ms of %d, %s ms of %d), %s ms for binary.\n" % (
                ", ".join("`%s`" % one for one in [*TUNED, *TUNED_JAVA.split()]),
                cell(got["read-bare"]), ratio(got["read-Parquet"], got["read-bare"]), BATCH,
                cell(got["read-baresmall"]), BATCH // 16, cell(got["read-barelarge"]), BATCH * 8,
                cell(got["read-barebinary"])))


# What is read, by which mode of ours and of Parquet.
READS = (("samples as arrays", "read-arrays", "read-Parquet"),
         ("samples as tensors", "read-tensors", "read-Parquet"),
         ("samples as binary", "read-binary", "read-bytes"),
         ("arrays to numpy", "readnumbers-arrays", "readnumbers-Parquet"),
         ("binary to numpy", "readnumbers-binary", "readnumbers-bytes"),
         ("by name, as tensors", "readrows-tensors", "readrows-Parquet"))
SECTIONS = {"write": Bench.write, "rows": Bench.rows_by_name, "read": Bench.read}


def main():
    args = options(__doc__, SECTIONS, "spark", 5, part=True, more=[("--memory", "8g")])
    shutil.rmtree(args.data)
    os.makedirs(args.data)
    before = os.getloadavg()[0]
    bench = Bench(args)
    for name in args.chosen:
        publish(args, "spark", name, SECTIONS[name](bench) + load_since(before))
    bench.worker.close()
    return status_of(bench.missed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(*sys.argv[2:])
    else:
        sys.exit(main())
