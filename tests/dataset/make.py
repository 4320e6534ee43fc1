#!/usr/bin/env python3
"""Small datasets, byte by byte, with fixed names.

  make.py kv|batch|empty|connector|connector-kv DIR

kv and batch are as libsafetensors writes them (kv has a name twice, by lastWin; batch a
padded tail), connector as the Scala connector does: headers without padding, JSON with
spaces, an index folder, and a shard that an append left out of the manifest.
"""
import hashlib
import json
import os
import struct
import sys

UUID = "%08x-1111-4222-8333-444444444444"
SIZES = {"F32": 4, "F16": 2, "I64": 8, "U8": 1}


def shard_name(file, shard=0):
    return "part-%05d-%04d-%s.safetensors" % (file, shard, UUID % file)


def shard(folder, name, tensors, metadata=None, official=True):
    """tensors: [(key, dtype, shape, fill)]. Returns the whole file's bytes."""
    if official:
        tensors = sorted(tensors, key=lambda t: (-SIZES[t[1]], t[0]))
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for key, dtype, shape, fill in tensors:
        size = SIZES[dtype]
        for dim in shape:
            size *= dim
        header[key] = {"dtype": dtype, "shape": shape,
                       "data_offsets": [len(data), len(data) + size]}
        data += bytes([fill]) * size
    text = json.dumps(header, separators=(",", ":") if official else (", ", " : ")).encode()
    text += b" " * (-len(text) % 8 if official else 0)
    whole = struct.pack("<Q", len(text)) + text + data
    with open(os.path.join(folder, name), "wb") as f:
        f.write(whole)
    return whole


def marked(mode, samples, valid=None):
    made = {"libsafetensors.dataset": "1", "mode": mode, "samples": str(samples)}
    if valid is not None:
        made["valid_samples"] = str(valid)
    return made


def publish(folder, manifest, **style):
    with open(os.path.join(folder, "dataset_manifest.json"), "w", encoding="utf-8") as f:
        json.dump(manifest, f, **style)


def ours(folder, mode, shards, columns, schema, **more):
    """shards: [(name, bytes, samples, valid, tensors, shadowed)] in the order of samples."""
    rows, first, lost = [], 0, 0
    for name, whole, samples, valid, tensors, shadowed in shards:
        rows.append({"shard_path": name, "samples_count": samples, "bytes": len(whole),
                     "sha256": hashlib.sha256(whole).hexdigest(), "tensors": tensors,
                     "first_sample": first, "valid_samples": valid, "shadowed": shadowed})
        first += samples
        lost += shadowed // max(1, len(columns))
    manifest = {
        "format_version": "1.0", "safetensors_version": "1.0",
        "generator": "libsafetensors 0.0.0", "commit": UUID % 0xabcdef, "version": 2,
        "mode": mode, "batch_size": None, "name_col": None, "kv_separator": None,
        "tail_strategy": None, "index": None}
    manifest.update(more)
    manifest.update({
        "total_samples": first - lost,
        "total_valid_samples": sum(s[3] for s in shards) - lost,
        "total_bytes": sum(len(s[1]) for s in shards), "columns": columns, "schema": schema,
        "shards": sorted(rows, key=lambda row: row["shard_path"])})
    publish(folder, manifest, separators=(",", ":"))


def make_kv(folder):
    parts = [("ada", "bob"), ("bob", "cyd"), ("dan",)]
    shards, schema = [], {}
    for number, names in enumerate(parts):
        tensors = []
        for name in names:
            tensors += [(name + "__emb", "F32", [4], number + 1), (name + "__id", "I64", [], 7)]
            schema[name + "__emb"] = {"dtype": "F32", "shape": [4]}
            schema[name + "__id"] = {"dtype": "I64", "shape": []}
        name = shard_name(number)
        whole = shard(folder, name, tensors, marked("kv", len(names)))
        shards.append((name, whole, len(names), len(names), len(tensors), 2 if number == 0 else 0))
    columns = {"emb": {"dtype": "F32", "shape": [4]}, "id": {"dtype": "I64", "shape": []}}
    ours(folder, "kv", shards, columns, dict(sorted(schema.items())), name_col="name",
         kv_separator="__")


