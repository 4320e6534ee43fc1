"""A function for each verb of the command, beside the command: the same files, the same facts."""
import dataclasses
import json
import os
import re
import runpy
import signal
import stat
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest

import libsafetensors as st
import libsafetensors.__main__ as front
from libsafetensors import SafetensorError, TensorNotFoundError, _written
from libsafetensors.numpy import load_file, save_file

STATE = "LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME"
VERBS = {
    "info": ("info", "infos", "save_as", "fits"), "ls": ("ls", "open"), "find": ("find",),
    "check": ("check",),
    "cat": ("open",), "hash": ("hash",), "dup": ("dup",), "diff": ("diff", "merge_of"),
    "catalog": ("catalog",), "records": ("Records",), "meta": ("edit_metadata", "scrub", "recover"),
    "rename": ("rename",), "repair": ("repair", "clean"), "add": ("put",), "put": ("put",),
    "rm-tensor": ("select",), "convert": ("convert", "quantize", "dequantize", "layout",
                                          "import_model"),
    "split": ("split", "save_sharded"), "merge": ("merge", "merge_models"), "select": ("select",),
    "lora": ("lora.info", "lora.merge", "lora.resize", "lora.stack", "lora.extract",
             "lora.simplify", "lora.convert"),
    "mv": ("mv",), "note": ("note",), "trash": ("trash",), "thumbnail": ("thumbnail",),
    "dataset": ("dataset.info", "dataset.ls", "dataset.verify", "dataset.gc", "dataset.compact"),
}


def command(*words, check=True):
    found = front.find_own_command()
    return subprocess.run([found, *map(str, words)], capture_output=True, check=check, text=True)


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    rng = np.random.default_rng(1)
    save_file({"layers.%d.%s" % (i, name): rng.standard_normal((32, 40)).astype(kind)
               for i in range(12) for name, kind in (("weight", "f4"), ("bias", "f2"))}, path,
              {"title": "one", "sshs_model_hash": "00", "modelspec.hash_sha256": "00"})
    return path


@pytest.fixture
def sharded(model, tmp_path):
    command("split", model, "-o", tmp_path / "sharded", "--max-size", "20KB")
    return tmp_path / "sharded"


# ── The table ──

def test_every_verb_has_its_function():
    verbs = set(re.findall(r"^### safetensors (\S+)", (st_docs() / "cli.md").read_text("utf-8"),
                           re.MULTILINE))
    assert verbs == set(VERBS)
    tests = [path.read_text("utf-8") for path in (st_docs().parent / "tests/python").glob("test_*.py")]
    for names in VERBS.values():
        for name in names:
            found = st
            for part in name.split("."):
                found = getattr(found, part)
            assert callable(found) and found.__doc__, name
            called = re.compile(r"(?<!def )\b%s\(" % name.rpartition(".")[2])
            assert any(called.search(text) for text in tests), "%s: no test calls it" % name
    table = (st_docs() / "python.md").read_text("utf-8")
    for verb, names in VERBS.items():
        row = re.search(r"^\| `%s` \| (.*?) \|" % verb, table, re.MULTILINE)
        assert row and all("`%s`" % name in row[1] for name in names), verb


def st_docs():
    import pathlib
    return pathlib.Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("kind, schema, part", [
    (_written.Written, "split", "good"), (_written.WrittenFile, "split", "file"),
    (_written.Repaired, "repair", "good"), (_written.Fix, "repair", "fix"),
    (_written.Found, "find", "good"), (_written.Hit, "find", "hit"),
    (_written.SameModels, "dup", "group"), (_written.Moved, "mv", "good"),
    (_written.Trashed, "trash", "good"), (_written.Scrubbed, "meta", "good"),
    (_written.Thumbnail, "thumbnail", "good"), (_written.Failed, "find", "failed")])
def test_results_have_the_fields_of_the_schemas(kind, schema, part):
    facts = json.loads((st_docs() / "schema" / (schema + ".json")).read_text("utf-8"))["$defs"][part]
    own = {one.name for one in dataclasses.fields(kind)}
    known = set(facts["properties"])
    assert own <= known
    assert known - own <= {"ok", "path_bytes", "remote", "missing"} | (
        {"removed"} if schema != "meta" else {"method", "header_bytes_before", "header_bytes", "spare",
                                              "bytes", "still_shown"})
    optional = {one.name for one in dataclasses.fields(kind)
                if one.default is not dataclasses.MISSING}
    assert own & set(facts["required"]) - {"fixes"} <= own - optional


# ── split, merge, select, rename, as the command writes ──

@pytest.mark.parametrize("words, options", [
    ([], {}), (["--max-size", "20KB"], {"max_size": "20KB"}),
    (["--max-size", "0.02MiB"], {"max_size": "0.02MiB"}), (["--count", "5"], {"count": 5}),
    (["--count", "3", "--name", "x"], {"count": 3, "name": "x"})])
def test_split(model, tmp_path, words, options):
    command("split", model, "-o", tmp_path / "a", *words)
    planned = st.split(model, tmp_path / "b", dry_run=True, **options)
    assert not (tmp_path / "b").exists() and planned.dry_run
    done = st.split(model, tmp_path / "b", **options)
    assert dataclasses.replace(planned, dry_run=False) == done
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    assert done.tensors == 24 and done.bytes == 12 * 32 * 40 * 6
    assert done.dropped == (("sshs_model_hash", "modelspec.hash_*") if options else ())
    assert done.path == str(model)
    assert {file.path for file in done.files} == {
        str(path) for path in (tmp_path / "b").glob("*.safetensors")}


def test_split_of_an_open_file_and_of_tensors(model, tmp_path):
    st.split(model, tmp_path / "a", count=4)
    for number, mode in enumerate(("auto", "read", "cow")):
        with st.open(model, mode=mode) as file:
            st.split(file, tmp_path / str(number), count=4)
        assert files_of(tmp_path / "a") == files_of(tmp_path / str(number))
    done = st.split(load_file(model), tmp_path / "c", count=4)
    assert done.path is None
    back = load_file(tmp_path / "c")
    assert all((back[name] == value).all() for name, value in load_file(model).items())


def test_split_again_keeps_the_index_and_its_name(sharded, tmp_path):
    index = sharded / "model.safetensors.index.json"
    text = json.loads(index.read_text())
    text["metadata"]["made by"] = "ü"
    index.write_text(json.dumps(text))
    command("split", sharded, "-o", tmp_path / "a", "--count", "2")
    st.split(sharded, tmp_path / "b", count=2)
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


