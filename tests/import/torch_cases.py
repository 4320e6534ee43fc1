"""PyTorch's files, with PyTorch as writer and as oracle: every byte of every tensor."""
import collections
import functools
import json
import os
import pickle
import subprocess
import warnings
import zipfile

import numpy as np
import torch

import torch_make as make
from plain import read_plain

warnings.filterwarnings("ignore")
QUICK, FULL, AT_ONCE = 200, 2400, 100


def dump(ctx, rows):
    """Reports of rows (options, input, output or None)."""
    lines = "".join("\t".join(filter(None, row)) + "\n" for row in rows)
    done = subprocess.run(ctx.dump, input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def one(ctx, path, options="-", out=True):
    """(tensors, report) of one file; the report alone if it is refused."""
    out = os.path.join(ctx.folder, "out.safetensors") if out else None
    (report,) = dump(ctx, [(options, path, out)])
    assert "error" not in report, report
    return read_plain(out)[0], report


def refused(ctx, path, code, options="-", says=""):
    out = os.path.join(ctx.folder, "refused.safetensors")
    (report,) = dump(ctx, [(options, path, out)])
    assert report.get("error") == code and says in report["message"], report
    assert not os.path.exists(out)
    return report


def same(found, tensors):
    wanted = {name: make.raw(tensor) for name, tensor in tensors.items()}
    assert found.keys() == wanted.keys(), found.keys() ^ wanted.keys()
    for name, value in wanted.items():
        assert found[name] == value, (name, str(found[name])[:300], str(value)[:300])


def save(tree, path, **options):
    torch.save(tree, path, **options)


def to_big_endian(path, tensors):
    """The same file as a big-endian machine writes it: storages swapped by their dtype."""
    with zipfile.ZipFile(path) as archive:
        records = {info.filename: archive.read(info) for info in archive.infolist()}
    top = next(iter(records)).split("/")[0]
    sizes = {}
    for tensor in tensors:
        plain = tensor.untyped_storage()
        part = tensor.element_size() // (2 if tensor.is_complex() else 1)
        sizes.setdefault(bytes(plain), set()).add(part)
    for name, data in records.items():
        if name.startswith(top + "/data/") and data:
            (part,) = sizes[data]
            records[name] = np.frombuffer(data, f"<u{part}").byteswap().tobytes()
    records[top + "/byteorder"] = b"big"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(name, data)


# ── Random checkpoints ──

def random_files(ctx, begin, count):
    rows, wanted = [], []
    for seed in range(begin, begin + count):
        rng = make.seeded(seed)
        tree, tensors = make.random_checkpoint(rng)
        path = os.path.join(ctx.folder, f"{seed}.pt")
        save(tree, path, pickle_protocol=rng.choice([2, 2, 3, 4, 5]),
             _use_new_zipfile_serialization=rng.random() < 0.6)
        whole = rng.random() < 0.3
        rows.append(("all,shared=copy" if whole else "shared=copy", path, path + ".out"))
        wanted.append(dict(make.flat(tree)) if whole else tensors)
    for row, report, tensors in zip(rows, dump(ctx, rows), wanted):
        assert "error" not in report, (row, report)
        same(read_plain(row[2])[0], tensors)
        known = {"argparse"}
        assert {g["module"] for g in report["globals"]} <= known, report["globals"]


def big_endian(ctx, begin, count):
    rows, wanted = [], []
    for seed in range(begin, begin + count):
        rng = make.seeded(seed)
        tensors = {f"t{i}": make.random_view(rng, make.random_tensor(rng, dtype))
                   for i, dtype in enumerate(make.DTYPES)}
        path = os.path.join(ctx.folder, f"{seed}.pt")
        save(tensors, path)
        try:
            to_big_endian(path, tensors.values())
        except ValueError:  # two dtypes with the same bytes
            continue
        rows.append(("-", path, path + ".out"))
        wanted.append(tensors)
    assert rows
    for row, report, tensors in zip(rows, dump(ctx, rows), wanted):
        assert "error" not in report, (row, report)
        same(read_plain(row[2])[0], tensors)


def deflate(path):
    with zipfile.ZipFile(path) as archive:
        records = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in records.items():
            archive.writestr(name, data)


def deflated(ctx):
    """The same archives with every record compressed, as some tools pack them again."""
    path = os.path.join(ctx.folder, "d.pt")
    for seed in range(40):
        tree, tensors = make.random_checkpoint(make.seeded(seed))
        save(tree, path, pickle_protocol=4)
        deflate(path)
        same(one(ctx, path, "shared=copy")[0], tensors)


def beside_tensors(ctx):
    """What checkpoints hold besides takes more memory than their bytes six times."""
    path = os.path.join(ctx.folder, "b.pt")
    base = torch.arange(60000.)
    for tree in [{"losses": [0] * 4_000_000, "w": base},
                 {"pairs": [[i] for i in range(800_000)], "w": base}]:
        save(tree, path)
        deflate(path)
        same(one(ctx, path)[0], {"w": base})
    save({str(i): base[i] for i in range(len(base))}, path)
    deflate(path)
    assert len(one(ctx, path, "shared=copy")[0]) == len(base)


# ── Aliases ──

def aliases(ctx):
    weight = torch.randn(4, 3)
    path = os.path.join(ctx.folder, "a.pt")
    rest = {"part": weight[1:], "other": torch.ones(2)}
    save({"m.embed": weight, "m.head": weight, **rest}, path)
    found, report = one(ctx, path)
    same(found, {"m.embed": weight, **rest})
    assert report["metadata"] == {"format": "pt", "m.head": "m.embed"}, report
    assert [a["name"] for a in report["aliases"] if not a["partial"]] == ["m.head"]
    found, _ = one(ctx, path, "shared=copy")
    same(found, {"m.embed": weight, "m.head": weight, **rest})
    refused(ctx, path, "foreign_shared", "shared=refuse")
    # a record of a name without a dot would be taken for other metadata: both are written
    save({"embed": weight, "head": weight, **rest}, path)
    found, report = one(ctx, path)
    same(found, {"embed": weight, "head": weight, **rest})
    assert report["metadata"] == {"format": "pt"}, report


# ── Branches ──

def branches(ctx):
    state = {"w": torch.randn(2, 2)}
    optimizer = {"state": {0: {"exp_avg": torch.ones(2, 2)}}, "param_groups": [{"lr": 1}]}
    path = os.path.join(ctx.folder, "b.pt")
    save({"model": state, "optimizer": optimizer, "ema": {"w": torch.zeros(2, 2)}, "epoch": 3},
         path)
    found, report = one(ctx, path)
    same(found, state)
    rows = {b["path"]: (b["tensors"], b["bytes"], b["chosen"]) for b in report["branches"]}
    assert rows == {"": (3, 48, False), "model": (1, 16, True), "optimizer": (1, 16, False),
                    "optimizer.state": (1, 16, False), "ema": (1, 16, False)}, rows
    left = {(r["reason"], r["path"]): (r["count"], r["bytes"]) for r in report["left_out"]}
    assert left == {("branch", "optimizer"): (1, 16), ("branch", "ema"): (1, 16),
                    ("value", "epoch"): (1, 0)}, left
    same(one(ctx, path, "root=ema")[0], {"w": torch.zeros(2, 2)})
    same(one(ctx, path, "root=optimizer.state")[0], {"0.exp_avg": torch.ones(2, 2)})
    same(one(ctx, path, "root=optimizer.state.0")[0], {"exp_avg": torch.ones(2, 2)})
    same(one(ctx, path, "root=model.w")[0], state)
    same(one(ctx, path, "all")[0], {"model.w": state["w"], "ema.w": torch.zeros(2, 2),
                                    "optimizer.state.0.exp_avg": torch.ones(2, 2)})
    for name in ["modell", "model.", "epoch", "optimizer.param_groups"]:
        refused(ctx, path, "foreign_branch", "root=" + name)


def dotted_keys(ctx):
    path = os.path.join(ctx.folder, "d.pt")
    save({"a.b": {"c": torch.ones(1)}, "a": {"x": torch.zeros(1)}}, path)
    same(one(ctx, path, "root=a.b")[0], {"c": torch.ones(1)})
    same(one(ctx, path)[0], {"a.b.c": torch.ones(1), "a.x": torch.zeros(1)})
    save({"a.b": torch.ones(1), "a": {"b": torch.zeros(1)}}, path)
    refused(ctx, path, "foreign_name")
    for key in [None, 1.5, (1, 2), b"w", True]:
        save({key: torch.ones(1)}, path)
        refused(ctx, path, "foreign_name")
        found, report = one(ctx, path, "skip")
        assert not found and report["left_out"][0]["reason"] == "skipped", report
    save({7: torch.ones(1), -3: torch.zeros(1)}, path)
    same(one(ctx, path)[0], {"7": torch.ones(1), "-3": torch.zeros(1)})


def scalars(ctx):
    path = os.path.join(ctx.folder, "s.pt")
    save({"w": torch.ones(1), "i": -5, "f": 2.5, "b": True, "n": np.float32(3), "t": "x"}, path)
    found, _ = one(ctx, path, "scalars")
    assert found["i"] == ("I64", [], (-5).to_bytes(8, "little", signed=True))
    assert found["b"] == ("BOOL", [], b"\1")
    assert found["f"] == ("F64", [], np.float64(2.5).tobytes())
    assert found["n"] == ("F32", [], np.float32(3).tobytes())
    assert len(found) == 5
    assert len(one(ctx, path)[0]) == 1


def single_tensor(ctx):
    path = os.path.join(ctx.folder, "t.pt")
    save(torch.arange(3), path)
    same(one(ctx, path)[0], {"tensor": torch.arange(3)})
    save([torch.arange(3), {"a": torch.ones(1)}], path)
    same(one(ctx, path)[0], {"0": torch.arange(3), "1.a": torch.ones(1)})
    save({"epoch": 3}, path)
    found, report = one(ctx, path)
    assert not found and report["branches"] == [], report


# ── Modules ──

def module():
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4),
                               torch.nn.Sequential(torch.nn.Linear(4, 2, bias=False)))


