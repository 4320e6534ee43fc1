#!/usr/bin/env python3
"""Make the zoo: names, dtypes and shapes of the tensors of public model classes.

usage: build/zoo/bin/python tools/zoo.py [LIBRARY ...] [--only TEXT] [--out FOLDER]

Makes every class of the libraries (all packages if none is named) without allocating weights
and writes tests/zoo/LIBRARY.txt.xz. --only takes the classes with TEXT in their names; --out
is another folder for the lists. Needs the environment of `make zoo`; no network.
"""
import argparse
import importlib
import lzma
import os
import sys
import time

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", DIFFUSERS_VERBOSITY="error",
                  TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
LIBRARIES = ("transformers", "diffusers", "peft", "timm", "spandrel", "loras",
             "unseen")
PROGRAMS = ("comfy", "later", "diffsynth", "trainers", "presets", "forms")    # from clones (`make oracles`)


def define_operators():
    """torchvision's wheel is built for CUDA; without that, importing it asks for these."""
    import torch
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def torch_without_cuda():
    """Trainers ask for the current device when they are imported."""
    import torch
    torch.cuda.current_device = lambda: 0


def write(library, only, folder):
    import torch
    from zoo_common import make_all
    module = importlib.import_module("zoo_" + library)
    begin = time.monotonic()
    jobs = [job for job in module.jobs() if only in job[1]]
    text, (made, failed) = make_all(jobs)
    first = "# %s, torch %s\n" % (module.versions(), torch.__version__.split("+")[0])
    packed = lzma.compress((first + text).encode(), preset=9 | lzma.PRESET_EXTREME)
    path = os.path.join(folder, library + ".txt.xz")
    with open(path, "wb") as file:
        file.write(packed)
    print("%-13s%5d made, %3d not, %9d bytes, %7d packed, %4.0f s"
          % (library, made, failed, len(text), len(packed), time.monotonic() - begin), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY",
                        choices=LIBRARIES + PROGRAMS + ([],))
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--out", default=os.path.join(ROOT, "tests", "zoo"), metavar="FOLDER")
    given = parser.parse_args()
    os.makedirs(given.out, exist_ok=True)
    operators = define_operators()
    torch_without_cuda()
    for library in given.libraries or LIBRARIES:
        write(library, given.only, given.out)
    del operators


if __name__ == "__main__":
    main()
