"""Datasets byte by byte as the Spark connector (safetensors-spark 0.0.2) writes them: no padding
of headers, tensors in the order they came, no __metadata__, no more in the manifest than its
own fields, an index that is a folder.

usage: connector.py FOLDER      makes one of each kind there
"""
import json
import os
import struct
import sys

import numpy as np

DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64", "uint8": "U8", "int8": "I8",
          "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32", "uint64": "U64",
          "int64": "I64"}
UUID = "550e8400-e29b-41d4-a716-%012d"


def name(task, shard=0, attempt=1):
    return "part-%05d-%04d-%s.safetensors" % (task, shard, UUID % attempt)


def shard_bytes(tensors, spaces=0):
    """tensors: [(name, array)], in this order. spaces: extra ones in the JSON and behind it."""
    entries, data = {}, b""
    for key, array in tensors:
        raw = np.ascontiguousarray(array).tobytes()
        entries[key] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    marks = (", " + " " * spaces, ": ") if spaces else (",", ":")
    text = json.dumps(entries, separators=marks).encode() + b" " * spaces
    return struct.pack("<Q", len(text)) + text + data


def manifest(shards, schema=None):
    """shards: [(name, samples, bytes)]."""
    return {"format_version": "1.0", "safetensors_version": "1.0",
            "total_samples": sum(one[1] for one in shards),
            "total_bytes": sum(one[2] for one in shards),
            "shards": [{"shard_path": path, "samples_count": samples, "bytes": size}
                       for path, samples, size in sorted(shards)],
            "schema": schema or {}}


def write_index(folder, rows):
    """The folder of parts that Spark leaves."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    path = os.path.join(folder, "_tensor_index.parquet")
    os.makedirs(path)
    schema = pa.schema([pa.field("tensor_key", pa.string(), False),
                        pa.field("file_name", pa.string(), False),
                        pa.field("shape", pa.list_(pa.int32()), False),
                        pa.field("dtype", pa.string(), False)])
    columns = [list(column) for column in zip(*rows)] or [[]] * 4
    half = (len(rows) + 1) // 2
    table = pa.table(dict(zip(schema.names, columns)), schema=schema)
    for i, part in enumerate((table[:half], table[half:])):
        pq.write_table(part, os.path.join(path, "part-%05d-%s-c000.snappy.parquet"
                                          % (i, UUID % 9)))
    open(os.path.join(path, "_SUCCESS"), "w").close()


def write(folder, shards, told=None, index=False, spaces=0):
    """shards: [(file name, samples, [(key, array)])]; told: how many of them the manifest names
    (the last ones: an append forgets those before it)."""
    os.makedirs(folder, exist_ok=True)
    facts, schema, rows = [], {}, []
    for path, samples, tensors in shards:
        data = shard_bytes(tensors, spaces)
        with open(os.path.join(folder, path), "wb") as file:
            file.write(data)
        facts.append((path, samples, len(data)))
        for key, array in tensors:
            kind = DTYPES[array.dtype.name]
            schema.setdefault(key, {"dtype": kind, "shape": list(array.shape)})
            rows.append((key, path, list(array.shape), kind))
    kept = facts if told is None else facts[len(facts) - told:]
    with open(os.path.join(folder, "dataset_manifest.json"), "w") as file:
        json.dump(manifest(kept, schema), file, indent=2, separators=(",", " : "))
    if index:
        write_index(folder, rows)
    return folder


def batches(count=3, rows=4):
    """[(file name, samples, tensors)] with column x [rows, 3] F32 and y [rows] I64, where the
    last file is one row short; names are in the order of rows."""
    made = []
    for i in range(count):
        here = rows - (i == count - 1)
        x = np.arange(here * 3, dtype=np.float32).reshape(here, 3) + 100 * i
        # One odd byte first, so that what follows is not aligned.
        made.append((name(i), here, [("z", np.full(here, i, np.uint8)), ("x", x),
                                     ("y", np.arange(here, dtype=np.int64) + 10 * i)]))
    return made


def rows(count=3, each=2):
    """The same in KV mode: names row0…, columns emb and id."""
    made = []
    for i in range(count):
        tensors = []
        for j in range(each):
            key = "row%d__" % (i * each + j)
            tensors.append((key + "emb", np.full(2 + j, i * each + j, np.float32)))
            tensors.append((key + "id", np.array(i * each + j, np.int64)))
        made.append((name(i), each, tensors))
    return made


def main(folder):
    write(os.path.join(folder, "batch"), batches(), index=True)
    write(os.path.join(folder, "kv"), rows(), index=True, spaces=3)
    write(os.path.join(folder, "forgot"), batches(), told=1)
    write(os.path.join(folder, "empty"), [])


if __name__ == "__main__":
    main(sys.argv[1])
