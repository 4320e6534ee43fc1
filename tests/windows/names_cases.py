"""Names: of devices and streams, long ones, those of other scripts."""
import hashlib
import json
import os

from world import DIRECT, Skip, case, demand, hidden, model, read, run, sft, small, write, WINDOWS

# Names that Windows takes for something else. A file may name none of them.
HOSTILE = ["nul.safetensors", "NUL", "con", "aux.safetensors", "COM1.safetensors", "lpt9",
           "a.safetensors:stream", "a.safetensors::$DATA", "C:a.safetensors", "C:\\a.safetensors",
           "\\a.safetensors", "..\\a.safetensors", "sub\\a.safetensors", "\\\\server\\share\\a",
           "\\\\?\\C:\\a", "a.safetensors.", "a.safetensors ", "a?.safetensors", "a*.safetensors",
           "a<b.safetensors", "a|b", 'a"b', "CONIN$", "CONOUT$.safetensors", "a\tb"]
M = "m.safetensors"


def index(folder, name):
    """A model whose second shard has this name."""
    write(os.path.join(folder, "one.safetensors"), model({"a": ("U8", [4], b"aaaa")}))
    text = {"metadata": {"total_size": 8}, "weight_map": {"a": "one.safetensors", "b": name}}
    return write(os.path.join(folder, "m.safetensors.index.json"), json.dumps(text).encode())


@case
def index_names_are_refused(folder):
    """At every level on Windows, whether or not something of that name is there."""
    for name in HOSTILE:
        index(folder, name)
        for level in ("compat", "default", "strict"):
            done = sft(["check", "--level", level, "m.safetensors.index.json"], folder, status=None)
            demand(done.returncode == 1, name, "at", level, "exit", done.returncode,
                   done.stdout, done.stderr)
        done = sft(["merge", "m.safetensors.index.json", "-o", "out.safetensors"], folder,
                   status=None)
        demand(done.returncode and not os.path.exists(os.path.join(folder, "out.safetensors")),
               name, "merged")


@case
def written_names_are_refused(folder):
    """No file of such a name is made, were it asked for: it could not be read elsewhere."""
    write(os.path.join(folder, M), small())
    os.mkdir(os.path.join(folder, "out"))
    for name in ("nul", "con", "aux", "com1", "a:b"):
        done = sft(["split", M, "--count", "2", "-o", "out", "--name", name], folder, status=None)
        demand(done.returncode, "split wrote", name, os.listdir(os.path.join(folder, "out")))


@case
def devices_are_no_models(folder):
    """What is given on the command line may be a device: it is opened, and is no model."""
    for name in ("NUL", "nul", "CON", "NUL.safetensors"):
        done = sft(["check", name], folder, status=None)
        demand(done.returncode, name, "is a model:", done.stdout)


@case
def devices_in_a_folder(folder):
    """Names of devices, which a folder of another system may list: nothing waits for a device."""
    write(os.path.join(folder, "m", M), small())
    for name in ("com1.safetensors", "aux.safetensors", "con.safetensors", "com1.pt"):
        write(os.path.join(folder, "m", name), small())
    for status, *words in ((2, "hash"), (2, "hash", "--algo", "content"), (2, "check"),
                           (0, "info", "-v"), (0, "dup", "-v")):
        done = sft([*words, "-r", "m"], folder, status=status)
        demand(b"aux.safetensors: expected a file, found a device" in done.stderr,
               words, done.stderr)


@case
def lists_name_no_shares(folder):
    """A list of digests may come from anybody: no line of it leads to another computer."""
    content = small()
    write(os.path.join(folder, M), content)
    here = folder.replace("/", "\\")
    inside = [M, ".\\" + M, "Z:%s\\%s" % (here, M), "\\\\?\\Z:%s\\%s" % (here, M)]
    beyond = ["\\\\server\\share\\a", "//server/share/a", "\\/server/share/a", "\\\\.\\pipe\\a",
              "\\\\?\\UNC\\server\\share\\a", "\\\\?\\GLOBALROOT\\Device\\Mup\\server\\share\\a",
              "\\\\.\\UNC\\server\\share\\a", "\\??\\UNC\\server\\share\\a"]
    digest = hashlib.sha256(content).hexdigest()
    lines = "".join("%s  %s\n" % (digest, name) for name in inside + beyond)
    for words in (["sums"], ["-"]):
        write(os.path.join(folder, "sums"), lines.encode())
        done = sft(["hash", "-c", *words], folder, status=2, stdin=lines.encode())
        told = b"expected a file, found one of a network share"
        demand(done.stdout.count(b": OK") == len(inside), done.stdout, done.stderr)
        demand(done.stderr.count(told) == len(beyond), done.stdout, done.stderr)


