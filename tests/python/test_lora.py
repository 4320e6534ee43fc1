"""lora: info and merge, beside the formulas and the command; errors of Python."""
import json
import os
import shlex
import subprocess

import numpy as np
import pytest

import libsafetensors
from libsafetensors import SafetensorError, _core, lora
from written import spec_of

KOHYA = "lora_unet_double_blocks_0_img_mlp_0"
LAYER = "model.diffusion_model.double_blocks.0.img_mlp.0.weight"


def random_of(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def write(path, tensors, metadata=None):
    _core.save_file(path, [spec_of(name, value) for name, value in tensors.items()], metadata or {})
    return path


def read(path):
    with libsafetensors.open(path) as file:
        return {name: np.array(file[name].numpy()) for name in file}


@pytest.fixture
def model(tmp_path):
    return write(tmp_path / "model.safetensors",
                 {LAYER: random_of(1, 24, 32), "other": random_of(2, 3)}, {"kept": "yes"})


@pytest.fixture
def adapter(tmp_path):
    return write(tmp_path / "style.safetensors",
                 {KOHYA + ".lora_up.weight": random_of(3, 24, 4),
                  KOHYA + ".lora_down.weight": random_of(4, 4, 32),
                  KOHYA + ".alpha": np.float32(2)})


def delta():
    return 0.5 * random_of(3, 24, 4).astype("f8") @ random_of(4, 4, 32)


def test_info(adapter):
    told = lora.info(adapter)
    (module,) = told["modules"]
    norm = module.pop("norm")
    assert norm == pytest.approx(np.linalg.norm(delta()), rel=1e-6)
    assert module == {"name": KOHYA, "method": "lora", "rank": 4, "alpha": 2.0, "scale": 0.5,
                      "out": 24, "in": 32, "dora": False}
    assert told["other_tensors"] == []
    assert lora.info(adapter, norms=False)["modules"][0]["norm"] is None


def test_info_as_the_command(adapter):
    words = shlex.split(os.environ.get("SFT_COMMAND", ""))
    if not words:
        pytest.skip("SFT_COMMAND is not set")
    out = subprocess.run([*words, "lora", "info", "--json", adapter], capture_output=True, check=True)
    (told,) = json.loads(out.stdout)["results"]
    ours = lora.info(adapter)
    assert told["other_tensors"] == ours["other_tensors"]
    for theirs, module in zip(told["modules"], ours["modules"], strict=True):
        assert {key: module[key] for key in theirs} == theirs


def test_one_pair_is_an_adapter_with_its_strength(model, adapter, tmp_path):
    one, other = tmp_path / "one.safetensors", tmp_path / "other.safetensors"
    lora.merge(model, (adapter, 0.5), one)
    lora.merge(model, [(adapter, 0.5)], other)
    assert one.read_bytes() == other.read_bytes()
    lora.merge(model, (adapter, adapter), one, overwrite=True)
    lora.merge(model, [(adapter, 1), (adapter, 1.0)], other, overwrite=True)
    assert one.read_bytes() == other.read_bytes()


def test_config_of_peft(tmp_path):
    tensors = {"base_model.model.a.lora_B.weight": random_of(3, 8, 4),
               "base_model.model.a.lora_A.weight": random_of(4, 4, 8)}
    folder = tmp_path / "peft"
    folder.mkdir()
    path = write(folder / "adapter_model.safetensors", tensors)
    assert lora.info(path)["modules"][0]["scale"] == 1
    (folder / "adapter_config.json").write_text('{"lora_alpha": 8}')
    assert lora.info(path)["modules"][0]["scale"] == 2
    assert lora.info(folder)["modules"][0]["scale"] == 2
    assert lora.info(path, config=b'{"lora_alpha": 12}')["modules"][0]["scale"] == 3
    other = write(folder / "other.safetensors", tensors)
    assert lora.info(other)["modules"][0]["scale"] == 1
    if hasattr(os, "mkfifo"):
        (folder / "adapter_config.json").unlink()
        os.mkfifo(folder / "adapter_config.json")
        with pytest.raises(OSError, match="expected a file"):  # and no waiting
            lora.info(path)


@pytest.mark.parametrize("form", ["path", "text", "pair", "list", "pairs", "adapter"])
def test_merge(model, adapter, tmp_path, form):
    out = tmp_path / "out.safetensors"
    given = {"path": adapter, "text": str(adapter), "pair": [(adapter, 1.0)], "list": [adapter],
             "pairs": [(adapter, 0.25), (adapter, 0.75)], "adapter": lora.Adapter(adapter)}[form]
    done = lora.merge(model, given, out)
    before, after = read(model), read(out)
    assert np.abs(after[LAYER] - (before[LAYER] + delta())).max() < 1e-5
    assert (after["other"] == before["other"]).all()
    assert done["changed"] == 1 and done["narrow_values"] == done["narrow_lost"] == 0
    assert [one["matched"] for one in done["adapters"]] == [1] * len(done["adapters"])
    assert done["adapters"][0]["path"] == str(adapter)
    with libsafetensors.open(out) as file:
        recipe = json.loads(file.metadata()["sft_lora_merge"])
        assert file.metadata()["kept"] == "yes"
    assert recipe["adapters"][0]["name"] == "style.safetensors"
    assert len(recipe["adapters"][0]["sha256"]) == 64


def test_merge_as_the_command(model, adapter, tmp_path):
    words = shlex.split(os.environ.get("SFT_COMMAND", ""))
    if not words:
        pytest.skip("SFT_COMMAND is not set")
    half = tmp_path / "half.safetensors"
    libsafetensors.convert(model, half, "F8_E4M3")
    subprocess.run([*words, "lora", "merge", half, str(adapter) + ":0.5", "-o",
                    tmp_path / "a.safetensors", "--stochastic", "9", "--blocks", "*=0.5"],
                   check=True, capture_output=True)
    done = lora.merge(half, lora.Adapter(adapter, 0.5, "*=0.5"), tmp_path / "b.safetensors",
                      stochastic=9, threads=3)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert done["narrow_values"] > 0


def test_shards(adapter, tmp_path):
    folder = tmp_path / "sharded"
    folder.mkdir()
    files = {LAYER: "m-00001-of-00002.safetensors", "other": "m-00002-of-00002.safetensors"}
    for name, file in files.items():
        write(folder / file, {name: random_of(1, 24, 32) if name == LAYER else random_of(2, 3)})
    index = folder / "m.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": files}))
    lora.merge(index, adapter, tmp_path / "merged")
    assert sorted(os.listdir(tmp_path / "merged")) == sorted([*files.values(), index.name])
    lora.merge(index, adapter, tmp_path / "one.safetensors")
    assert read(tmp_path / "one.safetensors").keys() == files.keys()


