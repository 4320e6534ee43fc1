"""install(), dropin and the stand-in distribution: our package under the official name."""
import os
import subprocess
import sys

import pytest

import libsafetensors
from standin import ROOT, call, standin  # noqa: F401

np = pytest.importorskip("numpy")

try:
    import importlib.metadata
    OFFICIAL = importlib.metadata.version("safetensors") == "0.8.0"
except importlib.metadata.PackageNotFoundError:
    OFFICIAL = False


def python(program, *arguments, interpreter=sys.executable, **more):
    """What a program prints, warnings as errors."""
    return call(interpreter, "-W", "error::RuntimeWarning", "-c", program, *arguments, **more)


LOOK = r"""
import importlib, importlib.metadata, importlib.util, pickle, sys
import safetensors
from safetensors import SafetensorError, TensorSpec, safe_open, serialize, _safe_open_handle
from safetensors import PrefetchLoader, PySafeSlice, TensorMeta  # of 0.9
import safetensors.numpy
from safetensors.numpy import save_file, load_file
import libsafetensors, libsafetensors.numpy
assert safe_open is libsafetensors.safe_open and save_file is libsafetensors.numpy.save_file
assert safetensors.__version__ == "0.8.0" and safetensors.numpy.load_file is load_file
assert importlib.import_module("safetensors._safetensors_rust").safe_open is safe_open
for name in ("safetensors", "safetensors.numpy", "safetensors.torch"):
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.name == name, (name, spec)
    if name in sys.modules:
        assert sys.modules[name].__spec__ is spec and sys.modules[name].__name__ == name
        assert sys.modules[name].__loader__ is not None
assert not hasattr(safetensors, "flax")
try:
    import safetensors.nothing
    sys.exit("there is no such module")
except ModuleNotFoundError:
    pass
assert libsafetensors.numpy.__spec__.name == "libsafetensors.numpy"
version = importlib.metadata.version("safetensors")
assert version.split("+")[0] == "0.8.0", version
assert "safetensors" in importlib.metadata.packages_distributions()
assert pickle.loads(pickle.dumps(SafetensorError("x"))).args == ("x",)
importlib.reload(safetensors)
assert safetensors.safe_open is safe_open
star, names = {}, {"SafetensorError", "TensorSpec", "deserialize", "safe_open", "serialize",
                   "serialize_file"}
exec("from safetensors import *", star)
assert set(star) - {"__builtins__"} == names, star.keys()
assert {one for one in dir(safetensors) if one[0] != "_"} == names | {"numpy"}, dir(safetensors)
exec("from safetensors.numpy import *", star)
assert star["safe_open"] is safe_open and star["load_file"] is load_file and "open" not in star
print("ok")
"""


NAMES = r"""
import sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "ours":
    import libsafetensors
    libsafetensors.install(children=False)
import safetensors, safetensors.flax, safetensors.numpy, safetensors.torch
for module in (safetensors, safetensors.flax, safetensors.numpy, safetensors.torch):
    star = {}
    exec("from %s import *" % module.__name__, star)
    modules = ("flax", "numpy", "torch") if module is safetensors else ()
    print(module.__name__, *(one for one in sorted(star) if one not in modules), "/",
          *(one for one in dir(module) if one[0] != "_"))
"""


@pytest.mark.skipif(not OFFICIAL, reason="compares with the official package 0.8.0")
def test_names_are_all_there():
    pytest.importorskip("torch")
    pytest.importorskip("flax")
    ours, official = (call(sys.executable, "-c", NAMES, whose).splitlines()
                      for whose in ("ours", "official"))
    for mine, theirs in zip(ours, official, strict=True):
        name = theirs.split()[0]
        for have, want in zip(mine.split("/"), theirs.split("/"), strict=True):
            assert set(want.split()) <= set(have.split()), name
            if name == "safetensors":
                assert set(want.split()) == set(have.split())


@pytest.mark.parametrize("kind", [os.fsencode, lambda path: bytearray(os.fsencode(path))])
def test_paths_of_bytes(tmp_path, kind):
    torch = pytest.importorskip("torch")
    from libsafetensors import numpy as ours, torch as with_torch
    path = tmp_path / "a.safetensors"
    arrays, model = {"a": np.zeros(2)}, torch.nn.Linear(1, 1)
    ours.save_file(arrays, path)
    before, given = path.read_bytes(), kind(path)
    for use in (lambda: ours.load_file(given), lambda: with_torch.load_file(given),
                lambda: with_torch.load_model(model, given),
                lambda: libsafetensors.safe_open(given, "np"),
                lambda: ours.save_file(arrays, given), lambda: with_torch.save_file({}, given),
                lambda: with_torch.save_model(model, given),
                lambda: libsafetensors.serialize_file({}, given)):
        with pytest.raises(TypeError, match="argument 'filename': "):
            use()
    assert path.read_bytes() == before
    with open(os.fsencode(path), "rb") as file:  # its name is bytes
        assert libsafetensors._safe_open_handle(file, "np").keys() == ["a"]


