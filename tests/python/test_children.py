"""install() and dropin reach the Pythons that a program starts, however it starts them."""
import json
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import libsafetensors
from standin import call

np = pytest.importorskip("numpy")

PACKAGE = pathlib.Path(libsafetensors.__file__).parent
HOOK = str(PACKAGE / "_startup")
OURS = ["libsafetensors._official", str(PACKAGE / "__init__.py"), 15.0]

LOOK = """
import json, os, sys

def look(path):
    import safetensors
    from safetensors.numpy import load_file
    return [safetensors.safe_open.__module__, safetensors.__file__,
            float(load_file(path)["x"].sum())]
"""

# Each writes what its children saw.
STARTS = {
    "process": """
def put(path, queue):
    queue.put(look(path))

def main(path, method):
    import multiprocessing
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    one = context.Process(target=put, args=(path, queue))
    one.start()
    found = [queue.get(timeout=120)]
    one.join()
    return found
""",
    "pool": """
def main(path, method):
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(look, [path] * 2))
""",
    "subprocess": """
def main(path, method):
    import subprocess
    program = open(__file__).read().partition("# end of look")[0]
    program += "print(json.dumps(look(%r)))" % path
    # Its child, and the child of that one.
    again = "import subprocess, sys; subprocess.run([sys.executable, '-c', %r])" % program
    return [json.loads(subprocess.check_output([sys.executable, "-c", one], text=True))
            for one in (program, again)]
""",
    "loader": """
class Rows:
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return look(self.path)

def main(path, method):
    from torch.utils.data import DataLoader
    loader = DataLoader(Rows(path), batch_size=None, num_workers=2,
                        multiprocessing_context=method)
    return list(loader)
""",
    "torch_spawn": """
def put(rank, path):
    with open("%s.%d" % (path, rank), "w") as out:
        json.dump(look(path), out)

def main(path, method):
    import torch.multiprocessing
    torch.multiprocessing.start_processes(put, (path,), nprocs=2, start_method=method)
    return [json.load(open("%s.%d" % (path, rank))) for rank in range(2)]
"""}

MAIN = """
if __name__ == "__main__":
    install()
    print("seen", json.dumps(main(*sys.argv[1:])))
"""
INSTALLS = {"dropin": "def install():\n    pass\n",
            "install": "def install():\n    import libsafetensors\n"
                       "    libsafetensors.install()\n",
            "none": "def install():\n    pass\n"}
CASES = [(start, method) for start in ("process", "pool", "loader", "torch_spawn")
         for method in ("spawn", "forkserver", "fork")
         if method in multiprocessing.get_all_start_methods()] + [("subprocess", "")]


def clean(**more):
    """An environment without the tested variables."""
    env = {name: value for name, value in os.environ.items()
           if name not in ("LIBSAFETENSORS_INSTALL", "PYTHONPATH")}
    return {**env, **more}