def test_merge(model, sharded, tmp_path):
    other = tmp_path / "other.safetensors"
    save_file({"z": np.ones(3, "f4")}, other, {"title": "two", "more": "m"})
    command("merge", sharded, other, "-o", tmp_path / "a.safetensors")
    done = st.merge([sharded, other], tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert done.tensors == 25 and done.path is None
    with st.open(sharded) as first:
        st.merge([first, {"z": np.ones(3, "f4")}], tmp_path / "c.safetensors")
    assert load_file(tmp_path / "c.safetensors").keys() == load_file(done.output).keys()
    with pytest.raises(FileExistsError):
        st.merge(sharded, done.output)
    assert st.merge(sharded, done.output, overwrite=True).tensors == 24
    with st.open(model) as file:  # whose memory may be changed
        assert st.merge(file, tmp_path / "e.safetensors").dropped
    assert not st.merge(model, tmp_path / "f.safetensors").dropped
    assert (tmp_path / "f.safetensors").read_bytes() == model.read_bytes()
    with pytest.raises(SafetensorError, match="layers.0.weight") as caught:
        st.merge([model, sharded], tmp_path / "d.safetensors")
    assert caught.value.code == "tensor_duplicate" and not (tmp_path / "d.safetensors").exists()


def test_merge_of_a_folder_and_of_declarations(tmp_path):
    for name, text in (("a", "1"), ("b", "2")):
        save_file({name: np.ones(2, "f4")}, tmp_path / (name + ".safetensors"),
                  {"_quantization_metadata": text})
    with pytest.raises(ValueError, match="declaration"):
        st.merge(tmp_path, tmp_path / "c.sft")
    save_file({"b": np.ones(2, "f4")}, tmp_path / "b.safetensors")
    assert st.merge(tmp_path, tmp_path / "c.sft").tensors == 2
    out = tmp_path / "out"
    out.mkdir()
    out /= "c.sft"
    (tmp_path / "c.sft").unlink()
    for key, dtype, fits in (("quantization_config", "i4", False), ("quantization_config", "f2", True),
                             ("lora_adapter_metadata", "f4", False)):
        save_file({"a": np.ones(2, "i4")}, tmp_path / "a.safetensors", {key: "{}"})
        save_file({"b": np.ones(2, dtype)}, tmp_path / "b.safetensors")
        if fits:
            assert st.merge(tmp_path, out, overwrite=True).tensors == 2
        else:
            with pytest.raises(ValueError, match=key):
                st.merge(tmp_path, out, overwrite=True)
    save_file({"a.w": np.ones(2, "f4")}, tmp_path / "a.safetensors", {"b.w": "a.w"})
    save_file({"b.w": np.ones(2, "f4")}, tmp_path / "b.safetensors")
    with pytest.raises(SafetensorError, match="another name"):
        st.merge(tmp_path, out, overwrite=True)
    (tmp_path / "b.safetensors").rename(tmp_path / "adapter_model.safetensors")
    save_file({"c.w": np.ones(2, "f4")}, tmp_path / "a.safetensors")
    assert st.merge(tmp_path, out, overwrite=True).tensors == 2
    (tmp_path / "adapter_config.json").write_text('{"lora_alpha": 8}')
    with pytest.raises(ValueError, match="adapter_config.json beside"):
        st.merge(tmp_path, out, overwrite=True)
    (tmp_path / "adapter_model.safetensors").unlink()
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="expected models"):
        st.merge(tmp_path / "empty", tmp_path / "d.sft")
    for name, text in (("a", '["a"]'), ("b", '["b", "a"]')):
        save_file({name: np.ones(2, "f4")}, tmp_path / (name + ".safetensors"),
                  {"tensor_names": text})
    done = st.merge([tmp_path / "a.safetensors", tmp_path / "b.safetensors"], tmp_path / "e.sft")
    with st.open(done.output) as file:
        assert file.metadata() == {"tensor_names": '["a", "b"]'}


@pytest.mark.parametrize("output", ["out", "out.safetensors"])
def test_select(sharded, tmp_path, output):
    a, b = tmp_path / ("a" + output), tmp_path / ("b" + output)
    command("select", sharded, "-o", a, "-k", "layers.[1-7].*", "-k", "layers.11.*", "-d", "*.bias")
    done = st.select(sharded, b, keep=["layers.[1-7].*", "layers.11.*"], drop="*.bias")
    if output == "out":
        assert files_of(a) == files_of(b)
    else:
        assert a.read_bytes() == b.read_bytes()
    assert done.tensors == 8


def test_select_in_place(model, tmp_path):
    other = tmp_path / "other.safetensors"
    other.write_bytes(model.read_bytes())
    model.chmod(0o640)
    command("select", other, "--in-place", "-d", "*.bias")
    held = st.open(model)
    old = held["layers.3.bias"].numpy().copy()
    assert st.select(model, drop="*.bias", in_place=True).tensors == 12
    assert model.read_bytes() == other.read_bytes()
    assert os.name == "nt" or stat.S_IMODE(model.stat().st_mode) == 0o640
    assert (held["layers.3.bias"].numpy() == old).all()
    assert st.select(model, drop="nothing", in_place=True).files == ()
    os.link(model, tmp_path / "again.safetensors")
    with pytest.raises(OSError, match="hard link"):
        st.select(model, keep="layers.1.*", in_place=True)
    assert st.select(model, keep="layers.1.*", in_place=True, force=True).tensors == 1


@pytest.mark.skipif(os.name == "nt", reason="a journal names its file by inode")
def test_dry_run_of_select_recovers_no_file(model):
    journal = runpy.run_path(Path(__file__).parents[1] / "attack" / "run.py")["journal"]
    whole = model.read_bytes()
    head = whole[:8 + int.from_bytes(whole[:8], "little")]
    torn = whole[:-1] + bytes([whole[-1] ^ 1])
    model.write_bytes(torn)
    left = model.with_name(".%s.sft-journal" % model.name)
    left.write_bytes(journal(model.stat(), len(whole), head, head,
                             [(len(whole) - 2, whole[-2:], bytes([whole[-2] ^ 1, torn[-1]]))]))
    with pytest.raises(OSError) as caught:
        st.select(model, drop="*.bias", in_place=True, dry_run=True)
    assert caught.value.code == "edit_interrupted"
    assert model.read_bytes() == torn and left.exists()
    assert st.recover(model) == "new" and model.read_bytes() != torn


@pytest.mark.parametrize("size", [1 << 64, (1 << 64) + 8, "18446744073709551624", "16777216TiB"])
def test_sizes_that_64_bits_do_not_hold(model, tmp_path, size):
    assert len(st.split(model, tmp_path / "a", max_size=size, dry_run=True).files) == 1


