"""Options of the command as parameters: options.tsv holds all; those that no other test gives."""
import dataclasses
import inspect
import json
import pathlib
import re
import subprocess
import sys
import typing

import numpy as np
import pytest

import libsafetensors as st
import libsafetensors.lora as lora
from libsafetensors import SafetensorError, _written
from libsafetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    rng = np.random.default_rng(1)
    save_file({"layers.%d.%s" % (i, name): rng.standard_normal((32, 64)).astype(kind)
               for i in range(12) for name, kind in (("weight", "f4"), ("bias", "f2"))}, path,
              {"title": "one", "sshs_model_hash": "0" * 64, "modelspec.hash_sha256": "0x" + "1" * 64})
    return path


def test_every_option_has_its_parameter():
    """Each option of each verb has one row in options.tsv: functions with a parameter that says the
    same, which a test gives, or why there is none."""
    rows, untested = {}, set()
    for line in (ROOT / "tests/python/options.tsv").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            option, verbs, calls, remark = line.split("\t")
            assert bool(calls) != bool(remark) or remark.startswith("untested: "), line
            for verb in verbs.split(","):
                assert (option, verb) not in rows, line
                rows[option, verb] = calls.split()
                untested.update(calls.split() if remark else ())
    used = set()
    parts = re.split(r"^### safetensors (\S+)$", (ROOT / "docs" / "cli.md").read_text("utf-8"),
                     flags=re.MULTILINE)
    for verb, text in zip(parts[1::2], parts[2::2]):
        for cell in re.findall(r"^\| ((?:`-[^`]*` ?)+)\|", text, re.MULTILINE):
            option = re.search("--[a-z0-9-]+", cell)[0]
            row = (option, verb) if (option, verb) in rows else (option, "*")
            assert row in rows, "%s %s has no row" % (verb, option)
            used.add(row)
    assert used == set(rows)
    tests = "".join(path.read_text("utf-8") for path in
                    (ROOT / "tests/python").glob("test_*.py"))
    for name, parameter in {tuple(call[:-1].split("(")) for calls in rows.values() for call in calls
                            if call not in untested}:
        found = st
        for part in name.split("."):
            found = getattr(found, part)
        told = inspect.signature(found).parameters.values()
        options = next((typing.get_type_hints(one.annotation.__args__[0] if not isinstance(
            one.annotation, str) else getattr(sys.modules[found.__module__], re.search(
                r"\[(\w+)\]", one.annotation)[1])) for one in told
            if one.kind is one.VAR_KEYWORD), {})
        mine = next((one for one in told if one.name == parameter), None)
        assert mine or parameter in options, "%s has no %s" % (name, parameter)
        last = re.escape(name.rpartition(".")[2])
        if mine and mine.kind is not mine.KEYWORD_ONLY:
            assert re.search(r"\b%s\(" % last, tests), name
        else:
            assert re.search(r"(\b|\")%s(=|\": )" % parameter, tests), "%s of %s is not tested" % (
                parameter, name)


def test_save_as(model, tmp_path):
    facts = json.loads((ROOT / "docs/schema/info.json").read_text("utf-8"))["$defs"]["saved"]
    assert {one.name for one in dataclasses.fields(_written.Saved)} == {
        "path", *facts["properties"]} - {"as"}
    beside = tmp_path / "model.civitai.info"
    planned, = st.save_as(model, "civitai", min_trust=0, dry_run=True)
    assert planned.content and planned.dry_run and not beside.exists()
    done, = st.save_as(model, "civitai", min_trust=0)
    assert done.changed and done.output == str(beside) and "model" in done.keys
    assert json.loads(beside.read_text()).keys() >= planned.content.keys()
    held = beside.read_bytes()
    again, = st.save_as([tmp_path], "civitai", min_trust=0, recursive=True, where="kind=unknown")
    assert not again.changed and beside.read_bytes() == held
    beside.write_text("{}")
    assert st.save_as(model, "civitai", min_trust=0, force=True)[0].changed
    with pytest.raises(FileNotFoundError):
        st.save_as(tmp_path / "nope", "civitai")
    with pytest.raises(ValueError):
        st.save_as(model, "nobody")


def test_digests_of_infos(model, tmp_path):
    assert st.infos(model, hash="sha256", cache=tmp_path / "digests")
    assert (tmp_path / "digests").exists()
    told, = st.infos(model, hash=["sha256", "crc32"], verify=True, threads=1)
    assert told["hashes"]["computed"]["sha256"] == st.hash(model)["computed"]["sha256"]
    assert "crc32" in told["hashes"]["computed"]
    assert [one["recorded"] for one in told["hashes"]["mismatches"]]
    assert st.infos(model)[0]["hashes"]["computed"] == {}
    with pytest.raises(ValueError):
        st.infos(model, hash="nope")


