"""Wheels and the source package as a user has them: installed, and run."""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests/python"
FILES = ROOT / "build/release-files"
sys.path.insert(0, str(TESTS))
from pythons import pythons  # noqa: E402

# Of tests/python what needs no framework and ends within a minute.
QUICK = ["test_open.py", "test_errors.py", "test_numpy.py", "test_edit.py", "test_stats.py",
         "test_writer.py", "test_tools.py"]
CORE = ["test_open.py", "test_errors.py", "test_edit.py", "test_numpy.py"]  # quick under qemu too
# Left out, and why.
NOT_HERE = {"test_open.py::test_as_a_mapping": "needs torch"}
NOT_ARM64 = {**NOT_HERE,
             "test_open.py::test_files_are_not_written_to": "needs ml_dtypes, which Debian has not",
             "test_open.py::test_reads_where_the_system_does_not_map": "qemu has no RLIMIT_AS",
             "test_numpy.py::test_what_was_loaded_survives_its_file": "20 s each under qemu"}


class Skip(Exception):
    pass


def run(*command, **more):
    """Its output; fails with all of it."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith(("PYTHON", "PIP_", "SKBUILD"))}
    env.update(PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PYTHONDONTWRITEBYTECODE="1",
               TMPDIR=str(ROOT / "build"), SFT_SHARED=str(ROOT.parent / "shared"))
    env.update(more.pop("env", {}))
    done = subprocess.run([os.fspath(word) for word in command], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, "%s\n%s" % (" ".join(map(str, command)), done.stdout)
    return done.stdout


def in_folder(function):
    """The case gets a folder of its own, under build/."""
    @functools.wraps(function)
    def case(dist, chosen):
        with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
            return function(dist, {wheel.name: wheel for wheel in chosen}, pathlib.Path(folder))
    return case


def wanted(chosen, name):
    if name not in chosen:
        raise Skip("%s was not asked for" % name)
    return chosen[name]


def environment(python, folder, wheel):
    """Path of the interpreter of a new environment with nothing but the wheel. pip comes from here:
    not every Python has it."""
    run(python, "-m", "venv", "--without-pip", folder)
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q",
        "--no-deps", "--no-index", wheel)
    return folder / "bin/python"


def smoke(python, folder):
    assert run(python, TESTS / "smoke.py", folder, cwd=folder).endswith("ok\n")


def suite(python, names, left_out):
    """Counts of these files of tests/python, which also run the command beside this Python."""
    output = run(python, "-m", "pytest", "-q",
                 *("--deselect=tests/python/" + name for name in left_out),
                 *("tests/python/" + name for name in names), cwd=ROOT,
                 env={"SFT_COMMAND": str(python.parent / "safetensors")})
    return re.findall(r"^=*\s*(\d+ passed.*?) in ", output, re.MULTILINE)[-1]


# ── manylinux, x86-64 ──

def _smoke_case(python):
    free = "t" * python.free
    name = "cp311-abi3" if not free else "cp%d%d-cp%d%dt" % (python.version[:2] * 2)

    @in_folder
    def case(dist, chosen, folder):
        wheel = wanted(chosen, name + "-manylinux_x86_64")
        smoke(environment(python.path, folder / "venv", wheel.path), folder)
    case.__name__ = "smoke under %s" % python
    return case


@in_folder
def quick(dist, chosen, folder):
    """The quick part of tests/python, with the packages of tests/requirements.txt."""
    wheel = wanted(chosen, "cp311-abi3-manylinux_x86_64")
    python, others = run(ROOT / "tools/python.sh", "-c",
                         "import sys, pytest; print(sys.executable, pytest.__file__)").split()
    inside = environment(python, folder / "venv", wheel.path)
    site, = (folder / "venv").glob("lib/python*/site-packages")
    (site / "others.pth").write_text(str(pathlib.Path(others).parents[1]))
    return suite(inside, QUICK, NOT_HERE)


installed = [_smoke_case(python) for python in pythons((3, 11))] + [quick]


# ── musllinux: no Python of musl's is to be had, so its C library loads what there is ──

def _unpack(wheel, folder):
    with zipfile.ZipFile(wheel.path) as file:
        file.extractall(folder)
    command, = folder.glob("*.data/scripts/safetensors")
    command.chmod(0o755)
    return folder / "libsafetensors", command


@in_folder
def command_under_musl(dist, chosen, folder):
    """The command runs under musl's own loader and library."""
    _, command = _unpack(wanted(chosen, "cp311-abi3-musllinux_x86_64"), folder)
    loader = musl_loader()
    told = run(loader, command, "--version")
    assert told.startswith("safetensors "), told
    model = folder / "m.safetensors"
    model.write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    run(loader, command, "meta", "set", model, "a", "b")
    run(loader, command, "check", model)
    assert run(loader, command, "meta", "get", model, "a") == "b\n"


@in_folder
def names_under_musl(dist, chosen, folder):
    """Every name that the extensions need is musl's or Python's."""
    import binaries
    musl = binaries.Elf(musl_loader().read_bytes()).symbols(True)
    found = [wheel for name, wheel in chosen.items() if name.endswith("-musllinux_x86_64")]
    if not found:
        raise Skip("no wheel of musllinux was asked for")
    for wheel in found:
        elf = binaries.Elf(wheel.one(r"/_core\.(?!pyi$)")[1])
        unknown = {name for name in elf.symbols(False) - musl
                   if not re.match(r"_?Py|__deregister_frame_info|_ITM_|__gmon_start__", name)}
        binaries.expect("names " + wheel.name, unknown, set())


