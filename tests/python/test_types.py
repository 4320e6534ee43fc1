"""Types of arguments and results: what they name is what the functions take and return."""
import json
import pathlib
import re

import pytest

import libsafetensors as st
from libsafetensors import _results, dataset
from libsafetensors.dataset import _types as dataset_types

PACKAGE = pathlib.Path(st.__file__).parent
COMMAND_ONLY = {"quantised", "stats", "verified", "import"}  # of --stats, --verify


@pytest.fixture
def path(tmp_path):
    import numpy as np
    from libsafetensors.numpy import save_file
    save_file({"x": np.zeros((2, 3), np.float32)}, tmp_path / "m.safetensors", {"a": "b"})
    return tmp_path / "m.safetensors"


def keys_of(kind):
    return kind.__required_keys__ | kind.__optional_keys__


# ── Results ──

def definitions(root, name):
    return json.loads((root / ("docs/schema/%s.json" % name)).read_text())["$defs"]


@pytest.mark.parametrize("name, kind", [
    ("ls", "LsResult"), ("info", "InfoResult"), ("check", "CheckResult"), ("hash", "HashResult"),
    ("diff", "DiffResult"), ("catalog", "CatalogResult")])
def test_results_are_those_of_the_schema(root, name, kind):
    found = definitions(root, name)
    stated = set(found["good"]["properties"])
    told = keys_of(getattr(_results, kind))
    extra = set(found["failed"]["properties"]) | set(found.get("dataset_result", {}).get(
        "properties", ()))
    ours = COMMAND_ONLY if name == "info" else COMMAND_ONLY | {"remote"}
    if name == "info":
        extra |= {"models"}  # of a folder of several
    assert stated - told <= ours and told - stated <= extra


def test_the_types_of_members_are_made_of_the_schema(root):
    import runpy
    tool = runpy.run_path(str(root / "tools/result_types.py"))
    assert (root / tool["PAGE"]).read_text() == tool["page"](), "run tools/result_types.py --write"


def test_no_result_is_of_any_type():
    for name in ("_results.py", "_described.pyi"):
        assert not re.search(r"\bAny\b", (PACKAGE / name).read_text()), name
    assert not re.search(r"^    \w+: .*\bAny\b", (PACKAGE / "_written.py").read_text(), re.MULTILINE)
    assert not re.search(r"-> .*\bAny\b", (PACKAGE / "_collection.py").read_text().partition(
        "def find(")[2])


def test_a_note_is_that_of_the_schema(root):
    stated = definitions(root, "note")["shown"]["properties"]["note"]
    assert keys_of(_results.NoteFacts) == set(stated["properties"])


def test_results_have_no_other_keys(path):
    for result, kind in ((st.ls(path), _results.LsResult), (st.info(path), _results.InfoResult),
                         (st.check(path), _results.CheckResult),
                         (st.hash(path), _results.HashResult),
                         (st.diff(path, path), _results.DiffResult),
                         (st.fits(path, path), _results.FitsResult),
                         (st.convert(path, path.parent / "out", "F16"), _results.ConvertResult),
                         (st.edit_metadata(path, {"a": "b"}), _results.EditResult)):
        assert set(result) <= keys_of(kind), kind
        assert kind.__required_keys__ <= set(result), kind


def test_results_of_adapters_and_layouts(tmp_path):
    """All keys are there, in members that are lists of others, too."""
    import numpy as np
    from libsafetensors import lora
    from libsafetensors.numpy import save_file

    def save(name, **tensors):
        save_file({key.replace("__", "."): np.full(shape, fill, "f4")
                   for key, (fill, *shape) in tensors.items()}, tmp_path / name)
        return tmp_path / name

    layer = "double_blocks.0.img_mlp.0.weight"
    key = "lora_unet_double_blocks_0_img_mlp_0"
    base, tuned = save("base", **{layer: (1, 4, 3)}), save("tuned", **{layer: (2, 4, 3)})
    one = save("one", **{key + ".lora_up.weight": (1, 4, 2), key + ".lora_down.weight": (1, 2, 3)})
    whole = save("whole", **{key + ".diff": (1, 4, 3)})
    z = save("z", layers__0__attention__qkv__weight=(1, 6, 2), x_embedder__weight=(1, 2, 2),
             noise_refiner__0__attention__qkv__weight=(1, 6, 2),
             layers__0__adaLN_modulation__0__weight=(1, 2, 2))
    out = tmp_path / "out"
    for result, kind, inner in (
            (lora.info(one), _results.LoraInfo, {"modules": _results.LoraModule}),
            (lora.merge(base, one, out), _results.LoraMerged, {"adapters": _results.LoraAdapter}),
            *((told, _results.LoraFactors, {"modules": _results.LoraFactor}) for told in (
                lora.resize(one, out, rank=1, dry_run=True), lora.stack([one, one], out, dry_run=True),
                lora.extract(tuned, base, out, rank=1, dry_run=True),
                lora.simplify(whole, out, rank=1, dry_run=True))),
            (lora.convert(one, tmp_path / "c", "comfy", architecture="flux.1"),
             _results.LoraConverted, {}),
            (st.layout(z, tmp_path / "folder", to="diffusers"), _results.LayoutResult,
             {"components": _results.LayoutComponent})):
        assert set(result) == keys_of(kind), kind
        for member, each in inner.items():
            assert result[member], member
            for item in result[member]:
                assert each.__required_keys__ <= set(item) <= keys_of(each), each