def test_diff_of_some_and_of_values(model, tmp_path):
    other = tmp_path / "other.safetensors"
    save_file({**load_file(model), "layers.3.bias": np.zeros(3, "f2")}, other)
    assert not st.diff(model, other, metadata=False)["same"]
    assert st.diff(model, other, metadata=False, exclude=["layers.3.*"])["same"]
    told = st.diff(model, other, metadata=False, match="layers.[2-4].bias", atol=0.5)
    assert type(told).__name__ == "Diff" and told["summary"]["tensors"] == 3
    assert [one["name"] for one in told["changed"]] == ["layers.3.bias"]
    st.quantize(model, tmp_path / "q.safetensors", "fp8", only="layers.1.weight", from_quantised=True)
    found = st.diff(tmp_path / "q.safetensors", model, metadata=False, values=True, header=True)
    assert {one["name"] for one in found["changed"]} <= {
        "layers.%d.weight" % i for i in range(12)} and not found["added"]
    with pytest.raises(FileNotFoundError):
        st.diff(model, tmp_path / "nope", values=True)


def test_parts(model, tmp_path):
    save_file({"model.diffusion_model.out.0.weight": np.ones(3, "f2"), "first_stage_model.x": np.ones(2),
               "model_ema.decay": np.ones((), "f4")}, tmp_path / "sd.safetensors")
    told = st.parts(tmp_path / "sd.safetensors")
    assert told.path == str(tmp_path / "sd.safetensors") and told.architecture is None
    assert {(one.prefix, one.tensors, one.bytes) for one in told.parts} == {
        ("model.diffusion_model.", 1, 6), ("first_stage_model.", 1, 16), (None, 1, 4)}
    assert all(re.fullmatch("[0-9a-f]{64}", one.sha256) for one in told.parts if one.prefix)
    assert st.parts(tmp_path / "sd.safetensors", architecture="sd-1").architecture == "sd-1"
    with pytest.raises(FileNotFoundError):
        st.parts(tmp_path / "nope")
    with pytest.raises(ValueError, match="for architecture=, found"):
        st.parts(model, architecture="nope")


def test_dtypes_that_are_none_are_told_with_the_nearest(model, tmp_path):
    for call in (lambda: st.convert(model, tmp_path / "o", "bfloat17"),
                 lambda: st.merge_models([model, model], tmp_path / "o", dtype="bfloat17")):
        with pytest.raises(ValueError, match='did you mean "bfloat16"'):
            call()