@pytest.mark.skipif(os.name == "nt", reason="modes")
@pytest.mark.parametrize("quantised", [False, True])
def test_what_a_private_adapter_changes_is_private(model, adapter, tmp_path, quantised):
    if quantised:
        libsafetensors.quantize(model, tmp_path / "q.safetensors", "int8", only="*img_mlp*")
        model = tmp_path / "q.safetensors"
    for private, other in ((adapter, model), (model, adapter)):
        os.chmod(private, 0o600)
        os.chmod(other, 0o644)
        out = tmp_path / (private.name + ".merged")
        lora.merge(model, adapter, out)
        assert out.stat().st_mode & 0o777 == 0o600


def test_errors(model, adapter, tmp_path):
    out = tmp_path / "out.safetensors"
    with pytest.raises(SafetensorError) as told:
        lora.info(model)
    assert told.value.code == "tensor_not_found" and told.value.path == str(model)
    more = write(tmp_path / "more.safetensors", {
        KOHYA + ".lora_up.weight": random_of(3, 24, 4),
        KOHYA + ".lora_down.weight": random_of(4, 4, 32),
        "lora_unet_x.lora_up.weight": random_of(3, 2, 1),
        "lora_unet_x.lora_down.weight": random_of(4, 1, 2)})
    with pytest.raises(SafetensorError, match="none for 1 of its"):
        lora.merge(model, more, out)
    done = lora.merge(model, more, out, ignore_unmatched=True)
    assert done["adapters"][0]["unmatched"] == ["lora_unet_x"]
    with pytest.raises(FileExistsError):
        lora.merge(model, adapter, out)
    lora.merge(model, adapter, out, overwrite=True)
    for words in ({"dora": "other"}, {"stochastic": -1}, {"threads": -1}):
        with pytest.raises((ValueError, OverflowError)):
            lora.merge(model, adapter, out, overwrite=True, **words)
    with pytest.raises(ValueError, match="12, 17, 20 or 26"):
        lora.merge(model, lora.Adapter(adapter, 1, "1,2"), out, overwrite=True)
    with pytest.raises(ValueError, match="finite"):
        lora.merge(model, [(adapter, float("nan"))], out, overwrite=True)
    with pytest.raises(ValueError, match="adapters, found none"):
        lora.merge(model, [], out, overwrite=True)
    with pytest.raises(FileNotFoundError):
        lora.merge(model, tmp_path / "none.safetensors", out, overwrite=True)
    with pytest.raises(TypeError):
        lora.merge(model, 5, out)
    bad = write(tmp_path / "nan.safetensors", {
        KOHYA + ".lora_up.weight": random_of(3, 24, 4) * np.float32("nan"),
        KOHYA + ".lora_down.weight": random_of(4, 4, 32)})
    new = tmp_path / "new.safetensors"
    with pytest.raises(ValueError, match="NaN") as told:
        lora.merge(model, [adapter, bad], new)
    assert told.value.hint is None
    assert told.value.path == str(bad) and told.value.tensor == KOHYA + ".lora_up.weight"
    assert not new.exists()


