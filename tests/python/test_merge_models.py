"""merge_models and merge_of, beside numpy and the command; errors of Python."""
import os
import shlex
import subprocess

import numpy as np
import pytest

import libsafetensors as sft
from libsafetensors import SafetensorError
from libsafetensors.numpy import load_file, save_file

BUILD = os.environ.get("SFT_BUILD", "build")


@pytest.fixture
def models(tmp_path):
    rng = np.random.default_rng(3)
    paths = []
    for i in range(3):
        paths.append(tmp_path / ("m%d.safetensors" % i))
        save_file({"layers.%d.w" % k: rng.standard_normal((8, 5)).astype("f4") for k in range(3)},
                  paths[-1])
    return paths


def command(*words):
    started = shlex.split(os.environ.get("SFT_COMMAND", os.path.join(BUILD, "safetensors")))
    return subprocess.run([*started, *map(str, words)], capture_output=True, check=True)


def test_linear(models, tmp_path):
    out = tmp_path / "out.safetensors"
    told = sft.merge_models(models[:2], out, weights=[0.75, 0.25])
    assert told == {"merged": 3, "copied": 0, "renamed": 0, "cut": 0, "missing": 0, "left_out": 0,
                    "unlike": 0}
    a, b, found = map(load_file, (models[0], models[1], out))
    for name in a:
        np.testing.assert_allclose(found[name], 0.75 * a[name] + 0.25 * b[name], rtol=1e-6)
    mixture = sft.merge_of(out, models[:2])
    assert mixture["fits"] and np.allclose(mixture["weights"], [0.75, 0.25], atol=1e-5)
    assert [b["name"] for b in mixture["blocks"]] == ["layers.%d" % k for k in range(3)]
    assert mixture["left_out"] == 0
    assert sft.merge_of(out, [models[0], models[0]])["weights"] == [None, None]


def test_as_the_command(models, tmp_path):
    out, other = tmp_path / "out.safetensors", tmp_path / "other.safetensors"
    sft.merge_models(models[1:], out, method="dare_ties", base=models[0], weights=[1, 0.5],
                     params={"density": 0.5, "lambda@*.1.w": 2}, seed=7, dtype="F16", threads=2)
    command("merge", "--method", "dare_ties", "--base", models[0], models[1], "%s:0.5" % models[2],
            "--param", "density=0.5", "--param", "lambda@*.1.w=2", "--seed", "7", "--dtype", "F16",
            "-o", other)
    found, want = load_file(out), load_file(other)
    assert all((found[name] == want[name]).all() for name in want)
    command("merge", "--replay", out, *models, "-o", tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == out.read_bytes()


def test_recipe(models, tmp_path):
    recipe, out = tmp_path / "recipe.yml", tmp_path / "out.safetensors"
    recipe.write_text("merge_method: slerp\nbase_model: m0.safetensors\nmodels:\n"
                      "- model: m0.safetensors\n- model: m1.safetensors\n"
                      "parameters:\n  t: [0, 1]\n")
    sft.merge_models(None, out, recipe=recipe)
    other = tmp_path / "other.safetensors"
    command("merge", "--recipe", recipe, "-o", other)
    assert out.read_bytes() == other.read_bytes()
    recipe.write_text("merge_method: linear\nmodels: 3\n")
    with pytest.raises(ValueError, match="line 2"):
        sft.merge_models(None, out, recipe=recipe, overwrite=True)


def test_refuses(models, tmp_path):
    out = tmp_path / "out.safetensors"
    for words in ({"method": "nosuch"}, {"method": ""}, {"params": {"t": 1}}, {"weights": [1]},
                  {"weights": ["x", "y"]}, {"dtype": "I8"}, {"recipe": models[0], "method": "ties"}):
        with pytest.raises(ValueError):
            sft.merge_models(models[:2], out, **words)
    with pytest.raises(ValueError, match=r'^expected a method .*: did you mean "slerp"\?$'):
        sft.merge_models(models[:2], out, method="slrep")
    save_file({"other": np.zeros(3, "f4")}, tmp_path / "other.safetensors")
    with pytest.raises(SafetensorError, match="other.safetensors"):
        sft.merge_models([models[0], tmp_path / "other.safetensors"], out)
    with pytest.raises(FileNotFoundError):
        sft.merge_models([models[0], tmp_path / "missing"], out)
    with pytest.raises(ValueError):
        sft.merge_models(None, out)
    assert not out.exists()
    out.write_bytes(b"x")
    with pytest.raises(FileExistsError):
        sft.merge_models(models[:2], out)

    def stop(done, total):
        raise KeyError("enough")
    with pytest.raises(KeyError):
        sft.merge_models(models[:2], out, overwrite=True, progress=stop)
    assert out.read_bytes() == b"x"


def test_many_threads(models):
    """Names of blocks are the result's own, whatever other threads do with memory."""
    from concurrent.futures import ThreadPoolExecutor
    once = sft.merge_of(models[0], models[1:])
    assert [one["name"] for one in once["blocks"]] == ["layers.0", "layers.1", "layers.2"]
    with ThreadPoolExecutor(8) as pool:
        for told in pool.map(lambda _: sft.merge_of(models[0], models[1:]), range(64)):
            assert told == once