@pytest.fixture
def model(tmp_path):
    from libsafetensors.numpy import save_file
    save_file({"x": np.arange(6, dtype=np.float32)}, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def seen(tmp_path, model, start, method, way, *flags, **more):
    """What the children of a program saw."""
    script = tmp_path / "program.py"
    script.write_text(LOOK + "# end of look\n" + STARTS[start] + INSTALLS[way] + MAIN)
    how = ["-m", "libsafetensors.dropin"] if way == "dropin" else []
    told = call(sys.executable, *flags, *how, script, model, method, env=clean(**more),
                timeout=280)
    # Python's resource tracker may warn after it.
    line, = [line for line in told.splitlines() if line.startswith("seen ")]
    return json.loads(line.partition(" ")[2])


def long_where_alike(start, method, way):
    """The starts of torch's children, each of which takes seconds and begins as a pool's do, and of
    pools all that processes are started by, too."""
    alike = start in ("torch_spawn", "loader") or start == "pool" and way == "install"
    return pytest.param(start, method, way, marks=[pytest.mark.long] if alike else [])


@pytest.mark.parametrize("start, method, way", [
    long_where_alike(*case, way) for case in CASES for way in ("dropin", "install")])
@pytest.mark.few(2)
def test_children_have_ours(tmp_path, model, start, method, way):
    if start in ("loader", "torch_spawn"):
        pytest.importorskip("torch")
    found = seen(tmp_path, model, start, method, way)
    assert found and all(one == OURS for one in found), found


def test_children_have_the_official_one_otherwise(tmp_path, model):
    pytest.importorskip("safetensors")
    for more in ({}, {"PYTHONPATH": HOOK}, {"PYTHONPATH": HOOK, "LIBSAFETENSORS_INSTALL": "0"},
                 {"LIBSAFETENSORS_INSTALL": "1"}):
        for found in seen(tmp_path, model, "subprocess", "", "none", **more):
            assert found[0] == "builtins" and found[2] == 15, (more, found)


RANK = LOOK + """
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
found = [None] * dist.get_world_size()
dist.all_gather_object(found, look(sys.argv[1]))
from safetensors.torch import load_file
total = load_file(sys.argv[1])["x"].clone()
dist.all_reduce(total)
if dist.get_rank() == 0:
    with open(sys.argv[2], "w") as out:
        json.dump([found, total.tolist()], out)
dist.destroy_process_group()
"""


@pytest.mark.long
def test_torch_distributed_run(tmp_path, model):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("torch without distributed")
    (tmp_path / "rank.py").write_text(RANK)
    call(sys.executable, "-m", "libsafetensors.dropin", "-m", "torch.distributed.run",
         "--standalone", "--log_dir", tmp_path / "log", "--nproc-per-node=2",
         tmp_path / "rank.py", model, tmp_path / "found",
         env=clean(OMP_NUM_THREADS="1"), cwd=tmp_path, timeout=280)
    found, total = json.loads((tmp_path / "found").read_text())
    assert found == [OURS] * 2 and total == [0, 2, 4, 6, 8, 10]


# ── The environment ──

STATE = "(os.environ.get('LIBSAFETENSORS_INSTALL'), os.environ.get('PYTHONPATH'))"


@pytest.mark.parametrize("before", [None, "", "/one", "/one::/two", "/one:"])
def test_uninstall_leaves_the_environment_as_it_was(tmp_path, before):
    before = before and before.replace(":", os.pathsep)
    program = """
import os, sys, libsafetensors
before = %s
for twice in range(2):
    libsafetensors.install(); libsafetensors.install()
    told, path = %s
    assert told == "1" and path == %r + (os.pathsep + before[1] if before[1] else ""), path
    import safetensors
    assert safetensors.safe_open is libsafetensors.safe_open
    libsafetensors.uninstall(); libsafetensors.uninstall()
    assert %s in (before, (None, None)) and (not before[1] or os.environ["PYTHONPATH"])
    assert not any(one == "safetensors" or one.startswith("safetensors.") for one in sys.modules)
libsafetensors.install(children=False)
assert %s in (before, (None, None))
print("ok")
""" % (STATE, STATE, HOOK, STATE, STATE)
    env = clean() if before is None else clean(PYTHONPATH=before)
    assert call(sys.executable, "-c", program, env=env) == "ok\n"


def test_uninstall_gives_back_what_was_there():
    pytest.importorskip("safetensors")
    program = """
import warnings, safetensors, safetensors.numpy, libsafetensors
old = safetensors, safetensors.numpy
warnings.simplefilter("ignore")
libsafetensors.install()
import safetensors
assert safetensors.safe_open is libsafetensors.safe_open
libsafetensors.uninstall()
import safetensors, safetensors.numpy
assert (safetensors, safetensors.numpy) == old
import importlib.metadata
assert importlib.metadata.version("safetensors")
print("ok")
"""
    assert call(sys.executable, "-c", program, env=clean()) == "ok\n"


HOOKED = {"PYTHONPATH": HOOK, "LIBSAFETENSORS_INSTALL": "1"}


def child(program, *flags, interpreter=sys.executable, **more):
    return call(interpreter, *flags, "-c", program, env=clean(**{**HOOKED, **more}))


def test_a_child_may_undo_it():
    assert child("import libsafetensors; libsafetensors.uninstall()\n"
                 "import sys\n"
                 "try:\n    import safetensors\n"
                 "except ImportError:\n    sys.exit(print('ok'))\n"
                 "print('ok' if safetensors.safe_open.__module__ == 'builtins' else safetensors)"
                 ) == "ok\n"


def test_nothing_is_imported_before_it_is_needed():
    assert child("import sys; print([one for one in sys.modules if 'safetensors' in one"
                 " and not one.startswith('_editable')])") == "[]\n"


def test_metadata_before_the_import():
    """Programs ask for the version first, and import afterwards."""
    assert child("""
import importlib.metadata as metadata, importlib.util
assert metadata.version("safetensors") == "0.8.0"
assert metadata.packages_distributions()["safetensors"][0] == "safetensors"
assert importlib.util.find_spec("safetensors").origin.replace("\\\\", "/").endswith(
    "libsafetensors/__init__.py")
import safetensors.numpy
print(safetensors.safe_open.__module__)
""") == "libsafetensors._official\n"


# What pip puts there for an editable installation finds the package without a path.
WITHOUT_EDITABLE = """
import sys
sys.meta_path[:] = [one for one in sys.meta_path
                    if not getattr(type(one), "__module__", "").startswith("_editable")]
"""


def whole_package(folder):
    """A copy of the package; the extension of an editable installation lies elsewhere."""
    shutil.copytree(PACKAGE, folder / "libsafetensors")
    extension = pathlib.Path(libsafetensors._core.__file__)
    if extension.parent != PACKAGE:
        shutil.copy(extension, folder / "libsafetensors")
    return folder


def test_the_module_path_of_a_child_counts(tmp_path):
    """The package is looked for when it is needed: spawn sets sys.path late."""
    program = WITHOUT_EDITABLE + """
sys.path = [one for one in sys.path if one not in sys.argv[1:]]
try:
    import libsafetensors
    sys.exit("it is here")
except ImportError:
    pass
sys.path += sys.argv[1:]
import safetensors
print(safetensors.safe_open.__module__)
"""
    told = call(sys.executable, "-c", program, whole_package(tmp_path), PACKAGE.parent,
                pathlib.Path(libsafetensors._core.__file__).parents[1], env=clean(**HOOKED))
    assert told == "libsafetensors._official\n"


# ── Other hooks, other Pythons ──

SITE = "import sys\nprint('%s', sys.modules['sitecustomize'].__file__ == __file__)\n"
# As tools that trace programs do it.
GREEDY = """
import os, sys
print('greedy')
here = os.path.dirname(os.path.abspath(__file__))
index = sys.path.index(here)
del sys.path[index], sys.modules["sitecustomize"]
import sitecustomize
sys.path.insert(index, here)
"""


def customized(tmp_path, **files):
    """Folders with a sitecustomize each."""
    for name, text in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "sitecustomize.py").write_text(text)
    return [str(tmp_path / name) for name in files]


