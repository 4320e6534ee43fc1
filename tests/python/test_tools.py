"""info, check, hash, diff, convert, cast: what the command says, and errors of Python."""
import hashlib
import io
import json
import os
import shlex
import stat
import struct
import subprocess
import sys

import numpy as np
import pytest

import libsafetensors
from libsafetensors import _core
from reading import pack
from written import grows, parse, spec_of, tensor_bytes


@pytest.fixture(scope="session")
def command():
    """Results of the command: command("info", path) -> list of objects."""
    words = shlex.split(os.environ.get("SFT_COMMAND", ""))
    if not words:
        pytest.skip("SFT_COMMAND is not set")

    def run(*args):
        out = subprocess.run(words + [args[0], "--json"] + [str(arg) for arg in args[1:]],
                             capture_output=True, check=False)
        return json.loads(out.stdout)["results"]
    return run


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    _core.save_file(path, [spec_of("w", np.arange(6, dtype=np.float32).reshape(2, 3)),
                           spec_of("n", np.arange(3))], {"modelspec.title": "A title"})
    return path


@pytest.fixture
def index(tmp_path):
    """A model of two shards."""
    folder = tmp_path / "sharded"
    folder.mkdir()
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    for name, file in names.items():
        _core.save_file(folder / file, [spec_of(name, np.arange(4, dtype=np.float32))])
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": names}))
    return path


def samples(shared):
    found = sorted((shared / "samples").rglob("*.safetensors"))
    return [path for path in found if path.stat().st_size < 64 << 20]


def unworded(result):
    """A result with its hints as whether there is one: each front end has words of its own."""
    if isinstance(result, dict):
        return {key: value is not None if key == "hint" else unworded(value)
                for key, value in result.items()}
    return [unworded(each) for each in result] if isinstance(result, list) else result


def same(text, result):
    return unworded(json.loads(text)) == unworded(result)


def info_json(source, **options):
    """The text of a description; of what lies here no server says anything."""
    text, claims = _core.info_json(source, **options)
    assert claims is None
    return text


# ── The same as the command ──

def test_info_is_the_command_s(command, shared):
    for path in samples(shared):
        want = command("info", "--full", path)
        assert len(want) == 1
        if want[0]["ok"]:
            assert json.loads(info_json(path)) == want[0]
            assert json.loads(info_json(str(path), deep=True, full=False)) == \
                command("info", "--deep", path)[0]
        else:
            with pytest.raises(_core.SafetensorError) as caught:
                info_json(path)
            assert caught.value.code == want[0]["error"]["code"]


def test_check_is_the_command_s(command, shared, index):
    for path in samples(shared) + [index]:
        for level in ("compat", "default", "strict"):
            text = _core.check_json(path, level)
            assert same(text, command("check", "--level", level, path)[0])
        assert same(_core.check_json(path, deep=True), command("check", "--deep", path)[0])


def test_check_of_bad_indexes_is_the_command_s(command, index):
    shard = index.parent / "model-00002-of-00002.safetensors"
    good = shard.read_bytes()
    for bad in (good[:-1], good + b"x", b"", b"<html>", good[:8] + b"[" + good[9:]):
        shard.write_bytes(bad)
        assert same(_core.check_json(index), command("check", index)[0])
    shard.unlink()
    assert same(_core.check_json(index), command("check", index)[0])
    for text in ("{", "[]", "{}", '{"weight_map":{"a":"../x"}}', '{"weight_map":{"a":3}}'):
        index.write_text(text)
        assert same(_core.check_json(index), command("check", index)[0])


def test_hash_is_the_command_s(command, shared, index):
    for path in samples(shared) + [index]:
        assert same(_core.hash_json(path, "all"), command("hash", "--algo", "all", path)[0])


def test_diff_is_the_command_s(command, model, tmp_path):
    other = tmp_path / "other.safetensors"
    _core.save_file(other, [spec_of("w", np.arange(6, dtype=np.float32) + 1e-3)], {"k": "v"})
    for options, words in (({}, ()), ({"atol": 1e-2}, ("--atol", "0.01")),
                           ({"header": True}, ("--header",)),
                           ({"metadata": False}, ("--no-metadata",)),
                           ({"atol": 0, "rtol": 0.5}, ("--atol", "0", "--rtol", "0.5"))):
        assert json.loads(_core.diff_json(model, other, **options)) == \
            command("diff", *words, model, other)[0]


