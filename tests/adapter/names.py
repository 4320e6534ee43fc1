#!/usr/bin/env python3
"""Does lora merge find every layer of the zoo's adapters in a model that they are for? The zoo has
the names and shapes that trainers write, and those of models; --dry-run reads no data.

    names.py [-v] [LIBRARY...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)

An adapter counts if all of its modules have a tensor in one of the models of its identity. The
others are for models of a size, or with parts, that the zoo lacks, or of a layout that is not
known (DiffSynth's own); -v names them.
"""
import collections
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "zoo")]
import read  # noqa: E402
from run import COMMAND  # noqa: E402

MODELS = ("comfy", "diffsynth", "diffusers", "transformers")
FOUND = {"trainers": 517}  # at least


def models():
    found = collections.defaultdict(list)
    for library in MODELS:
        for entry in read.read(library)[1]:
            names = [name for name, _, _ in entry.folded]
            if not any("lora" in name for name in names):
                found[entry.identity].append(entry)
    return found


def fits(folder, model, adapter):
    done = subprocess.run([*COMMAND, "lora", "merge", model, adapter, "-o",
                           os.path.join(folder, "out.safetensors"), "--dry-run"],
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit("adapter names: %s %s: exit %d: %s" % (model, adapter, done.returncode,
                                                        done.stderr))
    return done.returncode == 0


def main():
    verbose = "-v" in sys.argv[1:]
    libraries = [word for word in sys.argv[1:] if word != "-v"] or list(FOUND)
    known, passed, failed = models(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        written = {}
        adapter = os.path.join(folder, "adapter.safetensors")
        for library in libraries:
            found, missed, last = 0, [], {}
            for entry in read.read(library)[1]:
                candidates = known.get(entry.identity, [])
                # the one that the adapter before it fitted, first
                first = last.get(entry.identity, 0)
                order = sorted(range(min(len(candidates), 8)), key=lambda i: i != first)
                if not candidates:
                    continue
                read.write_model(adapter, entry)
                for i in order:
                    key = (entry.identity, i)
                    if key not in written:
                        written[key] = os.path.join(folder, "%d.safetensors" % len(written))
                        read.write_model(written[key], candidates[i])
                    if fits(folder, written[key], adapter):
                        last[entry.identity] = i
                        found += 1
                        break
                else:
                    missed.append("%s %s" % (entry.identity, entry.name))
            fine = found >= FOUND.get(library, 1)
            passed += fine
            failed += not fine
            print("%s: %d adapters fit, %d do not" % (library, found, len(missed)))
            if verbose or not fine:
                print("\n".join("  " + name for name in missed))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