def whole_modules(ctx, zipped):
    path = os.path.join(ctx.folder, "m.pt")
    model = module()
    save({"model": model, "epoch": 1}, path, _use_new_zipfile_serialization=zipped)
    found, report = one(ctx, path)
    same(found, model.state_dict())
    assert {(g["module"], g["name"], g["calls"]) for g in report["globals"]} == {
        ("torch.nn.modules.container", "Sequential", 2),
        ("torch.nn.modules.linear", "Linear", 2),
        ("torch.nn.modules.batchnorm", "BatchNorm1d", 1)}, report


def torchscript(ctx):
    path = os.path.join(ctx.folder, "s.pt")
    model = module().eval()
    torch.jit.save(torch.jit.script(model), path)
    found, report = one(ctx, path)
    same(found, model.state_dict())
    assert report["format"] == "torchscript"
    torch.jit.save(torch.jit.trace(model, torch.ones(2, 3)), path)
    same(one(ctx, path)[0], model.state_dict())


# ── Nothing is called ──

class Calls:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def foreign_calls(ctx):
    mark = os.path.join(ctx.folder, "called")
    path = os.path.join(ctx.folder, "e.pt")
    state = {"w": torch.ones(2)}
    for zipped in [True, False]:
        save({"state_dict": state, "a": Calls(os.system, f"touch {mark}"),
              "b": Calls(eval, f"open({mark!r}, 'w')"), "c": Calls(os.system, "true")}, path,
             _use_new_zipfile_serialization=zipped)
        found, report = one(ctx, path)
        same(found, state)
        assert not os.path.exists(mark)
        assert [(g["module"], g["name"], g["calls"]) for g in report["globals"]] == [
            (os.system.__module__, "system", 2), ("builtins", "eval", 1)], report
    save({"w": Calls(os.system, "true"), "v": torch.ones(1)}, path)
    assert list(one(ctx, path)[0]) == ["v"]