def test_a_folder_is_the_model_in_it(index, model, tmp_path):
    assert info_json(index.parent) == info_json(index)
    assert _core.check_json(index.parent) == _core.check_json(index)
    assert _core.hash_json(index.parent, "content") == _core.hash_json(index, "content")
    assert info_json(tmp_path) == info_json(model)
    assert json.loads(_core.diff_json(index.parent, index))["same"]
    (tmp_path / "second.safetensors").write_bytes(model.read_bytes())
    with pytest.raises(OSError, match="0 indexes and 2 files"):
        info_json(tmp_path)


# ── info ──

def test_info_describes_the_model(model):
    info = json.loads(info_json(model))
    assert info["path"] == str(model) and info["file"]["tensors"] == 2
    assert info["model"]["name"]["value"] == "A title"


def test_info_by_records_of_one_s_own(tmp_path):
    model, text = tmp_path / "m.safetensors", tmp_path / "mine.txt"
    model.write_bytes(pack({"my.weight": ("F32", [1], bytes(4))}))
    text.write_text('model my-model "My model"\n    tensors diffusion_model 90\n        my.weight\n')
    (tmp_path / "no.md").write_text("model")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.txt")  # which would be waited for
    records = libsafetensors.Records(tmp_path)
    for given in (records, text, str(tmp_path), [str(text)], (text,)):
        told = libsafetensors.info(model, records=given)["model"]["architecture"]
        assert told["value"] == "my-model" and told["trust"] == 90
        assert told["source"] == "records:%s" % text
    assert libsafetensors.info(model, records=libsafetensors.Records())["model"][
        "architecture"] is None
    with pytest.raises(TypeError, match="expected str, bytes or os.PathLike"):
        libsafetensors.info(model, records=[5])
    with pytest.raises(TypeError, match="iterable"):
        libsafetensors.info(model, records=5)
    text.write_text("model a\n    tensors vae 1\n        a[\n")
    with pytest.raises(ValueError, match="line 3, column 9: expected a shape"):
        libsafetensors.info(model, records=text)
    with pytest.raises(FileNotFoundError):
        libsafetensors.Records(tmp_path / "nosuch")
    with pytest.raises(ValueError, match="4 MiB"):
        text.write_bytes(b"#" * (4 << 20) + b"\n")
        libsafetensors.Records(text)
    with pytest.raises(ValueError, match="__init__ was not called"):
        libsafetensors.info(model, records=libsafetensors.Records.__new__(libsafetensors.Records))


def test_fits_is_the_command_s(command, tmp_path):
    def lora(path, width):
        name = "lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k.lora_%s.weight"
        path.write_bytes(pack({name % "down": ("F16", [4, width], bytes(8 * width)),
                               name % "up": ("F16", [640, 4], bytes(5120))}))
        return path

    unet = "model.diffusion_model."
    model = tmp_path / "old.safetensors"
    model.write_bytes(pack({
        unet + "input_blocks.0.0.weight": ("F16", [320, 4, 3, 3], bytes(23040)),
        unet + "input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight":
            ("F16", [320, 768], bytes(491520))}))
    one, two = lora(tmp_path / "one.safetensors", 768), lora(tmp_path / "two.safetensors", 1024)
    three = tmp_path / "three.safetensors"
    name = "lora_unet_input_blocks_7_1_transformer_blocks_9_attn2_to_k.lora_%s.weight"
    three.write_bytes(pack({name % "down": ("F16", [4, 2048], bytes(16384)),
                            name % "up": ("F16", [1280, 4], bytes(10240))}))
    for adapter, fit in ((one, "yes"), (two, "unknown"), (three, "no")):
        want = command("find", "--all", "--fits", model, adapter)[0]
        got = libsafetensors.fits(model, adapter)
        assert got == {"fit": want["fit"], "reason": want["reason"]} and got["fit"] == fit
        assert libsafetensors.fits(adapter.read_bytes(), str(model)) == got
    assert libsafetensors.fits(one, two) == {"fit": "none", "reason": ""}
    with pytest.raises(OSError):
        libsafetensors.fits(one, tmp_path / "nosuch")
    with pytest.raises(TypeError):
        libsafetensors.fits(one)