def test_install():
    assert python("import libsafetensors; libsafetensors.install(); libsafetensors.install()\n"
                  + LOOK) == "ok\n"


def test_standin(standin, tmp_path):  # noqa: F811
    assert python(LOOK, interpreter=standin) == "ok\n"
    # Nothing changes when a program asks for it twice over.
    assert python("import libsafetensors; libsafetensors.install()\n" + LOOK,
                  interpreter=standin) == "ok\n"
    assert python("import safetensors, libsafetensors; libsafetensors.install()\n" + LOOK,
                  interpreter=standin) == "ok\n"
    told = call(sys.executable, "-m", "pip", "--python", standin, "--disable-pip-version-check",
                "show", "safetensors")
    assert "0.8.0+libsafetensors" in told and "Requires: libsafetensors" in told


@pytest.mark.skipif(not OFFICIAL, reason="the official package is not here")
def test_install_after_the_official_import_warns():
    program = """
import warnings
import safetensors, safetensors.numpy
old = safetensors.safe_open
import libsafetensors
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    libsafetensors.install()
    libsafetensors.install()
assert len(caught) == 1 and caught[0].category is RuntimeWarning, caught
assert "before" in str(caught[0].message)
import safetensors.numpy
assert safetensors.safe_open is libsafetensors.safe_open is not old
assert safetensors.numpy.save_file.__module__ == "libsafetensors.numpy"
print("ok")
"""
    assert call(sys.executable, "-c", program) == "ok\n"


@pytest.mark.skipif(not OFFICIAL, reason="the official package is not here")
def test_nothing_changes_without_install():
    assert python("import libsafetensors, libsafetensors.numpy, safetensors\n"
                  "assert safetensors.safe_open.__module__ == 'builtins'\nprint('ok')") == "ok\n"


def test_importing_imports_no_framework():
    heavy = ["numpy", "torch", "jax", "tensorflow", "json", "tqdm", "typing", "ctypes",
             "importlib.metadata"]
    program = "import sys\nbefore = set(sys.modules)\nimport libsafetensors\n" \
              "libsafetensors.install()\nimport safetensors\n" \
              "print(sorted((set(sys.modules) - before) & set(%r)))" % heavy
    assert call(sys.executable, "-I", "-S", "-c",
                "import sys; sys.path[:0] = [%r]\n" % os.path.dirname(
                    os.path.dirname(libsafetensors.__file__)) + program) == "[]\n"


PROGRAM = """
import sys
import safetensors
from safetensors.numpy import save_file
import beside
assert __name__ == "__main__" and sys.modules["__main__"].PLACE == "here"
print(safetensors.safe_open.__module__, sys.argv[1:], beside.WORD)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "beside.py").write_text("WORD = 'word'\n")
    (tmp_path / "program.py").write_text('PLACE = "here"\n' + PROGRAM)
    return tmp_path / "program.py"


def dropin(*arguments, **more):
    return subprocess.run([sys.executable, "-m", "libsafetensors.dropin", *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def test_dropin_runs_a_script(program):
    done = dropin(program, 3, "-x")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout == "libsafetensors._official ['3', '-x'] word\n"


def test_dropin_runs_a_module(program):
    done = dropin("-m", "program", 0, cwd=program.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "libsafetensors._official ['0'] word\n"


def test_dropin_prints_its_usage():
    for arguments in ((), ("-m",), ("--help",)):
        done = dropin(*arguments)
        assert done.returncode == 2 and "SCRIPT" in done.stderr and not done.stdout


def test_dropin_passes_errors_on(tmp_path):
    (tmp_path / "bad.py").write_text("raise SystemError('what')\n")
    done = dropin(tmp_path / "bad.py")
    assert done.returncode == 1 and "SystemError: what" in done.stderr
    assert dropin(tmp_path / "none.py").returncode == 1


def test_standin_forwards_every_module():
    folder = ROOT / "bindings/python/standin/safetensors"
    own = {p.stem for p in (ROOT / "bindings/python/libsafetensors").glob("[a-z]*.py")} - {
        "dropin", "ray", "daft", "h5", "remote", "lora"}
    assert {p.stem for p in folder.glob("[a-z]*.py")} == own
    for path in folder.glob("*.py"):
        assert "forward(__name__, globals())" in path.read_text(), path
