"""Source package -> wheel -> clean environment, under every CPython that is here.

Nothing is fetched: what a build needs comes from the wheels that tools/venv.sh has kept.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from pythons import pythons

HERE = pathlib.Path(__file__).resolve().parent
WHEELS = pathlib.Path(sys.prefix) / "wheels"
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libz.so.1", "ld-linux-x86-64.so.2"}
PLAIN = [python for python in pythons() if python.version >= (3, 11) and not python.free]
OWN = [python for python in pythons() if python not in PLAIN]


def run(*command, **more):
    """Its output; fails with all of it."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    env.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=str(WHEELS), PIP_DISABLE_PIP_VERSION_CHECK="1",
               **more.pop("env", {}))
    done = subprocess.run([os.fspath(word) for word in command], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory, root):
    """(source package, wheel): the second made from such a one by tools/environment.sh."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", out, root)
    (source,), (wheel,) = out.glob("*.tar.gz"), (pathlib.Path(sys.prefix) / "made").glob("*.whl")
    return source, wheel


@pytest.fixture(scope="module")
def unpacked(built, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(built[1]) as wheel:
        wheel.extractall(folder)
    return folder


def names(built):
    with zipfile.ZipFile(built[1]) as wheel:
        return set(wheel.namelist())


def test_the_source_package_holds_what_a_build_needs_and_little_more(built, root):
    with tarfile.open(built[0]) as source:
        held = {name.partition("/")[2] for name in source.getnames()}
    for kind in ("src/**/*.c", "src/**/*.h", "include/*.h", "cli/**/*.c", "cmake/*",
                 "page/*.js", "page/*.css", "page/modules.txt",
                 "bindings/python/src/*.[ch]", "bindings/python/libsafetensors/*.py*",
                 "bindings/python/libsafetensors/*/*.py",
                 "LICENSE", "CMakeLists.txt", "pyproject.toml", "bindings/python/README.md"):
        wanted = {str(path.relative_to(root)) for path in root.glob(kind) if path.is_file()}
        assert wanted and wanted <= held, wanted - held
    assert not [name for name in held
                if re.match(r"(tests|fuzz|bench|build|docs|examples|\.git|\.ci)(/|$)", name)]


def test_the_wheel_is_for_3_11_and_later(built):
    assert re.fullmatch(r"libsafetensors-[\d.]+-cp311-abi3-\w+\.whl", built[1].name)


def test_the_wheel_holds_the_package_and_the_command(built, root):
    package = root / "bindings/python/libsafetensors"
    modules = {"libsafetensors/%s" % path.relative_to(package) for path in package.rglob("*")
               if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
    data, = {name.partition("/")[0] for name in names(built) if ".data/" in name}
    info = data.replace(".data", ".dist-info")
    assert names(built) == modules | {
        "libsafetensors/_core.abi3.so", data + "/scripts/safetensors",
        "pyspark_libsafetensors/__init__.py",
        *(info + name for name in ("/METADATA", "/WHEEL", "/RECORD", "/licenses/LICENSE"))}
    assert "libsafetensors/py.typed" in modules


def test_nothing_is_required_at_run_time(unpacked):
    metadata, = unpacked.glob("*.dist-info/METADATA")
    required = [line for line in metadata.read_text().splitlines()
                if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert required == []


def test_the_extras_of_the_official_package_are_there(unpacked):
    from importlib.metadata import metadata
    theirs = set(metadata("safetensors").get_all("Provides-Extra"))
    text, = unpacked.glob("*.dist-info/METADATA")
    ours = set(re.findall(r"^Provides-Extra: (\S+)$", text.read_text(), re.MULTILINE))
    assert theirs - ours == {"dev", "quality", "testing"}  # for those who develop it
    facts = text.read_text().partition("\n\n")[0]
    assert "\nAuthor: " in facts and facts.count("\nClassifier: ") > 12


def binaries(unpacked):
    return [unpacked / "libsafetensors/_core.abi3.so", *unpacked.glob("*.data/scripts/*")]


def test_only_libc_is_linked(unpacked):
    from elftools.elf.elffile import ELFFile
    for path in binaries(unpacked):
        with open(path, "rb") as stream:
            dynamic = ELFFile(stream).get_section_by_name(".dynamic")
            needed = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
        assert needed and needed <= LIBRARIES, (path.name, needed)


def test_the_extension_shows_nothing_but_its_entry(unpacked):
    from elftools.elf.elffile import ELFFile
    with open(unpacked / "libsafetensors/_core.abi3.so", "rb") as stream:
        symbols = ELFFile(stream).get_section_by_name(".dynsym")
        shown = {symbol.name for symbol in symbols.iter_symbols()
                 if symbol["st_shndx"] != "SHN_UNDEF"}
        wanted = {symbol.name for symbol in symbols.iter_symbols()
                  if symbol["st_shndx"] == "SHN_UNDEF"}
    assert shown == {"PyInit__core"}
    # Of CPython nothing private but what the stable ABI's own macros stand for.
    private = {name for name in wanted if name.startswith("_Py") and not name.endswith("_SizeT")}
    assert private <= {"_Py_Dealloc", "_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct",
                       "_Py_EllipsisObject", "_Py_NotImplementedStruct", "_PyObject_New",
                       "_PyObject_GC_New"}, private


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="auditwheel is for Linux")
def test_auditwheel_finds_it_fit_for_other_machines(built):
    told = " ".join(run(sys.executable, "-m", "auditwheel", "show", built[1]).split())
    assert re.search(r'"manylinux_2_\d+_\w+"', told), told
    assert "cp311-abi3" in told
    external = set(re.findall(r"\blib\w+\.so[.\d]*", told))
    assert external <= LIBRARIES, told


def clean_venv(python, folder, wheel):
    """Path of the interpreter of a new environment with nothing but the wheel."""
    inside = folder / "bin/python"
    run(python, "-m", "venv", "--without-pip", folder)
    run(sys.executable, "-m", "pip", "--python", inside, "install", "-q", "--no-deps", wheel)
    return inside


@pytest.mark.parametrize("python", [
    pytest.param(python, marks=[] if python in (PLAIN[0], PLAIN[-1]) else pytest.mark.long)
    for python in PLAIN], ids=str)
def test_one_wheel_works_under(python, built, tmp_path):
    inside = clean_venv(python.path, tmp_path / "venv", built[1])
    assert run(inside, HERE / "smoke.py", tmp_path, cwd=tmp_path).endswith("ok\n")


@pytest.mark.long
@pytest.mark.parametrize("python", OWN, ids=str)
def test_the_same_sources_build_for(python, built, tmp_path):
    if not python.headers:
        pytest.skip("%s has no headers" % python.path)
    with tarfile.open(built[0]) as source:
        source.extractall(tmp_path / "source")
    folder, = (tmp_path / "source").iterdir()
    out = tmp_path / "wheels"
    run(python.path, "-m", "pip", "wheel", "-q", "--no-deps", folder, "-w", out,
        env={"SKBUILD_CMAKE_BUILD_TYPE": "Debug"})
    wheel, = out.iterdir()
    tag = "cp%d%d" % python.version[:2]
    assert "-%s-%s%s-" % (tag, tag, "t" * python.free) in wheel.name
    inside = clean_venv(python.path, tmp_path / "venv", wheel)
    assert run(inside, HERE / "smoke.py", tmp_path, cwd=tmp_path).endswith("ok\n")


README = '''
import torch
from {package} import safe_open
from {package}.torch import save_file

tensors = {{
   "weight1": torch.zeros((1024, 1024)),
   "weight2": torch.zeros((1024, 1024))
}}
save_file(tensors, "model.safetensors")

tensors = {{}}
with safe_open("model.safetensors", framework="pt", device="cpu") as f:
   for key in f.keys():
       tensors[key] = f.get_tensor(key)
assert list(tensors) == ["weight1", "weight2"]
assert tensors["weight2"].shape == (1024, 1024) and not tensors["weight2"].any()
assert __import__("sys").modules["{package}"].safe_open.__module__.startswith("libsafetensors")
print("ok")
'''


@pytest.fixture(scope="module")
def clean(built, tmp_path_factory):
    """An environment with our wheel and, by links, all else of this one but the official
    package."""
    folder = tmp_path_factory.mktemp("clean")
    inside = clean_venv(sys.executable, folder / "venv", built[1])
    others = folder / "others"
    others.mkdir()
    for path in pathlib.Path(pytest.__file__).parents[1].iterdir():
        if not re.match(r"(lib)?safetensors\b|.*\.pth$", path.name):
            (others / path.name).symlink_to(path)
    site, = (folder / "venv").glob("lib/python*/site-packages")
    (site / "others.pth").write_text(str(others))
    with pytest.raises(AssertionError, match="ModuleNotFoundError"):
        run(inside, "-c", "import safetensors")
    return inside


def test_the_official_readme_with_only_its_import_changed(clean, tmp_path):
    assert run(clean, "-c", README.format(package="libsafetensors"), cwd=tmp_path) == "ok\n"


def test_the_official_readme_as_it_is_after_install(clean, tmp_path):
    program = "import libsafetensors\nlibsafetensors.install()\n"
    program += README.format(package="safetensors")
    assert run(clean, "-c", program, cwd=tmp_path) == "ok\n"
    (tmp_path / "example.py").write_text(README.format(package="safetensors"))
    assert run(clean, "-m", "libsafetensors.dropin", "example.py", cwd=tmp_path) == "ok\n"


def test_the_command_is_on_the_path_of_the_environment(clean, tmp_path):
    command = shutil.which("safetensors", path=str(clean.parent))
    assert command and "safetensors" in run(command, "--version")


def test_its_catalog_is_by_its_own_command(clean, tmp_path):
    """Installed alone, run from a folder with a command of that name."""
    planted = tmp_path / "safetensors"
    planted.write_text("#!/bin/sh\ntouch '%s/ran'\n" % tmp_path)
    planted.chmod(0o755)
    (tmp_path / "models").mkdir()
    (tmp_path / "models/m.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    program = ("import libsafetensors as st\nimport libsafetensors.__main__ as command\n"
               "print(command._installed(), st.catalog('models', 'page.html')['models'])")
    told = run(clean, "-c", program, cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert told == "%s 1\n" % (clean.parent / "safetensors")
    assert (tmp_path / "page.html").exists() and not (tmp_path / "ran").exists()


# Each line that ends in WRONG is wrong.
TYPED = """from typing import Any
import libsafetensors as st
from libsafetensors import dataset
rows: Any = None
manifest = dataset.write(rows, "d", mode="append", batch_size=8, columns=["x"], dtype={"x": "F16"})
shards: int = manifest.get("shards", [])[0].get("samples_count", 0)
dataset.write(rows, "d", mode="replace")  # WRONG
dataset.write(rows, "d", batch_sise=8)  # WRONG
dataset.write(rows, "d", name_col="k", duplicatesStrategy="firstWin")  # WRONG
storage: dataset.StorageOptions = {"storage.region": "eu-west-1", "storage.anonymous": True}
dataset.write(rows, "s3://b/d", batch_size=1, **storage)
dataset.open("s3://b/d", use_manifest=False, **storage)
other: dataset.StorageOptions = {"storage.regoin": "eu-west-1"}  # WRONG
opened = dataset.open("d", keys=["x"], mode="kv")
shape: list[int] | None = opened.schema["x"]["shape"]
opened.take([0], "jax")  # WRONG
dataset.verify("d", deep=True)["orphans"][0]["shard"].upper()
dataset.gc("d")["garbige"]  # WRONG
dataset.compact("d", target=1)  # WRONG
st.check("f", level="lax")  # WRONG
st.check("f")["findings"][0]["code"].upper()
st.open("f", mode="rw")  # WRONG
with st.open("f") as file:
    file["x"].shape[0] + 1
    file.get("x").numpy()  # WRONG
    file["x"].stats()["median"]  # WRONG
    file.numpy("x*")["x"].reshape(-1).dtype.itemsize + 1
    file.torch(["x"])["x"].to("cpu").numel() + 1
    file["x"].numpy().no_such_thing()  # WRONG
    file["x"].torch().no_such_thing()  # WRONG
    file["x"].torch(device="cpu").detach().clone().numel()
