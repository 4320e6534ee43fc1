#!/usr/bin/env python3
"""Files of records as an enemy writes them: each is refused with a place, or read, in bounded time
and memory; none changes what is said of a model that it has nothing to do with.

  tests/hostile/records.py [-v] [NAME-PART...]

Takes SFT_COMMAND (shell words) or SFT_BUILD (a folder) from the environment; else build. Each file
is checked by `records check`, and a model and an adapter are labelled by it. Limits: 20 seconds of
processor time and 256 MiB of memory above what the command takes without a file.
"""
import json
import os
import resource
import shlex
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
SECONDS = 100 if os.environ.get("SFT_TARGET") == "msan" else 20  # which takes forty times as long
BYTES = 256 << 20
MODEL = "model m\n"
TENSORS = MODEL + "    tensors diffusion_model 100\n"


def row(word, text=""):
    return MODEL + "    %s %s\n" % (word, text)


def ring(count, word="parent"):
    return "".join("model r%d\n    %s r%d\n" % (i, word, (i + 1) % count) for i in range(count))


def chain(count):
    return "model c0\n" + "".join("model c%d\n    parent c%d\n" % (i, i - 1) for i in range(1, count))


def clause(text):
    return TENSORS + "        %s\n" % text


def lines(count, line, before=MODEL):
    return before + line * count


# name: the text, and what stands in the error, or None where it is read
FILES = {
    "empty": ("", None),
    "blank": (" \n\t\n\r\n", None),
    "comment": ("# a\n#\n    # b\n", None),
    "mark-alone": ("\xef\xbb\xbf", None),
    "nul": (MODEL + "\0", "line 2, column 1: expected a text without control"),
    "binary": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 40, "expected UTF-8"),
    "model-file": (struct.pack("<Q", 2) + b"{}", "line 1, column"),
    "utf-16": ("model m\n".encode("utf-16"), "line 1, column 1: expected UTF-8"),
    "latin-1": (b'model m "\xe9"\n', "line 1, column 10: expected UTF-8"),
    "overlong": (b'model m "\xc0\x80"\n', "expected UTF-8"),
    "escape": (MODEL + "    file \x1b[2J\n", "expected a text without control"),
    "tab-joint": (MODEL + "    file a\x0bb\n", "expected a text without control"),
    "carriage": ("model a\rmodel b\r", "expected a text without control"),
    "rubout": ("model a\x7f\n", "expected a text without control"),
    "one-line": ("a" * (4 << 20), "line 1, column 1: expected lines of 64 KiB"),
    "long-id": ("model " + "a" * 60000 + "\n", None),
    "long-label": ('model a "' + "b" * 60000 + '"\n', None),
    "long-name": (clause("a" * 201), "of 200 bytes at most"),
    "long-layer": (row("adapter", "1\n        " + "a" * 201), "of 200 bytes at most"),
    "too-large": ("#" * (4 << 20) + "\n", "at most 4194304 bytes"),
    "too-many-lines": ("\n" * 20001, "at most 20,000 lines"),
    "most-lines": ("\n" * 20000, None),
    "many-records": ("".join("model m%d\n" % i for i in range(20000)), None),
    "many-modules": ("".join("model m%d\n    modules\n        a.b[1,2]\n" % i for i in range(600)),
                     "512 models with modules or siblings at most"),
    "same-hash": ("".join("model %s\n" % "".join("-_"[i >> k & 1] for k in range(14))
                          for i in range(2)), "an id that has no record yet"),
    "many-rows": (lines(19999, "    members a\n"), None),
    "many-clauses": (lines(65, "        a\n", TENSORS), "line 67, column 9: expected rows of 64 lines"),
    "most-clauses": (lines(64, "        a\n", TENSORS), None),
    "alternatives": (clause(" | ".join(["a"] * 16000)), None),
    "bomb-alternatives": (MODEL + ("    tensors diffusion_model 1\n        "
                                   + " | ".join(["a"] * 999) + "\n") * 52,
                          "50,000 words and alternatives"),
    "bomb-rows": (MODEL + ("    tensors diffusion_model 1\n" + "        #x | #y | #z\n" * 8) * 2000,
                  None),
    "bomb-numbers": (MODEL + ("    tensors diffusion_model 1\n"
                              + "        blocks.#.attn.weight[1,1] | blocks.#.attn.weight[2,2]\n") * 9000,
                     None),
    "bomb-layers": (MODEL + ("    adapter 1\n        " + "_#" * 90 + "\n") * 9000, None),
    "bomb-pipelines": (MODEL + "    pipeline " + " ".join(["Flux"] * 10000) + "\n", None),
    "bomb-words": (MODEL + ("    says civitai " + " ".join(["Flux.1"] * 900) + "\n") * 50, None),
    "bomb-files": (MODEL + ("    file " + " ".join(["-" * 9] * 900) + "\n") * 50, None),
    "bomb-brackets": (clause("[" * 50000), "a shape between"),
    "bomb-not": (clause("!" * 50000), "a name"),
    "bomb-quotes": (row("file", '"' * 50001), "quotes"),
    "bomb-parents": (chain(9000), "at most 8 parents"),
    "bomb-ring": (ring(9000), "at most 8 parents"),
    "self": (ring(1), 'no ring, found "r0 > r0"'),
    "ring": (ring(8), "no ring, found"),
    "ring-ours": ("model flux.1\n    parent z-image\nmodel z-image\n    parent flux.1\n", "no ring"),
    "like-ring": (ring(3, "like"), None),
    "like-self": (ring(1, "like"), None),
    "members-all": (row("members", "* #* _*"), None),
    "bracket": (clause("name["), "line 3, column 9: expected a shape between"),
    "bracket-only": (clause("["), "a shape between"),
    "shape-huge": (clause("a[99999999999999999999]"), "expected sizes"),
    "shape-most": (clause("a[999999999999999]"), None),
    "shape-blank": (clause("a[1, 2]"), "expected sizes"),
    "file-empty": (row("file", '""'), "a word of a file's name"),
    "file-tilde": (row("file", "~"), "a word of a file's name"),
    "not-empty": (clause("!"), "an alternative on each side"),
    "trust": (MODEL + "    tensors vae 101\n        a\n", "a trust of 0 to 100"),
    "trust-huge": (MODEL + "    tensors vae 99999999999\n        a\n", "a trust of 0 to 100"),
    "no-head": (MODEL + "    tensors\n", "expected a"),
    "unknown-kind": (MODEL + "    tensors rocket 1\n        a\n", "a kind"),
    "unknown-word": (row("system", "rm"), "a word that such a record may have"),
    "unknown-mark": (row("file", "a path=/etc/passwd"), "a mark that such a row may have"),
    "kind": ("kind mine\n", "a record that the library has"),
    "several": ("several\n    prefixes vae x\n", "a record that the library has"),
    "excess": ("kind vae\n    excess\n        a\n", "a word that a user's file may have"),
    "label": ('model flux.1 "Virus"\n', "no label, or that of the record"),
    "rows-first": ("    file a\n", "a record before its rows"),
    "indent": (MODEL + "        file a\n    file b\n", "the indentation of the rows above"),
    "deeper": (MODEL + "    file a\n" + "     " * 3000 + "b\n", None),
    "format": (row("file", "%n%s%n"), None),
    "json": ('{"model": "m"}\n', "a type of records"),
}


