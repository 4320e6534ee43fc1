"""examples/python/*.py, each as its own process; its expected output is in this folder."""
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples/python").glob("*.py"))
SAYS = {"first.py": ["weight: F32 [3, 4], 48 bytes", "[[ 7.  6.  5.  4.]\n [11. 10.  9.  8.]]"],
        "stream.py": ["[65533. 65534. 65535.]", "lost.safetensors exists: False"],
        "facts.py": ["sound: True - findings: 0", "sha256", "same as itself: True"],
        "threads.py": ["sum of all: 32505856.0"],
        "train.py": ["2000 rows in 8 shards", "stopped in epoch 1 after 38 batches",
                     "weights [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]",
                     "the same as without a stop: True"]}


# The processes of train.py's loaders each import torch.
@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.name, marks=[pytest.mark.long] if path.name == "train.py" else [])
    for path in EXAMPLES])
def test_example(path, tmp_path):
    if "\nimport torch\n" in path.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    done = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for words in SAYS[path.name]:
        assert words in done.stdout, done.stdout


def test_every_example_is_looked_at():
    assert {path.name for path in EXAMPLES} == set(SAYS)