def test_a_list_of_hashes(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other.safetensors"
    save_file({"x": np.ones(3)}, other)
    sums = tmp_path / "sums"
    sums.write_text("%s  model.safetensors\nAUTOV3 (other.safetensors) = %s\n" % (
        st.hash(model)["computed"]["sha256"], st.hash(other, "autov3")["computed"]["autov3"]))
    seen = []
    told = st.verify_hashes(sums, cache=tmp_path / "digests", threads=1, read=True,
                            progress=lambda done, total: seen.append(done))
    assert told.agrees and not told.failed and seen
    assert [(one.path, one.verified[0].algo) for one in told.files] == [
        ("model.safetensors", "sha256"), ("other.safetensors", "autov3")]
    save_file({"x": np.zeros(3)}, other)
    told = st.verify_hashes(sums)
    assert not told.agrees and [one.verified[0].agrees for one in told.files] == [True, False]
    sums.write_text("%064d  nope\nrubbish\n" % 0)
    told = st.verify_hashes(sums)
    assert not told.agrees and {one.path for one in told.failed} == {"nope", str(sums)}
    sums.write_text("%08x  model.safetensors\n" % 0)
    assert st.verify_hashes(sums, algo="crc32").files[0].verified[0].algo == "crc32"
    with pytest.raises(ValueError):
        st.verify_hashes(sums, algo="nope")
    with pytest.raises(FileNotFoundError):
        st.verify_hashes(tmp_path / "nope")


def test_digests_that_are_remembered(model, tmp_path):
    first = st.hash(model, ["sha256", "crc32"], cache=tmp_path / "digests", threads=1)
    again = st.hash(model, "sha256,crc32", cache=tmp_path / "digests")
    assert first["computed"] == again["computed"] == st.hash(model, "sha256,crc32")["computed"]
    assert again["remembered"] and not first["remembered"]
    with pytest.raises(FileNotFoundError):
        st.hash(tmp_path / "nope", cache=tmp_path / "digests")


def test_what_fails_beside_the_results_is_told(model, tmp_path):
    with pytest.warns(RuntimeWarning, match="digests"):
        told, = st.infos(model, hash="sha256", cache=tmp_path / "nope" / "digests")
    assert told["hashes"]["computed"]["sha256"]


def test_pictures_and_workflows_of_models(tmp_path):
    path = tmp_path / "m.safetensors"
    png = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    save_file({"x": np.ones(2)}, path, {"modelspec.thumbnail": png, "workflow": '{"nodes":[]}'})
    pictures, workflow = tmp_path / "pictures", tmp_path / "w.json"
    pictures.mkdir()
    told, = st.infos(path, export_preview=pictures, export_workflow=workflow)
    assert told["ok"] and [one.name for one in pictures.iterdir()] == ["m.png"]
    assert workflow.read_text() == '{"nodes":[]}'
    for options in ({"export_preview": pictures}, {"export_workflow": workflow}):
        with pytest.raises(FileExistsError, match="already exists") as error:
            st.infos(path, **options)
        assert error.value.code == "exists" and "force=True" in error.value.hint
        assert st.infos(path, force=True, **options)
    save_file({"x": np.ones(2)}, path)
    with pytest.raises(FileNotFoundError, match="workflow"):
        st.infos(path, export_workflow=tmp_path / "v.json")
    assert not (tmp_path / "v.json").exists()


def test_the_layout_of_2022(tmp_path):
    text = json.dumps({"x": {"dtype": "F16", "shape": [2], "offsets": [0, 4]}}).encode()
    text = text.replace(b'"F16"', b'"float16"')
    path = tmp_path / "old.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\0\x3c\0\x3c")
    assert not st.infos(path)[0]["ok"] and st.infos(path, legacy=True)[0]["ok"]
    assert st.find(path, "old").failed and not st.find(path, "old", legacy=True).failed
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(path.read_bytes())
    assert len(st.dup([path, copy], legacy=True).groups) == 1
    copy.unlink()
    assert st.parts(path, legacy=True).parts[0].tensors == 1
    with st.open(path, legacy=True) as file:
        st.select(file, tmp_path / "new.safetensors", keep="x", copy=True)
    assert load_file(tmp_path / "new.safetensors")["x"].tolist() == [1, 1]


def test_a_merge_again(model, tmp_path):
    other, out = tmp_path / "other.safetensors", tmp_path / "out.safetensors"
    save_file({name: value * 2 for name, value in load_file(model).items()}, other)
    done = st.merge_models([model, other], out, weights=[0.3, 0.7])
    again = tmp_path / "again.safetensors"
    assert st.merge_models([other, model], again, replay=out, dry_run=True) == done
    assert not again.exists()
    assert st.merge_models([other, model], again, replay=out, keep_mtime=True) == done
    assert again.read_bytes() == out.read_bytes()
    with pytest.raises(FileExistsError):
        st.merge_models([other, model], again, replay=out)
    with pytest.raises(ValueError):
        st.merge_models([other, model], again, replay=out, method="linear")
    with pytest.raises(st.SafetensorError):  # it was made by no merge
        st.merge_models([other, model], again, replay=model, overwrite=True)
    with pytest.raises((st.SafetensorError, FileNotFoundError, ValueError)):  # another model
        st.merge_models([out, model], again, replay=out, overwrite=True)


def test_integers_that_are_not_the_same(tmp_path):
    paths = []
    for number in range(2):
        paths.append(tmp_path / ("%d.safetensors" % number))
        save_file({"x": np.ones(2, "f4"), "ids": np.full(3, number)}, paths[-1])
    done = st.merge_models(paths, tmp_path / "out.safetensors")
    assert done["unlike"] == 1
    assert st.merge_models(paths, tmp_path / "again.safetensors",
                           replay=tmp_path / "out.safetensors") == done


def test_singular_values(tmp_path):
    path = tmp_path / "a.safetensors"
    up, down = np.eye(6, 2, dtype="f4") * [3, 4], np.eye(2, 5, dtype="f4")
    save_file({"lora_unet_x.lora_up.weight": up.astype("f4"), "lora_unet_x.lora_down.weight": down}, path)
    module, = lora.info(path, spectrum=True)["modules"]
    assert module["spectrum"] == pytest.approx([4, 3])
    assert module["stable_rank"] == pytest.approx(25 / 16)
    assert "spectrum" not in lora.info(path)["modules"][0]
    with pytest.raises(ValueError):
        lora.info(path, spectrum=True, config=b"{}")


