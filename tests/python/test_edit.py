"""edit and recover: metadata and names changed in place."""
import json
import os
import shlex
import stat
import subprocess

import pytest

import libsafetensors
from libsafetensors import _core
from written import grows, parse, tensor_bytes

SPECS = [("a", "U8", [4], b"abcd", None), ("b", "U8", [2], b"xy", None)]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    _core.save_file(path, SPECS, {"one": "1", "two": "2"}, spare=256)
    return path


def has_mode(path, mode):
    """Windows has no such bits to keep."""
    return os.name == "nt" or stat.S_IMODE(path.stat().st_mode) == mode


def metadata(path):
    return parse(path.read_bytes())[1]


def data_of(path):
    return parse(path.read_bytes())[2]


# ── Changing ──

def test_set_and_remove(model):
    size, inode = model.stat().st_size, model.stat().st_ino
    report = _core.edit(model, set={"two": "zwei", "three": "3"}, remove=["one", "none"])
    assert metadata(model) == {"two": "zwei", "three": "3"}
    assert sorted(report) == ["file_after", "header_after", "header_before", "method", "spare"]
    assert report["method"] == "in place" and report["file_after"] == size
    assert report["header_before"] == report["header_after"] == size - 8 - 6
    assert model.stat().st_ino == inode and data_of(model) == b"abcdxy"


def test_nothing_to_change(model):
    before = model.read_bytes(), model.stat().st_mtime_ns
    assert _core.edit(model)["method"] == "none"
    assert _core.edit(model, set={"one": "1"}, remove=["none"])["method"] == "none"
    assert (model.read_bytes(), model.stat().st_mtime_ns) == before


def test_set_goes_before_remove(model):
    _core.edit(model, set={"one": "new"}, remove=("one",))
    assert metadata(model)["one"] == "new"


def test_rename(model):
    _core.edit(model, rename={"a": "b", "b": "a"})
    assert tensor_bytes(model.read_bytes(), "b") == b"abcd"
    with pytest.raises(_core.SafetensorError) as caught:
        _core.edit(model, rename={"c": "d"})
    assert (caught.value.code, caught.value.tensor) == ("tensor_not_found", "c")
    with pytest.raises(_core.SafetensorError) as caught:
        _core.edit(model, rename={"a": "b"})
    assert caught.value.code == "tensor_duplicate"
    with pytest.raises(Exception) as caught:
        _core.edit(model, rename={"a": "__metadata__"})
    assert caught.value.code == "name_reserved"


DIGESTS = {"sshs_model_hash": "1" * 64, "sshs_legacy_hash": "2" * 8,
           "modelspec.hash_sha256": "0x" + "3" * 64}


@pytest.mark.parametrize("change, gone", [
    ({"rename": {"a": "c"}}, {"sshs_legacy_hash"}),
    ({"rename": {"a": "a"}}, set()),
    ({"set": {"ss_epoch": "2"}}, {"sshs_legacy_hash"}),
    ({"set": {"ss_epoch": "1"}}, set()),
    ({"set": {"title": "x"}}, set()),
    ({"remove": ["ss_epoch"]}, {"sshs_legacy_hash"}),
    ({"remove": ["ss_none", "one"]}, set()),
    ({"set": {"ss_epoch": "2", "sshs_legacy_hash": "9" * 8}}, set()),
])
def test_digests_that_are_wrong_afterwards_go(model, tmp_path, change, gone):
    _core.edit(model, set=DIGESTS | {"ss_epoch": "1"})
    _core.edit(model, output=tmp_path / "copy", **change)
    assert set(DIGESTS) - set(metadata(tmp_path / "copy")) == gone
    _core.edit(model, **change)
    assert set(DIGESTS) - set(metadata(model)) == gone


def test_header_that_grows(model):
    report = _core.edit(model, set={"long": "x" * 5000})
    assert report["method"] in ("copy", "reflink", "insert")
    assert metadata(model)["long"] == "x" * 5000 and data_of(model) == b"abcdxy"
    assert report["file_after"] == model.stat().st_size and report["spare"] > 0


