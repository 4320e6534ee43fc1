"""Wheels whose bytes depend on their contents and one time only: sorted entries, fixed modes and
times, RECORD last."""
import base64
import contextlib
import hashlib
import io
import os
import pathlib
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "bindings/python"


def metadata():
    """(METADATA, file name of its folder) as the build backend makes them of pyproject.toml."""
    from scikit_build_core.build import prepare_metadata_for_build_wheel
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            name = prepare_metadata_for_build_wheel(folder)
            return pathlib.Path(folder, name, "METADATA").read_bytes(), name
    finally:
        os.chdir(before)


def modules():
    """{name in the wheel: bytes} of the Python files."""
    return {path.relative_to(PACKAGES).as_posix(): path.read_bytes()
            for package in ("libsafetensors", "pyspark_libsafetensors")
            for path in (PACKAGES / package).rglob("*")
            if path.suffix in (".py", ".pyi") or path.name == "py.typed"}


def _wheel(tag):
    python, abi, platforms = tag.split("-")
    tags = "".join("Tag: %s-%s-%s\n" % (python, abi, one) for one in platforms.split("."))
    return ("Wheel-Version: 1.0\nGenerator: libsafetensors tools/wheels.py\n"
            "Root-Is-Purelib: false\n" + tags).encode()


def _record(files, name):
    lines = []
    for path in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[path]).digest())
        lines.append("%s,sha256=%s,%d\n" % (path, digest.decode().rstrip("="), len(files[path])))
    return "".join(lines + [name + ",,\n"]).encode()


def write(folder, tag, extension, command, licenses, when):
    """Path of the wheel of these files; licenses: (name, bytes); when: seconds since 1970."""
    text, info = metadata()
    stem = info.removesuffix(".dist-info")
    files = {**modules(), "libsafetensors/" + extension.name: extension.read_bytes(),
             "%s.data/scripts/%s" % (stem, command.name): command.read_bytes(),
             info + "/METADATA": text, info + "/WHEEL": _wheel(tag),
             **{info + "/licenses/" + name: data for name, data in licenses}}
    record = info + "/RECORD"
    # The package first, what describes it last: installers read the end of the file first.
    names = sorted(files, key=lambda name: (name.startswith(info), name)) + [record]
    files[record] = _record(files, record)
    path = pathlib.Path(folder, "%s-%s.whl" % (stem, tag))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name in names:
            entry = zipfile.ZipInfo(name, time.gmtime(when)[:6])
            entry.create_system = 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            wheel.writestr(entry, files[name])
    return path