def test_select_in_place_of_a_set(sharded, tmp_path):
    command("select", sharded, "-o", tmp_path / "a", "-d", "*.bias", "-d", "layers.11.*")
    planned = st.select(sharded, drop=["*.bias", "layers.11.*"], in_place=True, dry_run=True)
    assert planned.dry_run and len(st.open(sharded)) == 24
    done = st.select(sharded, drop=["*.bias", "layers.11.*"], in_place=True)
    assert done.files and st.diff(sharded, tmp_path / "a")["same"]
    with pytest.raises(TensorNotFoundError):
        st.select(sharded, keep="nope", in_place=True)
    with pytest.raises(FileNotFoundError):
        st.select(tmp_path / "nope", keep="nope", in_place=True)


def test_select_a_part_and_prune(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"model.diffusion_model.x_embedder.weight": np.ones((2, 2), "f4"),
               "model.diffusion_model.layers.0.attention.qkv.weight": np.ones((6, 2), "f4"),
               "model.diffusion_model.noise_refiner.0.attention.qkv.weight": np.ones((6, 2), "f4"),
               "model.diffusion_model.layers.0.adaLN_modulation.0.weight": np.ones((2, 2), "f4"),
               "model_ema.decay": np.ones(1, "f4")}, path)
    command("select", path, "-o", tmp_path / "a.safetensors", "--prune", "--architecture", "z-image")
    done = st.select(path, tmp_path / "b.safetensors", prune=True, architecture="z-image")
    assert done.tensors == 4 and done.files[0].path == str(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    with pytest.raises(TensorNotFoundError) as caught:  # what is quoted is not made an argument
        st.select(path, tmp_path / "c.safetensors", part="--nope", architecture="z-image")
    assert 'a part "--nope"' in str(caught.value)
    assert '"safetensors ls --parts" lists them' in str(caught.value)
    with pytest.raises(ValueError, match="expected a path"):
        st.select({"a": np.ones(1)}, tmp_path / "c.safetensors", prune=True)


def test_select_nothing_and_everything(model, tmp_path):
    with pytest.raises(TensorNotFoundError, match="expected at least one tensor to remain, found none of 24"):
        st.select(model, tmp_path / "x.safetensors", keep="nope*")
    assert st.select(model, tmp_path / "x.safetensors").files == ()
    assert not (tmp_path / "x.safetensors").exists()
    assert st.select(model, tmp_path / "x.safetensors", copy=True).tensors == 24
    for wrong in ({}, {"output": tmp_path / "y", "in_place": True}):
        with pytest.raises(TypeError):
            st.select(model, **wrong)
    with pytest.raises(ValueError):
        st.select({"a": np.ones(2)}, in_place=True, keep="a")


def test_rename(model, tmp_path):
    other = tmp_path / "other.safetensors"
    other.write_bytes(model.read_bytes())
    words = ["--map", "layers.0.bias=first", "--strip-prefix", "layers.", "--add-prefix", "b.",
             "--match", "*.bias", "--exclude", "layers.5.*"]
    command("rename", other, *words)
    options = {"names": {"layers.0.bias": "first"}, "strip_prefix": "layers.", "add_prefix": "b.",
               "match": "*.bias", "exclude": ["layers.5.*"]}
    assert len(st.rename(model, dry_run=True, **options).renamed) == 11
    done = st.rename(model, **options)
    assert ("layers.0.bias", "first") in done.renamed and ("layers.1.bias", "b.1.bias") in done.renamed
    assert model.read_bytes() == other.read_bytes()
    assert st.rename(model, lambda name: re.sub(r"^b\.(\d+)", r"c.\1", name)).changed
    assert "c.1.bias" in load_file(model)
    assert not st.rename(model, lambda name: name).changed
    with pytest.raises(TensorNotFoundError):
        st.rename(model, {"nope": "x"})
    with pytest.raises(SafetensorError):
        st.rename(model, lambda name: "same")
    with pytest.raises(TypeError, match="expected a str"):
        st.rename(model, lambda name: 5)


def test_rename_beside_a_configuration(tmp_path):
    """Its names of modules would be those of others, in its folder."""
    adapter = tmp_path / "a" / "adapter_model.safetensors"
    adapter.parent.mkdir()
    parts = [f"base_model.model.a.0.q.lora_{one}.weight" for one in "AB"]
    save_file({name: np.ones((1, 1), np.float32) for name in parts}, adapter)
    config = tmp_path / "a" / "adapter_config.json"
    config.write_text('{"peft_type": "LORA", "r": 1, "lora_alpha": 2, "alpha_pattern": {"0.q": 4}}')
    before = adapter.read_bytes()
    for path, output in ((adapter, None), (adapter.parent, None),
                         (adapter, adapter.parent / "other.safetensors")):
        with pytest.raises(ValueError, match="adapter_config.json beside"):
            st.rename(path, lambda name: name.replace("0.q", "1.q"), output=output)
    assert adapter.read_bytes() == before and len(os.listdir(adapter.parent)) == 2
    st.rename(adapter, lambda name: name.replace("0.q", "1.q"), output=tmp_path / "x.safetensors")
    (tmp_path / "link.safetensors").symlink_to(adapter)
    (tmp_path / "config.json").write_text("{}")
    st.rename(tmp_path / "link.safetensors", lambda name: "x" + name, output=tmp_path / "y.safetensors")
    assert st.rename(adapter, lambda name: name.replace(".a.", ".b.")).changed


def test_beside_another_configuration(tmp_path):
    """adapter_config.json and config.json beside an output are of what lies there."""
    def config(folder, alpha):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "adapter_config.json").write_text(
            '{"peft_type": "LORA", "r": 2, "lora_alpha": %d}' % alpha)
        return tmp_path / folder / "adapter_model.safetensors"
    layer = "base_model.model.model.layers.0.self_attn.q_proj"
    adapter, other = config("a", 8), config("b", 8)
    for number, path in enumerate((adapter, other)):
        name = layer.replace("0", str(number))
        save_file({name + ".lora_A.weight": np.ones((2, 3), np.float32),
                   name + ".lora_B.weight": np.ones((3, 2), np.float32)}, path)
    there, same = config("there", 64), config("same", 8)
    verbs = [lambda path: st.select(adapter, path, keep="*", copy=True, overwrite=True),
             lambda path: st.merge(adapter, path, overwrite=True),
             lambda path: st.convert(adapter, path, "F16", overwrite=True),
             lambda path: st.edit_metadata(adapter, {"k": "v"}, output=path),
             lambda path: st.rename(adapter, copy=True, output=path),
             lambda path: st.rename_tensors(adapter, {}, output=path)]
    for verb in verbs:
        with pytest.raises(ValueError, match="expected no adapter_config.json beside"):
            verb(there)
        same.unlink(missing_ok=True)
        verb(same)
        with pytest.warns(UserWarning, match="which tells its alpha, is not copied"):
            verb(tmp_path / "elsewhere.safetensors")
        (tmp_path / "elsewhere.safetensors").unlink()
    same.unlink()
    for verb in (lambda path: st.lora.resize(adapter, path, rank=1, overwrite=True),
                 lambda path: st.lora.stack([adapter, adapter], path, overwrite=True)):
        for path in (adapter, there, same):
            with pytest.raises(ValueError, match="expected no adapter_config.json beside"):
                verb(path)
        (tmp_path / "new").mkdir(exist_ok=True)
        with pytest.warns(UserWarning, match="alphas of a configuration are in the factors"):
            verb(tmp_path / "new" / "adapter_model.safetensors")
    st.merge([adapter, other], same)
    assert len(st.lora.info(same)["modules"]) == 2
    config("b", 9)
    with pytest.raises(ValueError, match="adapter_config.json beside one"):
        st.merge([adapter, other], same, overwrite=True)
    model, folder = tmp_path / "fp8.safetensors", tmp_path / "other"
    save_file({"w.weight": np.zeros((2, 2), np.uint8)}, model)
    folder.mkdir()
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "fp8"}}')
    for verb in (lambda path: st.select(model, path, copy=True), lambda path: st.merge(model, path)):
        with pytest.raises(ValueError, match="a quantization_config of others"):
            verb(folder / "x.safetensors")
        verb(tmp_path / "x.safetensors")
        (tmp_path / "x.safetensors").unlink()
    (tmp_path / "config.json").write_text(
        '{"a": 1, "quantization_config": {"quant_method": "fp8"}}')
    st.select(model, folder / "x.safetensors", copy=True)