def test_safe_makes_a_new_file(model):
    os.chmod(model, 0o640)
    inode = model.stat().st_ino
    report = _core.edit(model, set={"one": "x"}, safe=True)
    assert report["method"] in ("copy", "reflink") and model.stat().st_ino != inode
    assert has_mode(model, 0o640)


def test_keep_mtime(model):
    os.utime(model, ns=(10**18, 10**18))
    _core.edit(model, set={"one": "x"}, keep_mtime=True)
    assert model.stat().st_mtime_ns == 10**18
    _core.edit(model, set={"one": "y"})
    assert model.stat().st_mtime_ns != 10**18


def test_dry_run(model):
    before = model.read_bytes()
    report = _core.edit(model, set={"one": "x"}, dry_run=True)
    assert report["method"] == "in place" and model.read_bytes() == before
    assert _core.edit(model, set={"one": "x" * 5000}, dry_run=True)["method"] != "in place"
    assert model.read_bytes() == before and os.listdir(model.parent) == [model.name]


# ── To another file ──

def test_output(model, tmp_path):
    out, before = tmp_path / "out", model.read_bytes()
    os.chmod(model, 0o600)
    os.utime(model, ns=(10**18, 10**18))
    report = _core.edit(model, set={"one": "x"}, output=out, keep_mtime=True)
    assert report["method"] in ("copy", "reflink")
    assert metadata(out)["one"] == "x" and model.read_bytes() == before
    assert has_mode(out, 0o600) and out.stat().st_mtime_ns == 10**18
    with pytest.raises(FileExistsError) as caught:
        _core.edit(model, set={"one": "y"}, output=out)
    assert str(out) in str(caught.value)
    _core.edit(model, set={"one": "y"}, output=out, force=True)
    assert metadata(out)["one"] == "y"
    os.chmod(model, 0o644)  # nor does what replaces a private file become open
    _core.edit(model, set={"one": "y"}, output=out, force=True)
    assert has_mode(out, 0o600)
    os.chmod(model, 0o600)
    os.chmod(out, 0o644)
    _core.edit(model, set={"one": "y"}, output=out, force=True)
    assert has_mode(out, 0o600)
    dry = tmp_path / "dry"
    _core.edit(model, set={"one": "y"}, output=dry, dry_run=True)
    assert not dry.exists()


# ── Links ──