def test_scaled_tensors_are_cast_if_told_so(tmp_path):
    path = tmp_path / "q.safetensors"
    save_file({"a.weight": np.ones((4, 4), "f2"), "a.weight_scale_inv": np.ones((1, 1), "f4"),
               "b": np.ones(3, "f2")}, path)
    st.convert(path, tmp_path / "some.safetensors", "F32")
    st.convert(path, tmp_path / "all.safetensors", "F16", overrule_scales=True)
    assert load_file(tmp_path / "some.safetensors")["b"].dtype == np.float32
    assert load_file(tmp_path / "all.safetensors")["a.weight_scale_inv"].dtype == np.float16


def test_ranks_of_convolutions(tmp_path):
    rng = np.random.default_rng(2)
    base = {"model.diffusion_model.input_blocks.1.0.in_layers.2.weight":
            rng.standard_normal((16, 8, 3, 3)).astype("f4")}
    name = "lora_unet_input_blocks_1_0_in_layers_2.lora_"
    save_file(base, tmp_path / "base.safetensors")
    save_file({key: value + rng.standard_normal(value.shape).astype("f4")
               for key, value in base.items()}, tmp_path / "tuned.safetensors")
    save_file({name + "up.weight": rng.standard_normal((16, 8, 1, 1)).astype("f4"),
               name + "down.weight": rng.standard_normal((8, 8, 3, 3)).astype("f4")},
              tmp_path / "a.safetensors")
    source, out = tmp_path / "a.safetensors", tmp_path / "out.safetensors"
    for make in (lambda: lora.resize(source, out, rank=6, conv_rank=3, overwrite=True),
                 lambda: lora.stack([source, source], out, rank=6, conv_rank=3, overwrite=True),
                 lambda: lora.extract(tmp_path / "tuned.safetensors", tmp_path / "base.safetensors",
                                      out, rank=6, conv_rank=3, min_diff=0.1, overwrite=True)):
        make()
        assert {one["rank"] for one in lora.info(out)["modules"]} == {3}
    with pytest.raises(st.SafetensorError):  # no layer differs by so much
        lora.extract(tmp_path / "tuned.safetensors", tmp_path / "base.safetensors", out, rank=6,
                     min_diff=1e6, overwrite=True)


def test_models_that_lack_a_tensor(model, tmp_path):
    tensors = load_file(model)
    tensors.pop("layers.3.bias")
    save_file(tensors, tmp_path / "less.safetensors")
    out = tmp_path / "out.safetensors"
    with pytest.raises(st.SafetensorError):
        st.merge_models([model, tmp_path / "less.safetensors"], out)
    st.merge_models([model, tmp_path / "less.safetensors"], out, ignore_missing=True)
    assert out.exists()


def test_records_of_the_user(tmp_path, monkeypatch):
    folder = tmp_path / "config/safetensors/records"
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text('model mine "Mine"\n    tensors diffusion_model 90\n        x.y\n')
    for variable in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / "config"))
    save_file({"x.y": np.ones(2, "f4")}, tmp_path / "a.safetensors")
    for known in (True, False):
        told, = st.infos(tmp_path / "a.safetensors", user_records=known)
        assert (told["model"]["architecture"] is not None) == known
    told, = st.infos(tmp_path / "a.safetensors", user_records=False,
                     records=(path for path in [folder / "mine.txt"]))  # walked once
    assert told["model"]["architecture"]["value"] == "mine"


def test_quantised_and_sparse_tensors_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.pt"
    torch.save({"a": {"b": torch.eye(3).to_sparse()}}, path)
    with pytest.raises((TypeError, ValueError, st.SafetensorError)):
        st.open_import(path)
    with st.open_import(path, sparse="dense", separator="/") as file:
        assert (file.numpy()["a/b"] == np.eye(3)).all()
    torch.save({"q": torch.quantize_per_tensor(torch.ones(3), 0.5, 1, torch.qint8)}, path)
    with st.open_import(path, quantised="values") as file:
        assert (file.numpy()["q"] == 1).all()
    with st.open_import(path, quantised="parts") as file:
        assert len(file.numpy()) > 1


# ── Leaks ──