def model(names):
    head, at = {}, 0
    for name in names:
        head[name] = {"dtype": "F16", "shape": [1, 1], "data_offsets": [at, at + 2]}
        at += 2
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


def run(*words):
    """(status, stdout, stderr, seconds of processor time, most bytes of memory)"""
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    child = subprocess.Popen([*COMMAND, *words], stdout=out, stderr=err)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read().decode("utf-8", "replace"))
    scale = 1 if sys.platform == "darwin" else 1024
    return (child.returncode, *texts, used.ru_utime + used.ru_stime, used.ru_maxrss * scale)


def main():
    verbose, parts = "-v" in sys.argv[1:], [a for a in sys.argv[1:] if a != "-v"]
    passed = failed = 0
    os.environ["XDG_CONFIG_HOME"] = "/nowhere"
    resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
    with tempfile.TemporaryDirectory(prefix="sft-records-") as folder:
        models = []
        for name, names in (("m", ["blocks.%d.attn.weight" % i for i in range(128)]),
                            ("l", ["lora_unet_blocks_%d_attn%s.lora_%s.weight" % (i, "_7" * 9, end)
                                   for i in range(128) for end in ("down", "up")])):
            models.append(os.path.join(folder, name + "-" * 99 + ".safetensors"))
            with open(models[-1], "wb") as file:
                file.write(model(names))
        text = os.path.join(folder, "text")
        usual = run("info", "--json", *models)[4]
        for name, (made, wanted) in FILES.items():
            if parts and not any(part in name for part in parts):
                continue
            with open(text, "wb") as file:
                file.write(made if isinstance(made, bytes) else made.encode("latin-1"))
            wrong, most = [], 0
            for words in (("records", "check", text),
                          ("info", "--json", "--records", text, *models)):
                status, out, err, seconds, memory = run(*words)
                most = max(most, seconds)
                if seconds > SECONDS or memory > usual + BYTES:
                    wrong.append("%.1f s, %d MiB" % (seconds, memory >> 20))
                if wanted and (wanted not in err or status not in (1, 2)):
                    wrong.append("status %d, expected \"%s\", got %s" % (status, wanted, err[:300]))
                if not wanted and (status not in (0, 1) or (status and words[0] == "info") or err):
                    wrong.append("status %d, got %s" % (status, err[:300]))
                if any(c < " " and c != "\n" for c in out + err):
                    wrong.append("control characters are printed")
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong or verbose:
                print("%s: %.2f s%s" % (name, most, "".join("\n    " + line for line in wrong)))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
