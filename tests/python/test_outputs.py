"""What all functions that write take: dry_run, keep_mtime, in_place_unsafe; inputs as outputs."""
import io
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import libsafetensors as st
import libsafetensors.lora as lora
from libsafetensors.numpy import load_file, save_file

OLD = 1_500_000_000_000_000_000
OLDER = OLD - 10 ** 12
HERE = pathlib.Path(__file__).parent
FLUX = "double_blocks.0.img_mlp.0.weight"


def make(folder):
    """Models, all of an old time."""
    rng = np.random.default_rng(3)
    key = "lora_unet_double_blocks_0_img_mlp_0."
    save_file({FLUX: np.ones((64, 64), "f4"), "y": np.ones(8, "f2")}, folder / "model.safetensors")
    save_file({FLUX: rng.standard_normal((64, 64)).astype("f4"), "y": np.ones(8, "f2")},
              folder / "tuned.safetensors")
    save_file({key + "lora_up.weight": rng.standard_normal((64, 4)).astype("f4"),
               key + "lora_down.weight": rng.standard_normal((4, 64)).astype("f4")},
              folder / "lora.safetensors")
    save_file({key + "diff": np.ones((64, 64), "f4")}, folder / "whole.safetensors")
    save_file({"layers.0.attention.qkv.weight": np.ones((6, 2), "f4"),
               "x_embedder.weight": np.ones((2, 2), "f4"),
               "noise_refiner.0.attention.qkv.weight": np.ones((6, 2), "f4"),
               "layers.0.adaLN_modulation.0.weight": np.ones((2, 2), "f4")}, folder / "z.safetensors")
    st.split(folder / "model.safetensors", folder / "set", count=2)
    for path in folder.rglob("*.*"):
        os.utime(path, ns=(OLD, OLD))
    return folder


@pytest.fixture
def models(tmp_path):
    return make(tmp_path)


# name -> call with the folder, the output and options
CALLS = {
    "edit_metadata": lambda f, out, **o: st.edit_metadata(f / "model.safetensors", {"a": "b"},
                                                          output=out, **o),
    "rename": lambda f, out, **o: st.rename(f / "model.safetensors", str.upper, output=out, **o),
    "select": lambda f, out, **o: st.select(f / "model.safetensors", out, keep="y", **o),
    "convert": lambda f, out, **o: st.convert(f / "model.safetensors", out, "F16", **o),
    "dequantize": lambda f, out, **o: st.dequantize(f / "model.safetensors", out, **o),
    "quantize": lambda f, out, **o: st.quantize(f / "model.safetensors", out, "fp8",
                                                only=FLUX, **o),
    "split": lambda f, out, **o: st.split(f / "model.safetensors", out.with_suffix(""), count=2, **o),
    "merge": lambda f, out, **o: st.merge([f / "model.safetensors", f / "lora.safetensors"], out, **o),
    "merge_models": lambda f, out, **o: st.merge_models(
        [f / "model.safetensors", f / "tuned.safetensors"], out, **o),
    "repair": lambda f, out, **o: st.repair(f / "model.safetensors", out, copy=True, **o),
    "layout": lambda f, out, **o: st.layout(f / "z.safetensors", out.with_suffix(""), to="diffusers",
                                            **o),
    "lora.merge": lambda f, out, **o: lora.merge(f / "model.safetensors", f / "lora.safetensors", out,
                                                 **o),
    "lora.resize": lambda f, out, **o: lora.resize(f / "lora.safetensors", out, rank=2, **o),
    "lora.stack": lambda f, out, **o: lora.stack([f / "lora.safetensors"] * 2, out, **o),
    "lora.extract": lambda f, out, **o: lora.extract(f / "tuned.safetensors", f / "model.safetensors",
                                                     out, rank=2, **o),
    "lora.simplify": lambda f, out, **o: lora.simplify(f / "whole.safetensors", out, rank=2, **o),
    "lora.convert": lambda f, out, **o: lora.convert(f / "lora.safetensors", out, "peft",
                                                     architecture="flux.1", **o),
}