def test_a_hidden_sitecustomize_runs(tmp_path):
    one, = customized(tmp_path, one=SITE % "one")
    for flag in ("0", "1"):
        told = child("import sys; print(sys.path[1:3], sys.modules['sitecustomize'].__file__)",
                     PYTHONPATH=HOOK + os.pathsep + one, LIBSAFETENSORS_INSTALL=flag)
        assert told == "one True\n%r %s\n" % ([HOOK, one], os.path.join(one, "sitecustomize.py"))


@pytest.mark.parametrize("order", ["ours first", "ours last", "ours twice"])
def test_hooks_that_chain_as_well(tmp_path, order):
    greedy, plain = customized(tmp_path, greedy=GREEDY, plain=SITE % "plain")
    path = {"ours first": [HOOK, greedy, plain], "ours last": [greedy, HOOK, plain],
            "ours twice": [HOOK, greedy, HOOK, plain]}[order]
    told = child("import safetensors; print(safetensors.safe_open.__module__)",
                 PYTHONPATH=os.pathsep.join(path))
    assert told.splitlines() == ["greedy", "plain True", "libsafetensors._official"], told


def test_a_failing_sitecustomize_is_reported_as_usual(tmp_path):
    bad, = customized(tmp_path, bad="import nothing_of_this_name\n")
    told = child("import safetensors; print(safetensors.safe_open.__module__)",
                 PYTHONPATH=HOOK + os.pathsep + bad)
    assert "nothing_of_this_name" in told and told.endswith("libsafetensors._official\n")
    assert child("print('ok')", PYTHONPATH=bad).splitlines()[0] == told.splitlines()[0]


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_flags_that_leave_it_out(flag):
    """The limit stated in docs/python.md: nothing breaks, and nothing is replaced."""
    assert child("import sys; print([one for one in sys.meta_path "
                 "if type(one).__module__ == 'sitecustomize'])", flag) == "[]\n"


