"""What a program sees of the package: signatures, annotations, and answers to wrong types."""
import importlib
import inspect
import io
import pkgutil
import sys
import typing

import pytest

import libsafetensors
from libsafetensors import _core
from reading import pack

# Modules whose names are for users; of frameworks that are not here the loop sees nothing.
MODULES = ["libsafetensors", "libsafetensors._core", "libsafetensors._official",
           "libsafetensors._tools", "libsafetensors.numpy", "libsafetensors.torch",
           "libsafetensors.flax", "libsafetensors.tensorflow", "libsafetensors.mlx",
           "libsafetensors.paddle", "libsafetensors.dataset", "libsafetensors.spark",
           "libsafetensors.ray", "libsafetensors.remote", "libsafetensors.daft", "libsafetensors.h5",
           "libsafetensors.lora"]


def public(module):
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    for name in names:
        value = getattr(module, name)
        if callable(value) and not typing.get_origin(value) and not typing.is_typeddict(value):
            yield "%s.%s" % (module.__name__, name), value


def members(kind):
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        if isinstance(value, property):
            if value.fget is not None and name in vars(kind):
                yield name, value.fget
            continue
        own = any(name in vars(base) for base in kind.__mro__
                  if base.__module__.startswith("libsafetensors"))
        wanted = not name.startswith("_") or name in ("__init__", "__enter__", "__exit__",
                                                      "__getitem__", "__dlpack__", "__array__")
        if own and wanted and callable(getattr(kind, name)):
            yield name, getattr(kind, name)


def everything():
    for name in MODULES:
        try:
            found = list(public(importlib.import_module(name)))
        except ImportError:
            continue
        for path, value in found:
            yield path, value
            if inspect.isclass(value):
                for member, inner in members(value):
                    yield "%s.%s" % (path, member), inner


EVERYTHING = dict(everything())


def test_the_list_of_modules_is_whole():
    package = {"libsafetensors." + found.name for found in
               pkgutil.iter_modules(libsafetensors.__path__) if not found.name.startswith("_")}
    assert package - set(MODULES) == {"libsafetensors.dropin"}
    assert len(EVERYTHING) > 150


@pytest.mark.parametrize("path", EVERYTHING)
def test_signature_and_hints(path):
    value = EVERYTHING[path]
    signature = inspect.signature(value)
    if inspect.isclass(value) and not value.__dict__.get("__annotations__"):
        return  # those of torch's and Spark's classes are not ours
    hints = typing.get_type_hints(value)
    if inspect.isfunction(value):
        named = [p.name for p in signature.parameters.values()
                 if p.annotation is not inspect.Parameter.empty]
        assert set(named) <= set(hints)
        assert inspect.signature(value, eval_str=True)


def test_signatures_of_c_are_those_of_the_stubs():
    # Every row that takes keywords names them: without, inspect would have raised above.
    assert str(inspect.signature(_core.Writer)) == (
        "(target, tensors=None, metadata=None, *, sync=True, align=8, keep_order=False, "
        "header_room=0, overwrite=True, link='replace', limit_mode=0, in_place_unsafe=False)")
    assert str(inspect.signature(_core.File.keys)) == "(self, /, order='offset')"
    for kind in (_core.SafetensorError, _core.TensorNotFoundError):
        assert "--" not in kind.__doc__ and str(inspect.signature(kind)) == "(*args)"


# ── Wrong types ──

class Odd:
    """Has everything, and nothing of it is right."""

    name = path = size = mode = fs = dtype = 3
    read_at = read = write = seek = open = None

    def items(self):
        return [["a"], 3, ("a", "b", "c")]

    def keys(self):
        return 3

    def __len__(self):
        return 3


class Raising:
    def __getattr__(self, name):
        raise RuntimeError(name)


class Pairs:
    """A mapping whose items are lists."""

    def items(self):
        return [["a", "b"]]


WRONG = [None, True, -1, 2 ** 70, 1.5, "text", "\ud800", "a\0b", b"bytes", bytearray(8), [1, 0],
         (1,), (1, 0), ("a", "b"), [["a"]], {"a": 1}, {1: "a"}, {"a"}, object(), object, Odd(),
         Raising(), Pairs(), io.StringIO("text"), io.BytesIO(b"bytes"), iter([1]), lambda *_: 1 / 0,
         memoryview(bytes(64))[::2], Ellipsis, slice("a", None), 1j]


