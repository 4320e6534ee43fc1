"""What importing makes, and what is made when it is first asked for."""
import subprocess
import sys
import threading

import pytest

import libsafetensors
from libsafetensors import _core


def told(program):
    return subprocess.run([sys.executable, "-c", program], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split()


def test_importing_makes_only_the_exceptions():
    found = told("import libsafetensors as st\n"
                 "print(*[n for n in vars(st._core) if not n.startswith('_')])\n")
    assert set(found) == {"SafetensorError", "TensorNotFoundError", "build_info",
                          "release_memory"}


@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.few(1)
def test_modules_of_frameworks_import_only_what_loading_needs(name):
    pytest.importorskip(name)
    found = told("import sys, %s\nbefore = set(sys.modules)\nimport libsafetensors.%s as module\n"
                 "print(*[n for n in set(sys.modules) - before if n.startswith('libsafe')])\n"
                 "assert module.safe_open is module.safe_open\n"
                 "from libsafetensors import _official\n"
                 "assert module.safe_open is _official.safe_open\n" % (name, name))
    most = {"libsafetensors", "_core", "_dtypes", "_errors", "_files", "_types", "_frameworks",
            name}
    assert {module.removeprefix("libsafetensors.") for module in found} <= most
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(__import__("libsafetensors." + name, fromlist=["load"]), "nothing")


def test_a_star_import_of_a_forwarded_module_takes_the_official_names():
    pytest.importorskip("numpy")
    found = told("import libsafetensors\nlibsafetensors.install(children=False)\n"
                 "from safetensors.numpy import *\n"
                 "print(safe_open is libsafetensors.safe_open, deserialize.__name__)\n")
    assert found == ["True", "deserialize"]


def test_every_name_is_found():
    names = dir(_core)
    assert {"File", "Reader", "open", "DTYPES", "CODES", "remote_use"} <= set(names)
    for name in names:
        value = getattr(_core, name)
        if isinstance(value, type):
            assert value is getattr(_core, name)
    for name in ("nothing", "", "\udc80", "open\0"):
        with pytest.raises(AttributeError):
            getattr(_core, name)


def test_names_of_the_package():
    for name in libsafetensors.__all__:
        assert getattr(libsafetensors, name) is getattr(libsafetensors, name), name
        assert name in dir(libsafetensors)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        libsafetensors.nothing


def test_what_was_not_made_is_no_type_of_anything():
    """A wrong argument is refused, too, before the type that is expected was made."""
    found = told("from libsafetensors import _core\n"
                 "for call in (lambda: _core.is_local(1), lambda: _core.remote_use(1),\n"
                 "             lambda: _core.ReadPlan([(1, 0, 0)], [(0, 4)])):\n"
                 "    try:\n        call()\n    except TypeError:\n        print('refused')\n")
    assert found == ["refused"] * 3


def test_threads_get_one_type():
    """Each thread asks for all names at once, in a process that has none of them yet."""
    found = told("import threading\nfrom libsafetensors import _core\n"
                 "names = [n for n in dir(_core) if n[0].isupper() and not n.isupper()]\n"
                 "gate, got = threading.Barrier(8), []\n"
                 "def ask():\n    gate.wait()\n"
                 "    got.append([getattr(_core, name) for name in names])\n"
                 "threads = [threading.Thread(target=ask) for _ in range(8)]\n"
                 "[t.start() for t in threads]\n[t.join() for t in threads]\n"
                 "print(len(got), all(one == got[0] for one in got), len(names) > 10)\n")
    assert found == ["8", "True", "True"]


def test_attributes_in_threads():
    got, gate = [], threading.Barrier(4)

    def ask():
        gate.wait()
        got.append((_core.open, _core.File, _core.DTYPES))
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one[1] is got[0][1] and one[2] == got[0][2] for one in got)