def foreign_tensors(ctx):
    """A foreign object that is made of tensors is not left out in silence."""
    path = os.path.join(ctx.folder, "f.pt")
    save({"w": Calls(print, torch.ones(2)), "v": torch.ones(1)}, path)
    report = refused(ctx, path, "foreign_object", says="builtins.print")
    assert report["hint"] != 0
    found, report = one(ctx, path, "skip")
    same(found, {"v": torch.ones(1)})
    assert report["left_out"][0]["path"] == "w", report
    save({"state_dict": {"v": torch.ones(1)}, "w": Calls(print, torch.ones(2))}, path)
    same(one(ctx, path)[0], {"v": torch.ones(1)})


class Subclass(torch.Tensor):
    pass


def subclasses(ctx):
    path = os.path.join(ctx.folder, "t.pt")
    tensor = torch.arange(6.0).reshape(2, 3)
    tensor.note = "an attribute"
    tree = {"a": tensor.as_subclass(Subclass), "b": torch.nn.Buffer(torch.ones(2)),
            "c": torch.nn.Parameter(torch.ones(3).as_subclass(Subclass)), "d": tensor}
    for zipped in [True, False]:
        save(tree, path, _use_new_zipfile_serialization=zipped)
        found, report = one(ctx, path, "shared=copy")
        same(found, tree)
        assert {(g["name"], g["calls"]) for g in report["globals"]} == {("Subclass", 0)}, report


