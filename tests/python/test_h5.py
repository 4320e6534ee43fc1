"""libsafetensors.h5: files of Keras 2 and 3 and plain HDF5, and hostile ones."""
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

import libsafetensors
from libsafetensors import SafetensorError, h5

KERNEL = np.arange(12, dtype=np.float32).reshape(3, 4)
BIAS = np.array([1, 2, 3, 4], np.float16)


def made(path, fill):
    with h5py.File(path, "w") as file:
        fill(file)
    return path


def converted(path, **options):
    output = path.parent / "out.safetensors"
    report = h5.convert(path, output, overwrite=True, sync=False, **options)
    with libsafetensors.open(output) as file:
        return {name: tensor.numpy() for name, tensor in file.items()}, report


def same(found, expected):
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype and np.array_equal(found[name], array), name


def refused(path, code, words, **options):
    output = path.parent / "never.safetensors"
    before = sorted(os.listdir(path.parent))
    with pytest.raises(SafetensorError, match=words) as error:
        h5.convert(path, output, sync=False, **options)
    assert error.value.code == code
    assert sorted(os.listdir(path.parent)) == before


# ── Formats ──

def keras2(root, cut=False):
    """As tf.keras saves a model of two layers."""
    root.attrs["layer_names"] = np.array([b"dense", b"drop"], "S5")
    layer = root.create_group("dense")
    names = [b"dense/kernel:0", b"dense/bias:0"]
    if cut:
        for number, name in enumerate(names):
            layer.attrs["weight_names%d" % number] = np.array([name])
    else:
        layer.attrs["weight_names"] = np.array(names)
    layer["dense/kernel:0"], layer["dense/bias:0"] = KERNEL, BIAS
    root.create_group("drop").attrs["weight_names"] = np.array([], "S1")
    root.create_group("top_level_model_weights").attrs["weight_names"] = np.array([b"scale:0"])
    root["top_level_model_weights/scale:0"] = np.array([5], np.int64)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("group", ["/", "model_weights"])
def test_keras_2(tmp_path, group, cut):
    def fill(file):
        keras2(file.require_group(group), cut)
        file["optimizer_weights/step"] = np.int64(7)
    found, report = converted(made(tmp_path / "m.h5", fill))
    same(found, {"dense/kernel:0": KERNEL, "dense/bias:0": BIAS,
                 "scale:0": np.array([5], np.int64)})
    assert report["format"] == "keras2"
    assert [one["path"] for one in report["left_out"]] == ["optimizer_weights/step"]


def test_keras_2_with_a_name_in_two_layers(tmp_path):
    def fill(file):
        file.attrs["layer_names"] = np.array([b"a", b"b"])
        for layer in "ab":
            file.create_group(layer).attrs["weight_names"] = np.array([b"w:0"])
            file[layer]["w:0"] = KERNEL
    same(converted(made(tmp_path / "m.h5", fill))[0], {"a/w:0": KERNEL, "b/w:0": KERNEL})


def keras3(file):
    file["layers/dense/vars/0"], file["layers/dense/vars/1"] = KERNEL, BIAS
    half = file.create_dataset("layers/half/vars/0", data=np.array([0x3f80, 0xc000], "<u2"))
    half.attrs["dtype"] = "bfloat16"
    opaque = file.create_dataset("layers/half/vars/1", data=np.array([b"\x80\x3f"], "V2"))
    opaque.attrs["dtype"] = "bfloat16"
    file["optimizer/vars/0"] = np.int64(7)


@pytest.mark.parametrize("archive", [None, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_keras_3(tmp_path, archive):
    path = made(tmp_path / "m.weights.h5", keras3)
    if archive is not None:
        with zipfile.ZipFile(tmp_path / "m.keras", "w", archive) as zipped:
            zipped.writestr("metadata.json", "{}")
            zipped.writestr("config.json", "{}")
            zipped.write(path, "model.weights.h5")
        path = tmp_path / "m.keras"
    assert h5.reads(path)
    with h5.open(path) as file:
        assert file.report["format"] == "keras3"
        assert [one["path"] for one in file.report["left_out"]] == ["optimizer/vars/0"]
        facts = {name: (tensor.dtype, tensor.shape) for name, tensor in file.tensors.items()}
        assert facts == {"layers/dense/vars/0": ("F32", (3, 4)),
                         "layers/dense/vars/1": ("F16", (4,)),
                         "layers/half/vars/0": ("BF16", (2,)),
                         "layers/half/vars/1": ("BF16", (1,))}
        assert file.tensors["layers/half/vars/0"].tobytes() == b"\x80\x3f\x00\xc0"
        assert file.tensors["layers/half/vars/1"].tobytes() == b"\x80\x3f"
    with h5.open(path, all=True) as file:
        assert "optimizer/vars/0" in file.tensors


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "<u2", ">i2", "<u4", ">i4", "<i8", ">u8",
                                   "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8"])
