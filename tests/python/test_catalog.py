"""catalog(): what it runs, what it returns and raises, and what is in the page."""
import json
import os
import re
import stat
import subprocess
import sys

import pytest

import libsafetensors as st
import libsafetensors.__main__ as command
from reading import pack


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    for name in "ab":
        (folder / (name + ".safetensors")).write_bytes(
            pack({"x": ("F32", [2], bytes(8))}, {"modelspec.title": "Title " + name}))
    return folder


@pytest.fixture
def page(tmp_path):
    return tmp_path / "page.html"


def rows_of(page):
    text = page.read_text(encoding="utf-8")
    return json.loads(re.search(r'<script type="application/json" id="rows">(.*?)</script>', text,
                                re.DOTALL)[1])


# ── Results ──

def test_a_page_of_a_folder(models, page):
    made = st.catalog(models, page, title="Mine </title> & yours")
    assert made == {"path": str(page), "ok": True, "models": 2, "unreadable": 0,
                    "bytes": page.stat().st_size, "embedded_pictures": 0, "embedded_bytes": 0}
    rows = rows_of(page)
    assert rows["title"] == "Mine </title> & yours"
    assert rows["name"] == ["Title a", "Title b"]


def test_several_folders_and_a_file(models, page, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "c.safetensors").write_bytes(pack({}))
    assert st.catalog([models, str(other)], page)["models"] == 3
    assert st.catalog(iter([other / "c.safetensors"]), page, overwrite=True)["models"] == 1


def test_options(models, page):
    one = st.catalog(models, page, where="model.name~Title b", hash="sha256")
    assert one["models"] == 1 and re.fullmatch("[0-9a-f]{12} .*", rows_of(page)["hash"][0] + " ")
    both = ["model.name~Title", "file.tensors=1"]
    assert st.catalog(models, page, where=both, hash=["sha256", "autov3"],
                      overwrite=True)["models"] == 2


def test_embedded_pictures(models, page):
    picture = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x04\0\0\0\x04\x08\x02\0\0\0" + bytes(4)
               + bytes(5000))
    (models / "a.preview.png").write_bytes(picture)
    assert st.catalog(models, page, embed=False)["embedded_pictures"] == 0
    made = st.catalog(models, page, embed=True, overwrite=True)
    assert made["embedded_pictures"] == 1 and made["embedded_bytes"] == len(picture)
    assert st.catalog(models, page, embed=1, overwrite=True)["embedded_pictures"] == 0


def test_one_model(models, page):
    made = st.catalog(models / "a.safetensors", page, model=True, deep=True)
    assert made["models"] == 1 and made["bytes"] == page.stat().st_size
    with pytest.raises(ValueError, match="one model, found 2"):
        st.catalog([models / "a.safetensors"] * 2, page, model=True, overwrite=True)


def test_values_of_one_model(tmp_path, page):
    """Of quantised tensors: 2 codes of 1, and the scale 0.25."""
    model = tmp_path / "quantised.safetensors"
    model.write_bytes(pack({"w.weight": ("F8_E4M3", [1, 2], b"\x38\x38"),
                            "w.weight_scale": ("F32", [], b"\0\0\x80\x3e")}))
    for values, most in ((False, "[1,0.25]"), (True, "[0.25]")):
        st.catalog(model, page, model=True, deep=True, values=values, overwrite=True)
        assert '"max":%s,' % most in page.read_text("utf-8")


def test_an_unreadable_model_is_in_the_page(models, page):
    (models / "c.safetensors").write_bytes(pack({"x": ("F32", [2], bytes(8))})[:-3])
    made = st.catalog(models, page)
    assert made["models"] == 2 and made["unreadable"] == 1
    assert "cut short" in rows_of(page)["error"]["2"]


def test_the_same_bytes(models, page, tmp_path):
    st.catalog(models, page)
    st.catalog(models, tmp_path / "again.html")
    assert page.read_bytes() == (tmp_path / "again.html").read_bytes()


# ── Errors ──

def test_an_existing_page(models, page):
    page.write_text("mine")
    with pytest.raises(FileExistsError) as raised:
        st.catalog(models, page)
    error = raised.value
    assert (error.code, error.path, error.errno) == ("exists", str(page), 17)
    assert "overwrite=True" in error.hint and str(error).startswith(str(page))
    assert page.read_text() == "mine"
    with pytest.raises(ValueError, match="expected a page to replace"):
        st.catalog(models, page, overwrite=True)
    assert page.read_text() == "mine"
    page.write_text("<!DOCTYPE html>old")
    assert st.catalog(models, page, overwrite=True)["ok"] and len(page.read_text()) > 10000


def test_no_models(tmp_path, page):
    (tmp_path / "empty").mkdir()
    made = st.catalog(tmp_path / "empty", page)
    assert made["ok"] and made["models"] == 0 and page.stat().st_size == made["bytes"]
    other = tmp_path / "page2.html"
    with pytest.raises(ValueError, match="expected one model, found a folder with none"):
        st.catalog(tmp_path / "empty", other, model=True)
    assert not other.exists()