# ── Quantised and sparse ──

def quantised(ctx):
    path = os.path.join(ctx.folder, "q.pt")
    torch.manual_seed(2)
    values = torch.randn(5, 7)
    for dtype in [torch.quint8, torch.qint8, torch.qint32]:
        whole = torch.quantize_per_tensor(values, 0.05, 3, dtype)
        rows = torch.quantize_per_channel(values, torch.rand(5) + 0.01, torch.arange(5), 0, dtype)
        save({"w": whole, "t": whole.t(), "r": rows}, path)
        refused(ctx, path, "foreign_object", says="quantised")
        found, _ = one(ctx, path, "quantised=values")
        same(found, {"w": whole.dequantize(), "t": whole.t().dequantize(),
                     "r": rows.dequantize()})
        found, _ = one(ctx, path, "quantised=parts,shared=copy")
        same(found, {
            "w.int_repr": whole.int_repr(), "w.scale": torch.tensor(0.05, dtype=torch.float64),
            "w.zero_point": torch.tensor(3), "t.int_repr": whole.t().int_repr(),
            "t.scale": torch.tensor(0.05, dtype=torch.float64), "t.zero_point": torch.tensor(3),
            "r.int_repr": rows.int_repr(), "r.scale": rows.q_per_channel_scales(),
            "r.zero_point": rows.q_per_channel_zero_points(), "r.axis": torch.tensor(0)})


def quantised_wide(ctx):
    """Integers beyond 2^24: of one scale subtracted as integers, of channels as floats. Expected:
    what PyTorch 2.13 made of them."""
    path = os.path.join(ctx.folder, "q.pt")
    big, most = 1 << 24, (1 << 31) - 1
    whole = torch._make_per_tensor_quantized_tensor(
        torch.tensor([big + 1, big + 3, (1 << 30) + 1, 5], dtype=torch.int32), 1.0, 3)
    ends = torch._make_per_tensor_quantized_tensor(
        torch.tensor([most, -most - 1], dtype=torch.int32), 1.0, 0)
    rows = torch._make_per_channel_quantized_tensor(
        torch.tensor([[big + 1, most], [5, -most - 1]], dtype=torch.int32),
        torch.ones(2).double(), torch.tensor([3, -5]), 0)
    expected = {"w": torch.tensor([16777214.0, 16777216.0, 1073741824.0, 2.0]),
                "e": torch.tensor([2147483648.0, -2147483648.0]),
                "r": torch.tensor([[16777213.0, 2147483648.0], [10.0, -2147483648.0]])}
    for name, tensor in (("w", whole), ("e", ends), ("r", rows)):
        assert torch.equal(tensor.dequantize(), expected[name]), name
    save({"w": whole, "e": ends, "r": rows}, path)
    same(one(ctx, path, "quantised=values")[0], expected)
    over = torch._make_per_tensor_quantized_tensor(
        torch.tensor([0, most], dtype=torch.int32), 1.0, -5)
    save({"w": over}, path)
    done = subprocess.run([*ctx.command, "convert", path, "-o", path + ".safetensors",
                           "--quantised", "values"], capture_output=True, text=True)
    assert done.returncode == 1 and "fits 32 bits, found 2147483647" in done.stderr, done