st.split("f", "d", count=3).files[0].bytes + 1
st.split("f", "d", count="3")  # WRONG
st.split("f", "d", max_size="5GB").file  # WRONG
st.merge(["f", {"x": 1}], "g", overwrite=True).output.upper()
st.select("f", "g", keep="x*", drop=["y"]).dropped[0].upper()
st.rename("f", lambda name: name.upper()).renamed[0][1].upper()
st.rename("f", lambda name: 5)  # WRONG
st.quantize("f", "g", "fp8", layout="modelopt").quantised[0].error + 1.0
st.quantize("f", "g", "fp7")  # WRONG
st.find("d", "word", recursive=True).models[0].matches[0].value.upper()
st.dup("d").groups[0].by.upper()
st.note("f", {"rating": 4, "tags+": ["a"]})[0].path.upper()
st.catalog(["a", "b"], "out.html", where="kind=adapter", embed=200)["models"] + 1
st.catalog("a", "out.html", embed="all")  # WRONG
st.catalog("a", "out.html")["pages"]  # WRONG
st.safe_open("f", "cupy")  # WRONG
with st.safe_open("f", "pt") as of_torch:
    of_torch.get_tensor("x").to("cpu").numel() + 1
    of_torch.get_slice("x")[:, 0].no_such_thing()  # WRONG
    of_torch.get_tensors()["x"].itemset()  # WRONG
    of_torch.prefetch().take("x").no_such_thing()  # WRONG