def test_types_and_layouts(tmp_path, dtype):
    array = np.arange(210).reshape(5, 6, 7).astype(dtype)

    def fill(file):
        file["plain"], file["none"] = array, array[:0]
        file["scalar"] = array[0, 0, 1]
        file.create_dataset("packed", data=array, chunks=(2, 6, 4), compression="gzip",
                            shuffle=True, fletcher32=True)
        file.create_dataset("unwritten", (3,), dtype)
    little = np.dtype(dtype).newbyteorder("<")
    same(converted(made(tmp_path / "m.h5", fill))[0],
         {"plain": array.astype(little), "packed": array.astype(little),
          "none": array[:0].astype(little), "scalar": array[0, 0, 1].astype(little),
          "unwritten": np.zeros(3, little)})


def test_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(h5, "_BLOCK", 100)
    array = np.arange(3 * 40 * 5, dtype=">i4").reshape(3, 40, 5)

    def fill(file):
        file["plain"] = array
        file.create_dataset("packed", data=array, chunks=(2, 3, 5), compression="gzip")
    same(converted(made(tmp_path / "m.h5", fill))[0],
         {name: array.astype("<i4") for name in ("plain", "packed")})


# ── Hostile files ──

def external_link(file):
    file["x"] = h5py.ExternalLink("secret.h5", "/w")


def soft_link(file):
    file["w"] = KERNEL
    file["x"] = h5py.SoftLink("/w")


def external_storage(file):
    file.create_dataset("x", (4,), "u1", external=[("/etc/hostname", 0, 4)])


def virtual(file):
    layout = h5py.VirtualLayout((3, 4), "f4")
    layout[:] = h5py.VirtualSource("secret.h5", "w", (3, 4))
    file.create_virtual_dataset("x", layout)


def virtual_unlimited(file):
    layout = h5py.VirtualLayout((3, 4), "f4", maxshape=(None, 4))
    source = h5py.VirtualSource("secret.h5", "w", (3, 4), maxshape=(None, 4))
    layout[:h5py.h5s.UNLIMITED] = source[:h5py.h5s.UNLIMITED]
    file.create_virtual_dataset("x", layout)


def huge(file):
    file.create_dataset("x", (1 << 40,), "f4")


def huge_chunked(file):
    file.create_dataset("x", (1 << 40,), "f4", chunks=(1 << 16,), compression="gzip")


def reference(file):
    file["w"] = KERNEL
    file.create_dataset("x", data=np.array([file["w"].ref], h5py.ref_dtype))


def strings(file):
    file["x"] = "a text"


def compound(file):
    file["x"] = np.zeros(2, [("a", "f4"), ("b", "i4")])


def lzf(file):
    file.create_dataset("x", data=np.zeros(1000), compression="lzf")


def named_type(file):
    file["x"] = np.dtype("f4")


def odd_mark(file):
    file["x"] = np.zeros(2, "u2")
    file["x"].attrs["dtype"] = 16


def group_cycle(file):
    file["a/w"] = KERNEL
    file["a/x"] = file["a"]


HOSTILE = [(external_link, "foreign_kind", "external link"),
           (soft_link, "foreign_kind", "soft link"),
           (external_storage, "foreign_kind", "external storage"),
           (virtual, "foreign_kind", "virtual"),
           (virtual_unlimited, "foreign_kind", "virtual"),
           (huge, "foreign_size", "declares 4398046511104 bytes, of which 0"),
           (huge_chunked, "foreign_size", "declares 4398046511104 bytes"),
           (reference, "foreign_dtype", "references"), (strings, "foreign_dtype", "strings"),
           (compound, "foreign_dtype", "compound"), (lzf, "foreign_kind", "filter 32000"),
           (named_type, "foreign_kind", "a type"),
           (odd_mark, "foreign_syntax", "attribute dtype: expected strings"),
           (group_cycle, "foreign_ambiguous", "hard link")]


