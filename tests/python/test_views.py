"""How a File is shown and pickled, values of single elements, weak references, the command by
the package's name, and tools that read file objects."""
import copy
import gc
import html.parser
import io
import pathlib
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import libsafetensors as st
from reading import NUMPY, ReadAt, one_of_each, pack


def layers(count, more=()):
    tensors = {"layers.%d.%s.weight" % (i, part): ("F32", [2, 3], bytes(24))
               for i in range(count) for part in ("q", "k")}
    tensors.update((name, ("U8", [], b"1")) for name in more)
    return tensors


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "m.safetensors"
    made.write_bytes(pack(layers(3, ["alone"]), {"k": "v"}))
    return made


# ── Notebooks ──

TAGS = {"details", "summary", "div", "code", "bdi", "table", "thead", "tbody", "tr", "th", "td"}


class Cells(html.parser.HTMLParser):
    """Rows of the table as text; every tag must be closed."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.tags = [], [], set()
        self.attributes, self.others, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes += attrs
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_comment(self, data):
        self.others.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment

    def handle_data(self, data):
        self.text += data
        if "td" in self.open:
            self.rows[-1][-1] += data


def rows_of(data):
    return [row for row in Cells(st.open(data)._repr_html_()).rows[1:] if len(row) == 5]


def test_bytes_are_shown_by_dtype(path):
    cells = Cells(st.open(path)._repr_html_())
    assert cells.rows[-2:] == [["F32", " 144 B", "6 tensors"], ["U8", " 1 B", "1 tensor"]]
    assert "width:11.9em" in str(cells.attributes)


def test_equal_layers_are_one_row(path):
    rows = rows_of(path)
    assert rows == [["layers.{0..2}.q.weight", "×3", "F32", "2 × 3", "72 B"],
                    ["layers.{0..2}.k.weight", "×3", "F32", "2 × 3", "72 B"],
                    ["alone", "", "U8", "scalar", "1 B"]]


def test_a_tree_of_the_bytes(path):
    text = Cells(st.open(path)._repr_html_()).text
    assert text.endswith("treelayers.{0..2}  144 B, 6 tensorsq  72 B, 3 tensorsk  72 B, 3 tensors")
    assert "tree" not in st.open(pack({"alone": ("U8", [], b"1")}))._repr_html_()


def test_a_tree_of_misleading_names_is_bounded():
    tensors = {"%s.<b>.%d.x" % ("." * 20, i): ("U8", [], b"1") for i in range(3000)}
    tensors["." * 100000 + "}"] = tensors["{" + "." * 100000] = ("U8", [], b"1")
    tensors.update({"%d" % i + ".<" * 300: ("U8", [], b"1") for i in range(3000)})
    cells = Cells(st.open(pack(tensors))._repr_html_())
    assert cells.tags <= TAGS | {"span"} and len(cells.text) < 3000000


def test_what_is_not_equal_is_not_folded():
    named = [row[0] for row in rows_of(pack({
        "a.0": ("U8", [1], b"1"), "a.2": ("U8", [1], b"1"),         # not all between
        "b.0.0": ("U8", [1], b"1"), "b.1.1": ("U8", [1], b"1"),     # not all pairs
        "c.0": ("U8", [1], b"1"), "c.1": ("I8", [1], b"1"),         # other dtypes
        "d1": ("U8", [1], b"1"), "d2": ("U8", [1], b"1"),           # no numbers of their own
        "e.01": ("U8", [1], b"1"), "e.1": ("U8", [1], b"1")}))]     # two spellings of one
    assert sorted(named) == ["a.{0,2}", "b.0.0", "b.1.1", "c.0", "c.1", "d1", "d2", "e.{01,1}"]


def test_names_are_escaped():
    name = "<script>alert('1')</script>&\"0\".weight"
    text = st.open(pack({name: ("U8", [1], b"1")}))._repr_html_()
    assert "<script" not in text and "&lt;script&gt;" in text
    assert Cells(text).rows[1][0] == name
    assert Cells(text).tags <= TAGS | {"span"}


@pytest.mark.parametrize("name, shown", [
    ("a\u202e.thgiew", "a\\u{202e}.thgiew"), ("\u2066x\u2069", "\\u{2066}x\\u{2069}"),
    ("a\0b\x1b[31m\nc\td", "a\\u{0}b\\u{1b}[31m\\u{a}c\\u{9}d"),
    ("\x85\u2028\ufeff", "\\u{85}\\u{2028}\\u{feff}"),
    ("soft\xadhyphen\u200bjoined", "soft\\u{ad}hyphen\\u{200b}joined"),
    ("tag\U000e0041", "tag\\u{e0041}"), ("m\u0308 \u05d0\u05d1 \u732b \U0001f98a", None),
    ("</code></td><img src=x onerror=alert(1)>", None), ("<!--", None), ("]]><svg/onload=x>", None),
    ("&lt;b&gt;", None), ("\" onmouseover=\"x", None), ("javascript:alert(1)", None),
    ("x" * 256, None), ("x" * 257, "x" * 255 + "…"), ("<" * 5000, "<" * 255 + "…")])
def test_names_that_mislead(name, shown):
    text = st.open(pack({name: ("U8", [1], b"1")}))._repr_html_()
    cells = Cells(text)
    assert cells.rows[1][0] == (name if shown is None else shown)
    assert cells.tags <= TAGS | {"span"} and not cells.others
    assert {name for name, _ in cells.attributes} == {"style"}


def test_paths_that_mislead(tmp_path):
    path = tmp_path / "a\u202e<img src=x>\x07.safetensors"
    path.write_bytes(pack({}))
    cells = Cells(st.open(path)._repr_html_())
    assert cells.tags <= TAGS and not cells.attributes
    assert "\u202e" not in cells.text and "\x07" not in cells.text and "<img" in cells.text


def test_endless_numbers_are_not_folded():
    names = ["a.%s" % (digit * 5000) for digit in "12"] + ["b.\u0663", "b.\u0664"]
    rows = rows_of(pack({name: ("U8", [1], b"1") for name in names}))
    assert [row[1] for row in rows] == [""] * 4


def test_a_table_is_bounded():
    tensors = {"%d%s" % (i, "<" * 2000): ("U8", [1], b"1") for i in range(1200)}
    assert len(st.open(pack(tensors))._repr_html_()) < 1000 * (256 * 4 + 120) + 2000


def test_a_path_is_escaped_and_a_closed_file_shown(tmp_path):
    path = tmp_path / "<b>&.safetensors"
    path.write_bytes(pack({}))
    file = st.open(path)
    assert "<b>" not in file._repr_html_()
    file.close()
    assert "closed" in file._repr_html_()


def test_a_long_table_is_cut():
    tensors = {"t%d" % i: ("U8", [1], b"1") for i in range(1500)}
    assert len(rows_of(pack(tensors))) == 1000
    assert "and 500 more rows" in st.open(pack(tensors))._repr_html_()


# ── One element ──

def test_item_is_the_value():
    scalars = {"BOOL": True, "U8": 200, "I8": -3, "I16": -300, "U16": 60000, "F16": 0.5,
               "BF16": -1.5, "I32": -70000, "U32": 1 << 31, "F32": 0.25, "C64": 1 - 2j,
               "F64": 0.1, "I64": -(1 << 40), "U64": 1 << 63}
    data = {}
    for dtype, value in scalars.items():
        if dtype == "BF16":
            raw = np.float32(value).tobytes()[2:]
        else:
            raw = np.array(value, NUMPY[dtype]).tobytes()
        data[dtype] = (dtype, [], raw)
    data["F8_E4M3"] = ("F8_E4M3", [1, 1], b"\x38")
    scalars["F8_E4M3"] = 1.0
    file = st.open(pack(data))
    for dtype, value in scalars.items():
        found = file[dtype].item()
        assert found == value and type(found) is type(value), dtype


def test_item_of_a_slice_and_of_more():
    file = st.open(pack({"a": ("I32", [2, 3], np.arange(6, dtype="<i4").tobytes())}))
    assert file["a"][1, 2].item() == 5 and file["a"][0, 1:2].item() == 1
    for wrong in (file["a"], file["a"][:0]):
        with pytest.raises(ValueError, match="expected a tensor of one element, found"):
            wrong.item()


def test_item_needs_no_numpy():
    program = ("import sys, libsafetensors as st\n"
               "print(st.open(bytes.fromhex(sys.argv[1]))['a'].item(), 'numpy' in sys.modules)")
    data = pack({"a": ("BF16", [], b"\xc0\x3f")})
    told = subprocess.run([sys.executable, "-c", program, data.hex()], capture_output=True,
                          text=True, check=True)
    assert told.stdout == "1.5 False\n"


# ── Pickling and weak references ──

@pytest.mark.parametrize("again", [lambda f: pickle.loads(pickle.dumps(f)), copy.copy,
                                   copy.deepcopy])
def test_a_file_is_pickled_by_its_path(path, again):
    file = st.open(path, mode="read", level="compat")
    other = again(file)
    assert other.paths == [str(path)] and not other.mapped and other is not file
    assert other.keys() == file.keys() and other.metadata() == {"k": "v"}
    file.close()
    assert other["alone"].tobytes() == b"1"
    with pytest.raises(ValueError, match="File is closed"):
        pickle.dumps(file)


def test_the_path_is_made_absolute(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for source in (path.name, pathlib.Path(path.name)):
        told = pickle.dumps(st.open(source=source))
        monkeypatch.chdir("/")
        assert len(pickle.loads(told)) == 7
        monkeypatch.chdir(tmp_path)


def test_a_model_of_several_files(path, tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    index.write_text('{"weight_map": {%s}}' % ", ".join(
        '"%s": "m.safetensors"' % name for name in st.open(path)))
    file = st.open(index)
    again = pickle.loads(pickle.dumps(file))
    assert again.keys() == file.keys()


def test_another_header_is_refused(path):
    told = pickle.dumps(st.open(path))
    path.write_bytes(pack(layers(4)))
    with pytest.raises(ValueError, match="expected the header that the file had"):
        pickle.loads(told)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(told)


@pytest.mark.parametrize("source", [lambda d: d, io.BytesIO, ReadAt])
def test_what_has_no_path_is_not_pickled(source):
    file = st.open(source(pack({})))
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(file)


def test_weak_references(path, tmp_path):
    file = st.open(path)
    tensor, writer = file["alone"], st.Writer(tmp_path / "x", [])
    gone = [weakref.ref(one) for one in (file, tensor, writer)]
    kept = weakref.WeakKeyDictionary({file: 1})
    assert [ref() for ref in gone] == [file, tensor, writer] and kept[file] == 1
    del file, tensor, writer
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3 and not kept


def test_dataset_is_imported_on_first_use():
    program = ("import sys, libsafetensors as st\n"
               "before = 'libsafetensors.dataset' in sys.modules\n"
               "print(before, st.dataset.__name__, 'dataset' in dir(st))")
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=True)
    assert told.stdout == "False libsafetensors.dataset True\n"


# ── The command ──

def test_the_package_is_the_command(path):
    def run(*words):
        return subprocess.run([sys.executable, "-m", "libsafetensors", *words],
                              capture_output=True, text=True)
    assert st.__version__ in run("--version").stdout
    listed = run("ls", "--json", str(path))
    assert listed.returncode == 0 and '"layers.0.q.weight"' in listed.stdout
    assert run("check", str(path.parent / "none")).returncode not in (0, 127)


def test_without_the_command(path):
    program = ("import libsafetensors.__main__ as command\n"
               "command.find_command = lambda: None\nraise SystemExit(command.main())")
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.returncode == 127 and "expected the command safetensors" in told.stderr


# ── check and hash of objects ──

ALGOS = "sha256,autov1,autov3,sshs_model,blake3,content,crc32"
FILES = {
    "a model": lambda: pack({**layers(2), "nan": ("F32", [1], b"\0\0\xc0\x7f")}, {"ss_x": "y"}),
    "every dtype": lambda: pack(one_of_each()),
    "cut": lambda: pack(layers(2))[:-3],
    "two megabytes": lambda: pack({"x": ("U8", [3 << 20], bytes(3 << 20))}),
    "a page": lambda: b"<!DOCTYPE html><html>" + b" " * 500,
    "empty": lambda: b"",
}


@pytest.mark.parametrize("name", FILES)
def test_objects_as_their_files(name, tmp_path):
    path = tmp_path / "f.safetensors"
    path.write_bytes(FILES[name]())
    for level in ("compat", "strict"):
        with open(path, "rb") as file:
            file.seek(3)
            assert st.check(file, level=level, deep=True) == st.check(path, level=level, deep=True)
    with open(path, "rb") as file:
        file.seek(3)
        assert st.hash(file, ALGOS) == st.hash(path, ALGOS)
    memory, named = st.hash(io.BytesIO(path.read_bytes()), ALGOS), st.hash(path, ALGOS)
    assert memory.pop("path") == "-" and named.pop("path") == str(path)
    assert memory == named


class Counting(io.RawIOBase):
    """A large file of zeros behind a header, which counts the most bytes asked for at once."""

    def __init__(self, bytes_):
        self.head = head_of(bytes_)
        self.size_, self.at, self.most = len(self.head) + bytes_, 0, 0

    def seek(self, offset, whence=0):
        self.at = offset if whence == 0 else self.size_ + offset
        return self.at

    def read(self, n=-1):
        self.most = max(self.most, n)
        n = min(n, self.size_ - self.at)
        piece = self.head[self.at:self.at + n]
        self.at += n
        return piece + bytes(n - len(piece))


def head_of(count):
    header = b'{"x":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (count // 4, count)
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def test_memory_is_bounded():
    for ask in (lambda f: st.check(f, deep=True)["ok"], lambda f: st.hash(f)["ok"],
                lambda f: st.hash(f, "sha256,content")["ok"]):
        file = Counting(256 << 20)
        assert ask(file) is True
        assert 0 < file.most <= 16 << 20


def test_what_the_object_raises_comes_out():
    class Failing(Counting):
        def read(self, n=-1):
            if self.at > 1 << 20:
                raise RuntimeError("gone")
            return super().read(n)
    for ask in (lambda f: st.check(f, deep=True), lambda f: st.hash(f),
                lambda f: st.hash(f, "content")):
        with pytest.raises(RuntimeError, match="gone"):
            ask(Failing(8 << 20))
    with pytest.raises(ZeroDivisionError):
        st.hash(Counting(8 << 20), progress=lambda *at: 1 / 0)


# ── Results ──

HOSTILE = "<b>&\"'</td>\u202e" + "x" * 500


@pytest.fixture
def hostile(tmp_path):
    made = tmp_path / "h.safetensors"
    made.write_bytes(pack({"lora_unet_a.lora_down.weight": ("F16", [4, 8], bytes(64)),
                           "lora_unet_a.lora_up.weight": ("F16", [8, 4], bytes(64))},
                          {"modelspec.title": HOSTILE, "modelspec.trigger_phrase": HOSTILE,
                           "modelspec.author": HOSTILE, "ss_base_model_version": "sdxl_base_v1-0"}))
    return made


def is_safe(text):
    cells = Cells(text)
    assert cells.tags <= TAGS | {"strong", "span"} and "\u202e" not in text
    assert {name for name, _ in cells.attributes} <= {"style", "colspan"}
    styles = " ".join(value for name, value in cells.attributes if name == "style")
    assert "#" not in styles and "rgb" not in styles  # the colours of the page, also of a dark one
    return cells


def test_info_as_a_label(hostile):
    told = st.info(hostile)
    assert isinstance(told, dict) and "\n" not in repr(told) and len(repr(told)) < 300
    assert repr(told).startswith("<Info '<b>&") and repr(told).isprintable()
    cells = dict(row[:2] for row in is_safe(told._repr_html_()).rows)
    assert cells["kind"].startswith("adapter lora rank 4") and cells["path"] == str(hostile)
    assert "x" * 100 in cells["trigger words"] and "F16" in cells
    assert copy.deepcopy(told) == told == pickle.loads(pickle.dumps(told))
    assert type(st.info(hostile, full=False)).__name__ == "Info"


def test_infos_as_a_table(hostile, path, tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"x" * 30)
    table = st.infos(tmp_path)
    assert repr(table) == "<Infos of 3 models>" and len(table) == 3
    assert {one["path"] for one in table} == {str(one) for one in tmp_path.iterdir()}
    rows = is_safe(table._repr_html_()).rows
    assert len(rows) == 4 and "trigger words" in table._repr_html_()
    good = next(one for one in table if one["path"] == str(hostile))
    assert good["model"] == st.info(hostile)["model"]
    found = st.infos(tmp_path, where="kind=adapter")
    assert [one["path"] for one in found if one["ok"]] == [str(hostile)]
    with pytest.raises(FileNotFoundError):
        st.infos(tmp_path / "nope")
    with pytest.raises(ValueError):
        st.infos(tmp_path, where="nope=1")


def test_info_of_a_folder_of_several_models(hostile, path, tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"x" * 30)
    told = st.info(tmp_path)
    assert told["models"] == st.infos(tmp_path, full=True) and told["path"] == str(tmp_path)
    assert told["ok"] is False and [one["ok"] for one in told["models"]].count(True) == 2
    assert repr(told).startswith("<Info of 3 models in '") and len(repr(told)) < 100
    assert len(is_safe(told._repr_html_()).rows) == 4
    assert copy.deepcopy(told) == told == pickle.loads(pickle.dumps(told))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(IsADirectoryError):
        st.info(empty)


def test_info_of_a_folder_takes_options_along(tmp_path):
    for name in "ab":
        (tmp_path / (name + ".safetensors")).write_bytes(
            pack({"x.mine.weight": ("F16", [2], bytes(4))}, {"k": "v" * 5000}))
    records = tmp_path / "mine.txt"
    records.write_text('model mine "Mine"\n    tensors diffusion_model 90\n        x.mine.weight\n')
    for given in (records, st.Records(records)):
        told = st.info(tmp_path, records=given)["models"]
        assert [one["model"]["architecture"]["value"] for one in told] == ["mine"] * 2
    for full in (True, False):
        told = st.info(tmp_path, full=full)["models"][0]
        assert told == st.info(tmp_path / "a.safetensors", full=full)
        assert told["metadata"]["k"] == "v" * (5000 if full else 4096)


def test_diff_as_a_table(tmp_path):
    a, b = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    a.write_bytes(pack({"x": ("F32", [2], bytes(8)), HOSTILE: ("U8", [1], b"1")}, {"k": HOSTILE}))
    b.write_bytes(pack({"x": ("F32", [2], b"\1" * 8), "y": ("F16", [1], b"12")}))
    told = st.diff(a, b)
    assert repr(told) == "<Diff: 1 changed, 1 added, 1 removed, 1 keys of metadata>"
    rows = is_safe(told._repr_html_()).rows
    assert [row[0] for row in rows] == ["\u2212", "+", "\u2260", "metadata"]
    assert repr(st.diff(a, a)) == "<Diff: the same>" and "<table" not in st.diff(a, a)._repr_html_()
    b.write_bytes(pack({"t%d" % i: ("U8", [1], b"1") for i in range(1500)}))
    assert is_safe(st.diff(a, b)._repr_html_()).rows[-1] == ["and 503 more"]


# ── Progress ──

def test_notebooks_show_a_bar_after_a_second(monkeypatch):
    import types
    from libsafetensors import _progress
    bars, now = [], [0.0]

    class Bar:
        def __init__(self, **options):
            self.n, self.total, self.closed = 0, None, False
            self.options = options
            bars.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    with _progress.watch(None, "saving") as tick:
        assert tick is None
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    for stop in (0.5, 3.0):
        now[0] = 0.0
        with _progress.watch(None, "saving", "models") as tick:
            for step in range(11):
                now[0] = stop * step / 10
                tick(step, 10)
        assert len(bars) == (stop > 1)
    assert bars[0].n == 10 and bars[0].total == 10 and bars[0].closed
    assert bars[0].options["desc"] == "saving" and bars[0].options["unit"] == "models"
    with _progress.watch(False, "saving") as tick:
        assert tick is None