@pytest.mark.parametrize("name, kind", [
    ("info", "DatasetInfo"), ("ls", "DatasetTensors"), ("verify", "VerifyResult"),
    ("versions", "VersionsResult"), ("gc", "GcResult"), ("compact", "CompactResult")])
def test_results_of_datasets_are_those_of_the_schema(root, name, kind):
    stated, told = definitions(root, "dataset")[name], getattr(dataset_types, kind)
    assert keys_of(told) == set(stated["properties"])
    assert told.__required_keys__ == set(stated["required"])


@pytest.mark.parametrize("name, kind", [
    ("column", "ColumnFacts"), ("tensor", "_Tensor"), ("finding", "_Finding"),
    ("version", "VersionFacts"), ("garbage", "_Garbage"), ("error", "_ShardError")])
def test_parts_of_results_of_datasets(root, name, kind):
    stated, told = definitions(root, "dataset")[name], getattr(dataset_types, kind)
    assert keys_of(told) == set(stated["properties"])
    assert told.__required_keys__ == set(stated["required"])


def test_the_manifest_is_that_of_the_schema(root):
    stated = json.loads((root / "docs/dataset_manifest.schema.json").read_text())
    assert keys_of(dataset_types.Manifest) == set(stated["properties"])
    assert keys_of(dataset_types._ManifestShard) == set(
        stated["$defs"]["shard"]["properties"])


def test_facts_of_shards(tmp_path):
    pa = pytest.importorskip("pyarrow")
    dataset.write(pa.table({"x": [1.0, 2.0]}), tmp_path / "d", batch_size=2)
    for one in (dataset.open(tmp_path / "d"), dataset.open(tmp_path / "d", use_manifest=False)):
        assert [set(facts) for facts in one.shards] == [keys_of(dataset_types.ShardFacts)]
        assert one.shards[0]["samples"] == 2


# ── Arguments ──

def test_options_are_named():
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text()
        assert not re.search(r"\*\*\w+: Any", text), file.name
    for name in ("_official", "_tools", "numpy", "torch", "flax", "tensorflow", "mlx", "paddle",
                 "dataset/_read", "dataset/_write", "ray", "daft", "spark/_write"):
        text = (PACKAGE / (name + ".py")).read_text()
        assert not re.search(r"\b(backend|framework|mode|level|adopt): str\b", text), name


def test_options_of_a_write_are_those_of_the_library():
    ours = dataset_types.WriteOptions.__annotations__
    assert {name for name in ours if not name.startswith("storage.")} == set(dataset.OPTIONS)


def test_options_for_reading_are_those_of_spark():
    text = (PACKAGE / "spark/_schema.py").read_text()
    stated, = re.findall(r"^READ_OPTIONS = (\([^)]*\))", text, re.MULTILINE)
    ours = {name for name in dataset_types.ReadOptions.__annotations__
            if not name.startswith("storage.")}
    assert ours | {"columns"} == set(re.findall(r'"(\w+)"', stated))  # columns: a parameter


def test_options_of_storage_are_those_of_pyarrow():
    fs = pytest.importorskip("pyarrow.fs")
    known = {"account_name", "host"}  # those without a default
    for kind in ("S3FileSystem", "GcsFileSystem", "AzureFileSystem", "HadoopFileSystem"):
        head = getattr(fs, kind).__doc__.partition("\n")[0]
        known |= set(re.findall(r"(\w+)(?:: \w+ )?=", head)) - {"max_attempts"}
    ours = {name[len("storage."):] for name in dataset_types.StorageOptions.__annotations__}
    assert ours == known


def test_options_of_a_loader_are_those_of_torch():
    import inspect
    torch = pytest.importorskip("torch")
    theirs = set(inspect.signature(torch.utils.data.DataLoader).parameters)
    ours = keys_of(dataset_types.LoaderOptions)
    assert theirs - ours == {"dataset", "batch_size", "shuffle", "sampler", "batch_sampler",
                             "drop_last"}
    assert ours <= theirs


def test_a_loader_forms_no_batches(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("torch")
    dataset.write(pa.table({"x": [1.0, 2.0]}), tmp_path / "d", batch_size=2)
    batches = dataset.TorchBatches(tmp_path / "d", 2)
    with pytest.raises(TypeError, match="batch_size"):
        batches.loader(batch_size=3)
    assert [list(batch["x"].shape) for batch in batches.loader(batch_size=None)] == [[2]]