def test_rename_by_regular_expressions(model, sharded, tmp_path):
    """They are the command's: POSIX's leftmost longest match."""
    other = tmp_path / "other.safetensors"
    other.write_bytes(model.read_bytes())
    rules = ["s/^([0-9]+)\\./block.\\1-/", "s/i|bias/<&>/g"]
    command("rename", other, "--strip-prefix", "layers.", "--regex", rules[0], "--regex", rules[1],
            "--add-prefix", "b.", "--exclude", "*.3.*", "--map", "layers.0.bias=first")
    options = {"strip_prefix": "layers.", "regex": rules, "add_prefix": "b.", "exclude": "*.3.*",
               "names": {"layers.0.bias": "first"}}
    before = model.read_bytes()
    planned = st.rename(model, dry_run=True, **options)
    assert model.read_bytes() == before
    done = st.rename(model, **options)
    assert done.renamed == planned.renamed and model.read_bytes() == other.read_bytes()
    assert ("layers.1.bias", "b.block.1-<bias>") in done.renamed and len(done.renamed) == 22
    st.rename(sharded, regex="s/layers/x/")
    assert set(st.open(sharded)) == {"x.%d.%s" % (i, name) for i in range(12)
                                     for name in ("weight", "bias")}
    assert not st.rename(model, regex="s/nowhere/x/").changed
    with pytest.raises(TypeError, match="a mapping of names beside regex"):
        st.rename(model, str.upper, regex="s/a/b/")
    for wrong in ("s/(/x/", "a/b/"):
        with pytest.raises(ValueError):
            st.rename(model, regex=wrong)
    with pytest.raises(SafetensorError):
        st.rename(model, regex="s/.*/same/")
    with pytest.raises(TensorNotFoundError):
        st.rename(model, {"nope": "x"}, regex="s/a/b/")


def test_rename_of_a_set(sharded, tmp_path):
    command("rename", sharded, "--strip-prefix", "layers.", "-o", tmp_path / "a")
    st.rename(sharded, strip_prefix="layers.", output=tmp_path / "b")
    index = "model.safetensors.index.json"
    assert (tmp_path / "a" / index).read_bytes() == (tmp_path / "b" / index).read_bytes()
    assert st.diff(tmp_path / "a", tmp_path / "b")["same"]
    seen = []
    names = set(st.open(sharded))
    planned = st.rename(sharded, strip_prefix="layers.", dry_run=True)
    assert set(st.open(sharded)) == names
    done = st.rename(sharded, strip_prefix="layers.", progress=lambda *now: seen.append(now))
    assert done.changed and done.renamed == planned.renamed and len(done.renamed) == 24
    assert st.diff(sharded, tmp_path / "a")["same"]
    with pytest.raises(SafetensorError):
        st.rename(sharded, lambda name: "same")


def test_output_is_no_more_readable_than_the_source(model, tmp_path):
    model.chmod(0o600)
    for number, mode in enumerate(("read", "auto")):
        with st.open(model, mode=mode) as file:
            st.split(file, tmp_path / str(number), count=2)
            st.merge(file, tmp_path / ("%d.safetensors" % number))
        for path in [*(tmp_path / str(number)).iterdir(), tmp_path / ("%d.safetensors" % number)]:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_changed_memory_is_what_is_written(model, tmp_path):
    for mode in ("read", "cow"):
        with st.open(model, mode=mode) as file:
            tensor = file["layers.0.weight"]
            tensor.numpy()[:] = 7
            st.merge({"x": tensor}, tmp_path / "x.safetensors", overwrite=True)
        assert (load_file(tmp_path / "x.safetensors")["x"] == 7).all()


def test_nothing_is_loaded(tmp_path):
    """1 GiB is split, merged and selected; the process grows by less than 64 MiB."""
    size, count = 32 << 20, 16
    path = tmp_path / "large.safetensors"
    with st.Writer(path, [("t%d" % i, "U8", (size,)) for i in range(count)], sync=False) as writer:
        for name in writer.keys():
            writer.write(name, bytes(size))
    program = """if True:
        import resource, sys
        import libsafetensors as st
        source, folder, output = sys.argv[1:]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        st.split(source, folder, max_size="100MB", sync=False)
        st.select(folder, output, keep="t[0-5]", sync=False)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"""
    done = subprocess.run([sys.executable, "-c", program, str(path), str(tmp_path / "out"),
                           str(tmp_path / "six.safetensors")], capture_output=True, text=True,
                          check=True)
    assert int(done.stdout) < 64 << 10


# ── Saving in shards ──