def test_another_environment(tmp_path):
    """Its Python has not this package: it has its own safetensors, or none."""
    call(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    program = "try:\n    import safetensors\n    print(safetensors.WORD)\n" \
              "except ModuleNotFoundError as error:\n    print(error.name)"
    assert child(program, "-W", "error", interpreter=python) == "safetensors\n"
    site, = (tmp_path / "venv").glob("lib/python*/site-packages")
    (site / "safetensors.py").write_text("WORD = 'its own'\n")
    assert child(program, "-W", "error", interpreter=python) == "its own\n"
    # One that is there but does not work, as built for another Python.
    (site / "libsafetensors").mkdir()
    (site / "libsafetensors/__init__.py").write_text("raise SystemError('broken')\n")
    assert child(program, "-W", "error", interpreter=python) == "its own\n"


def other_pythons():
    """All that are here, ancient ones too."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT") or pathlib.Path.home() / ".pyenv")
    return sorted({*map(str, root.glob("versions/*/bin/python")), sys.executable})


@pytest.mark.parametrize("python", other_pythons())
def test_any_python_may_be_a_child(python):
    program = "import sys\n" \
              "try:\n    import safetensors\nexcept ImportError:\n    pass\nprint('ok')"
    if subprocess.run([python, "-S", "-c", ""], capture_output=True).returncode:
        pytest.skip("%s does not run" % python)
    assert child(program, interpreter=python) == "ok\n"


def test_the_hook_is_written_for_ancient_pythons():
    import ast
    text = (PACKAGE / "_startup/sitecustomize.py").read_text()
    assert text.isascii()
    for node in ast.walk(ast.parse(text)):
        assert not isinstance(node, (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Nonlocal,
                                     ast.AsyncFunctionDef, ast.Starred))
        assert not getattr(node, "returns", None) and not getattr(node, "annotation", None)


def test_a_folder_that_cannot_stand_on_the_path(tmp_path):
    """What separates folders, in the folder's name: a warning, and only this process uses ours."""
    place = whole_package(tmp_path / ("a%sb" % os.pathsep))
    program = WITHOUT_EDITABLE + """
import os, sys, warnings
sys.path.insert(0, sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import libsafetensors
    libsafetensors.install()
import safetensors
assert safetensors.safe_open.__module__ == "libsafetensors._official"
assert "LIBSAFETENSORS_INSTALL" not in os.environ and "PYTHONPATH" not in os.environ
print(len(caught), caught[0].filename, caught[0].message)
"""
    told = call(sys.executable, "-c", program, place, env=clean())
    assert told.startswith("1 <string> ") and "does not reach child processes" in told