def test_progress_cancels(model, adapter, tmp_path):
    def stop(done, total):
        raise KeyError("enough")
    with pytest.raises(KeyError):
        lora.merge(model, adapter, tmp_path / "out.safetensors", progress=stop)
    assert not (tmp_path / "out.safetensors").exists()


def factors_of(path):
    """The change of each module, by its factors and alpha."""
    tensors, found = read(path), {}
    for name, up in tensors.items():
        for end, other in ((".lora_up.weight", ".lora_down.weight"),
                           (".lora_B.weight", ".lora_A.weight")):
            if name.endswith(end):
                module = name[:-len(end)]
                alpha = tensors.get(module + ".alpha", up.shape[1])
                found[module] = float(alpha) / up.shape[1] * up.astype("f8") @ tensors[module + other]
    return found


def test_resize(adapter, tmp_path):
    out = tmp_path / "small.safetensors"
    values = np.linalg.svd(delta(), compute_uv=False)
    told = lora.resize(adapter, out, rank=2)
    lost = np.linalg.norm(values[2:])
    (module,) = told["modules"]
    assert module["error"] == pytest.approx(lost / np.linalg.norm(values), rel=1e-5)
    assert (module["name"], module["rank_before"], module["rank"]) == (KOHYA, 4, 2)
    assert module["alpha"] == 1.0 and module["norm"] == pytest.approx(np.linalg.norm(values))
    assert np.linalg.norm(factors_of(out)[KOHYA] - delta()) == pytest.approx(lost, rel=1e-5)
    least = next(k for k in range(1, 5)
                 if np.linalg.norm(values[k:]) <= 0.5 * np.linalg.norm(values))
    for more in ({"rule": ("error", 0.5)}, {"rule": ("error", 0.5), "rank": 4}):
        told = lora.resize(adapter, tmp_path / "none", dry_run=True, **more)
        assert told["modules"][0]["rank"] == least
    assert not (tmp_path / "none").exists()
    ticks = []
    lora.resize(adapter, out, rank=2, dtype="BF16", overwrite=True, threads=2,
                progress=lambda done, total: ticks.append((done, total)))
    assert ticks[-1][0] == ticks[-1][1]
    with libsafetensors.open(out) as file:
        assert str(file[KOHYA + ".lora_up.weight"].dtype) == "BF16"
        assert json.loads(file.metadata()["sft_lora_resize"])["rank"] == 2


def test_factors_as_the_command(adapter, model, tmp_path):
    words = shlex.split(os.environ.get("SFT_COMMAND", ""))
    if not words:
        pytest.skip("SFT_COMMAND is not set")
    a, b, merged = (tmp_path / (name + ".safetensors") for name in ("a", "b", "merged"))
    lora.merge(model, adapter, merged)
    for call, line in (
            (lambda: lora.resize(adapter, b, rule=("sv_fro", 0.9), kohya=True, overwrite=True),
             ["resize", adapter, "--sv-fro", "0.9", "--compat", "kohya"]),
            (lambda: lora.stack([(adapter, 2), (adapter, -0.5)], b, overwrite=True),
             ["stack", str(adapter) + ":2", str(adapter) + ":-0.5"]),
            (lambda: lora.extract(merged, model, b, rank=3, norms=True, clamp_quantile=0.9,
                                  overwrite=True),
             ["extract", merged, model, "--rank", "3", "--norms", "--clamp-quantile", "0.9"])):
        subprocess.run([*words, "lora", *line, "-o", a, "--force"], check=True, capture_output=True)
        call()
        assert a.read_bytes() == b.read_bytes()


