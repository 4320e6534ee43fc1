"""Errors: class, attributes and texts."""
import errno
import io
import os
import pickle
import subprocess
import sys
import traceback

import pytest
from reading import ReadAt, aligned, pack

import libsafetensors
from libsafetensors import SafetensorError, _core

FIELDS = ("code", "offset", "tensor", "hint", "errno", "path")


def raised(kind, work):
    with pytest.raises(kind) as caught:
        work()
    return caught.value


def test_the_class():
    assert SafetensorError is _core.SafetensorError is libsafetensors.SafetensorError
    assert SafetensorError.__module__ == "libsafetensors"
    assert issubclass(SafetensorError, Exception) and not issubclass(SafetensorError, OSError)
    plain = SafetensorError("x")
    assert [getattr(plain, field) for field in FIELDS] == [None] * 6


def test_attributes_of_a_bad_file(tmp_path):
    path = tmp_path / "bad.safetensors"
    data = bytearray(pack({"a": ("F32", (2,), bytes(8))}))
    path.write_bytes(data.replace(b"[0, 8]", b"[0, 9]") + b"\0")
    error = raised(SafetensorError, lambda: _core.open(path))
    assert type(error) is SafetensorError
    assert error.code == "size_mismatch" and error.tensor == "a"
    assert error.path == str(path) and str(error).startswith(str(path) + ": ")
    assert "'a'" in str(error) and error.hint and error.errno is None
    assert error.offset is None or data[error.offset:error.offset + 1]


def test_a_shard_stands_before_its_byte(tmp_path):
    folder = tmp_path / "a: b"
    folder.mkdir()
    path, shard = folder / "m.safetensors.index.json", folder / "s.safetensors"
    path.write_text('{"weight_map": {"a": "s.safetensors"}}')
    shard.write_bytes(pack({"a": ("F32", (2,), bytes(8))}).replace(b"{", b"[", 1))
    error = raised(SafetensorError, lambda: _core.open(path))
    assert str(error).startswith(f"{path}: {shard}: byte 8: expected ")
    assert error.offset == 8 and error.path == str(path)


def test_pickle(tmp_path):
    error = raised(SafetensorError, lambda: _core.open(b"abc"))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is SafetensorError and str(again) == str(error)
    assert [getattr(again, f) for f in FIELDS] == [getattr(error, f) for f in FIELDS]


def test_not_found(tmp_path):
    path = str(tmp_path / "none.safetensors")
    error = raised(FileNotFoundError, lambda: _core.open(path))
    assert error.errno == errno.ENOENT and error.code == "not_found"
    assert str(error).startswith(path + ": ") and error.path == path


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs users")
def test_permission(tmp_path):
    path = tmp_path / "closed.safetensors"
    path.write_bytes(aligned({}))
    path.chmod(0)
    if os.geteuid() != 0:
        error = raised(PermissionError, lambda: _core.open(path))
        assert error.errno == errno.EACCES and error.code == "io_open"
        return
    tmp_path.chmod(0o755)
    script = ("import os, sys\nfrom libsafetensors import _core\nos.setuid(65534)\n"
              "try: _core.open(sys.argv[1])\n"
              "except PermissionError as error: print(error.errno, error.code)\n")
    for parent in tmp_path.parents:
        if not parent.stat().st_mode & 0o001:
            pytest.skip("the test's folder is closed to others")
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    if "ModuleNotFoundError" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("another user cannot import the package here")
    assert done.stdout == "13 io_open\n", done.stderr


def test_files_that_python_opens_have_codes_too(tmp_path):
    from libsafetensors import h5
    for path, code in ((tmp_path / "none", "not_found"), (tmp_path, "io_not_file")):
        opens = [lambda: libsafetensors.merge_models([], "out", recipe=path), lambda: h5.open(path)]
        for call in opens + [lambda: libsafetensors.Records(path)] * (code == "not_found"):
            with pytest.raises(OSError) as raised:
                call()
            error = raised.value
            assert error.code == code and error.errno and error.path == str(path)
            assert str(error).startswith("%s: cannot open: " % path)