def test_save_sharded(tmp_path):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    values = {"b": torch.arange(12.).reshape(3, 4).T, "a": rng.standard_normal((5, 6)).astype(">f4"),
              "c": torch.zeros(0, 3), "d": torch.ones(7, dtype=torch.bfloat16)}
    done = st.save_sharded(values, tmp_path / "m", {"k": "v"}, max_shard_size=60)
    assert [file.tensors for file in done.files] == [1, 1, 2]
    with st.open(tmp_path / "m") as file:
        assert set(file) == set(values) and file.metadata() == {"k": "v"}
        assert (file["b"].torch() == values["b"]).all() and (file["a"].numpy() == values["a"]).all()
    with pytest.raises(RuntimeError, match="share memory"):
        st.save_sharded({"x": values["d"], "y": values["d"]}, tmp_path / "n")
    with pytest.raises(FileExistsError):
        st.save_sharded(values, tmp_path / "m")
    for wrong in ("5 parsecs", 0, -1, True, "", "GB", "1e3", "0.0001KB"):
        with pytest.raises(ValueError, match="expected a size"):
            st.save_sharded(values, tmp_path / "n", max_shard_size=wrong)
    assert not (tmp_path / "n").exists()


def test_save_model_in_shards(tmp_path):
    torch = pytest.importorskip("torch")
    from libsafetensors.torch import load_model, save_model
    one = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    one[1].weight = one[0].weight
    save_model(one, tmp_path / "m", max_shard_size=300)
    assert (tmp_path / "m" / "model.safetensors.index.json").exists()
    other = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
    other[1].weight = other[0].weight
    assert load_model(other, tmp_path / "m") == (set(), [])
    assert (other[0].weight == one[0].weight).all()
    with pytest.raises(TypeError):
        save_model(one, tmp_path / "n", max_shard_size=300, spare=10)
    with pytest.raises(ValueError, match="non contiguous"):
        save_model(types.SimpleNamespace(state_dict=lambda: {"x": torch.ones(3, 4).T}),
                   tmp_path / "n", force_contiguous=False, max_shard_size=300)


class Reader:
    """Bytes that are made as they are asked for."""

    def __init__(self, size, raises=None):
        self.size, self.raises, self.most = size, raises, 0

    def read_at(self, offset, length):
        self.most = max(self.most, length)
        if self.raises and offset:
            raise self.raises
        return bytes(length)