def test_info_of_bytes_and_of_files(model):
    data = model.read_bytes()
    for source in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
        info = json.loads(info_json(source))
        assert info["path"] == "-" and info["file"]["tensors"] == 2
    with open(model, "rb") as file:
        assert json.loads(info_json(file))["path"] == str(model)


def test_info_cuts_long_metadata(tmp_path):
    path = tmp_path / "x"
    _core.save_file(path, [], {"long": "x" * 10000})
    assert len(info_json(path)) > 10000 > len(info_json(path, full=False))


def test_exceptions_of_a_source_are_raised(model):
    class Bad(io.BytesIO):
        def read(self, n=-1):
            raise KeyError("read")

        def readinto(self, b):
            raise KeyError("read")
    with pytest.raises(KeyError):
        info_json(Bad(model.read_bytes()))


def test_info_of_what_is_no_model(tmp_path):
    (tmp_path / "x").write_bytes(b"<!doctype html><html>" + bytes(100))
    with pytest.raises(_core.SafetensorError) as caught:
        info_json(tmp_path / "x")
    assert caught.value.code == "found_html"
    with pytest.raises(FileNotFoundError):
        info_json(tmp_path / "none")
    with pytest.raises(TypeError):
        info_json(3)


# ── check ──

def test_check_reports_instead_of_raising(model, tmp_path):
    assert json.loads(_core.check_json(model))["ok"]
    model.write_bytes(model.read_bytes()[:-1])
    result = json.loads(_core.check_json(model))
    assert not result["ok"] and result["error"]["code"] == "data_truncated"
    with pytest.raises(FileNotFoundError):
        _core.check_json(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        _core.check_json(tmp_path / "none.safetensors.index.json")
    with pytest.raises(ValueError, match="strict"):
        _core.check_json(model, "loose")


def test_check_looks_at_values(tmp_path):
    path = tmp_path / "x"
    _core.save_file(path, [spec_of("x", np.array([1, np.nan, np.inf], np.float32))])
    seen = []
    result = json.loads(_core.check_json(path, deep=True,
                                         progress=lambda *args: seen.append(args)))
    assert result["ok"] and result["deep"]["nan"] == result["deep"]["inf"] == 1
    assert seen[-1] == (12, 12)
    assert json.loads(_core.check_json(path))["deep"] is None


# ── hash ──

def test_hash_is_the_digest(model):
    result = json.loads(_core.hash_json(model))
    assert result["computed"] == {"sha256": hashlib.sha256(model.read_bytes()).hexdigest()}
    two = json.loads(_core.hash_json(model, "sha256,blake3", threads=2))["computed"]
    assert sorted(two) == ["blake3", "sha256"]
    assert json.loads(_core.hash_json(os.fsencode(model)))["path"] == str(model)


def test_hash_of_a_model_in_many_files(index, tmp_path):
    whole = tmp_path / "whole.safetensors"
    _core.save_file(whole, [spec_of(name, np.arange(4, dtype=np.float32)) for name in "ab"])
    assert json.loads(_core.hash_json(index, "content"))["computed"]["content"] == \
        json.loads(_core.hash_json(whole, "content"))["computed"]["content"]
    assert json.loads(_core.diff_json(index, whole))["same"]


def test_what_hash_refuses(model, tmp_path):
    with pytest.raises(ValueError, match="md5"):
        _core.hash_json(model, "md5")
    with pytest.raises(ValueError, match="threads"):
        _core.hash_json(model, threads=-1)
    with pytest.raises(FileNotFoundError):
        _core.hash_json(tmp_path / "none")


def test_progress_stops(tmp_path):
    path = tmp_path / "x"
    array = np.broadcast_to(np.zeros(1, np.uint8), (1 << 26,))
    _core.save_file(path, [("x", "U8", array.shape, array, array.strides)], sync=False)

    def progress(done, total):
        raise KeyError(done)
    for work in (lambda: _core.hash_json(path, "sha256", progress=progress),
                 lambda: _core.diff_json(path, path, progress=progress),
                 lambda: _core.convert(path, tmp_path / "y", "I64", sync=False,
                                       names=["x"], progress=progress)):
        with pytest.raises(KeyError):
            work()
    assert os.listdir(tmp_path) == ["x"]


# ── ls ──

def test_ls_is_the_command_s(command, shared, index):
    for path in samples(shared) + [index]:
        want = command("ls", path)[0]
        if want["ok"]:
            assert libsafetensors.ls(path) == want and want["complete"]
        else:
            with pytest.raises(_core.SafetensorError) as caught:
                libsafetensors.ls(path)
            assert caught.value.code == want["error"]["code"]


def test_ls_of_other_sources(model, index):
    for source in (model, index.parent, model.read_bytes(), io.BytesIO(model.read_bytes())):
        assert libsafetensors.ls(source)["complete"]
    with _core.open(model) as file:
        assert libsafetensors.ls(file) == libsafetensors.ls(model)


# ── diff ──

def test_diff_and_tolerance(model, tmp_path):
    other = tmp_path / "other"
    _core.save_file(other, [spec_of("w", np.arange(6, dtype=np.float32).reshape(2, 3) + 1e-3),
                            spec_of("n", np.arange(3))])
    assert not json.loads(_core.diff_json(model, other))["same"]
    assert json.loads(_core.diff_json(model, other, atol=0.01, metadata=False))["same"]
    assert not json.loads(_core.diff_json(model, other, atol=0.01))["same"]
    assert json.loads(_core.diff_json(model, other, header=True, metadata=False))["same"]
    for bad in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="rtol"):
            _core.diff_json(model, other, rtol=bad)
    with pytest.raises(TypeError):
        _core.diff_json(model, other, atol="1")
    with pytest.raises(FileNotFoundError):
        _core.diff_json(model, tmp_path / "none")