with st.safe_open("f", framework="np") as of_numpy:
    of_numpy.get_tensor("x").tofile("g")
    of_numpy.get_slice("x")[0].cuda()  # WRONG
with st.safe_open("f", "flax", backend="mmap") as of_jax:
    of_jax.get_tensor("x").block_until_ready().reshape(-1)
    of_jax.get_tensor("x").tofile("g")  # WRONG
with st.safe_open("f", "tf") as of_tensorflow:
    of_tensorflow.get_tensor("x").whatever_it_is()
with st.open("f") as measured:
    measured.stats("x*", histogram=True)["x"]["zeros"] + 1
    measured.stats()["x"]["histogramm"]  # WRONG
    measured.stats(histogram=True).histogram()[0][0] + 1
st.infos("d", online=True)[0]["model"]["no_such_fact"]  # WRONG
st.infos("d")[0]["trigger_words"][0]["text"].upper()
failed = st.infos("d")[0].get("error")
if failed is not None:
    failed["code"].upper()
noted = st.note("f")[0].note
noted["rating"]  # WRONG
if noted is not None:
    noted.get("tags", [])[0].upper()
    noted["ratting"]  # WRONG
st.updates("d").models[0].newer[0].version_id.bit_length()  # WRONG
st.parts("f").parts[0].bytes + 1
st.verify_hashes("sums").files[0].verified[0].agrees.bit_length()
st.online_plan("d").requests + 1  # WRONG
st.put("f", {}, dry_run=True).get("file_after", 0) + 1
with st.open_import("f") as imported:
    imported.numpy()["x"].no_such_thing()  # WRONG
    imported.torch()["x"].numel() + 1