@pytest.mark.parametrize("fill, code, words", HOSTILE, ids=lambda one: getattr(
    one, "__name__", ""))
def test_refused_or_left_out(tmp_path, fill, code, words):
    made(tmp_path / "secret.h5", lambda file: file.create_dataset("w", data=KERNEL,
                                                                  maxshape=(None, 4)))
    path = made(tmp_path / "m.h5", fill)
    refused(path, code, "m.h5: (a/)?x: .*" + words)
    found, report = converted(path, skip=True)
    assert {name.rpartition("/")[2] for name in found} <= {"w"}
    assert [one["path"].rpartition("/")[2] for one in report["left_out"]] == ["x"]


def test_other_files_are_never_opened(tmp_path):
    for number, fill in enumerate([external_link, external_storage, virtual, virtual_unlimited]):
        folder = tmp_path / str(number)
        folder.mkdir()
        os.mkfifo(folder / "secret.h5")  # whoever opens it would wait
        path = made(folder / "m.h5", fill)
        program = "import sys; from libsafetensors import h5; h5.open(sys.argv[1], skip=True)"
        subprocess.run([sys.executable, "-c", program, path], check=True, timeout=60, cwd=folder)


def test_many_names_of_one_dataset_count_each(tmp_path):
    def fill(file):
        file["w"] = np.zeros(1 << 20, "u1")
        for number in range(20):
            file["w%d" % number] = file["w"]
    path = made(tmp_path / "m.h5", fill)
    refused(path, "foreign_size", "at most 20000000 bytes", max_output=20_000_000)
    assert len(converted(path)[0]) == 21


def test_cut_files(tmp_path):
    path = made(tmp_path / "m.h5", lambda file: file.create_dataset("w", data=np.ones(10000)))
    whole = path.read_bytes()
    for size in range(8, len(whole), 4001):
        path.write_bytes(whole[:size])
        with pytest.raises(SafetensorError) as error:
            h5.open(path)
        assert error.value.code.startswith("foreign_")


def test_archives_that_are_refused(tmp_path):
    weights = made(tmp_path / "w.h5", keras3).read_bytes()
    path = tmp_path / "m.keras"

    def archive(*names):
        with zipfile.ZipFile(path, "w") as zipped:
            for name in names:
                zipped.writestr(name, weights)
    archive("model.weights.h5", "MODEL.weights.h5")
    refused(path, "foreign_ambiguous", "name twice")
    archive("model.weights.npz")
    refused(path, "foreign_kind", "pickles")
    archive("other")
    refused(path, "foreign_kind", "expected model.weights.h5")
    assert not h5.reads(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("model.weights.h5", weights + bytes(30 << 20))
    refused(path, "foreign_size", "declares", max_output=1 << 20)


def test_no_plugin_is_loaded(tmp_path):
    path = made(tmp_path / "m.h5", lambda file: file.create_dataset("w", data=KERNEL))
    program = ("import sys, h5py; from libsafetensors import h5; h5.open(sys.argv[1]);"
               "assert h5py.h5pl.size() == 0")
    subprocess.run([sys.executable, "-c", program, path], check=True, timeout=60,
                   env={**os.environ, "HDF5_PLUGIN_PATH": str(tmp_path)})


# ── The command ──

def run(*arguments):
    return subprocess.run([sys.executable, "-m", "libsafetensors", *map(str, arguments)],
                          capture_output=True, text=True, timeout=60)


def test_command(tmp_path):
    path = made(tmp_path / "named-otherwise.bin", keras3)
    output = tmp_path / "out.safetensors"
    done = run("convert", path, "-o", output)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "%s: 4 tensors, 62 bytes" % output,
        "left out: optimizer/vars/0: state of the optimizer"]
    assert len(libsafetensors.open(output)) == 4
    again = run("convert", path, "-o", output)
    assert again.returncode == 1 and "exists" in again.stderr.lower()
    assert run("convert", path, "-o", output, "--force").returncode == 0
    made(path, external_storage)
    broken = run("convert", path, "-o", tmp_path / "no")
    assert broken.returncode == 1 and "external storage" in broken.stderr