def make_batch(folder):
    shards = []
    for number, valid in enumerate((4, 3)):
        tensors = [("x", "F32", [4, 2], 1), ("label", "U8", [4], 2)]
        name = shard_name(number)
        whole = shard(folder, name, tensors,
                      marked("batch", 4, valid if valid < 4 else None))
        shards.append((name, whole, 4, valid, 2, 0))
    columns = {"x": {"dtype": "F32", "shape": [2]}, "label": {"dtype": "U8", "shape": []}}
    schema = {"x": {"dtype": "F32", "shape": [4, 2]}, "label": {"dtype": "U8", "shape": [4]}}
    ours(folder, "batch", shards, columns, schema, batch_size=4, tail_strategy="pad")


def make_empty(folder):
    ours(folder, "batch", [], {}, {}, batch_size=4, tail_strategy="write")


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def thrift(fields):
    """A struct in Thrift's compact protocol: [(number, value)], numbers ascending. int: i64;
    str; list: of structs (lists of fields) or of str; dict: a struct."""
    out, last = b"", 0
    for number, value in fields:
        kind = {int: 6, str: 8, list: 9, dict: 12}[type(value)]
        out += bytes([(number - last) << 4 | kind])
        last = number
        if kind == 6:
            out += varint(2 * value)
        elif kind == 8:
            out += varint(len(value.encode())) + value.encode()
        elif kind == 12:
            out += thrift(list(value.items()))
        else:
            of_text = bool(value) and isinstance(value[0], str)
            inner = 8 if of_text else 12
            out += bytes([len(value) << 4 | inner]) if len(value) < 15 else \
                bytes([0xf0 | inner]) + varint(len(value))
            out += b"".join(varint(len(one.encode())) + one.encode() if of_text else thrift(one)
                            for one in value)
    return out + b"\0"


def index_file(path, rows, files, commit=None, columns=("tensor_key", "file_name", "shape",
                                                        "dtype")):
    """A Parquet file without data: only its footer is read."""
    chunks = [[(2, 4), (3, {1: 6, 3: ["file_name"], 5: rows,
                            12: {3: 0, 5: max(files), 6: min(files)}})]] if files else []
    footer = [(1, 1), (2, [[(4, "schema"), (5, len(columns))]] + [[(4, name)] for name in columns]),
              (3, rows), (4, [[(1, chunks), (2, 0), (3, rows)]])]
    if commit:
        footer.append((5, [[(1, "other"), (2, "text")], [(1, "commit"), (2, commit)]]))
    text = thrift(footer)
    with open(path, "wb") as f:
        f.write(b"PAR1" + text + struct.pack("<I", len(text)) + b"PAR1")


def theirs(folder, parts, samples, forgotten):
    rows, schema, total = [], {}, 0
    for number, tensors in enumerate(parts + [forgotten]):
        whole = shard(folder, shard_name(number), tensors, official=False)
        if number == len(parts):
            break
        rows.append({"shard_path": shard_name(number), "samples_count": samples,
                     "bytes": len(whole)})
        total += len(whole)
        for key, dtype, shape, _ in tensors:
            schema.setdefault(key, {"dtype": dtype, "shape": shape})
    index = os.path.join(folder, "_tensor_index.parquet")
    os.mkdir(index)
    half = len(parts) // 2
    for number, some in enumerate((parts[:half], parts[half:])):
        names = [row["shard_path"] for row in rows[half * number:][:len(some)]]
        index_file(os.path.join(index, "part-%05d-c000.snappy.parquet" % number),
                   sum(map(len, some)), names)
    with open(os.path.join(index, "_SUCCESS"), "wb"):
        pass
    publish(folder, {"format_version": "1.0", "safetensors_version": "1.0",
                     "total_samples": samples * len(parts), "total_bytes": total,
                     "shards": rows, "schema": schema}, indent=2, separators=(",", " : "))


def make_connector(folder):
    theirs(folder, [[("y", "F16", [4], 1), ("x", "F32", [4, 2], 2)] for _ in range(2)], 4,
           [("y", "F16", [1], 1), ("x", "F32", [1, 2], 2)])


def make_connector_kv(folder):
    theirs(folder, [[("b__v", "F32", [2], 1), ("a__v", "F32", [2], 1)],
                    [("a__v", "F32", [2], 2), ("c__v", "F32", [2], 2)]], 2,
           [("d__v", "F32", [2], 3)])


def main():
    kind, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    globals()["make_" + kind.replace("-", "_")](folder)


if __name__ == "__main__":
    main()