def calls_of(value):
    """Argument lists with one wrong argument each, the others being none or plain."""
    kinds = inspect.Parameter
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except ValueError:
        return
    needed = [p for p in parameters if p.default is kinds.empty
              and p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    for wrong in WRONG:
        yield [wrong] * len(needed), {}
        for i in range(len(needed)):
            for plain in ("x", [1], b"", None):
                yield [plain] * i + [wrong] + [plain] * (len(needed) - i - 1), {}
        for p in parameters:
            if p.kind not in (kinds.POSITIONAL_ONLY, kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) \
                    and p not in needed:
                yield ["x"] * len(needed), {p.name: wrong}
    yield [], {}
    yield [1] * 12, {}
    yield [], {"no such": 1}


def never_a_system_error(value):
    for args, kwargs in calls_of(value):
        try:
            value(*args, **kwargs)
        except SystemError as error:
            pytest.fail("%r with %r, %r: %r" % (value, args, kwargs, error))
        except (Exception, RecursionError):
            pass


FUNCTIONS = [name for name, value in ((name, getattr(_core, name)) for name in dir(_core))
             if callable(value) and not name.startswith("__") and not (
                 inspect.isclass(value) and issubclass(value, BaseException))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_arguments_of_functions(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    never_a_system_error(getattr(_core, name))


def instances(tmp_path):
    tensors = {"a": ("F32", [2, 3], bytes(24)), "b": ("BF16", [4], bytes(8))}
    data = pack(tensors)
    folder = tmp_path / "data"
    folder.mkdir()
    options = _core.DatasetOptions({"batch_size": "2"})
    storage = _core.Storage(str(folder))
    made = [lambda: _core.open(data), lambda: _core.open(data)["a"],
            lambda: _core.open(data)["a"][1:],
            lambda: _core.Writer(io.BytesIO()), lambda: options, lambda: storage,
            lambda: _core.Writer(io.BytesIO(), [("x", "F32", [2])])]
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema([("x", pa.float32())])
    made.append(lambda: _core.Commit(options, storage, schema, how="append"))
    made.append(lambda: _core.ArrowStream(pa.table({"x": [1.0]})))
    made.append(lambda: _core.ShardWriter(
        options, storage, _core.Commit(options, storage, schema, how="append").job, 0, schema))
    return made


def test_wrong_arguments_of_methods(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for make in instances(tmp_path):
        one = make()
        for name in dir(type(one)):
            member = getattr(type(one), name)
            if callable(member) and name not in ("__class__", "__new__", "__init_subclass__",
                                                 "__getattribute__", "__reduce__", "__reduce_ex__"):
                if name in ("close", "finish", "abandon", "__exit__", "abort"):
                    one = make()
                never_a_system_error(getattr(one, name))


def test_dlpack_says_what_it_expected():
    tensor = _core.open(pack({"a": ("F32", [2], bytes(8))}))["a"]
    assert tensor.__dlpack__(max_version=(1, 0)) is not None
    for wrong in ([1, 0], (1,), (1, 0, 0), ("1", "0"), 1, "10", (1.0, 0)):
        for argument in ("max_version", "dl_device"):
            with pytest.raises(TypeError, match=argument + ": expected a tuple of two integers"):
                tensor.__dlpack__(**{argument: wrong})
    with pytest.raises(TypeError, match="copy: expected True, False or None"):
        tensor.__dlpack__(copy=5)
    with pytest.raises(OverflowError):
        tensor.__dlpack__(max_version=(2 ** 40, 0))


@pytest.mark.parametrize("source", [b"", io.BytesIO(b"")], ids=["buffer", "object"])
def test_modes_that_need_a_path_speak_python(source):
    for mode in ("cow",) + (("map",) if isinstance(source, io.BytesIO) else ()):
        with pytest.raises(ValueError, match="mode: expected 'auto'.*found '%s'" % mode) as caught:
            _core.open(source, mode=mode)
        assert "SFT_" not in str(caught.value)


def test_hints_when_nothing_but_the_annotation_is_there():
    # The names are those of the module, whatever was imported before.
    program = ("import sys, typing, inspect\nimport libsafetensors as st\n"
               "for f in (st.safe_open.__init__, st.info, st.serialize_file, st.diff):\n"
               "    typing.get_type_hints(f); inspect.signature(f, eval_str=True)\n")
    import subprocess
    subprocess.run([sys.executable, "-c", program], check=True)
