"""layout, beside the command; errors of Python."""
import json
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
def model(tmp_path):
    path = tmp_path / "z.safetensors"
    rng = np.random.default_rng(1)
    save_file({name: rng.standard_normal(shape).astype("f4") for name, shape in (
        ("layers.0.attention.qkv.weight", (6, 2)),
        ("noise_refiner.0.attention.qkv.weight", (6, 2)), ("layers.0.adaLN_modulation.0.weight", (2, 2)),
        ("x_embedder.weight", (2, 64)))},
        path, {"a": "b"})
    return path


def command(*words):
    started = shlex.split(os.environ.get("SFT_COMMAND", os.path.join(BUILD, "safetensors")))
    return subprocess.run([*started, *map(str, words)], capture_output=True, check=True)


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("to", ("diffusers", "comfy"))
def test_there_and_back(model, tmp_path, to):
    out, other, back = (tmp_path / name for name in ("out", "other", "back.safetensors"))
    words = {"architecture": "z-image"}
    planned = sft.layout(model, out, to=to, dry_run=True, **words)
    assert not out.exists()
    told = sft.layout(model, out, to=to, **words)
    assert told == planned
    # which pipeline it is is told by the tensors of the diffusers layout
    assert told["pipeline"] == ("ZImagePipeline" if to == "diffusers" else None)
    assert told["architecture"] == "z-image"
    assert [(c["name"], c["was"], c["tensors_before"]) for c in told["components"]] == [
        ("transformer", "original", 4)]
    assert told["unmatched"] == told["lost"] == [] and told["left_out"] == 0
    assert sorted(told["files"]) == sorted(files_of(out))
    command("convert", "--layout", to, "--architecture", "z-image", model, "-o", other)
    assert files_of(out) == files_of(other)
    sft.layout(out, back, to="single", **words)
    was, now = load_file(model), load_file(back)
    assert list(was) == list(now) and all((was[name] == now[name]).all() for name in was)


def test_shards_of_a_part(model, tmp_path):
    out, other = tmp_path / "out", tmp_path / "other"
    sft.layout(model, out, to="diffusers", architecture="z-image", max_bytes=100)
    command("convert", "--layout", "diffusers", "--architecture", "z-image", "--max-shard-size", "100",
            model, "-o", other)
    assert files_of(out) == files_of(other)
    assert sum(name.endswith(".safetensors") for name in files_of(out)) > 1


def test_scheduler_and_progress(model, tmp_path):
    out, back = tmp_path / "out", tmp_path / "back.safetensors"
    seen = []
    sft.layout(model, out, to="diffusers", architecture="z-image",
               progress=lambda done, total: seen.append((done, total)))
    assert seen and seen[-1][0] == seen[-1][1] == 624
    (out / "scheduler").mkdir()
    (out / "scheduler" / "scheduler_config.json").write_text(
        json.dumps({"prediction_type": "v_prediction"}))
    told = sft.layout(out, back, to="single")
    assert len(told["lost"]) == 1 and "prediction_type" in told["lost"][0]
    with pytest.raises(FileExistsError):
        sft.layout(out, back, to="single")
    sft.layout(out, back, to="single", overwrite=True)


def test_refuses(model, tmp_path):
    out = tmp_path / "out"
    for words in ({"to": "nosuch"}, {"to": "comfy", "architecture": "nosuch"}):
        with pytest.raises(ValueError):
            sft.layout(model, out, **words)
    with pytest.raises(ValueError, match="did you mean 'diffusers'"):
        sft.layout(model, out, to="difusers")
    save_file({"some.thing": np.zeros(3, "f4"), **load_file(model)}, tmp_path / "more.safetensors")
    with pytest.raises(SafetensorError, match="some.thing"):
        sft.layout(tmp_path / "more.safetensors", out, to="diffusers")
    assert not out.exists()
    told = sft.layout(tmp_path / "more.safetensors", out, to="diffusers", ignore_unmatched=True)
    assert told["unmatched"] == ["some.thing"]
    with pytest.raises(FileExistsError):
        sft.layout(model, out, to="diffusers")
    save_file({"other": np.zeros(3, "f4")}, tmp_path / "other.safetensors")
    with pytest.raises(SafetensorError, match="other.safetensors"):
        sft.layout(tmp_path / "other.safetensors", tmp_path / "none", to="comfy")
    (tmp_path / "empty").mkdir()
    for missing in (tmp_path / "empty", tmp_path / "missing.safetensors"):
        with pytest.raises(FileNotFoundError) as caught:
            sft.layout(missing, tmp_path / "none", to="comfy")
        assert (caught.value.code, caught.value.path) == ("not_found", str(missing))
    for wrong in (-1, 1 << 64):
        with pytest.raises(ValueError, match="max_bytes"):
            sft.layout(model, tmp_path / "none", to="diffusers", max_bytes=wrong)

    def stop(done, total):
        raise KeyError("enough")
    with pytest.raises(KeyError):
        sft.layout(model, tmp_path / "none", to="diffusers", progress=stop)
    assert not (tmp_path / "none").exists()