def written(folder, before):
    return sorted(set(folder.rglob("*.*")) - before)


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*.*")}


@pytest.mark.parametrize("name", CALLS)
def test_a_dry_run_writes_nothing_and_tells_the_same(models, name):
    before = snapshot(models)
    planned = CALLS[name](models, models / "adapter_model.safetensors", dry_run=True)
    assert snapshot(models) == before
    done = CALLS[name](models, models / "adapter_model.safetensors")
    assert snapshot(models) != before
    if isinstance(planned, dict):
        lost = {"lost", "narrow_values", "narrow_lost"}  # known once values are cast
        if name in ("lora.resize", "lora.stack", "lora.extract", "lora.simplify"):
            lost |= {"modules"}  # a dry run measures errors
        assert {k: v for k, v in planned.items() if k not in lost} == {
            k: v for k, v in done.items() if k not in lost}
    else:
        assert planned.dry_run and not done.dry_run


@pytest.mark.parametrize("name", CALLS)
def test_keep_mtime(models, name):
    before = set(models.rglob("*.*"))
    CALLS[name](models, models / "adapter_model.safetensors", keep_mtime=True)
    made = written(models, before)
    files = [path for path in made if path.is_file()]
    assert files and {path.stat().st_mtime_ns for path in files
                      if path.name != "adapter_config.json"} == {OLD}
    step = time.get_clock_info("time").resolution  # 16 ms on Windows
    assert time.time_ns() - (models / "model.safetensors").stat().st_atime_ns >= -step * 1e9


def test_keep_mtime_takes_the_youngest_and_file_by_file(models):
    os.utime(models / "lora.safetensors", ns=(OLDER, OLDER))
    out = models / "adapter_model.safetensors"
    st.merge([models / "lora.safetensors", models / "model.safetensors"], out, keep_mtime=True)
    assert out.stat().st_mtime_ns == OLD
    first, second = sorted((models / "set").glob("*.safetensors"))
    os.utime(first, ns=(OLDER, OLDER))
    index = models / "set/model.safetensors.index.json"
    for call in (lambda to: st.convert(models / "set", to, "F16", keep_mtime=True),
                 lambda to: st.rename(models / "set", str.upper, output=to, keep_mtime=True)):
        folder = models / "other"
        call(folder)
        assert [path.stat().st_mtime_ns for path in sorted(folder.glob("*.safetensors"))] == [
            OLDER, OLD]
        assert (folder / index.name).stat().st_mtime_ns == OLD
        shutil.rmtree(folder)


def test_keep_mtime_of_changes_in_place(models):
    path = models / "model.safetensors"
    for change in (lambda: st.put(path, {"y": np.zeros(8, "f2")}, keep_mtime=True),
                   lambda: st.put(path, {"new": np.zeros(3, "f2")}, keep_mtime=True),
                   lambda: st.select(path, drop="new", in_place=True, keep_mtime=True),
                   lambda: st.convert(path, path, "F16", overwrite=True, keep_mtime=True)):
        held = path.read_bytes()
        change()
        assert path.read_bytes() != held and path.stat().st_mtime_ns == OLD
    assert list(load_file(path)) == ["y", FLUX] or set(load_file(path)) == {"y", FLUX}
    assert load_file(path)[FLUX].dtype == np.float16
    st.put(path, {"y": np.ones(8, "f2")})
    assert path.stat().st_mtime_ns != OLD


def test_keep_mtime_wants_files(models):
    for call in (lambda: st.split({"x": np.ones(3)}, models / "o", keep_mtime=True),
                 lambda: st.merge([{"x": np.ones(3)}], models / "o", keep_mtime=True),
                 lambda: st.select(st.open((models / "z.safetensors").read_bytes()), models / "o",
                                   keep_mtime=True),
                 lambda: st.split(io.BytesIO((models / "z.safetensors").read_bytes()),
                                  models / "o", keep_mtime=True)):
        with pytest.raises(ValueError, match="keep_mtime"):
            call()
        assert not (models / "o").exists()