def test_stack(adapter, tmp_path):
    out = tmp_path / "sum.safetensors"
    told = lora.stack([lora.Adapter(adapter, 0.5), (adapter, 1)], out)
    assert told["modules"][0]["rank"] == 8 and told["modules"][0]["norm"] is None
    assert np.abs(factors_of(out)[KOHYA] - 1.5 * delta()).max() < 1e-5
    with pytest.raises(ValueError, match="without blocks"):
        lora.stack(lora.Adapter(adapter, 1, "*=1"), out, overwrite=True)


def test_stack_gives_names(tmp_path):
    """The same layer under the names of kohya and of diffusers; fused, in the first."""
    fused, split = tmp_path / "fused.safetensors", tmp_path / "split.safetensors"
    out = tmp_path / "sum.safetensors"
    names = "lora_unet_double_blocks_0_img_attn_qkv", "transformer.transformer_blocks.0.attn.to_k"
    up, down, own = random_of(5, 12, 2), random_of(6, 2, 4), random_of(7, 4, 2)
    write(fused, {names[0] + ".lora_up.weight": up, names[0] + ".lora_down.weight": down})
    write(split, {names[1] + ".lora_B.weight": own, names[1] + ".lora_A.weight": down})
    with pytest.raises(SafetensorError, match="names of layers as the other"):
        lora.stack([fused, split], out)
    with pytest.raises(SafetensorError, match="tells its model"):
        lora.stack([fused, split], out, to="kohya")
    with pytest.raises(ValueError, match="layouts are known, found \"none\""):
        lora.stack([fused, split], out, to="kohya", architecture="none")
    assert not out.exists()
    lora.stack([fused, (split, -3)], out, to="kohya", architecture="flux.1")
    want = up @ down
    want[4:8] -= 3 * own @ down
    assert np.abs(factors_of(out)[names[0]] - want).max() < 1e-5


def test_extract(adapter, model, tmp_path):
    out, merged = tmp_path / "out.safetensors", tmp_path / "merged.safetensors"
    lora.merge(model, adapter, merged)
    told = lora.extract(merged, model, out, rank=4)
    assert told["modules"][0]["error"] < 1e-5 and told["left_others"] == 0
    assert np.abs(factors_of(out)[KOHYA] - delta()).max() < 1e-5
    told = lora.extract(merged, model, out, rank=4, to="peft", overwrite=True)
    assert told["modules"][0]["alpha"] is None
    lone = write(tmp_path / "lone.safetensors", {"other": random_of(2, 3)})
    with pytest.raises(SafetensorError, match="none for 1"):
        lora.extract(merged, lone, tmp_path / "none.safetensors", rank=4)
    with pytest.raises(ValueError, match="kohya, peft, comfy for to"):
        lora.extract(merged, model, out, rank=4, to="diffusers")


def test_simplify(model, tmp_path):
    out, loha = tmp_path / "out.safetensors", tmp_path / "loha.safetensors"
    parts = {KOHYA + ".hada_w%d_%s" % (n, ab): random_of(9 + n, *shape)
             for n in (1, 2) for ab, shape in (("a", (24, 2)), ("b", (2, 32)))}
    write(loha, parts)
    want = np.ones((24, 32))
    for n in (1, 2):
        want *= parts[KOHYA + ".hada_w%d_a" % n] @ parts[KOHYA + ".hada_w%d_b" % n]
    told = lora.simplify(loha, out, rank="exact")
    assert told["modules"][0]["rank"] == 4 and told["modules"][0]["rank_before"] is None
    assert np.abs(factors_of(out)[KOHYA] - want).max() < 1e-4
    dora = write(tmp_path / "dora.safetensors", {
        KOHYA + ".lora_up.weight": random_of(3, 24, 4), KOHYA + ".lora_down.weight": random_of(4, 4, 32),
        KOHYA + ".dora_scale": np.abs(random_of(5, 24, 1))})
    with pytest.raises(TypeError, match="expected a model"):
        lora.simplify(dora, out, rank=24, overwrite=True)
    merged = tmp_path / "merged.safetensors"
    lora.merge(model, dora, merged)
    lora.simplify(dora, out, rank="exact", model=model, overwrite=True)
    change = read(merged)[LAYER].astype("f8") - read(model)[LAYER]
    assert np.abs(factors_of(out)[KOHYA] - change).max() < 1e-4