def test_folder(tmp_path):
    for work in (lambda: _core.open(tmp_path), lambda: _core.save_file(tmp_path, [])):
        error = raised(IsADirectoryError, work)
        assert error.code == "io_not_file" and error.path == str(tmp_path)
        assert error.errno == errno.EISDIR


def test_what_is_neither_file_nor_folder(tmp_path):
    for path in ("/dev/zero", "/dev/null"):
        error = raised(OSError, lambda: _core.open(path))
        assert type(error) is OSError and error.code == "io_not_file" and error.path == path


def test_odd_paths(tmp_path):
    path = os.fsdecode(os.fsencode(str(tmp_path)) + b"/\xff.safetensors")
    error = raised(FileNotFoundError, lambda: _core.open(path))
    assert error.path == path
    raised(ValueError, lambda: _core.open("a\0b"))


def test_shrunk_file(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(aligned({"a": ("U8", (1 << 16,), bytes(1 << 16))}))
    file = _core.open(path, mode="read")
    os.truncate(path, 1000)
    for read in (file["a"].tobytes, lambda: file.numpy(), lambda: bytes(file["a"][::2])):
        if read.__name__ == "<lambda>":
            pytest.importorskip("numpy")
        error = raised(OSError, read)
        assert error.code == "io_shrunk" and error.path == str(path)


def test_no_such_tensor():
    file = _core.open(pack({"a": ("U8", (1,), b"a")}))
    error = raised(SafetensorError, lambda: file["b"])
    assert error.code == "tensor_not_found" and "File does not contain tensor b" in str(error)
    raised(SafetensorError, lambda: file["\ud800"])
    name = "x" * 5000
    assert raised(SafetensorError, lambda: file[name]).code == "tensor_not_found"


def test_a_tensors_name_may_be_anything():
    name = "ü'\n\0"
    data = pack({name: ("F32", (2,), bytes(8))}).replace(b"[0, 8]", b"[1, 8]")
    error = raised(SafetensorError, lambda: _core.open(data))
    assert error.tensor == name and repr(name) in str(error)


def test_exceptions_of_a_source_are_raised():
    class Own(BaseException):
        pass

    class Bad:
        size = 1000

        def __init__(self, what):
            self.what = what

        def read_at(self, offset, length):
            if isinstance(self.what, BaseException):
                raise self.what
            return self.what

    own = Own()
    assert raised(Own, lambda: _core.open(Bad(own))) is own
    raised(KeyboardInterrupt, lambda: _core.open(Bad(KeyboardInterrupt())))
    raised(TypeError, lambda: _core.open(Bad("text")))
    raised(TypeError, lambda: _core.open(Bad(None)))
    raised(ValueError, lambda: _core.open(Bad(b"x" * 2000)))
    raised(SafetensorError, lambda: _core.open(Bad(b"")))
    for size in (-1, 1 << 64, "1", 1.5):
        bad = Bad(b"")
        bad.size = size
        raised((TypeError, OverflowError), lambda: _core.open(bad))


def test_a_file_object_that_lies():
    class Lies(io.BytesIO):
        def read(self, n=-1):
            return bytes(n + 1)
    raised(ValueError, lambda: _core.open(Lies(aligned({}))))
    closed = io.BytesIO(aligned({}))
    closed.close()
    raised(ValueError, lambda: _core.open(closed))


def test_source_that_breaks_later():
    source = ReadAt(aligned({"a": ("U8", (4,), b"abcd")}))
    file = _core.open(source)
    source.data = source.data[:-2]
    error = raised(OSError, file["a"].tobytes)
    assert error.code == "io_shrunk"


@pytest.mark.parametrize("text, code", [
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n", "found_git_lfs"),
    (b"<!DOCTYPE html><html><body>no</body></html>", "found_html"),
    (b"GGUF" + bytes(60), "found_gguf"),
])
def test_other_formats(tmp_path, text, code):
    path = tmp_path / "x.safetensors"
    path.write_bytes(text)
    for source in (path, text, bytearray(text)):
        assert raised(SafetensorError, lambda: _core.open(source)).code == code


def test_every_code_names_an_exception():
    import builtins
    assert len(_core.CODES) > 70
    for name, (number, sentence, exception) in _core.CODES.items():
        kind = SafetensorError if exception == "SafetensorError" else \
            getattr(builtins, exception or "Exception")
        assert issubclass(kind, BaseException) and sentence and isinstance(number, int), name


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters  # CPython 3.13
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        raise SystemExit("none here")
made = interpreters.create()
script = '''
import sys
sys.path[:] = %r
try:
    import libsafetensors._core
except ImportError as error:
    print(error)
''' % (sys.path,)
failed = getattr(interpreters, "exec", interpreters.run_string)(made, script)
if failed is not None:
    print(failed)
interpreters.destroy(made)
"""


def test_subinterpreters_are_refused():
    # In a process of its own: torch takes a process that had one for one that holds the GIL.
    done = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    if "none here" in done.stderr:
        pytest.skip("this Python has no module of sub-interpreters")
    assert "support" in done.stdout and "interpreters" in done.stdout, done.stderr


URL = "abfs://example/model.safetensors"


def test_a_url_of_another_scheme_is_a_path(tmp_path):
    st = pytest.importorskip("libsafetensors.numpy")
    for use in (lambda: _core.open(URL), lambda: libsafetensors.safe_open(URL, "np"),
                lambda: st.load_file(URL), lambda: libsafetensors.info(URL), lambda: libsafetensors.hash(URL),
                lambda: libsafetensors.edit_metadata("az://bucket/key", {"a": "b"}),
                lambda: libsafetensors.convert(URL, tmp_path / "o", "F16")):
        error = raised(FileNotFoundError, use)
        assert "those of https, hf, s3" in str(error) and "fsspec.open(url)" in error.hint
    for write in (lambda: st.save_file({}, URL), lambda: _core.Writer(URL)):
        assert "found a URL" in str(raised(ValueError, write))
    for path in ("none/a.safetensors", "://a", "1a://b"):
        assert "URL" not in str(raised(FileNotFoundError, lambda: _core.open(path)))


def test_a_file_of_fsspec_is_to_be_opened_where_a_path_is_wanted(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    st = pytest.importorskip("libsafetensors.numpy")
    path = tmp_path / "a.safetensors"
    path.write_bytes(pack({"a": ("U8", (1,), b"a")}))
    given = fsspec.open(path, "rb")
    for use in (lambda: libsafetensors.safe_open(given, "np"), lambda: st.save_file({}, given),
                lambda: _core.Writer(given), lambda: libsafetensors.edit_metadata(given)):
        assert "call its open()" in str(raised(TypeError, use))
    with given as opened:
        assert _core.open(opened).keys() == list(st.load_file(opened)) == ["a"]
    assert _core.open(given).keys() == list(st.load_file(given)) == ["a"]
    assert libsafetensors.diff(given, path)["same"]


def test_what_is_wrong_with_metadata_names_the_key(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(pack({"a": ("U8", (1,), b"a")}))
    for use in (lambda wrong: libsafetensors.edit_metadata(path, {"good": "x", "the key": wrong}),
                lambda wrong: _core.save_bytes([], {"the key": wrong}),
                lambda wrong: _core.Writer(tmp_path / "w", [], {"the key": wrong})):
        for wrong in (1, None, b"x", ["x"]):
            assert "'the key'" in str(raised(TypeError, lambda: use(wrong)))
        assert "'the key'" in str(raised(ValueError, lambda: use("\ud800")))
    assert "'a'" in str(raised(TypeError, lambda: libsafetensors.rename_tensors(path, {"a": 1})))


def test_load_of_a_path_says_load_file(tmp_path):
    names = ["numpy", "torch", "flax"]
    path = tmp_path / "a.safetensors"
    for name in names:
        module = pytest.importorskip("libsafetensors." + name)
        for given in (path, str(path)):
            assert "load_file" in str(raised(TypeError, lambda: module.load(given)))
    assert "load_file" in str(raised(TypeError, lambda: libsafetensors.deserialize(str(path))))


def test_pairs_that_are_no_pairs():
    class Mapping:
        def __init__(self, items):
            self.made = items

        def items(self):
            return self.made
    assert _core.save_bytes([], Mapping([["a", "b"]])) == _core.save_bytes([], {"a": "b"})
    for items in ([3], ["a"], [("a", "b", "c")], [()], [[1, "b"]]):
        raised(TypeError, lambda: _core.save_bytes([], Mapping(items)))


def hint_of(work, kind=Exception):
    return raised(kind, work).hint


# What to try next, in the words of the package.

def test_hints_of_reading(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(pack({"a": ("F32", (2,), bytes(8))}))
    twice = b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},' \
            b'"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    twice = len(twice).to_bytes(8, "little") + twice
    assert hint_of(lambda: _core.open(twice)) == \
        'level="compat" accepts what the official package accepts'
    _core.open(twice, level="compat").close()
    spaced = b' {}'
    spaced = len(spaced).to_bytes(8, "little") + spaced
    assert hint_of(lambda: _core.open(spaced, level="strict")) == \
        'only level="strict" refuses this'
    old = b'{"a":{"dtype":"float16","shape":[0],"offsets":[0,0]}}'
    old = len(old).to_bytes(8, "little") + old
    assert hint_of(lambda: _core.open(old)) == "legacy=True reads it"
    assert _core.open(old, legacy=True).keys() == ["a"]
    large = (200 << 20).to_bytes(8, "little") + b'{"' + bytes(100)
    assert "max_header_bytes allows" in hint_of(lambda: _core.open(large))
    bad = b"{]"
    bad = len(bad).to_bytes(8, "little") + bad
    assert "libsafetensors.check(path)" in hint_of(lambda: _core.open(bad))
    with _core.open(path) as file:
        assert "keys()" in hint_of(lambda: file["b"], KeyError)
    assert 'the command "safetensors repair"' in hint_of(
        lambda: _core.open(path.read_bytes() + b"more"))


def test_tracebacks_show_the_hint_once(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(pack({"a": ("F32", (2,), bytes(8))}))
    for work in (lambda: _core.open("ftp://host/m.safetensors"), lambda: _core.open(path)["b"]):
        error = raised(Exception, work)
        assert "".join(traceback.format_exception_only(error)).count(error.hint) == 1
    with libsafetensors.safe_open(str(path), "np") as file:
        error = raised(KeyError, lambda: file.get_tensor("b"))
    assert "".join(traceback.format_exception_only(error)).count(error.hint) == 1
    error = raised(OSError, lambda: _core.open(tmp_path / "none.safetensors"))
    assert error.hint is None and not hasattr(error, "__notes__")


def test_the_hint_of_a_link(tmp_path):
    link = tmp_path / "l.safetensors"
    link.symlink_to("a.safetensors")
    assert hint_of(lambda: _core.save_file(link, [], link="refuse"), OSError) == \
        'give the path it leads to, or link="follow"'


def test_hints_of_writing(tmp_path):
    st = pytest.importorskip("libsafetensors.numpy")
    path = str(tmp_path / "a.safetensors")
    st.save_file({}, path)
    assert hint_of(lambda: _core.save_file(path, [], overwrite=False), FileExistsError) == \
        "overwrite=True replaces it"
    os.link(path, tmp_path / "second")
    assert hint_of(lambda: libsafetensors.edit_metadata(path, {"a": "b"}), OSError) == \
        "force=True changes it all the same"
    libsafetensors.edit_metadata(path, {"a": "b"}, force=True)
    assert hint_of(lambda: _core.cast(bytes([0, 0, 150, 67]), "F32", "U8"), ValueError) == \
        "saturate=True takes the nearest value there is"


def test_no_file_is_at_fault_for_what_is_written():
    one = ("a", "U8", (1,), b"a", None)
    for specs in ([one, one], [("a", "F4", (1,), b"a", None)], [("a", "U9", (1,), b"a", None)],
                  [("a", "U8", (1,) * 65, b"a", None)], [("a", "U8", (2,), b"a", None)]):
        assert hint_of(lambda: _core.save_bytes(specs), SafetensorError) is None
    assert hint_of(lambda: _core.cast(bytes(8), "F32", "F6_E2M3"), SafetensorError) is None


def test_hints_in_results(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(pack({"a": ("F32", (2,), bytes(8))}) + b"more")
    found = libsafetensors.check(path)
    assert 'the command "safetensors repair"' in found["error"]["hint"]