def musl_loader():
    """Path of Debian's musl, which is loader and library in one."""
    run(ROOT / "tools/debian_fetch.sh", "bookworm", "amd64", FILES / "musl", "musl")
    return FILES / "musl/lib/x86_64-linux-musl/libc.so"


musl = [command_under_musl, names_under_musl]


# ── aarch64, by qemu ──

def arm64_python(folder, wheel):
    """Interpreter of an environment with the wheel: Debian's CPython for arm64. It and the command
    are scripts that call qemu, so that each can start the other."""
    run(ROOT / "tools/debian_fetch.sh", "--all", "bookworm", "arm64", FILES / "arm64", "python3",
        "python3-numpy", "python3-pytest", "python3-hypothesis")
    qemu = shutil.which("qemu-aarch64")
    if qemu is None:
        raise Skip("no qemu-aarch64 (tools/setup.sh cross)")
    root, python = FILES / "arm64", folder / "bin/python"
    site = folder / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    python.parent.mkdir()
    (folder / "pyvenv.cfg").write_text("home = %s\nversion = 3.11.2\n" % (root / "usr/bin"))
    (site / "others.pth").write_text(str(root / "usr/lib/python3/dist-packages"))
    _, command = _unpack(wheel, site)
    libraries = root / "usr/lib/aarch64-linux-gnu"
    for path, program, more in ((python, root / "usr/bin/python3.11", '-0 "$0"'),
                                (folder / "bin/safetensors", command, "")):
        emulated = "%s -L %s -E LD_LIBRARY_PATH=%s/blas:%s/lapack %s" % (
            qemu, root, libraries, libraries, more)
        path.write_text("#!/bin/sh\nexec %s %s \"$@\"\n" % (emulated, program))
        path.chmod(0o755)
    return python


@in_folder
def smoke_arm64(dist, chosen, folder):
    python = arm64_python(folder / "venv", wanted(chosen, "cp311-abi3-manylinux_aarch64"))
    told = run(python, "-c", "import platform; print(platform.machine())")
    assert told == "aarch64\n", told
    smoke(python, folder)


@in_folder
def core_arm64(dist, chosen, folder):
    """The core of tests/python."""
    python = arm64_python(folder / "venv", wanted(chosen, "cp311-abi3-manylinux_aarch64"))
    return suite(python, CORE, NOT_ARM64)


arm64 = [smoke_arm64, core_arm64]


# ── Windows, by wine ──

@in_folder
def smoke_wine(dist, chosen, folder):
    """A genuine CPython for Windows installs the wheel by pip and works with it."""
    import ensurepip
    wheel = wanted(chosen, "cp311-abi3-win_amd64")
    sys.path.insert(0, str(ROOT / "tests/windows"))
    import python as windows
    if not pathlib.Path(windows.WINE).exists():
        raise Skip("no wine (tools/setup.sh wine)")
    # wine's server outlives the script and would keep a pipe open.
    subprocess.run([ROOT / "tools/wine_env.sh"], check=True, stdout=subprocess.DEVNULL)
    run(ROOT / "tools/windows_python.sh")
    shutil.copytree(windows.PYTHON, folder / "python",
                    ignore=shutil.ignore_patterns("libsafetensors*", "safetensors.exe", "torch*"))
    pip, = pathlib.Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    start = [windows.WINE, folder / "python/python.exe"]
    env = windows.environment()
    run(*start, windows.windows(pip) + "\\pip", "install", "-q", "--no-deps", "--no-index",
        windows.windows(wheel.path), env=env)
    assert (folder / "python/Scripts/safetensors.exe").is_file()
    told = run(*start, windows.windows(TESTS / "smoke.py"), windows.windows(folder), env=env)
    assert told.replace("\r", "").endswith("ok\n"), told


wine = [smoke_wine]


# ── The source package ──

NEEDED = {"bindings", "cli", "cmake", "data", "include", "page", "src", "CHANGELOG.md",
          "CMakeLists.txt", "LICENSE", "PKG-INFO", "pyproject.toml"}


@in_folder
def contents_of_source(dist, chosen, folder):
    """What a build needs, and nothing else."""
    import binaries
    import wheels
    archive, = dist.glob("libsafetensors-*.tar.gz")
    held = [name.partition("/")[2] for name in run("tar", "-tzf", archive).split("\n") if name]
    binaries.expect("top level", {name.partition("/")[0] for name in held}, NEEDED)
    unwanted = [name for name in held
                if re.search(r"\.(o|a|so|pyc|whl|gz)$|__pycache__|standin", name)]
    binaries.expect("unwanted", unwanted, [])
    needed = {str(path) for path in wheels.tracked()
              if path.parts[0] in NEEDED - {"bindings"}
              or path.parts[:3] == ("bindings", "python", "src")}
    binaries.expect("left out", needed - set(held), set())


@in_folder
def builds_offline(dist, chosen, folder):
    """Installed by pip without a network."""
    archive, = dist.glob("libsafetensors-*.tar.gz")
    inside = folder / "venv/bin/python"
    run(sys.executable, "-m", "venv", folder / "venv")
    site, = (folder / "venv").glob("lib/python*/site-packages")
    here, = pathlib.Path(sys.prefix).glob("lib/python*/site-packages")
    (site / "others.pth").write_text(str(here))
    cut = ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*cut, "true"], capture_output=True).returncode:
        cut = []
    run(*cut, inside, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-index",
        "--config-settings=cmake.build-type=Debug", archive)
    smoke(inside, folder)
    return "no network" if cut else "this machine does not let a test cut the network"


source = [contents_of_source, builds_offline]
