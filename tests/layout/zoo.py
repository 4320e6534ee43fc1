#!/usr/bin/env python3
"""convert --layout there and back on whole models: the headers of tests/zoo (models that programs
build, at their full depth), with every size divided by 64 where that is possible, and bytes made of
the names. What comes back must have the same names, shapes and bytes; zoo.txt lists the models.

    zoo.py [NAME...]          needs build/safetensors (SFT_BUILD, SFT_COMMAND)
    zoo.py --try              all entries of the lists: those that are known, and why others are not
"""
import os
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "zoo")]
import run as cases  # noqa: E402
import read as lists  # noqa: E402

LIBRARIES = ("comfy", "later", "diffsynth")
KNOWN = os.path.join(HERE, "zoo.txt")


def smaller(shape):
    return [size // 64 if size >= 128 and size % 64 == 0 else size for size in shape]


def there_and_back(entry, folder):
    """The last error, or what differs; empty if nothing does."""
    tensors = {name: (smaller(shape), cases.made(name, smaller(shape)))
               for name, _, shape in entry.tensors()}
    path, out = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out")
    back = os.path.join(folder, "back.safetensors")
    cases.write(path, tensors)
    told, ways = [], ("diffusers", "single")
    for attempt in (["--architecture", entry.identity], []):
        result = cases.run("convert", path, "-o", out, "--layout", "diffusers", "--json",
                           "--dry-run", *attempt)
        told = attempt
        if result.returncode == 0 or "known for --architecture" not in result.stderr:
            break
    if result.returncode == 0 and '"from":"diffusers"' in result.stdout:
        ways = ("single", "diffusers")
    for way, source, target in zip(ways, (path, out), (out, back)):
        if way == "single":
            target += ".safetensors"
        if not os.path.exists(source):
            source += ".safetensors"
        if os.path.isdir(source):
            source = next((os.path.join(source, one) for one in sorted(os.listdir(source))
                           if os.path.isdir(os.path.join(source, one))), source)
        result = cases.run("convert", source, "-o", target, "--layout", way, *told)
        if result.returncode:
            return result.stderr.strip()[-300:]
    have = cases.component(back) if os.path.isdir(back) else cases.read(back + ".safetensors")
    missing = sorted(set(tensors) - set(have)) or sorted(set(have) - set(tensors))
    other = [name for name in tensors if name in have and have[name] != tensors[name]]
    return "%s %s" % (missing[:3], other[:3]) if missing or other else ""


def main():
    with open(KNOWN, encoding="utf-8") as file:
        known = {tuple(line.split()) for line in file if line.strip() and line[0] != "#"}
    failed, done = 0, set()
    for library in LIBRARIES:
        for entry in lists.read(library)[1]:
            key = (library, entry.name)
            trying = "--try" in sys.argv and not entry.tasks & {"adapter", "checkpoint"} \
                and not entry.name.endswith((".prefixed", ".checkpoint", ".vae"))
            if not trying and (key not in known or (sys.argv[1:] and "--try" not in sys.argv
                                                    and entry.name not in sys.argv)):
                continue
            with tempfile.TemporaryDirectory() as folder:
                why = there_and_back(entry, folder)
            done.add(key)
            if trying:
                print("%s %s%s" % (library, entry.name, "\t# " + why.replace("\n", " ") if why else ""))
            elif why:
                failed += 1
                print("%s %s: %s" % (library, entry.name, why))
    if not sys.argv[1:]:
        for key in sorted(known - done):
            failed += 1
            print("%s %s: no such entry" % key)
    print("%d passed, %d failed" % (len(done) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