def test_an_output_that_is_not_written_keeps_its_time(models):
    out = models / "set"
    held = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    with pytest.raises(FileExistsError):
        st.split(models / "z.safetensors", out, count=2, keep_mtime=True)
    out = models / "tuned.safetensors"
    os.utime(out, ns=(OLDER, OLDER))
    st.select(models / "model.safetensors", out, overwrite=True, keep_mtime=True)  # all stay
    assert out.stat().st_mtime_ns == OLDER
    assert held == {path: path.stat().st_mtime_ns for path in (models / "set").iterdir()}


def test_put_tells_what_it_would_do(models):
    path = models / "model.safetensors"
    for tensors in ({"new": np.ones((5, 3), "f4")}, {"y": np.zeros(8, "f2")},
                    {"y": np.zeros(9, "f2"), "a": np.ones(1)}):
        held = path.read_bytes()
        planned = st.put(path, tensors, dry_run=True)
        assert path.read_bytes() == held and path.stat().st_size != planned["file_after"] - 1
        assert st.put(path, tensors) == planned
        assert path.stat().st_size == planned["file_after"]


@pytest.fixture(scope="module")
def unrenamed(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("clang")
    if not (sys.platform == "linux" and platform.machine() == "x86_64" and compiler):
        pytest.skip("needs a compiler, and Linux on x86-64")
    library = tmp_path_factory.mktemp("unrenamed") / "unrenamed.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HERE / "unrenamed.c"], check=True)
    return library


UNRENAMED = """if True:
    import pathlib, sys
    sys.path.insert(0, %r)
    import test_outputs
    folder = pathlib.Path(sys.argv[1])
    out = folder / "adapter_model.safetensors"
    for name, call in test_outputs.CALLS.items():
        if name in ("split", "layout", "select"):
            continue
        over = {"force" if name in ("edit_metadata", "rename") else "overwrite": True}
        for more in ({}, {"in_place_unsafe": True}):
            out.write_bytes(b"old")
            try:
                call(folder, out, **over, **more)
            except OSError as error:
                assert not more and error.code == "io_publish", (name, error)
                assert "in_place_unsafe" in error.hint, (name, error.hint)
            else:
                assert more and test_outputs.st.check(out)["ok"], name
        print(name)
""" % str(HERE)


def test_where_files_cannot_be_renamed(models, unrenamed):
    done = subprocess.run([sys.executable, "-c", UNRENAMED, str(models)], capture_output=True,
                          text=True, env={**os.environ, "LD_PRELOAD": str(unrenamed)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(CALLS) - 3


def test_save_where_files_cannot_be_renamed(models, unrenamed):
    code = ("import sys, numpy as np, libsafetensors as st\n"
            "from libsafetensors.numpy import save_file\n"
            "x = {'x': np.ones(5)}\n"
            "save_file(x, sys.argv[1], in_place_unsafe=True)\n"
            "st.save_sharded(x, sys.argv[2], in_place_unsafe=True)\n"
            "with st.Writer(sys.argv[1], {'x': ('F64', (5,))}, in_place_unsafe=True) as w:\n"
            "    w.write('x', x['x'])\n"
            "st.put(sys.argv[1], {'y': x['x']}, in_place_unsafe=True)\n"
            "st.select(sys.argv[1], drop='x', in_place=True, in_place_unsafe=True)\n")
    subprocess.run([sys.executable, "-c", code, str(models / "z.safetensors"), str(models / "f")],
                   check=True, env={**os.environ, "LD_PRELOAD": str(unrenamed)})
    assert list(load_file(models / "z.safetensors")) == ["y"]
    assert st.check(models / "f/model.safetensors")["ok"]