@case
def long_paths(folder):
    """Beyond 260 characters of a path and 248 of a folder; relative to a long folder, too."""
    deep = folder
    while len(deep) < 420:
        deep = os.path.join(deep, "a folder with a long name, number %d" % len(deep))
    path = write(os.path.join(deep, "m" * 100 + ".safetensors"), small())
    demand(len(path) > 500, "short", path)
    relative = os.path.relpath(path, folder)
    for name in (path, relative):
        demand(b"tensors         2\n" in sft(["info", name], folder).stdout, "info")
        sft(["check", name], folder)
        sft(["meta", "set", name, "k", name[-30:]], folder)
        sft(["meta", "set", name, "long", "x" * 4000, "--safe"], folder)
        sft(["convert", name, "--dtype", "F64", "-o", name, "--force"], folder)
        sft(["check", name], folder)
    sft(["catalog", os.path.dirname(path), "-o", os.path.join(deep, "page.html")], folder)
    sft(["check", "-r", "."], folder)
    demand(sorted(os.listdir(deep)) == sorted(["page.html", os.path.basename(path)]),
           os.listdir(deep))


@case
def long_names(folder):
    """Where the old file must step aside, its name with an ending must fit; if not, it stays."""
    content = small()
    for stem, fits in ((225, True), (226, False), (243, False)):
        name = "n" * stem + ".safetensors"
        path = write(os.path.join(folder, name), content)
        done = sft(["meta", "set", "--safe", name, "k", "new"], folder,
                   status=0 if fits else 2)
        demand(fits or b"File name too long" in done.stderr, stem, done.stderr)
        demand((read(path) == content) != fits, stem, "changed, or not")
    demand(not hidden(folder), hidden(folder))


@case
def folders_of_long_paths(folder):
    """A set of files below such a folder, written there anew."""
    deep = folder
    while len(deep) < 300:
        deep = os.path.join(deep, "sub-%d" % len(deep))
    write(os.path.join(deep, M), small())
    out = os.path.join(deep, "out")
    sft(["split", os.path.join(deep, M), "--count", "2", "-o", out], folder)
    found = sorted(os.listdir(out))
    demand(len(found) == 3, found)
    sft(["check", out], folder)
    sft(["rename", out, "--add-prefix", "x."], folder)
    demand(b"x.a" in sft(["ls", out], folder).stdout, "ls")


NAMES = ["模型.safetensors", "emoji 🦊.safetensors", "\u00e9.safetensors", "e\u0301.safetensors",
         "Ünïcödé — Straße.safetensors", "עברית.safetensors", "with space.safetensors",
         "100%.safetensors", "a&b^c!.safetensors", "'quoted'.safetensors"]


@case
def unicode_names(folder):
    """In arguments, in folders that are listed, and in what is printed."""
    for name in NAMES:
        path = write(os.path.join(folder, name), small())
        sft(["check", name], folder)
        sft(["meta", "set", name, "title", name, "--safe"], folder)
        demand(sft(["meta", "get", name, "title"], folder).stdout == name.encode() + b"\n", name)
        found = json.loads(sft(["info", "--json", name], folder).stdout)
        demand(found["results"][0]["path"] == name, found["results"][0]["path"], "is not", name)
        demand(os.listdir(os.path.dirname(path)).count(name) == 1, "another name", name)
        out = "out " + name
        sft(["convert", name, "--dtype", "BF16", "-o", out], folder)
        demand(os.path.exists(os.path.join(folder, out)), out, "is not there")
    found = json.loads(sft(["check", "-r", "--json", "."], folder).stdout)
    demand({os.path.basename(r["path"]) for r in found["results"]}
           == set(NAMES) | {"out " + n for n in NAMES}, "listed", found)


@case
def arguments_with_quotes(folder):
    """Words reach the command as they were given."""
    write(os.path.join(folder, M), small())
    for text in ('a"b', "a\\", 'a\\"b', "a b", "", "none*.safetensors", "%PATH%", "tab\tnew\nline"):
        sft(["meta", "set", M, "k", text], folder)
        found = json.loads(sft(["meta", "list", "--json", M], folder).stdout)
        demand(found["results"][0]["metadata"]["k"] == text, repr(text), "became", found)


@case
def wildcards_are_expanded(folder):
    """cmd.exe does not."""
    for name in ("a.safetensors", "b.safetensors", "sub/c.safetensors"):
        write(os.path.join(folder, name), small())
    def found_by(pattern):  # DIRECT: start.exe would put it in quotes
        return json.loads(run(DIRECT, ["check", "--json", pattern], folder).stdout)

    found = found_by("?.safetensors")
    demand(sorted(r["path"] for r in found["results"]) == ["a.safetensors", "b.safetensors"],
           found["results"])
    found = found_by("sub/*.safetensors")
    demand([r["path"].replace("\\", "/") for r in found["results"]] == ["sub/c.safetensors"],
           found["results"])
    done = run(DIRECT, ["check", "none*.safetensors"], folder)
    demand(done.returncode not in (0, 1) and b"none*.safetensors" in done.stderr, done.stderr)
    done = run(WINDOWS, ["check", "?.safetensors"], folder)  # in quotes: a name
    demand(done.returncode not in (0, 1) and b"?.safetensors" in done.stderr, done.stderr)


