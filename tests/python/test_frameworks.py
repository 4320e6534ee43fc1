"""flax, tensorflow, mlx and paddle: the same four functions, through numpy. A framework that is
not installed is skipped; jax is among the pinned packages."""
import importlib

import pytest

import libsafetensors
import libsafetensors.numpy
from libsafetensors import SafetensorError, safe_open

np = pytest.importorskip("numpy")
PLAIN = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32"]


class Flax:
    name, frameworks, wants = "flax", ("flax", "jax"), "jax"
    dtypes = [d for d in PLAIN if d != "int64"] + ["uint16", "uint32", "complex64", "bfloat16",
                                                   "float8_e4m3fn", "float8_e5m2"]

    def make(self, array):
        return importlib.import_module("jax.numpy").asarray(array)

    def back(self, array):
        return np.asarray(array)


class Tensorflow:
    name, frameworks, wants = "tensorflow", ("tf", "tensorflow"), "tensorflow"
    dtypes = PLAIN + ["uint16", "uint32", "uint64", "float64", "complex64", "bfloat16"]

    def make(self, array):
        return importlib.import_module("tensorflow").convert_to_tensor(array)

    def back(self, tensor):
        return tensor.numpy()


class Mlx:
    name, frameworks, wants = "mlx", ("mlx",), "mlx.core"
    dtypes = PLAIN + ["uint16", "uint32", "uint64", "complex64", "bfloat16"]

    def make(self, array):
        return importlib.import_module("mlx.core").array(array)

    def back(self, array):
        return importlib.import_module("libsafetensors.mlx")._numpy_array(array)


class Paddle:
    name, frameworks, wants = "paddle", ("paddle",), "paddle"
    dtypes = PLAIN + ["float64", "complex64", "bfloat16", "float8_e4m3fn", "float8_e5m2"]

    def make(self, array):
        paddle = importlib.import_module("paddle")
        kind = array.dtype.name
        if kind == "bfloat16":
            return paddle.to_tensor(array.view(np.int16)).view(kind)
        if kind.startswith("float8"):
            return paddle.to_tensor(array.view(np.uint8)).view(kind)
        return paddle.to_tensor(array)

    def back(self, tensor):
        kind = str(tensor.dtype).rpartition(".")[2]
        if kind == "bfloat16" or kind.startswith("float8"):
            bits = "int16" if kind == "bfloat16" else "uint8"
            ml_dtypes = importlib.import_module("ml_dtypes")
            return tensor.view(bits).numpy().view(getattr(ml_dtypes, kind))
        return tensor.numpy()


@pytest.fixture(params=[Flax, Tensorflow, Mlx, Paddle], ids=lambda kind: kind.name)
def framework(request):
    kind = request.param
    pytest.importorskip(kind.wants, reason="%s is not installed" % kind.wants)
    pytest.importorskip("ml_dtypes")
    kind.module = importlib.import_module("libsafetensors." + kind.name)
    return kind()


def arrays(framework):
    ml_dtypes = importlib.import_module("ml_dtypes")
    found = {}
    for dtype in framework.dtypes:
        kind = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
        for shape in ((2, 3), (), (2, 0)):
            array = (np.arange(int(np.prod(shape, dtype=int))) % 2).reshape(shape).astype(kind)
            found["%s%s" % (dtype, shape)] = array
    return found


def assert_same(framework, got, wanted):
    assert got.keys() == wanted.keys()
    for name, array in wanted.items():
        back = framework.back(got[name])
        assert back.dtype == array.dtype and back.shape == array.shape, name
        assert back.tobytes() == array.tobytes(), name


def test_round_trip(framework, tmp_path):
    wanted = arrays(framework)
    tensors = {name: framework.make(array) for name, array in wanted.items()}
    before = dict(tensors)
    path = tmp_path / "f"
    framework.module.save_file(tensors, path, {"k": "v"}, sync=False)
    data = framework.module.save(tensors, metadata={"k": "v"})
    assert all(tensors[name] is before[name] for name in before)
    assert path.read_bytes() == data == libsafetensors.numpy.save(wanted, {"k": "v"})
    assert_same(framework, framework.module.load(data), wanted)
    for backend in ("mmap", "pread"):
        assert_same(framework, framework.module.load_file(path, backend=backend), wanted)
    kind = type(next(iter(tensors.values())))
    for name in framework.frameworks:
        with safe_open(path, name) as f:
            got = f.get_tensors()
            assert_same(framework, got, wanted)
            assert isinstance(f.get_tensor("float32(2, 3)"), kind)
            piece = f.get_slice("float32(2, 3)")[:, 1:]
            assert isinstance(piece, kind)
            assert framework.back(piece).tolist() == [[1, 0], [0, 1]]


def test_no_memory_is_shared_with_the_file(framework, tmp_path):
    tensor = framework.make(np.arange(64, dtype=np.float32))
    framework.module.save_file({"a": tensor}, tmp_path / "f")
    got = framework.module.load_file(tmp_path / "f")["a"]
    with open(tmp_path / "f", "r+b") as f:
        f.seek(-256, 2)
        f.write(bytes(256))
    assert framework.back(got)[63] == 63


@pytest.mark.parametrize("name", ["np", "tf", "flax", "mlx"])
def test_other_devices_are_torch_s(tmp_path, name):
    wants = {"np": "numpy", "tf": "tensorflow", "flax": "jax", "mlx": "mlx.core"}[name]
    pytest.importorskip(wants)
    libsafetensors.serialize_file({}, tmp_path / "f")
    with pytest.raises(SafetensorError, match="Device cuda is not supported for framework"):
        safe_open(tmp_path / "f", name, device="cuda")
