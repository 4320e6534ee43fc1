"""What the command for Linux says and writes, the one for Windows does: byte for byte."""
import glob
import os
import shutil
import subprocess
import sys

from world import LINUX, SHARED, WINDOWS, Skip, case, demand, linux, run, scenes, sft

SCALE = 1 << 20


def native():
    if not os.path.exists(LINUX[0]):
        raise Skip("no %s" % LINUX[0])


def samples():
    found = sorted(glob.glob(os.path.join(SHARED, "samples", "**", "*.safetensors*"),
                             recursive=True))
    found = [path for path in found if os.path.getsize(path) < 64 << 20]
    if not found:
        raise Skip("no %s/samples" % SHARED)
    return found


def same(words, folder, *, alike=lambda text: text):
    """Both commands say the same; it."""
    ours, wanted = run(WINDOWS, words, folder), linux(words, folder)
    for part in ("returncode", "stdout", "stderr"):
        got, want = getattr(ours, part), getattr(wanted, part)
        if part != "returncode":
            got, want = alike(got), alike(want)
        demand(got == want, " ".join(words)[-300:], part, repr(got)[:1500], "expected",
               repr(want)[:1500])
    return ours


def copied(folder):
    """The samples, copied: names relative to the folder."""
    names = []
    for path in samples():
        name = os.path.relpath(path, os.path.join(SHARED, "samples"))
        os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
        shutil.copyfile(path, os.path.join(folder, name))
        names.append(name)
    return names


@case
def info_of_samples(folder):
    native()
    for name in copied(folder):
        same(["info", name], folder)
        same(["info", "--json", name], folder)


@case
def check_of_samples(folder):
    native()
    names = copied(folder)
    for level in ("compat", "default", "strict"):
        same(["check", "--level", level, *names], folder)
        same(["check", "--level", level, "--json", "-r", "."], folder)


@case
def reading_of_samples(folder):
    """Every command that reads."""
    native()
    names = copied(folder)
    for name in names:
        for words in (["ls", name], ["ls", "--tsv", name], ["hash", "--algo", "sha256", name],
                      ["meta", "list", "--json", name]):
            same(words, folder)
    same(["find", "weight", *names], folder)
    same(["dup", *names[:12]], folder)
    same(["diff", names[0], names[1]], folder)


def written(words, folder):
    """The files that a command leaves, its status and what it says."""
    # One after the other in the same folder: pages name it.
    keep, found, done = folder + ".keep", [], []
    shutil.copytree(folder, keep)
    for command in (WINDOWS, LINUX):
        done.append(run(command, words, folder))
        found.append(scenes.look(folder))
        shutil.rmtree(folder)
        shutil.copytree(keep, folder)
    shutil.rmtree(keep)
    (ours, want), (found, wanted) = done, found
    odd = [path for path in sorted(found.keys() | wanted.keys())
           if found.get(path, 0) != wanted.get(path, 0)]
    demand(ours.returncode == want.returncode, " ".join(words), "exit", ours.returncode,
           "expected", want.returncode, ours.stderr[-600:], want.stderr[-300:])
    demand(not odd, " ".join(words), "wrote otherwise:", odd)
    return ours


@case
def written_from_samples(folder):
    native()
    for name in copied(folder):
        if name.endswith(".json"):
            continue
        for words in (["meta", "set", name, "k", "v"], ["meta", "set", name, "k", scenes.LONG],
                      ["convert", name, "--dtype", "BF16", "-o", "out.safetensors", "--force"]):
            written(words, folder)


def same_page(folder, status):
    """catalog of the folder ends so, with the same page."""
    ours = os.path.join(folder, "page.html")
    sft(["catalog", ".", "-o", "page.html"], folder, status=status)
    with open(ours, "rb") as file:
        page = file.read()
    os.remove(ours)
    done = linux(["catalog", ".", "-o", "page.html"], folder)
    demand(done.returncode == status, "linux:", done.stderr)
    with open(ours, "rb") as file:
        wanted = file.read()
    demand(len(page) > 10000 and page == wanted, "%d bytes, expected %d" % (len(page), len(wanted)),
           "first difference at", next((i for i, (a, b) in enumerate(zip(page, wanted)) if a != b),
                                       "the end"))


@case
def catalog_of_samples(folder):
    native()
    copied(folder)
    same_page(folder, 0)


def scene_case(row):
    """A command of the tests of interrupted writing."""
    def one(folder):
        native()
        scenes.make_folder(folder, scenes.make_models(SCALE), row[1])
        written(row[2], folder)
    one.__name__ = "writes_" + row[0].replace("-", "_")
    return case(one)


for _row in scenes.SCENES:
    if not _row[3]:
        scene_case(_row)


@case
def imports(folder):
    """Models of other formats."""
    native()
    foreign = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli",
                           "foreign.py")
    for kind, name in (("state_dict", "a.pt"), ("training", "b.pt"), ("npz", "c.npz"),
                       ("gguf", "d.gguf"), ("onnx", "e.onnx"), ("msgpack", "f.msgpack"),
                       ("folder", "g")):
        subprocess.run([sys.executable, foreign, kind, name], cwd=folder, check=True)
        written(["convert", name, "-o", "out-%s.safetensors" % name], folder)
        same(["info", name], folder)