LEAKS = """if True:
    import pathlib, resource, sys
    import numpy as np
    import libsafetensors as st
    from libsafetensors import lora
    from libsafetensors.numpy import save_file
    folder = pathlib.Path(sys.argv[1])
    path, other = folder / "a.safetensors", folder / "b.safetensors"
    save_file({"x": np.ones((4, 6), "f4"), "y": np.ones(3, "f2")}, path)
    save_file({"n.lora_up.weight": np.ones((4, 2), "f4"),
               "n.lora_down.weight": np.ones((2, 4), "f4")}, other)
    file, handle = st.open(path, mode="copy"), st.safe_open(path, "np")
    def wrong():
        try:
            st.rename(path, {"nope": "x"})
        except st.TensorNotFoundError:
            pass
    calls = {
        "split": lambda: st.split(path, folder / "o", count=2, dry_run=True),
        "merge": lambda: st.merge([path, other], folder / "o.safetensors", dry_run=True),
        "select": lambda: st.select(path, folder / "o.safetensors", keep="x", dry_run=True),
        "rename": lambda: st.rename(path, str.upper, dry_run=True),
        "wrong": wrong,
        "fits": lambda: st.fits(path, other),
        "info": lambda: st.info(other),
        "diff": lambda: st.diff(path, other),
        "lora.info": lambda: lora.info(other),
        "columns": lambda: file["x"][:, 1:3].numpy(),
        "get_slice": lambda: handle.get_slice("x")[1:, ::2],
        "rows": lambda: file["x"][[0, 2]].numpy(),
        "html": lambda: file._repr_html_(),
        "stats": lambda: file.stats(histogram=True)._repr_html_(),
        "put": lambda: st.put(path, {"new": np.ones(3)}, dry_run=True),
        "convert": lambda: st.convert(path, folder / "o.safetensors", "F16", dry_run=True),
    }
    call = calls[sys.argv[2]]
    for _ in range(1000):
        call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(10000):
        call()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the resource module is of POSIX")
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.long] if i % 4 else [])
    for i, name in enumerate(re.findall(r'^        "([\w.]+)": ', LEAKS, re.MULTILINE))])
@pytest.mark.few(1)
def test_ten_thousand_calls_leak_nothing(tmp_path, name):
    done = subprocess.run([sys.executable, "-c", LEAKS, str(tmp_path), name], capture_output=True,
                          text=True, check=True)
    assert int(done.stdout) < 1024  # KiB: less than a tenth of a byte for each call and object


def test_integers_of_numpy(tmp_path):
    """An option that counts takes whatever is a whole number, and nothing else."""
    pa = pytest.importorskip("pyarrow")
    one, dataset = np.int64(1), st.dataset
    save_file({"l.lora_A.weight": np.ones((2, 4), "f4"),
               "l.lora_B.weight": np.ones((4, 2), "f4")}, tmp_path / "a.safetensors")
    lora.resize(tmp_path / "a.safetensors", tmp_path / "b.safetensors", rank=one, conv_rank=one)
    with pytest.raises(TypeError):
        lora.resize(tmp_path / "a.safetensors", tmp_path / "c.safetensors", rank=1.0)
    save_file({"l.weight": np.ones((4, 4), "f4")}, tmp_path / "m.safetensors")
    lora.merge(tmp_path / "m.safetensors", tmp_path / "a.safetensors", tmp_path / "n.safetensors",
               stochastic=one)
    models = [tmp_path / "m.safetensors", tmp_path / "n.safetensors"]
    st.merge_models(models, tmp_path / "o.safetensors", seed=np.uint64(2**64 - 1))
    for seed in (1.0, "1"):
        with pytest.raises(TypeError):
            st.merge_models(models, tmp_path / "p.safetensors", seed=seed)
    with pytest.raises(SafetensorError, match="layouts are known"):
        st.layout(models[0], tmp_path / "layout", to="comfy", max_bytes=one)
    folder = tmp_path / "d"
    dataset.write(pa.table({"x": [1, 2, 3]}), folder, batch_size=one)
    dataset.compact(folder, target_bytes=np.int64(1 << 20), batch_size=np.int64(3))
    dataset.delete(folder, rows=one, version=np.int64(2))
    assert len(dataset.open(folder, version=one)) == 3 and len(dataset.open(folder)) == 2
    assert not dataset.gc(folder, grace=np.int64(9999), keep=one, older=np.int64(9999))["garbage"]
    pytest.importorskip("torch")
    mix = dataset.Mix([(folder, 1)], until=np.int64(2))
    for seed in (np.uint64(2**64 - 1), 1.5):
        def made():
            return dataset.TorchBatches(mix, one, seed=seed, rank=np.int64(0), ranks=one,
                                        shuffle="blocks", open_shards=one)
        if seed == 1.5:
            with pytest.raises(TypeError):
                made()
        else:
            assert len(list(made())) == 2 and json.dumps(made().state_dict())