def test_objects_that_are_read_as_they_are_written(tmp_path):
    size = 64 << 20
    reader = Reader(size)
    st._core.save_file(tmp_path / "a", [("x", "U8", (size,), reader, None)], sync=False)
    assert reader.most <= 8 << 20 and st.open(tmp_path / "a")["x"].nbytes == size
    with pytest.raises(SafetensorError, match="another size"):
        st._core.save_file(tmp_path / "b", [("x", "U8", (size,), Reader(5), None)])
    with pytest.raises(KeyError, match="mine"):
        st._core.save_file(tmp_path / "b", [("x", "U8", (size,), Reader(size, KeyError("mine")),
                                             None)])
    with pytest.raises(KeyError, match="mine"):
        st._core.save_set(tmp_path / "c", [("x", "U8", (size,), Reader(size, KeyError("mine")),
                                            None)], count=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
    for count in range(3):
        references = sys.getrefcount(reader)
        st._core.save_set(tmp_path / str(count), [("x", "U8", (size,), reader, None)], count=1,
                          dry_run=True)
        assert sys.getrefcount(reader) == references


# ── Progress, Ctrl-C, leaks ──

@pytest.mark.parametrize("verb", ["split", "merge", "select"])
def test_progress_and_what_it_raises(model, tmp_path, verb):
    output = tmp_path / ("out" if verb == "split" else "out.safetensors")
    options = {"split": {"count": 3}, "merge": {}, "select": {"drop": "*.bias"}}[verb]
    seen = []

    def stop(done, total):
        raise KeyError("stop")
    with pytest.raises(KeyError, match="stop"):
        getattr(st, verb)(model, output, progress=stop, **options)
    assert not output.exists()
    done = getattr(st, verb)(model, output, progress=lambda *now: seen.append(now), **options)
    assert seen[-1] == (done.bytes, done.bytes)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c(tmp_path):
    path = tmp_path / "a.safetensors"
    size = 1 << 28
    with st.Writer(path, [("t%d" % i, "U8", (size,)) for i in range(4)], sync=False) as writer:
        for name in writer.keys():
            writer.write(name, bytes(size))
    timer = threading.Timer(0.15, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            st.split(path, tmp_path / "out", count=2, sync=False)
            for one in (tmp_path / "out").iterdir():
                one.unlink()
            (tmp_path / "out").rmdir()
    timer.join()
    assert not list(tmp_path.glob("out/*"))


def test_ten_thousand_calls_leak_nothing(tmp_path):
    import resource
    path = tmp_path / "a.safetensors"
    save_file({"x": np.ones(4, "f4")}, path)
    tensor = st.open(path)["x"]

    def many(count):
        for _ in range(count):
            st._core.save_set(tmp_path / "o", [("x", "F32", (4,), tensor, None)], {"k": "v"},
                              count=1, dry_run=True)
            with pytest.raises(ValueError):
                st._core.save_set(tmp_path / "o", [("x", "F32", (4,), tensor, None)], shards=[3])
            st.recover(path)
    many(1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many(10000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048


def test_threads(model, tmp_path):
    errors = []

    def work(number):
        try:
            for turn in range(5):
                st.split(model, tmp_path / ("%d-%d" % (number, turn)), count=3, sync=False)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not errors
    assert len({tuple(sorted(files_of(path).items())) for path in tmp_path.glob("*-*")}) == 1


# ── Verbs of the command ──

def test_find(model, tmp_path):
    save_file({"a": np.ones((4, 4), "f4")}, tmp_path / "neon.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"x" * 20)
    found = st.find(tmp_path, "neon")
    assert [os.path.basename(one.path) for one in found.models] == ["neon.safetensors"]
    assert found.models[0].matches[0].field == "name"
    digest = st.hash(model)["computed"]["sha256"]
    assert st.find([str(model)], digest[:12]).models == ()
    one = st.find(model, digest[:12], compute=True).models
    assert one[0].matches[0].algo == "sha256"
    assert [m.path for m in st.find(tmp_path, where=["file.tensors=24"]).models] == [str(model)]
    assert st.find(tmp_path / "neon.safetensors", fits=model, all=True).models[0].fit
    assert st.find(tmp_path / "bad.safetensors", "x").failed[0].error["code"]
    for wrong in ({}, {"where": "no such field=1"}):
        with pytest.raises(ValueError):
            st.find(tmp_path, **wrong)
    with pytest.raises(FileNotFoundError):
        st.find(tmp_path / "nope", where="file.tensors=24")
    assert st.find(tmp_path, "-l").models == ()


def test_dup(model, tmp_path):
    (tmp_path / "copy.safetensors").write_bytes(model.read_bytes())
    tensors = load_file(model)
    save_file(tensors, tmp_path / "other.safetensors", {"title": "two"})
    found = st.dup(tmp_path)
    assert [one.by for one in found.groups] == ["file", "weights"] and found.models == 3
    assert set(found.groups[0].paths) == {str(model), str(tmp_path / "copy.safetensors")}
    told = st.dup(tmp_path, link=True)
    assert told.groups[0].dry_run and model.stat().st_nlink == 1
    st.dup(tmp_path, link=True, yes=True)
    assert model.stat().st_nlink == 2
    with pytest.raises(ValueError):
        st.dup(tmp_path, yes=True)


def test_dup_keeps_other_tensors_of_the_same_data(tmp_path):
    tensor = np.arange(8, dtype="f4")
    for name, tensors in (("a", {"up": tensor}), ("other_name", {"lora_B": tensor}),
                          ("shape", {"up": tensor.reshape(2, 4)}), ("dtype", {"up": tensor.view("i4")})):
        save_file(tensors, tmp_path / (name + ".safetensors"))
    save_file({"up": tensor}, tmp_path / "titled.safetensors", {"title": "one"})
    plan = st.dup(tmp_path, weights=True, remove=True, delete=True)
    assert [(one.by, len(one.paths), bool(one.bytes_wasted), len(one.ended)) for one in plan.groups] \
        == [("weights", 2, True, 1), ("data", 4, False, 0)]
    done = st.dup(tmp_path, weights=True, remove=True, delete=True, yes=True)
    assert [one.ended for one in done.groups] == [one.ended for one in plan.groups]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.safetensors", "dtype.safetensors", "other_name.safetensors", "shape.safetensors"]


def test_repair(model, tmp_path):
    broken, fixed = tmp_path / "broken.safetensors", tmp_path / "fixed.safetensors"
    broken.write_bytes(model.read_bytes() + b"more")
    planned = st.repair(broken, fixed, dry_run=True)
    assert planned.fixes[0].fix == "trailing_bytes" and not fixed.exists()
    done = st.repair(broken, fixed)
    assert st.diff(fixed, model, metadata=False)["same"] and done.files[0].path == str(fixed)
    command("repair", broken, "-o", tmp_path / "other.safetensors")
    assert fixed.read_bytes() == (tmp_path / "other.safetensors").read_bytes()
    with pytest.raises(FileExistsError) as caught:
        st.repair(broken, fixed)
    assert caught.value.hint == "overwrite=True replaces it"
    assert st.repair(broken, in_place=True).tensors == 24
    assert broken.read_bytes() == fixed.read_bytes()
    broken.write_bytes(model.read_bytes()[:-5])
    with pytest.raises(SafetensorError) as caught:
        st.repair(broken, fixed, overwrite=True)
    assert caught.value.code == "data_truncated" and caught.value.path == str(broken)
    with pytest.raises(FileNotFoundError):
        st.repair(tmp_path / "nope", fixed)


def test_repair_of_what_has_no_faults_writes_nothing(model, tmp_path):
    st.split(model, tmp_path / "shards", max_size="20KB")
    (tmp_path / "one").mkdir()
    model.rename(tmp_path / "one" / "model.safetensors")
    for source, out in (("one/model.safetensors", "a.safetensors"), ("one", "b.safetensors"),
                        ("shards", "c")):
        done = st.repair(tmp_path / source, tmp_path / out)
        assert done.files == done.fixes == () and not (tmp_path / out).exists()
        assert st.repair(tmp_path / source, tmp_path / ("all-" + out), copy=True).files
    assert st.repair(tmp_path / "one", in_place=True).files == ()


def test_repair_of_several_files_needs_an_output(model, tmp_path):
    st.split(model, tmp_path / "shards", max_size="20KB")
    index = tmp_path / "shards" / "model.safetensors.index.json"
    for source in (index, tmp_path / "shards"):
        with pytest.raises(ValueError, match="with in_place=True, found one in several: give an output"):
            st.repair(source, in_place=True)
    index.unlink()
    with pytest.raises(ValueError, match="found one in several"):
        st.repair(tmp_path / "shards", in_place=True)
    with open(next((tmp_path / "shards").glob("*-00001-*")), "ab") as file:
        file.write(b"more")
    assert {one.fix for one in st.repair(tmp_path / "shards", tmp_path / "fixed").fixes} == {
        "trailing_bytes", "no_index"}


def test_repair_of_clip(tmp_path):
    path, name = tmp_path / "clip.safetensors", "text_model.embeddings.position_ids"
    save_file({name: np.arange(77, dtype="f4").reshape(1, 77) * np.float32(1.001)}, path)
    done = st.repair(path, tmp_path / "fixed.safetensors", clip=True)
    assert done.fixes == () and done.tensors == 1
    assert load_file(done.output)[name].tolist() == [list(range(77))]


@pytest.fixture
def denoiser(tmp_path):
    path = tmp_path / "denoiser.safetensors"
    rng = np.random.default_rng(3)
    save_file({"blocks.%d.weight" % i: rng.standard_normal((128, 128)).astype("f4")
               for i in range(3)}, path)
    return path


@pytest.mark.filterwarnings("ignore:nothing was moved")
def test_hints_name_arguments_that_the_function_has(model, tmp_path):
    import inspect
    other, linked = tmp_path / "other.safetensors", tmp_path / "linked.safetensors"
    other.write_bytes(model.read_bytes())
    os.link(model, linked)
    command("note", model, "rating=2")
    wrong = [
        (st.mv, lambda: st.mv(model, other), "number=True puts a number behind the name"),
        (st.scrub, lambda: st.scrub(model), "overwrite=True changes it all the same"),
        (st.repair, lambda: st.repair(model, other, copy=True), "overwrite=True replaces it"),
        (st.thumbnail, lambda: st.thumbnail(model, other), "overwrite=True replaces it"),
        (st.edit_metadata, lambda: st.edit_metadata(model, {"a": "b"}),
         "force=True changes it all the same")]
    for verb, use, hint in wrong:
        with pytest.raises(Exception) as caught:
            use()
        assert caught.value.hint == hint, verb
        assert hint.partition("=")[0] in inspect.signature(verb).parameters


@pytest.mark.parametrize("text, told", [
    ("--number puts a number behind it", "number=True puts a number behind it"),
    ("--spare GLOB leaves it", "spare=GLOB leaves it"),
    ("expected --algo=x, or -o DIR", "expected algo=x, or output=DIR"),
    ("write a copy with -o", "write a copy with output="),
    ("-r looks into its folders too", "recursive=True looks into its folders too"),
    ("\"safetensors select --drop\" and a-b -or --force", "\"safetensors select --drop\" and a-b -or force=True"),
])
def test_options_in_messages_become_arguments(text, told):
    from libsafetensors._command import _in_python
    assert _in_python(text) == told


def test_a_folder_of_several_models_is_refused(denoiser, model, tmp_path):
    for use in (lambda: st.quantize(tmp_path, tmp_path / "o", "fp8"),
                lambda: st.repair(tmp_path, tmp_path / "o"),
                lambda: st.select(tmp_path, tmp_path / "o.safetensors", prune=True)):
        with pytest.raises(ValueError, match="expected one model, found 2"):
            use()
    assert not (tmp_path / "o").exists()


def test_quantize_and_back(denoiser, tmp_path):
    a, b = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    command("convert", denoiser, "-o", a, "--quantize", "fp8", "--spare", "blocks.1.*")
    seen = []
    done = st.quantize(denoiser, b, "fp8", spare="blocks.1.*",
                       progress=lambda *now: seen.append(now))
    assert a.read_bytes() == b.read_bytes()
    assert {one.name for one in done.quantised} == {"blocks.0.weight", "blocks.2.weight"}
    assert [one.name for one in done.spared] == ["blocks.1.weight"]
    assert 0 < done.error < 0.05 and done.format == "fp8" and done.bytes < done.bytes_before
    with pytest.raises(TypeError) as caught:
        st.quantize(b, tmp_path / "c.safetensors", "fp8")
    assert "from_quantised=" in caught.value.hint
    assert st.quantize(b, tmp_path / "c.safetensors", "int8", from_quantised=True).quantised
    with pytest.raises(ValueError):
        st.quantize(denoiser, tmp_path / "d.safetensors", "fp3")
    command("convert", b, "-o", tmp_path / "e.safetensors", "--dequantize")
    assert st.dequantize(b, tmp_path / "f.safetensors")["dequantize"] == 2
    assert (tmp_path / "e.safetensors").read_bytes() == (tmp_path / "f.safetensors").read_bytes()


def test_a_progress_that_raises_ends_the_command(tmp_path):
    path = tmp_path / "large.safetensors"
    rng = np.random.default_rng(4)
    save_file({"blocks.%d.weight" % i: rng.standard_normal((2048, 2048)).astype("f4")
               for i in range(8)}, path, sync=False)

    def stop(done, total):
        raise KeyError("stop")
    with pytest.raises(KeyError, match="stop"):
        st.quantize(path, tmp_path / "out.safetensors", "nvfp4", progress=stop)
    assert [one.name for one in tmp_path.iterdir()] == ["large.safetensors"]
    reader, writer = os.pipe()
    os.close(reader)  # nobody is there to be told
    running = subprocess.Popen(
        [front.find_own_command(), "convert", "--quantize", "nvfp4", str(path), "-o", str(tmp_path / "out")],
        stdout=subprocess.DEVNULL, stderr=writer, env={**os.environ, "LIBSAFETENSORS_PROGRESS": "lines"})
    os.close(writer)
    assert running.wait() != 0
    assert [one.name for one in tmp_path.iterdir()] == ["large.safetensors"]


def test_note(model, tmp_path):
    assert st.note(model) == (_written.Noted(str(model)),)
    done = st.note(model, {"rating": 4, "tags": ["a", "b"], "favourite": True, "note": "less, at 1"})
    assert done[0].changed and done[0].output == str(model.with_name("model.own.json"))
    assert st.note(model)[0].note["tags"] == ["a", "b"]
    st.note(model, {"tags+": ["c"], "rating": None, "favourite": False})
    note = st.note(model)[0].note
    assert note["tags"] == ["a", "b", "c"] and "rating" not in note and not note.get("favourite")
    assert [one.path for one in st.note(tmp_path, where="file.tensors=24")] == [str(model)]
    for wrong in ({"colour": "red"}, {"tags": ["a,b"]}, {"rating": 9}):
        with pytest.raises(ValueError):
            st.note(model, wrong)
    with pytest.raises(FileNotFoundError):
        st.note(tmp_path / "nope")
    assert st.note(model, rm=True)[0].changed
    assert st.note(model)[0].note is None


def test_mv_and_trash(model, tmp_path, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    st.note(model, {"rating": 1})
    planned = st.mv(model, tmp_path / "new.safetensors", dry_run=True)
    done = st.mv(model, tmp_path / "new.safetensors")
    assert dataclasses.replace(planned[0], dry_run=False) == done[0]
    assert len(done[0].files) == 2 and not model.exists()
    assert (tmp_path / "new.own.json").exists()
    with pytest.raises(TypeError):
        st.mv(model)
    assert len(st.trash(tmp_path / "new.safetensors", dry_run=True)[0].files) == 2
    st.trash(tmp_path / "new.safetensors")
    assert not (tmp_path / "new.safetensors").exists()


def test_mv_is_taken_back(model, tmp_path, monkeypatch):
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    st.mv(model, tmp_path / "new.safetensors")
    told = st.mv(undo=True, dry_run=True)
    assert told[0].dry_run and not model.exists()
    done = st.mv(undo=True)
    assert model.exists() and Path(done[0].output) == model and done[0].files
    with pytest.raises(FileNotFoundError, match="taken? back"):
        st.mv(undo=True)
    for wrong in ({"models": model}, {"target": tmp_path}, {"to": "{name}"}):
        with pytest.raises(TypeError, match="expected undo alone"):
            st.mv(undo=True, **wrong)


def test_notes_are_adopted(model, tmp_path):
    st.note(model, {"rating": 4})
    lost, renamed = model.with_name("model.own.json"), tmp_path / "other.safetensors"
    model.rename(renamed)
    told = st.note(model.parent, adopt=True, dry_run=True)
    assert told[0].dry_run and lost.exists()
    done, = st.note(model.parent, adopt=True)
    assert (done.path, done.from_, done.changed) == (str(renamed), str(lost), True)
    assert st.note(renamed)[0].note["rating"] == 4 and not lost.exists()
    assert st.note(model.parent, adopt=True) == ()


def test_scrub(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"x": np.ones(2, "f4")}, path, {"ss_session_id": "123", "ss_training_comment": "mine",
                                              "ss_dataset_dirs": '{"10_me": {"n_repeats": 10}}'})
    told = json.loads(command("meta", "scrub", "--json", "--dry-run", path).stdout)["results"][0]
    before = path.read_bytes()
    planned, = st.scrub(path, dry_run=True)
    assert planned.dry_run and planned.sha256 is None and path.read_bytes() == before
    for name in ("removed", "rewritten", "kept", "beside"):
        assert list(getattr(planned, name)) == told[name]
    kept, = st.scrub(path, tmp_path / "b.safetensors", keep="ss_session*")
    assert "ss_session_id" in st.open(tmp_path / "b.safetensors").metadata() and not kept.removed
    with pytest.raises(FileExistsError) as error:
        st.scrub(path, tmp_path / "b.safetensors")
    assert error.value.hint == "overwrite=True replaces it"
    st.scrub(path, tmp_path / "b.safetensors", overwrite=True, safe=True, link="follow", sync=False)
    assert len(st.scrub([path, tmp_path / "b.safetensors"], tmp_path / "c", keep_mtime=True)) == 2
    assert (tmp_path / "c" / "a.safetensors").stat().st_mtime_ns == path.stat().st_mtime_ns
    done, = st.scrub(path, in_place_unsafe=True, level="strict")
    assert done.removed == ("ss_session_id",) and done.kept == ("ss_training_comment",)
    assert done.sha256 == st.hash(path)["computed"]["sha256"]
    assert "10_me" not in st.open(path).metadata()["ss_dataset_dirs"]
    assert not any(one.changed for one in st.scrub(tmp_path / "c", recursive=True))
    for wrong in (tmp_path / "nope", "list"):
        with pytest.raises(FileNotFoundError):
            st.scrub(wrong)
    before = path.read_bytes()
    for wrong in ([5], [None], ["a", 1.5], 5, {"a": 1}):
        with pytest.raises(TypeError):
            st.scrub(path, keep=wrong)
    with pytest.raises(TypeError, match="keep: expected words, found int"):
        st.scrub(path, keep=[5])
    assert path.read_bytes() == before
    st.scrub(path, keep=("a", b"b"), dry_run=True)


def test_clean(tmp_path):
    left = tmp_path / ".a.safetensors.sft-abc123"
    left.write_bytes(b"x")
    os.utime(left, (1, 1))
    (tmp_path / "b.txt").write_text("mine")
    assert st.clean(tmp_path, dry_run=True) == (str(left),) and left.exists()
    assert st.clean(tmp_path) == (str(left),)
    assert [one.name for one in tmp_path.iterdir()] == ["b.txt"]
    assert st.clean(tmp_path) == ()
    with pytest.raises(FileNotFoundError):
        st.clean(tmp_path / "nope")


def test_thumbnail(model, tmp_path):
    done = st.thumbnail(model, tmp_path / "m.png", size=128)
    assert (done.width, done.picture) == (128, None)
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(FileExistsError):
        st.thumbnail(model, tmp_path / "m.png")
    assert st.thumbnail(model, tmp_path / "m.png", overwrite=True).output == str(tmp_path / "m.png")
    with pytest.raises(ValueError):
        st.thumbnail(model, tmp_path / "n.png", size=5)
    with pytest.raises(SafetensorError):
        (tmp_path / "bad.safetensors").write_bytes(b"x" * 20)
        st.thumbnail(tmp_path / "bad.safetensors", tmp_path / "n.png")


def test_every_option_is_one_of_the_command(denoiser, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    (tmp_path / "copy.safetensors").write_bytes(denoiser.read_bytes())
    out = tmp_path / "out.safetensors"
    assert len(st.find(tmp_path, "copy", where="file.tensors=3", cache=tmp_path / "c1", threads=1,
                       recursive=True, level="strict").models) == 1
    assert st.find(tmp_path, fits=denoiser, all=True).models
    assert len(st.infos([tmp_path], deep=True, recursive=True, level="compat")) == 2
    assert st.dup(tmp_path, keep="oldest", remove=True, weights=True, delete=True,
                  cache=tmp_path / "c2", threads=1).groups[0].dry_run
    assert st.dup(tmp_path, reflink=True).groups
    for kind in ("int8", "int8-convrot", "mxfp8", "nvfp4"):
        done = st.quantize(denoiser, out, kind, only="blocks.*", spare=["blocks.1.*"],
                           overwrite=True, sync=False)
        assert len(done.quantised) == 2 and 0 < done.error < 0.2
    out.unlink()
    for layout, scale in (("modelopt", None), ("compressed-tensors", "row")):
        done = st.quantize(denoiser, out, "fp8", layout=layout, scale=scale, lossy=True,
                           dry_run=True)
        assert done.layout == layout and done.quantization_config and not out.exists()
    st.note(denoiser, {"note": "x=y, z", "words": ["a b"], "base": "SDXL 1.0", "weight": 0.5,
                       "name": "N"}, for_="a1111", force=True)
    assert (tmp_path / "denoiser.json").exists()
    assert len(st.note(tmp_path, where="rating=", recursive=True)) == 2
    assert st.mv(denoiser, tmp_path / "sub", copy=True, dry_run=True, number=True)[0].changed
    moved = st.mv(tmp_path, to="{kind}/{name|stem}", unknown="u", recursive=True, dry_run=True,
                  where="file.tensors=3", sync=False)
    assert len(moved) == 2 and denoiser.exists()
    with pytest.raises(ValueError, match="expected yes="):
        st.trash(tmp_path, recursive=True)
    assert len(st.trash(tmp_path, recursive=True, yes=True, dry_run=True)) == 2
    assert st.repair(denoiser, in_place=True, copy=True, overwrite=True, legacy=True,
                     sync=False).files == ()


def test_recover_by_force_says_so(model):
    assert st.recover(model, force=True, sync=False) == "clean"


WORKER = """if True:
    import multiprocessing, sys
    import libsafetensors as st

    def work(number):
        done = st.split(sys.argv[1], "%s-%d" % (sys.argv[2], number), count=2, sync=False)
        return done.tensors, len(st.find(sys.argv[1], where="file.tensors=24").models)

    if __name__ == "__main__":
        held = st.open(sys.argv[1])
        with multiprocessing.get_context(sys.argv[3]).Pool(2) as pool:
            print(pool.map(work, range(4)))
"""


@pytest.mark.skipif(os.name == "nt", reason="fork")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(model, tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(WORKER)
    done = subprocess.run([sys.executable, program, model, tmp_path / "o", method], text=True,
                          capture_output=True, check=True)
    assert done.stdout == "[(24, 1), (24, 1), (24, 1), (24, 1)]\n"
