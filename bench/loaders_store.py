"""What loaders.py fetches from an object store: moto's S3 (build/venv has it), which counts requests
and bytes. loaders_store.py serve PORT, loaders_store.py epoch HOW PORT FOLDER"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from contest import few, table

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS, WIDTH, EACH, BATCH = 8192, 1024, 512, 64
HOW = {
    "ours, in order": (False, 1, {}), "ours, `\"blocks\"`, 4 shards": ("blocks", 1, {}),
    "ours, `True`": (True, 1, {}),
    "ours, `\"blocks\"`, 4 ranks": ("blocks", 4, {}),
    "ours, `\"blocks\"`, 4 ranks, `partition=\"shards\"`": ("blocks", 4, {"partition": "shards"}),
    "ours, `True`, `cache_dir`, first epoch": (True, 1, {"cache_dir": "cache"}),
    "ours, `True`, `cache_dir`, later epoch": (True, 1, {"cache_dir": "cache"}),
    "Parquet, in order": None,
}


def serve(port):
    """As tests/python/s3_server.py; /counted says what was asked of shards since the last time."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import run_simple
    store, counted = DomainDispatcherApplication(create_backend_app), [0, 0]

    def counting(environ, start):
        if environ["PATH_INFO"] == "/counted":
            body, counted[:] = json.dumps(counted).encode(), [0, 0]
            start("200 OK", [("Content-Length", str(len(body)))])
            return [body]
        shard = environ["PATH_INFO"].endswith((".safetensors", ".parquet"))

        def begin(status, headers, *rest):
            if shard:
                sent = int(dict(headers).get("Content-Length", 0))
                counted[0] += 1
                counted[1] += sent if environ["REQUEST_METHOD"] == "GET" else 0
            return start(status, headers, *rest)
        return store(environ, begin)
    run_simple("127.0.0.1", int(port), counting, threaded=False)


def options_of(port):
    return {"endpoint_override": "127.0.0.1:" + port, "scheme": "http", "access_key": "key",
            "secret_key": "secret", "region": "us-east-1"}


def stored_of(port):
    return {"storage." + name: value for name, value in options_of(port).items()}


def put(port):
    import numpy
    import pyarrow
    import pyarrow.fs
    import pyarrow.parquet
    from libsafetensors import dataset
    store = pyarrow.fs.S3FileSystem(**options_of(port), allow_bucket_creation=True)
    store.create_dir("bucket")
    flat = pyarrow.array(numpy.arange(ROWS * WIDTH, dtype="f4") % 1021)
    rows = pyarrow.table({"x": pyarrow.FixedSizeListArray.from_arrays(flat, WIDTH),
                          "label": numpy.arange(ROWS)})
    dataset.write(rows, "s3://bucket/ours", batch_size=EACH, single_writer=True, **stored_of(port))
    for at in range(0, ROWS, EACH):
        pyarrow.parquet.write_table(
            rows.slice(at, EACH), "bucket/parquet/%05d.parquet" % at, filesystem=store,
            compression="none", use_dictionary=False, row_group_size=EACH)


def epoch(how, port, folder):
    """Prints the sum of all labels, and the processor time of the epoch."""
    import pyarrow.fs
    import pyarrow.parquet
    import torch
    from libsafetensors import dataset
    torch.set_num_threads(1)
    total, before = 0, time.process_time()
    if HOW[how] is None:
        store = pyarrow.fs.S3FileSystem(**options_of(port))
        for at in range(0, ROWS, EACH):
            file = pyarrow.parquet.ParquetFile("bucket/parquet/%05d.parquet" % at, filesystem=store)
            total += sum(one.column(1).to_numpy().sum() for one in file.iter_batches(BATCH))
    else:
        shuffle, ranks, more = HOW[how]
        if "cache_dir" in more:
            more = {"cache_dir": folder}
        for rank in range(ranks):
            source = dataset.TorchBatches("s3://bucket/ours", BATCH, shuffle=shuffle, seed=7,
                                          rank=rank, ranks=ranks, **more, **stored_of(port))
            total += sum(int(one["label"].sum()) for one in source)
    print(int(total), 1e3 * (time.process_time() - before))


def counted(port):
    with urllib.request.urlopen("http://127.0.0.1:%s/counted" % port, timeout=60) as answer:
        return json.load(answer)


def store(missed):
    """The table."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    python = os.path.join(os.path.dirname(HERE), "build", "venv", "bin", "python")
    me = os.path.abspath(__file__)
    running = subprocess.Popen([python, me, "serve", port], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    folder, rows, data = tempfile.mkdtemp(), [], ROWS * (WIDTH * 4 + 8)
    try:
        for _ in range(300):
            try:
                counted(port)
                break
            except OSError:
                time.sleep(0.2)
        put(port)
        for how in HOW:
            counted(port)
            done = subprocess.run([sys.executable, me, "epoch", how, port, folder], check=True,
                                  capture_output=True, text=True)
            total, spent = done.stdout.split()
            asked, sent = counted(port)
            if int(total) != ROWS * (ROWS - 1) // 2:
                missed.append("%s: other rows" % how)
            rows.append([how, asked, "%.2f" % (sent / data), few(float(spent))])
    finally:
        running.terminate()
        running.wait()
        shutil.rmtree(folder)
    return table(["an epoch", "requests", "bytes fetched ÷ data", "processor time, ms"], rows) + (
        "\n%s rows of %d F32 and an I64 (%d MB), %d files, batches of %d, no workers; ranks one "
        "after the other in one process, each opens the dataset anew. Requests are those of shards, "
        "as the store counted them.\n"
        % (format(ROWS, ","), WIDTH, data // 10**6, ROWS // EACH, BATCH))


if __name__ == "__main__":
    {"serve": serve, "epoch": epoch}[sys.argv[1]](*sys.argv[2:])