# ── convert ──

def test_convert(model, tmp_path):
    out = tmp_path / "half.safetensors"
    os.chmod(model, 0o600)
    counts = _core.convert(model, out, "F16")
    assert counts == {"cast": 1, "same": 0, "other": 1, "scaled": 0, "scale": 0,
                      "dequantize": 0, "drop": 0, "kept": 0, "bytes_before": 48,
                      "bytes_after": 36, "lost": {"values": 5, "zero": 0, "infinite": 0,
                                                  "saturated": 0}}
    data = out.read_bytes()
    assert tensor_bytes(data, "w") == np.arange(6, dtype=np.float16).tobytes()
    assert parse(data)[1] == {"modelspec.title": "A title"}
    assert os.name == "nt" or stat.S_IMODE(out.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        _core.convert(model, out, "F16")
    assert _core.convert(model, out, "I32", names=iter(["n"]), overwrite=True)["cast"] == 1


def test_convert_counts_lost_values(tmp_path):
    path, out = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    _core.save_file(path, [spec_of("w", np.array([1e5, 0, 1, 1e-9, -2], np.float32))])
    lost = {"values": 4, "zero": 1, "infinite": 1, "saturated": 0}
    assert libsafetensors.convert(path, out, "F16")["lost"] == lost
    lost = {"values": 4, "zero": 1, "infinite": 0, "saturated": 1}
    assert libsafetensors.convert(path, out, "F16", saturate=True, overwrite=True)["lost"] == lost
    assert np.array_equal(libsafetensors.open(out)["w"].numpy(), [65504, 0, 1, 0, -2])


def test_convert_of_an_adapter(tmp_path):
    path, out = tmp_path / "lora.safetensors", tmp_path / "out.safetensors"
    alpha = "lora_unet_a.alpha"
    small = np.full((16, 4), 2.0 ** -11, np.float32)
    _core.save_file(path, [spec_of("lora_unet_a.lora_up.weight", small),
                           spec_of("lora_unet_a.lora_down.weight", np.ones((4, 16), np.float32)),
                           spec_of(alpha, np.float32(17))])
    with pytest.raises(TypeError, match="at least 16 bits for an adapter") as raised:
        libsafetensors.convert(path, out, "F8_E4M3")
    assert raised.value.code == "cast_dtype" and "lossy=True" in raised.value.hint
    assert not out.exists()
    counts = libsafetensors.convert(path, out, "F8_E4M3", lossy=True)
    assert (counts["cast"], counts["kept"]) == (2, 1)
    assert counts["lost"] == {"values": 128, "zero": 64, "infinite": 0, "saturated": 0}
    assert libsafetensors.open(out)[alpha].dtype == "F32"
    for lossy, dtype in ((False, "F32"), (True, "F16")):  # 17 in F16 is 17
        made = libsafetensors.convert(path, out, "F16", names=[alpha], lossy=lossy, overwrite=True)
        tensor = libsafetensors.open(out)[alpha]
        assert (tensor.dtype, tensor.item(), made["kept"]) == (dtype, 17, int(not lossy))


@pytest.mark.parametrize("declared", [{"format": "svdquant_w4a4"}, {"format": "int8_blockwise"},
                                      {"format": "int8_tensorwise", "spin": True}], ids=str)
@pytest.mark.parametrize("where", ["tensor", "header"])
def test_dequantize_refuses_what_is_declared_and_not_known(tmp_path, declared, where):
    path, out = tmp_path / "q.safetensors", tmp_path / "out.safetensors"
    tensors = [spec_of("a.weight", np.ones((4, 4), np.int8)),
               spec_of("a.weight_scale", np.ones(4, np.float32))]
    metadata = None
    if where == "tensor":
        text = json.dumps(declared).encode()
        tensors.append(spec_of("a.comfy_quant", np.frombuffer(text, np.uint8)))
    else:
        metadata = {"_quantization_metadata": json.dumps({"layers": {"a": declared}})}
    _core.save_file(path, tensors, metadata)
    named = "spin" if "spin" in declared else declared["format"]
    with pytest.raises(TypeError, match="'a.weight': .*found \"%s\"" % named) as raised:
        libsafetensors.convert(path, out, "F16", dequantize=True)
    assert raised.value.code == "cast_dtype" and raised.value.tensor == "a.weight"
    assert not out.exists()


def test_dequantize_rotates_back(tmp_path):
    path, out = tmp_path / "q.safetensors", tmp_path / "out.safetensors"
    text = json.dumps({"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": 4})
    _core.save_file(path, [spec_of("a.weight", np.array([[1, 1, 1, 1], [2, 0, 0, 0]], np.int8)),
                           spec_of("a.weight_scale", np.ones((2, 1), np.float32)),
                           spec_of("a.comfy_quant", np.frombuffer(text.encode(), np.uint8))], None)
    assert libsafetensors.convert(path, out, "F32", dequantize=True)["dequantize"] == 1
    with libsafetensors.open(out) as file:
        assert list(file) == ["a.weight"]
        assert file["a.weight"].numpy().tolist() == [[1, 1, 1, 1], [1, 1, 1, -1]]


def test_convert_leaves_out_digests_of_the_data(model, tmp_path):
    digests = {"sshs_model_hash": "1" * 64, "sshs_legacy_hash": "2" * 8,
               "modelspec.hash_sha256": "0x" + "3" * 64}
    half, same = tmp_path / "half.safetensors", tmp_path / "same.safetensors"
    _core.edit(model, set=digests)
    _core.convert(model, half, "F16")
    assert parse(half.read_bytes())[1] == {"modelspec.title": "A title"}
    _core.convert(model, same, "F32")
    assert parse(same.read_bytes())[1] == {"modelspec.title": "A title"} | digests


@pytest.mark.parametrize("dtype", ["BF16", "bf16", "bfloat16", np.float16, np.dtype("float16")])
def test_dtypes_to_convert_to(model, tmp_path, dtype):
    libsafetensors.convert(model, tmp_path / "out", dtype)
    assert _core.open(tmp_path / "out")["w"].dtype in ("BF16", "F16")
    with pytest.raises(ValueError, match='"float99"'):
        libsafetensors.convert(model, tmp_path / "no", "float99")


def test_what_convert_refuses(model, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="F99"):
        _core.convert(model, out, "F99")
    with pytest.raises(_core.SafetensorError) as caught:
        _core.convert(model, out, "F16", names=["w", "z"])
    assert (caught.value.code, caught.value.tensor) == ("tensor_not_found", "z")
    with pytest.raises(TypeError, match="names"):
        _core.convert(model, out, "F16", names="w")
    _core.save_file(model, [spec_of("w", np.array([1e9], np.float32))])
    with pytest.raises(Exception) as caught:
        _core.convert(model, out, "I8", names=["w"])
    assert (caught.value.code, caught.value.tensor) == ("cast_value", "w")
    assert str(model) in str(caught.value) and not out.exists()
    assert _core.convert(model, out, "I8", names=["w"], saturate=True)["cast"] == 1
    assert tensor_bytes(out.read_bytes(), "w") == b"\x7f"


def test_convert_of_many_files(index, tmp_path):
    folder = tmp_path / "bf16"
    assert _core.convert(index, folder, "BF16", threads=2)["cast"] == 2
    assert sorted(os.listdir(folder)) == sorted(os.listdir(index.parent))
    single = tmp_path / "one.safetensors"
    _core.convert(index.parent, single, "BF16")
    assert json.loads(_core.diff_json(folder, single))["same"]
    with pytest.raises(FileExistsError):
        _core.convert(index, folder, "BF16", overwrite=True)


# ── cast ──

def test_cast():
    ones = np.array([1, -2, 0.5, 256], np.float32)
    out = _core.cast(ones, "F32", "F16")
    assert type(out) is bytearray and out == ones.astype(np.float16).tobytes()
    assert _core.cast(ones, "F32", "BF16") == (ones.view(np.uint32) >> 16).astype("u2").tobytes()
    assert _core.cast(b"", "F32", "I8") == b""
    assert _core.cast(b"\x21", "F4", "F32") == struct.pack("<2f", 0.5, 1)
    assert _core.cast(struct.pack("<2f", 0.5, 1), "F32", "F4") == b"\x21"
    assert _core.cast(np.float32(300).tobytes(), "F32", "U8", True) == b"\xff"


def test_what_cast_refuses():
    with pytest.raises(Exception) as caught:
        _core.cast(np.float32(300).tobytes(), "F32", "U8")
    assert caught.value.code == "cast_value"
    for data, source, target in ((bytes(3), "F32", "F16"), (bytes(4), "F32", "F4"),
                                 (bytes(2), "F6_E2M3", "F32")):
        with pytest.raises(_core.SafetensorError) as caught:
            _core.cast(data, source, target)
        assert caught.value.code == "size_partial_byte"
    with pytest.raises(TypeError) as caught:
        _core.cast(bytes(8), "C64", "F32")
    assert caught.value.code == "cast_dtype"
    with pytest.raises(ValueError):
        _core.cast(bytes(8), "C65", "F32")
    with pytest.raises(TypeError):
        _core.cast([1], "F32", "F16")


# ── Memory ──

def test_nothing_leaks(model, index, tmp_path):
    def work():
        info_json(model)
        info_json(model.read_bytes())
        _core.check_json(index, deep=True)
        _core.hash_json(model, "all")
        _core.diff_json(model, index)
        _core.convert(model, tmp_path / "out", "F16", names=["w"], overwrite=True, sync=False)
        _core.cast(bytes(64), "F32", "F16")
        for bad in (lambda: info_json(tmp_path / "none"),
                    lambda: _core.hash_json(model, "md5"),
                    lambda: _core.check_json(tmp_path / "none", deep=True),
                    lambda: _core.diff_json(model, tmp_path / "none"),
                    lambda: _core.convert(model, tmp_path / "no" / "x", "F16"),
                    lambda: _core.convert(model, tmp_path / "x", "F16", names=["w", "z"]),
                    lambda: _core.cast(bytes(3), "F32", "F16")):
            with pytest.raises(Exception):
                bad()
    work()
    count = sys.getrefcount(_core.SafetensorError)
    assert grows(work, 150) < 1 << 20
    assert sys.getrefcount(_core.SafetensorError) <= count + 2
