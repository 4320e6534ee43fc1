"""The calls of docs/cookbook.md, on the files of its commands."""
import re
import shutil
import subprocess

import numpy
import pytest

import libsafetensors as st
import libsafetensors.__main__ as front
from libsafetensors.numpy import load_file


def rows():
    import pathlib
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs/cookbook.md").read_text("utf-8")
    part = text[text.index("## In Python"):text.index("## In a browser")]
    return re.findall(r"^\| (\[\d+\].*?) \| (`.*`) \|$", part, re.MULTILINE)


CALLS = [call for _, cell in rows() for call in re.findall(r"`(.*?)`", cell)]


def test_recipes_have_their_calls():
    numbers = [int(number) for cell, _ in rows() for number in re.findall(r"\[(\d+)\]", cell)]
    # Without one: a loop over another (18), a pipe (30), one that is Python itself (37).
    assert sorted(numbers) == [n for n in range(1, 41) if n not in (18, 30, 37)]


@pytest.mark.parametrize("call", [call for call in CALLS if "://" not in call])
def test_call(call, root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(root / "examples/models", "models")
    lora = tmp_path / "models/lora/neon-city.safetensors"
    data = lora.read_bytes()
    (tmp_path / "models/cut.safetensors").write_bytes(data[:100000])
    for name in ("edited.safetensors", "models/renamed.safetensors"):
        (tmp_path / name).write_bytes(data)
    st.edit_metadata("models/renamed.safetensors", {"modelspec.title": "Other"})
    (tmp_path / "tail.safetensors").write_bytes(data + b"junk")
    (tmp_path / "sums").write_text("%s  %s\n" % (st.hash(lora)["computed"]["sha256"], lora), "utf-8")
    for name in ("city.pt", "city.npz"):
        subprocess.run([front.find_own_command(), "convert", lora, "-o", name], check=True,
                       capture_output=True)
    before = set(tmp_path.rglob("*")), [path.read_bytes() for path in
                                        sorted(tmp_path.rglob("*.safetensors"))]
    found = eval(call, {"st": st, "numpy": numpy, "load_file": load_file})
    after = set(tmp_path.rglob("*")), [path.read_bytes() for path in
                                       sorted(tmp_path.rglob("*.safetensors"))]
    empty = found is None or isinstance(found, (list, tuple, dict, str)) and not found
    assert not empty or before != after, found