def test_a_missing_folder(models, page, tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        st.catalog([models, tmp_path / "none"], page)
    assert raised.value.path == str(tmp_path / "none") and not page.exists()


def test_no_model_that_matches(models, page):
    with pytest.raises(FileNotFoundError, match="match"):
        st.catalog(models, page, where="name=none")
    assert not page.exists()


@pytest.mark.parametrize("options", [
    {"where": "no.such.field=1"}, {"hash": "md5"}, {"embed": -1}, {"deep": True},
    {"values": True}])
def test_refused_arguments(models, page, options):
    with pytest.raises(ValueError, match="expected|unknown"):
        st.catalog(models, page, **options)
    assert not page.exists()


def test_wrong_types(models, page):
    for options in ({"title": 5}, {"embed": "64"}, {"where": 5}, {"hash": 5}):
        with pytest.raises(TypeError):
            st.catalog(models, page, **options)
    for paths in ((5, page), (models, 5), (None, page)):
        with pytest.raises(TypeError):
            st.catalog(*paths)
    for path in ("a\0b", "\ud800")[:2 if os.name == "posix" else 1]:
        with pytest.raises(ValueError):
            st.catalog(models, path)
    assert not page.exists()


def test_an_invalid_model(models, page):
    path = models / "c.safetensors"
    path.write_bytes(pack({"x": ("F32", [2], bytes(8))})[:-3])
    with pytest.raises(st.SafetensorError) as raised:
        st.catalog(path, page, model=True)
    assert raised.value.code == "data_truncated" and raised.value.path == str(path)
    assert isinstance(raised.value.offset, int) and not page.exists()


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(models, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(PermissionError):
        st.catalog(models, closed / "page.html")


def test_a_folder_that_is_not_there(models, tmp_path):
    with pytest.raises(FileNotFoundError):
        st.catalog(models, tmp_path / "none" / "page.html")


# ── Paths are paths ──

def test_names_that_look_like_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "--force"
    folder.mkdir()
    (folder / "-o.safetensors").write_bytes(pack({}))
    assert st.catalog("--force", "-")["models"] == 1
    assert (tmp_path / "-").read_bytes().startswith(b"<!DOCTYPE html>")
    assert st.catalog("--force/-o.safetensors", "--json", title="--force",
                      where=())["models"] == 1
    assert rows_of(tmp_path / "--json")["title"] == "--force"
    assert st.catalog(b"--force", "-x.html")["models"] == 1


def test_names_in_any_bytes(tmp_path, page):
    folder = os.fsencode(tmp_path) + b"/\xff\n $(touch x)"
    os.mkdir(folder)
    with open(folder + b"/m.safetensors", "wb") as file:
        file.write(pack({}))
    assert st.catalog(os.fsdecode(folder), page)["models"] == 1


# ── Which command ──

@pytest.fixture
def planted(tmp_path, monkeypatch):
    """A command of that name where others may write: on PATH, and in the current folder."""
    folder = tmp_path / "planted"
    folder.mkdir()
    program = folder / "safetensors"
    program.write_text("#!/bin/sh\ntouch '%s/ran'\n" % tmp_path)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "%s:%s" % (folder, os.environ["PATH"]))
    monkeypatch.chdir(folder)
    return tmp_path / "ran"


def test_a_planted_command_does_not_run(models, page, planted):
    assert st.catalog(models, page)["models"] == 2
    assert not planted.exists()


def test_without_a_command_of_its_own(models, page, planted, monkeypatch):
    monkeypatch.setattr(command, "_installed", lambda: None)
    monkeypatch.setattr(command.sysconfig, "get_path", lambda *_: "")
    monkeypatch.setattr(command.sys, "executable", "")
    with pytest.raises(FileNotFoundError, match="pip install"):
        st.catalog(models, page)
    assert not planted.exists() and not page.exists()


def test_the_list_of_another_package_is_not_used(monkeypatch, tmp_path):
    class Other:
        files = ()

        def locate_file(self, path):
            return tmp_path / path

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Other())
    assert command._installed() is None


def test_its_own_command_is_that_of_the_environment():
    path = command.find_own_command()
    assert os.path.isabs(path) and os.stat(path).st_mode & stat.S_IXUSR
    assert st.__version__ in subprocess.run([path, "--version"], capture_output=True,
                                            text=True).stdout


STANDIN = """
import sys
import libsafetensors as st
import libsafetensors.__main__ as command
command.find_own_command = lambda: sys.argv[1]
try:
    st.catalog("x", "y")
except BaseException as error:
    print(type(error).__name__, error)
"""


def run_with(tmp_path, text):
    program = tmp_path / "standin"
    program.write_text("#!/bin/sh\n" + text)
    program.chmod(0o755)
    return subprocess.run([sys.executable, "-c", STANDIN, program], capture_output=True, text=True,
                          timeout=60)


def test_a_command_that_dies(tmp_path):
    assert "OSError" in run_with(tmp_path, "kill -9 $$").stdout
    assert "OSError" in run_with(tmp_path, "exit 127").stdout


def test_an_interrupt_ends_the_command(tmp_path):
    # Not before Popen has returned: there is nobody yet to end the command.
    done = run_with(tmp_path, "trap 'touch %s/ended; exit 130' TERM\nsleep 1; kill -INT $PPID\n"
                    "for i in $(seq 600); do sleep 0.05; done\n" % tmp_path)
    assert "KeyboardInterrupt" in done.stdout
    assert (tmp_path / "ended").exists()


def test_words_of_windows_are_quoted():
    """The command expands patterns outside quotes, which the caller meant as they are."""
    words = ["C:\\p q\\x.exe", "*.st", 'a"b', 'c\\"d', "e\\", "", "f\\g"]
    wanted = r'"C:\p q\x.exe" "*.st" "a\"b" "c\\\"d" "e\\" "" "f\g"'
    assert command.command_line(words) == wanted