def test_convert(tmp_path):
    qkv = "lora_unet_double_blocks_0_img_attn_qkv"
    kohya = write(tmp_path / "kohya.safetensors", {
        qkv + ".lora_up.weight": random_of(3, 24, 4), qkv + ".lora_down.weight": random_of(4, 4, 8),
        qkv + ".alpha": np.float32(2)})
    out, back = tmp_path / "diffusers.safetensors", tmp_path / "back.safetensors"
    told = lora.convert(kohya, out, "diffusers", architecture="flux.1")
    assert (told["architecture"], told["modules"], told["split"]) == ("flux.1", 3, 1)
    assert told["config"] is None and told["unmatched"] == []
    name = "transformer.transformer_blocks.0.attn.to_k.lora_B.weight"
    assert (read(out)[name] == read(kohya)[qkv + ".lora_up.weight"][8:16]).all()
    told = lora.convert(out, back, "kohya", architecture="flux.1")
    assert told["joined"] == 1
    before, after = read(kohya), read(back)
    assert before.keys() == after.keys()
    assert all((before[key] == after[key]).all() for key in before)
    (tmp_path / "p").mkdir()
    peft = tmp_path / "p" / "adapter_model.safetensors"
    told = lora.convert(kohya, peft, "peft", architecture="flux.1")
    beside = tmp_path / "p" / "adapter_config.json"
    assert json.loads(beside.read_text()) == json.loads(told["config"])
    assert json.loads(told["config"])["lora_alpha"] == 2
    with pytest.raises(ValueError, match="adapter_model"):
        lora.convert(kohya, tmp_path / "other.safetensors", "peft", architecture="flux.1")
    assert not (tmp_path / "other.safetensors").exists()
    peft.unlink()
    with pytest.raises(FileExistsError) as told:
        lora.convert(kohya, peft, "peft", architecture="flux.1")
    assert not peft.exists()
    assert (told.value.code, told.value.path) == ("exists", str(beside))
    beside.unlink()

    def comes(done, total):
        beside.write_text("another's")

    with pytest.raises(FileExistsError):  # at the end: neither of the two is left
        lora.convert(kohya, peft, "peft", architecture="flux.1", progress=comes)
    assert not peft.exists() and beside.read_text() == "another's"
    with pytest.raises(ValueError, match="architecture"):
        lora.convert(kohya, out, "comfy", architecture="no such", overwrite=True)
    with pytest.raises(SafetensorError, match="tells its model"):
        lora.convert(kohya, out, "comfy", overwrite=True)
    with pytest.raises(ValueError, match="for to"):
        lora.convert(kohya, out, "other")


def test_factors_errors(adapter, model, tmp_path):
    out = tmp_path / "out.safetensors"
    for words in ({}, {"rank": 0}, {"rank": 65537}, {"rank": "exact"}, {"rule": ("other", 1)},
                  {"rule": ("error", 2)}, {"rank": 1, "dtype": "I32"}, {"rank": 1, "threads": -1}):
        with pytest.raises(ValueError):
            lora.resize(adapter, out, **words)
    with pytest.raises(SafetensorError) as told:
        lora.resize(model, out, rank=1)
    assert told.value.path == str(model)
    bad = write(tmp_path / "bad.safetensors", {
        KOHYA + ".lora_up.weight": random_of(3, 24, 4) * np.float32("nan"),
        KOHYA + ".lora_down.weight": random_of(4, 4, 32)})
    with pytest.raises(ValueError, match="NaN"):
        lora.stack([adapter, bad], out, rank=2)
    assert not out.exists()
    for rank in (0, 65537, (1 << 64) + 1):
        with pytest.raises(ValueError, match="from 1 to 65536"):
            lora.resize(adapter, out, rank=rank)
    assert not out.exists()
    lora.resize(adapter, out, rank=1)
    with pytest.raises(FileExistsError):
        lora.resize(adapter, out, rank=1)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lora.resize(adapter, out, rank=1, overwrite=True, progress=stop)