def test_links(model, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(model)
    with pytest.raises(OSError) as caught:
        _core.edit(link, set={"one": "x"}, link="refuse")
    assert caught.value.code == "is_link"
    _core.edit(link, set={"one": "x"}, link="follow")
    assert link.is_symlink() and metadata(model)["one"] == "x"
    _core.edit(link, set={"one": "y"})
    assert not link.is_symlink() and metadata(link)["one"] == "y"
    assert metadata(model)["one"] == "x"


def test_hard_links(model, tmp_path):
    os.link(model, tmp_path / "second")
    with pytest.raises(OSError) as caught:
        _core.edit(model, set={"one": "x"})
    assert caught.value.code == "hard_links"
    _core.edit(model, set={"one": "x"}, force=True)
    assert metadata(model)["one"] == "x"


# ── An index ──

def test_metadata_of_an_index(tmp_path):
    path = tmp_path / "model.safetensors.index.json"
    text = json.dumps({"metadata": {"total_size": 0, "old": "x"},
                       "weight_map": {"a": "model.safetensors"}})
    path.write_text(text)
    assert _core.edit(path, set={"k": "v"}, remove=["old", "k", "none"], dry_run=True) == \
        {"method": "copy"}
    assert path.read_text() == text
    os.chmod(path, 0o640)
    os.utime(path, ns=(10**18, 10**18))
    assert _core.edit(path, set={"k": "v"}, remove=["old", "k"], keep_mtime=True) == \
        {"method": "copy"}
    assert json.loads(path.read_text())["metadata"] == {"total_size": 0, "k": "v"}
    assert path.stat().st_mtime_ns == 10**18 and has_mode(path, 0o640)
    assert libsafetensors.edit_metadata(tmp_path, remove=["none"]) == {"method": "none"}
    out = tmp_path / "out.json"
    _core.edit(path, set={"k": "w"}, output=out)
    assert json.loads(out.read_text())["metadata"]["k"] == "w"
    assert json.loads(path.read_text())["metadata"]["k"] == "v"
    with pytest.raises(FileExistsError):
        _core.edit(path, set={"k": "x"}, output=out)
    with pytest.raises(ValueError, match="found an index"):
        _core.edit(path, rename={"a": "b"})


# ── What is refused ──

def test_wrong_arguments(model, tmp_path):
    before = model.read_bytes()
    for words in ({"set": {"a": 1}}, {"set": ["a"]}, {"remove": "one"}, {"remove": [1]},
                  {"rename": {"a": None}}, {"output": 3}, {"progress": 3}):
        with pytest.raises(TypeError):
            _core.edit(model, **words)
    with pytest.raises(ValueError):
        _core.edit(model, link="keep")
    with pytest.raises(UnicodeEncodeError):
        _core.edit(model, set={"a": "\ud800"})
    with pytest.raises(FileNotFoundError):
        _core.edit(tmp_path / "none", set={"a": "b"})
    assert model.read_bytes() == before
    model.write_bytes(before[:-1])
    with pytest.raises(_core.SafetensorError) as caught:
        _core.edit(model, set={"a": "b"})
    assert caught.value.code == "data_truncated"


# ── Mending ──

def test_recover(model):
    assert _core.recover(model) == "clean"
    with pytest.raises(FileNotFoundError):
        _core.recover(model.parent / "none")
    with pytest.raises(TypeError):
        _core.recover(3)


def test_damaged_journal_is_left_alone(model):
    journal = model.parent / f".{model.name}.sft-journal"
    journal.write_bytes(b"nonsense")
    before = model.read_bytes()
    try:
        found = _core.recover(model)
    except Exception as error:
        assert error.code == "edit_interrupted"
    else:
        assert found in ("clean", "old")
    assert model.read_bytes() == before


# ── The command sees the same ──

def test_report_is_the_command_s(model, tmp_path):
    words = shlex.split(os.environ.get("SFT_COMMAND", ""))
    if not words:
        pytest.skip("SFT_COMMAND is not set")
    copy = tmp_path / "copy"
    copy.write_bytes(model.read_bytes())
    report = _core.edit(model, set={"one": "x"}, remove=["two"])
    subprocess.run(words + ["meta", "set", copy, "one", "x"], check=True, capture_output=True)
    out = subprocess.run(words + ["meta", "rm", "--json", copy, "two"], check=True,
                         capture_output=True)
    told = json.loads(out.stdout)["results"][0]
    assert copy.read_bytes() == model.read_bytes()
    assert told["method"] == report["method"]


def test_nothing_leaks(model, tmp_path):
    index = tmp_path / "x.safetensors.index.json"
    index.write_text('{"weight_map": {"a": "model.safetensors"}}')

    def work():
        _core.edit(model, set={"one": "x"}, sync=False)
        _core.edit(model, set={"one": "1"}, remove=["none"], sync=False)
        _core.edit(model, set={"one": "y"}, dry_run=True)
        _core.edit(model, rename={"a": "c"}, output=tmp_path / "out", force=True, sync=False)
        _core.recover(model)
        _core.edit(index, set={"a": "b"}, remove=["c"], sync=False)
        for words in ({"set": {"a": 1}}, {"rename": {"none": "x"}}, {"remove": [1]},
                      {"set": {"x": "\ud800"}}, {"output": tmp_path / "no" / "x"}):
            with pytest.raises(Exception):
                _core.edit(model, **words)
    assert grows(work, 150) < 1 << 20