def strided_parts(ctx):
    """Integers, scales, indices and values that are views."""
    path = os.path.join(ctx.folder, "s.pt")
    torch.manual_seed(4)
    nhwc = torch.randn(4, 3, 2, 2).contiguous(memory_format=torch.channels_last)
    channels = torch.quantize_per_channel(nhwc, torch.rand(8).double()[::2] + 0.01,
                                          torch.arange(8)[::2], 0, torch.qint8)
    save({"w": channels}, path)
    same(one(ctx, path, "quantised=values")[0], {"w": channels.dequantize()})
    twice = torch.sparse_coo_tensor(torch.tensor([[0, 1, 1, 0], [2, 0, 2, 2]]),
                                    torch.tensor([1.0, 2.0, 3.0, 5.0]), (2, 3)).coalesce()
    assert twice.indices().stride() == (4, 1)
    places = torch.tensor([[0, 1, 1], [2, 0, 2]])
    hybrid = torch.sparse_coo_tensor(places, torch.randn(4, 3).t(), (2, 3, 4), is_coalesced=True)
    equal = torch.sparse_coo_tensor(places, torch.tensor([2.0]).expand(3), (2, 3),
                                    is_coalesced=True)
    save({"a": twice, "b": hybrid, "c": equal}, path)
    same(one(ctx, path, "sparse=values")[0],
         {"a": twice.to_dense(), "b": hybrid.to_dense(), "c": equal.to_dense()})


def sparse(ctx):
    path = os.path.join(ctx.folder, "x.pt")
    dense = torch.tensor([[0, 2.0, 0], [3.0, 0, 4.0]])
    coo, csr = dense.to_sparse(), dense.to_sparse_csr()
    hybrid = torch.arange(12.0).reshape(2, 2, 3).to_sparse(1)
    save({"coo": coo, "h": hybrid, "e": torch.zeros(2, 3).to_sparse()}, path)
    refused(ctx, path, "foreign_object", says="sparse")
    same(one(ctx, path, "sparse=values")[0],
         {"coo": dense, "h": hybrid.to_dense(), "e": torch.zeros(2, 3)})
    save({"coo": coo, "csr": csr}, path)
    same(one(ctx, path, "sparse=parts,shared=copy")[0], {
        "coo.indices": coo.indices(), "coo.values": coo.values(),
        "coo.shape": torch.tensor([2, 3]), "csr.crow_indices": csr.crow_indices(),
        "csr.col_indices": csr.col_indices(), "csr.values": csr.values(),
        "csr.shape": torch.tensor([2, 3])})
    refused(ctx, path, "foreign_object", "sparse=values", says="layout")
    large = torch.sparse_coo_tensor(torch.tensor([[5], [5]]), torch.ones(1), (1 << 20, 1 << 20))
    save({"w": large.coalesce()}, path)
    refused(ctx, path, "foreign_output", "sparse=values")
    wide = torch.sparse_coo_tensor(torch.tensor([[3, 9]]), torch.randn(2, 5000), (20, 5000))
    rows = torch.arange(0, 9000, 7)
    many = torch.sparse_coo_tensor(rows[None], torch.randn(len(rows), 3), (9000, 3))
    save({"w": wide.coalesce(), "m": many.coalesce()}, path)
    same(one(ctx, path, "sparse=values")[0], {"w": wide.to_dense(), "m": many.to_dense()})
    # Zeros take no memory.
    empty = torch.sparse_coo_tensor(torch.tensor([[5]]), torch.ones(1), (1 << 27,))
    save({"w": empty.coalesce()}, path)
    # Limited, not measured: a child's peak counts what it had of this process before it began.
    limit = "" if "asan" in ctx.command[-1] else "ulimit -v $((256 << 10)) && "
    subprocess.run(["bash", "-c", limit + 'exec "$@"', "-", *ctx.command, "convert", path,
                    "--sparse", "dense", "--list"], stdout=subprocess.DEVNULL, check=True)


def without_dtype(ctx):
    path = os.path.join(ctx.folder, "n.pt")
    for tensor in [torch.ones(2, dtype=torch.complex128), torch.ones(2, dtype=torch.complex32),
                   torch.zeros(2, dtype=torch.uint8).view(torch.bits8)]:
        save({"w": tensor, "v": torch.ones(1)}, path)
        refused(ctx, path, "foreign_dtype", says="torch.")
        same(one(ctx, path, "skip")[0], {"v": torch.ones(1)})
    pairs = torch.randint(0, 256, (2, 3), dtype=torch.uint8)
    save({"w": pairs.view(torch.float4_e2m1fn_x2)}, path)
    found, _ = one(ctx, path)
    assert found == {"w": ("F4", [2, 6], pairs.numpy().tobytes())}, found
    save({"w": torch.nn.Parameter(torch.empty(2, device="meta"))}, path)
    refused(ctx, path, "foreign_object")


# ── Pickles of arrays ──

