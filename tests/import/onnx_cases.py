"""ONNX models against the onnx package, whose wheel carries the models of its own tests."""
import glob
import os

import ml_dtypes  # noqa: F401  (onnx makes arrays of its dtypes)
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import files

FOLDER = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
# No dtype of safetensors, or elements of less than a byte that numpy unpacks.
OTHER = ("UNDEFINED", "STRING", "COMPLEX128", "UINT4", "INT4", "UINT2", "INT2", "FLOAT4E2M1",
         "FLOAT6E2M3", "FLOAT6E3M2")


def stored(tensor):
    return np.ascontiguousarray(numpy_helper.to_array(tensor)).tobytes()


def compare(ctx, path, tensors, *options):
    found, _ = files.convert_raw(ctx, path, *options)
    assert set(found) == set(tensors), set(found) ^ set(tensors)
    for name, tensor in tensors.items():
        shape, data = found[name]
        assert shape == list(tensor.dims), name
        assert data == stored(tensor), name


def initializers(path):
    return {t.name: t for t in onnx.load(path).graph.initializer}


def models(ctx):
    """Every model of the wheel."""
    paths = sorted(glob.glob(os.path.join(FOLDER, "**", "*.onnx"), recursive=True))
    assert len(paths) > 100
    for path in paths if ctx.full else paths[::5]:
        compare(ctx, path, initializers(path))


def save(ctx, tensors, nodes=(), **options):
    path = os.path.join(ctx.folder, "m.onnx")
    graph = helper.make_graph(list(nodes), "g", [], [], list(tensors))
    onnx.save(helper.make_model(graph), path, **options)
    return path


def placed(ctx, raw):
    """Elements of every type, in raw_data or in the field of their type."""
    for name, number in TensorProto.DataType.items():
        if name in OTHER:
            continue
        array = np.array([0, 1, 2, 3, 1, 0], "f4").astype(helper.tensor_dtype_to_np_dtype(number))
        tensor = helper.make_tensor("t", number, [2, 3],
                                    array.tobytes() if raw else array.tolist(), raw=raw)
        compare(ctx, save(ctx, [tensor]), {"t": tensor})


def external(ctx):
    tensors = [numpy_helper.from_array(np.arange(50.0 * i, dtype="f4"), f"w{i}")
               for i in range(1, 4)]
    copies = {t.name: numpy_helper.from_array(numpy_helper.to_array(t), t.name) for t in tensors}
    path = save(ctx, tensors, save_as_external_data=True, location="w.data", size_threshold=0)
    compare(ctx, path, copies)


def nodes(ctx):
    """Constants of nodes: left out, or named after their outputs."""
    one = numpy_helper.from_array(np.arange(5.0), "inside")
    node = helper.make_node("Constant", [], ["out"], value=one)
    weight = numpy_helper.from_array(np.ones(3, "f4"), "w")
    path = save(ctx, [weight], [node])
    compare(ctx, path, {"w": weight})
    compare(ctx, path, {"w": weight, "out": one}, "--all")
    values = {"value_float": 1.5, "value_floats": [1.0, 2.0], "value_int": -3,
              "value_ints": [4, 5, 6]}
    path = save(ctx, [weight], [helper.make_node("Constant", [], [n], **{n: v})
                                for n, v in values.items()])
    compare(ctx, path, {"w": weight} | {
        n: numpy_helper.from_array(np.array(v, "f4" if "float" in n else "i8"), n)
        for n, v in values.items()}, "--all")


def same_names(ctx):
    """Tensors of several attributes of one node, and of the branches of an If: what one name
    cannot tell apart has its path."""
    def array(value):
        return numpy_helper.from_array(np.full(2, value, "f4"), "t")
    several = helper.make_node("Own", [], ["y"], domain="own", a=array(1), b=array(2),
                               c=[array(3), array(4)])
    alone = helper.make_node("Own", [], ["z"], domain="own", a=array(5))
    graphs = [helper.make_graph([helper.make_node("Constant", [], ["k"], value_float=v)], "b", [],
                                [], [numpy_helper.from_array(np.full(2, v, "f4"), "w")])
              for v in (6.0, 7.0)]
    branch = helper.make_node("If", ["i"], ["o"], then_branch=graphs[0], else_branch=graphs[1])
    path = save(ctx, [numpy_helper.from_array(np.zeros(2, "f4"), "w")], [several, alone, branch])
    found, _ = files.convert_raw(ctx, path, "--all")
    values = {name: np.frombuffer(data, "<f4")[0] for name, (_, data) in found.items()}
    assert values == {"w": 0, "y.a": 1, "y.b": 2, "y.c": 3, "y.c.1": 4, "z": 5,
                      "o.then_branch.k": 6, "o.then_branch.w": 6, "o.else_branch.k": 7,
                      "o.else_branch.w": 7}, values


def cases(ctx):
    yield "onnx: models of the wheel", lambda: models(ctx)
    yield "onnx: raw elements", lambda: placed(ctx, True)
    yield "onnx: typed elements", lambda: placed(ctx, False)
    yield "onnx: external data", lambda: external(ctx)
    yield "onnx: constants of nodes", lambda: nodes(ctx)
    yield "onnx: one name in several places", lambda: same_names(ctx)