described = st.info("f")
described["model"]["no_such_fact"]  # WRONG
described["file"]["tensors"] + 1
described["trigger_words"][0]["text"].upper()
described["adapter"]["rank"]  # WRONG
st.diff("f", "g")["changed"][0]["name"].upper()
st.diff("f", "g")["changed"][0]["nome"]  # WRONG
st.safe_open("f", "pt", backend="directstorage")  # WRONG
st.scrub("f", keep="ss_*")[0].removed[0].upper()
st.convert({"x": rows}, "g", "F16")["cast"] + 1
st.convert(5, "g", "F16")  # WRONG
with st.open("f") as given:
    st.lora.merge(given, [(given, 0.5)], "g")["changed"] + 1
"""


# mypy and its stubtest take a minute, pyright four seconds.
EACH_CHECKER = [pytest.param("mypy", marks=pytest.mark.long), "pyright"]
CHECKERS = {"mypy": ("mypy", "--strict", "--follow-imports=silent"), "pyright": ("pyright", "--pythonpath", sys.executable)}


def checked(checker, folder, files):
    """The lines in which strict mode finds something wrong, as pairs of file and number, and what it
    says."""
    if checker == "pyright" and shutil.which("node") is None:
        pytest.skip("pyright needs node, which it would fetch")
    (folder / "pyrightconfig.json").write_text(
        '{"typeCheckingMode": "strict", "reportUnusedExpression": false}')
    done = subprocess.run(
        [sys.executable, "-m", *CHECKERS[checker], *files],
        cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "MYPY_CACHE_DIR": os.devnull, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})
    found = re.findall(r"(\w+\.py):(\d+):.*? (?:- )?error", done.stdout)
    assert found or done.returncode == 0, done.stdout
    return {(name, int(number)) for name, number in found}, done.stdout


@pytest.mark.parametrize("checker", EACH_CHECKER)
def test_a_type_checker_knows_options_and_results(checker, tmp_path):
    (tmp_path / "typed.py").write_text(TYPED)
    told, text = checked(checker, tmp_path, ["typed.py"])
    wrong = {("typed.py", number) for number, line in enumerate(TYPED.splitlines(), 1)
             if line.endswith("# WRONG")}
    assert told == wrong, text


UNTYPED = re.compile(r"manual_seed\(|\.backward\(|\.step\(|\.tolist\(")  # torch's own


@pytest.mark.parametrize("checker", EACH_CHECKER)
def test_examples_are_typed(checker, root, tmp_path):
    lines = {}
    for path in (root / "examples/python").glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
        lines[path.name] = path.read_text("utf-8").splitlines()
    told, text = checked(checker, tmp_path, sorted(lines))
    assert len(lines) > 4
    assert {(name, number) for name, number in told
            if not UNTYPED.search(lines[name][number - 1])} == set(), text


# What a stub cannot say: the class has None, every instance a str; and Python itself
# shows __buffer__ from 3.12 on.
UNSAID = """libsafetensors._core.SafetensorError.code
libsafetensors._core.Tensor.__buffer__
"""


@pytest.mark.long
def test_the_stubs_are_true(tmp_path):
    (tmp_path / "unsaid").write_text(UNSAID)
    told = run(sys.executable, "-m", "mypy.stubtest", "libsafetensors._core", "--allowlist",
               tmp_path / "unsaid", "--ignore-unused-allowlist", cwd=tmp_path)
    assert "Success" in told, told