def plain_pickles(ctx):
    path = os.path.join(ctx.folder, "p.pkl")
    arrays = {"w": np.arange(6, dtype="<f4").reshape(2, 3), "f": np.asfortranarray(np.eye(3)),
              "b": np.arange(3, dtype=">i4"), "long": np.arange(40000, dtype="<f8"),
              "none": np.zeros((0, 3), "<u2"), "scalar": np.array(3.0)}
    for protocol in range(6):
        tree = {"model": arrays, "__author__": "x", "matching_heuristics": True}
        with open(path, "wb") as file:
            pickle.dump(tree, file, protocol=protocol)
        found, report = one(ctx, path)
        assert report["format"] == "pickle" and report["metadata"] == {}, report
        assert report["globals"] == [], report
        same(found, arrays)
        first = arrays["w"]
        for root, expected in [(collections.OrderedDict(arrays), arrays),
                               ((first,), {"0": first}), (first, {"tensor": first})]:
            with open(path, "wb") as file:
                pickle.dump(root, file, protocol=protocol)
            same(one(ctx, path)[0], expected)
    for tree in [{"a": 1}, ["x"], {"a": np.float64(1)}]:
        with open(path, "wb") as file:
            pickle.dump(tree, file)
        refused(ctx, path, "foreign_kind")
    with open(path, "wb") as file:
        pickle.dump({"a": np.array([{}, 1], object), "b": np.ones(1)}, file)
    refused(ctx, path, "foreign_dtype", says="O8")
    same(one(ctx, path, "skip")[0], {"b": np.ones(1)})


def paddle(ctx):
    """Paddle's own layouts, made by hand: arrays, (name, array) and eval("data", …)."""
    path = os.path.join(ctx.folder, "p.pdparams")
    array = np.arange(6, dtype="<f4").reshape(2, 3)
    tree = {"plain": array, "named": Calls(tuple, ("linear.w", array)),
            "lod": Calls(eval, "data", {"data": array + 1}),
            "StructuredToParameterName@@": {"plain": "linear_0.w_0"}}
    for protocol in [2, 3, 4]:
        with open(path, "wb") as file:
            pickle.dump(tree, file, protocol=protocol)
        found, report = one(ctx, path, "shared=copy")
        same(found, {"plain": array, "named": array, "lod": array + 1})
        assert report["globals"] == [], report
    cut = {"w@@.0": array.reshape(-1)[:4], "b": array, "w@@.1": array.reshape(-1)[4:],
           "UnpackBigParamInfor@@": {"w": {"OriginShape": (2, 3), "slices": ["w@@.0", "w@@.1"]}}}
    with open(path, "wb") as file:
        pickle.dump(cut, file, protocol=2)
    found, _ = one(ctx, path)
    same(found, {"w": array, "b": array})
    for facts in [{"w": 1}, 1, {"w": {"OriginShape": (2, 3), "slices": ["w@@.0", "x"]}},
                  {"w": {"OriginShape": (2, -3), "slices": ["w@@.0"]}}]:
        with open(path, "wb") as file:
            pickle.dump({**cut, "UnpackBigParamInfor@@": facts}, file, protocol=2)
        refused(ctx, path, "foreign_syntax")
    for args in [("data ", {"data": array}), ("data", {"data": array, "x": 1}),
                 ("data", {"date": array}), ("data", {"data": 1})]:
        with open(path, "wb") as file:
            pickle.dump({"w": array, "x": Calls(eval, *args)}, file)
        _, report = one(ctx, path, "skip")
        assert [(g["name"], g["calls"]) for g in report["globals"]] == [("eval", 1)], report


def cases(ctx):
    count = FULL if ctx.full else QUICK
    for begin in range(0, count, AT_ONCE):
        yield f"random {begin}", functools.partial(random_files, ctx, begin, AT_ONCE)
    for begin in range(0, count // 10, 10):
        yield f"big-endian {begin}", functools.partial(big_endian, ctx, begin, 10)
    for zipped in [True, False]:
        yield f"whole modules {zipped}", functools.partial(whole_modules, ctx, zipped)
    for function in [aliases, branches, dotted_keys, scalars, single_tensor, torchscript,
                     foreign_calls, foreign_tensors, deflated, subclasses,
                     quantised, quantised_wide, strided_parts, sparse, without_dtype,
                     plain_pickles, paddle, beside_tensors]:
        yield function.__name__, functools.partial(function, ctx)
