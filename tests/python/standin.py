"""Environments for programs that say `import safetensors`.

Environment.standin: an interpreter without the official package, with the stand-in distribution
in its place; all other packages are those of this one, by links.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def call(*command, **more):
    """Its output; fails with all of it."""
    done = subprocess.run([os.fspath(word) for word in command], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, **more)
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def make(folder):
    """The interpreter of a new environment as described above."""
    venv, others = folder / "venv", folder / "others"
    call(sys.executable, "-m", "venv", "--without-pip", venv)
    others.mkdir()
    for path in pathlib.Path(pytest.__file__).parents[1].iterdir():
        if not re.match(r"safetensors\b|.*\.pth$", path.name):
            (others / path.name).symlink_to(path)
    site, = venv.glob("lib/python*/site-packages")
    (site / "others.pth").write_text(str(others))
    python = venv / "bin/python"
    # Building writes into the source folder.
    copy = folder / "standin"
    call("cp", "-r", ROOT / "bindings/python/standin", copy)
    call(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index",
         "--no-deps", "--no-build-isolation", "--disable-pip-version-check", copy)
    return python


@pytest.fixture(scope="session")
def standin(tmp_path_factory):
    pytest.importorskip("scikit_build_core")
    return make(tmp_path_factory.mktemp("standin"))


def digests(folder):
    """{path under folder: digest} of the safetensors files there."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*.safetensors"))}


def three_ways(program, folder, standin):
    """Runs program (its argument: a folder) by the official package, by ours beside it, and by
    the stand-in. All must succeed and write the same files; their digests."""
    ways = {"official": [sys.executable, program],
            "dropin": [sys.executable, "-m", "libsafetensors.dropin", program],
            "standin": [standin, program]}
    found = {}
    for way, command in ways.items():
        out = folder / way
        out.mkdir()
        told = call(*command, out, cwd=out)
        owner = "builtins" if way == "official" else "libsafetensors._official"
        assert told.splitlines()[-1] == "ok " + owner, told
        found[way] = digests(out)
    assert found["official"] == found["dropin"] == found["standin"]
    return found["official"]