@case
def backslashes(folder):
    """Both separators in what the user gives; a drive, too."""
    write(os.path.join(folder, "sub", M), small())
    for name in ("sub\\" + M, ".\\sub\\" + M, "Z:" + folder.replace("/", "\\") + "\\sub\\" + M,
                 "z:" + folder + "/sub/" + M, "sub\\..\\sub/" + M):
        demand(b"tensors         2\n" in sft(["info", name], folder).stdout, name)
        sft(["meta", "set", name, "from", name, "--safe"], folder)
        demand(sft(["meta", "get", "sub/" + M, "from"], folder).stdout.decode() == name + "\n", name)
    sft(["convert", "sub\\" + M, "--dtype", "BF16", "-o", "sub\\b.safetensors"], folder)
    sft(["split", "sub\\" + M, "--count", "2", "-o", "sub\\out\\"], folder)
    sft(["check", "sub\\out"], folder)
    demand(sorted(os.listdir(os.path.join(folder, "sub"))) == ["b.safetensors", M, "out"],
           os.listdir(os.path.join(folder, "sub")))
    demand(not hidden(folder) and not hidden(os.path.join(folder, "sub")), "leftovers")


@case
def backslashes_are_shown(folder):
    """Of paths as they were given, in results and in messages."""
    write(os.path.join(folder, "a folder", M), small())
    name = "a folder\\" + M
    for words in (["check", "--explain", name], ["ls", name], ["meta", "set", name, "k", "x"]):
        said = sft(words, folder).stdout.decode()
        demand(said.startswith(name), *words, "says", said)
    done = sft(["check", "none\\" + M], folder, status=None)
    demand(done.stderr.startswith(b"safetensors: none\\" + M.encode() + b": cannot open"),
           done.stderr)
    index = "a folder\\" + M + ".index.json"
    write(os.path.join(folder, index.replace("\\", "/")), b'{"weight_map":{"a":"s.safetensors"}}')
    done = sft(["ls", index], folder, status=2)
    demand(done.stderr.decode().startswith("safetensors: %s: a folder\\s.safetensors: cannot" % index),
           done.stderr)


@case
def quotes_are_explained(folder):
    """A pattern in quotes; a backslash that takes a closing quotation mark into a name."""
    write(os.path.join(folder, "a folder", M), small())
    done = sft(["check", "a folder\\*.safetensors"], folder, status=None)
    demand(b"not expanded in quotes" in done.stderr, done.stderr)
    done = sft(["check", 'a folder" -r'], folder, status=None)
    demand(b"leave the backslash out" in done.stderr, done.stderr)
    for path in ("'a", "folder'"):
        done = sft(["check", path], folder, status=None)
        demand(b"only double quotation marks" in done.stderr, done.stderr)


@case
def help_is_asked_for_as_there(folder):
    """/? alone, and after a command."""
    demand(sft(["/?"], folder).stdout == sft(["--help"], folder).stdout, "/? is not --help")
    demand(sft(["ls", "/?"], folder).stdout == sft(["help", "ls"], folder).stdout, "ls /?")


@case
def output_is_binary(folder):
    """No \\r\\n, and no end at a byte 0x1a."""
    data = bytes(range(256)) * 2
    write(os.path.join(folder, M), model({"a": ("U8", [512], data)}))
    demand(b"\r" not in sft(["info", M], folder).stdout, "info has a carriage return")
    demand(sft(["cat", "--as", "raw", M, "a"], folder).stdout == data, "cat --as raw changed bytes")
    sft(["put", M, "a"], folder, stdin=data[::-1])
    demand(read(os.path.join(folder, M)).endswith(data[::-1]), "put changed bytes")
    done = sft(["convert", "-", "--dtype", "U8", "-o", "-"], folder, status=None,
               stdin=read(os.path.join(folder, M)))
    if done.returncode:
        raise Skip("convert takes no standard input: %r" % done.stderr)


@case
def hash_cache_has_a_home(folder):
    """%LOCALAPPDATA%, else what the manual says: nothing is written beside the models."""
    write(os.path.join(folder, M), small())
    sft(["hash", M], folder)
    demand(os.listdir(folder).count(M) == 1 and not hidden(folder), os.listdir(folder))


@case
def sidecars_spell_paths_in_either_case(folder):
    """The letters of a drive and of folders are alike: what LoRA Manager wrote follows all the same."""
    write(os.path.join(folder, M), small())
    beside = M.replace(".safetensors", ".metadata.json")
    write(os.path.join(folder, beside), json.dumps({"file_path": ("Z:" + folder).lower() + "/" + M}).encode())
    sft(["mv", M, "other/"], folder)
    said = json.loads(read(os.path.join(folder, "other", beside)))["file_path"]
    demand(said == "Z:" + os.path.realpath(folder) + "/other/" + M, said)
