"""Sessions in documents: each ```console block is run as a person would type it, and what stands
under a `$` line is what the command must print.

  tests/examples/sessions.py [--update] [DOCUMENT...]

A section of a document (## heading) has a folder of its own, with the example models in it as
examples/models and models; README.md has one for all. In what is printed it is /home/you. bash runs each line with the command as
`safetensors`; the lines of a section share files, not variables. "..." in the expected text stands
for any lines. The commands in README.md's table of tasks are run in turn, too. --update writes what the commands gave: look at the difference before you keep it.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
DOCUMENTS = ("README.md", "docs/cookbook.md", "docs/install.md", "docs/faq.md", "docs/moving.md",
             "docs/collecting.md")
TASK = re.compile(r"^\| .* \| `(safetensors [^`]+)` \|$", re.M)
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)


def command_folder(folder):
    """A folder with `safetensors` in it, for PATH."""
    words = shlex.split(os.environ.get("SFT_COMMAND") or shlex.quote(os.path.join(BUILD, "safetensors")))
    words = [os.path.abspath(word) if os.path.exists(word) else word for word in words]
    os.makedirs(folder)
    path = os.path.join(folder, "safetensors")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec %s \"$@\"\n" % " ".join(map(shlex.quote, words)))
    os.chmod(path, 0o755)
    return folder


def run(line, folder, programs):
    env = {key: value for key, value in os.environ.items()
           if key not in ("COLUMNS", "NO_COLOR", "CLICOLOR_FORCE")}
    env.update(PATH=programs + ":" + os.environ["PATH"], LC_ALL="C.UTF-8",
               XDG_DATA_HOME=programs + ".data", XDG_STATE_HOME=programs + ".state")
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=env, check=False, timeout=60,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.stdout.decode("utf-8", "replace").replace(os.path.realpath(folder), "/home/you")


def fits(wanted, said):
    pattern = "".join(".*" if part == "...\n" else re.escape(part)
                      for part in re.split(r"^(\.\.\.\n)", wanted, flags=re.M))
    return re.fullmatch(pattern, said, re.S) is not None


def scratch(folder):
    os.makedirs(folder)
    subprocess.run(["cp", "-rL", os.path.join(ROOT, "examples", "models"), folder], check=True)
    os.mkdir(os.path.join(folder, "examples"))
    os.symlink("../models", os.path.join(folder, "examples", "models"))
    return folder


def sections(text, whole):
    """Pieces of a document that share a folder."""
    return [text] if whole else re.split(r"^(?=## )", text, flags=re.M)


class Document:
    def __init__(self, path, check):
        self.path, self.check = path, check
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            self.text = file.read()

    def play(self, update=False):
        with tempfile.TemporaryDirectory(prefix="sft-session-") as folder:
            programs = command_folder(os.path.join(folder, "bin"))
            self.tasks(scratch(os.path.join(folder, "tasks")), programs)
            pieces = sections(self.text, self.path == "README.md")
            for number, piece in enumerate(pieces):
                if BLOCK.search(piece):
                    place = scratch(os.path.join(folder, str(number)))
                    pieces[number] = BLOCK.sub(
                        lambda found, place=place: self.block(found[1], place, programs), piece)
        if update:
            with open(os.path.join(ROOT, self.path), "w", encoding="utf-8") as file:
                file.write("".join(pieces))

    def tasks(self, folder, programs):
        """The commands of tables, in turn: each succeeds."""
        if self.path == "README.md":
            lines = TASK.findall(self.text)
            self.check(len(lines) == 10, "README.md has ten tasks", "found %d" % len(lines))
            maker = os.path.join(ROOT, "tests", "cli", "foreign.py")
            run("python3 %s state_dict model.ckpt" % shlex.quote(maker), folder, programs)
            for line in lines:
                said = run(line + " && echo done", folder, programs)
                self.check(said.endswith("done\n"), "README.md: `%s` succeeds" % line, said)

    def block(self, text, folder, programs):
        out = []
        for session in re.split(r"^\$ ", text, flags=re.M)[1:]:
            line, _, wanted = session.partition("\n")
            said = run(line, folder, programs)
            if said and not said.endswith("\n"):
                said += "\n"
            fine = fits(wanted, said)
            self.check(fine, "%s: $ %s" % (self.path, line),
                       "expected %r\nfound    %r" % (wanted, said))
            out.append("$ %s\n%s" % (line, wanted if fine else said))
        return "```console\n%s```" % "".join(out)


def play_all(check):
    for path in DOCUMENTS:
        if os.path.exists(os.path.join(ROOT, path)):
            Document(path, check).play()


def main():
    update = "--update" in sys.argv
    results = []

    def check(fine, what, text=""):
        results.append(fine)
        if not fine and not update:
            print("failed: %s\n%s" % (what, text))
    for path in [word for word in sys.argv[1:] if word != "--update"] or DOCUMENTS:
        Document(path, check).play(update)
    print("%d passed, %d failed" % (sum(results), len(results) - sum(results)))
    return 0 if update or all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
