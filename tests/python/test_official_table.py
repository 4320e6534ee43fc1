"""Names, arguments and defaults of the official 0.8.0 and 0.9.0rc1 (official_*.json, which
official_table.py made of the installed packages) against ours after install(); and what a program
puts in the place of official names."""
import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
NEWER = {"PrefetchLoader", "PySafeSlice", "TensorMeta"}  # of 0.9, which ours has, but does not list

pytest.importorskip("torch")
pytest.importorskip("flax")


@pytest.fixture(scope="module")
def ours():
    done = subprocess.run([sys.executable, str(HERE / "official_table.py"), "ours"], text=True,
                          capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(params=["0.8.0", "0.9.0rc1"])
def official(request):
    return json.loads((HERE / ("official_%s.json" % request.param)).read_text("utf-8"))


def test_dir_and_star(ours, official):
    for module, facts in official.items():
        assert set(ours[module]["star"]) == set(facts["star"]) - NEWER, module
        assert set(ours[module]["names"]) - {"flax", "numpy", "torch"} == (
            set(facts["names"]) - NEWER - {"flax", "numpy", "torch"}), module


def same_arguments(mine, theirs, where):
    """Theirs come first, with the same kinds and defaults; ours behind them are keywords."""
    if theirs in (None, []) or mine is None:
        return
    for one, other in zip(mine, theirs):
        assert one[0] == other[0], where
        assert one[1] == other[1] or one[0] == "self", where
        assert one[2] == other[2] or other[2] == "Ellipsis", where
    assert len(mine) >= len(theirs), where
    for name, kind, default in mine[len(theirs):]:
        assert kind in ("KEYWORD_ONLY", "VAR_KEYWORD") or default is not None, where


def facts_of(name):
    import libsafetensors
    sys.path.insert(0, str(HERE))
    try:
        import official_table
    finally:
        sys.path.remove(str(HERE))
    return json.loads(json.dumps(official_table.facts(getattr(libsafetensors, name))))


def test_arguments(ours, official):
    for module, facts in official.items():
        for name, theirs in facts["names"].items():
            where = "%s.%s" % (module, name)
            mine = facts_of(name) if name in NEWER else ours[module]["names"].get(name)
            if mine is None or theirs["kind"] not in ("class", "function"):
                continue
            assert mine["kind"] == theirs["kind"], where
            same_arguments(mine["arguments"], theirs["arguments"], where)
            if theirs["kind"] == "class" and name != "SafetensorError":
                for member, arguments in theirs["members"].items():
                    assert member in mine["members"], (where, member)
                    same_arguments(mine["members"][member], arguments, (where, member))


PATCHED = r"""
import sys, warnings
from unittest import mock
warnings.simplefilter("ignore")
if sys.argv[2] == "ours":
    import libsafetensors
    libsafetensors.install(children=False)
import numpy as np, torch
import safetensors, safetensors.flax, safetensors.numpy, safetensors.torch
path = sys.argv[1]
calls = []

def spy(module, name):
    real = getattr(module, name)

    def call(*args, **kwargs):
        calls.append((name, len(args), sorted(kwargs)))
        return real(*args, **kwargs)
    return mock.patch.object(module, name, call)

for module, values in ((safetensors.numpy, {"x": np.ones(3, "f4")}),
                       (safetensors.torch, {"x": torch.ones(3)})):
    for name in ("serialize_file", "serialize", "safe_open", "deserialize"):
        with spy(module, name):
            module.save_file(values, path, {"k": "v"})
            data = module.save(values)
            assert (module.load_file(path)["x"] == values["x"]).all()
            assert (module.load(data)["x"] == values["x"]).all()
    before = len(calls)
    module.save_file(values, path)
    module.load_file(path)
    assert len(calls) == before
with spy(safetensors.torch, "save_file"), spy(safetensors.torch, "load_file"):
    model = torch.nn.Linear(2, 2)
    safetensors.torch.save_model(model, path)
    safetensors.torch.load_model(model, path)
safetensors.torch.save_file({"x": torch.ones(3)}, path)
with spy(safetensors.flax, "safe_open"):
    safetensors.flax.load_file(path)
with mock.patch("safetensors.torch.safe_open", side_effect=OSError("mine")):
    try:
        safetensors.torch.load_file(path)
        sys.exit("the patched name was not called")
    except OSError as error:
        assert error.args == ("mine",)
print(calls)
"""


@pytest.mark.long
def test_names_that_are_replaced_are_called(tmp_path):
    told = [subprocess.run([sys.executable, "-c", PATCHED, str(tmp_path / "a"), whose], text=True,
                           capture_output=True) for whose in ("ours", "official")]
    assert [one.returncode for one in told] == [0, 0], told
    assert told[0].stdout == told[1].stdout and "serialize_file" in told[0].stdout
