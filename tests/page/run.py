#!/usr/bin/env python3
"""Pages in a real browser: what they show, do and never do.

usage: build/browser/bin/python tests/page/run.py [-v] [--firefox] [NAME...]

A case is a function case_NAME(world) of a cases_*.py; one with a `firefox` attribute runs in
Firefox too. Pages and screenshots are kept in build/page-shots. Cases assert what is there and
how often, never how long it takes.
"""

import functools
import glob
import importlib
import os
import shutil
import subprocess
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import corpus  # noqa: E402
import folder as folders  # noqa: E402
import pages  # noqa: E402
import pictures  # noqa: E402
import synthetic  # noqa: E402
import tensors  # noqa: E402

BUILD = os.environ.get("SFT_BUILD", os.path.join(pages.ROOT, "build"))
COMMAND = os.path.join(BUILD, "safetensors")
SHARED = os.environ.get("SFT_SHARED", os.path.join(os.path.dirname(pages.ROOT), "shared"))
SHOTS = os.path.join(pages.ROOT, "build", "page-shots")


class World:
    """The browser and the pages, each made when a case first asks for it."""

    # make test leaves to make test-browsers what differs from the rest by a colour or a string.
    short = os.environ.get("SFT_TARGET") == "test"

    def __init__(self, firefox):
        self.folder = os.path.join(BUILD, "page-cases" + ("-firefox" if firefox else ""))
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        os.makedirs(SHOTS, exist_ok=True)
        module = importlib.import_module("firefox" if firefox else "browser")
        self.browser = module.Browser()

    def view(self, path, fragment="", **options):
        return self.browser.view(path, fragment, **options)

    def keep(self, name, text):
        return pages.keep(self.folder, name, text)

    @functools.cached_property
    def models(self):
        """(path, rows, more) of a catalogue of 500 models."""
        rows, more, _ = synthetic.catalogue(500, os.path.join(self.folder, "500"))
        return self.keep("500/catalogue.html", pages.catalogue_page(rows, more)), rows, more

    @functools.cached_property
    def embedded(self):
        rows, more, pictures = synthetic.catalogue(40, None, embed=True)
        return (
            self.keep("embedded/catalogue.html", pages.catalogue_page(rows, more, pictures)),
            rows,
            pictures,
        )

    @functools.cached_property
    def many(self):
        """A catalogue of 50,000 models, which share 40 pictures."""
        rows, more, _ = synthetic.catalogue(50000, thin=True)
        for i in range(40):
            pages.keep(self.folder, f"50000/{i}.png", pictures.picture(i)[0])
        for i, preview in enumerate(rows["preview"]):
            if preview and preview["href"]:
                rows["preview"][i] = dict(preview, href=f"{i % 40}.png", video=False)
        return self.keep("50000/catalogue.html", pages.catalogue_page(rows, more)), rows, more

    @functools.cached_property
    def hostile(self):
        rows, more, _ = corpus.catalogue(os.path.join(self.folder, "hostile"))
        return self.keep("hostile/catalogue.html", pages.catalogue_page(rows, more)), rows, more

    def model(self, name):
        """(path, data) of a page about one model."""
        data = tensors.MODELS[name]()
        return self.keep(f"model/{name}.html", pages.model_page(data)), data

    def command(self, *words):
        """Exit status and output of the command."""
        done = subprocess.run(
            [COMMAND, *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=pages.ACTION_S,
        )
        return done.returncode, done.stdout, done.stderr

    @functools.cached_property
    def real(self):
        """A page that the command wrote of 300 models."""
        folders.make(os.path.join(self.folder, "real"), 300)
        return self.catalog("real", "real/catalogue.html", {0})

    @functools.cached_property
    def real_hostile(self):
        """One of a folder whose every text is of the corpus; a file of it is broken."""
        folders.hostile(os.path.join(self.folder, "real-hostile"))
        return self.catalog("real-hostile", "real-hostile.html", {0})

    def catalog(self, folder, page, status, *options):
        code, _, said = self.command("catalog", folder, "-o", page, *options)
        assert code in status, f"exit {code}: {said[-1500:]}"
        return os.path.join(self.folder, page)

    def shot(self, view, name):
        view.page.screenshot(path=os.path.join(SHOTS, name + ".png"))


def cases(firefox):
    found = []
    for path in sorted(glob.glob(os.path.join(pages.HERE, "cases_*.py"))):
        module = importlib.import_module(os.path.basename(path)[:-3])
        found += [
            (name[5:], case)
            for name, case in vars(module).items()
            if name.startswith("case_") and (not firefox or hasattr(case, "firefox"))
        ]
    return found


def main(words):
    verbose, firefox = "-v" in words, "--firefox" in words
    chosen = [word for word in words if not word.startswith("-")]
    failed = passed = 0
    world = World(firefox)
    try:
        for name, case in cases(firefox):
            if chosen and not any(name == one or name.startswith(one + "_") for one in chosen):
                continue
            begin = time.monotonic()
            try:
                case(world)
                passed += 1
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                notes = "\n".join(getattr(error, "__notes__", []))
                print(f"FAILED {name}: {error}\n{notes}")
                lines = [
                    line
                    for line in traceback.format_tb(error.__traceback__)
                    if "site-packages" not in line
                ]
                print("".join(lines[1:]), flush=True)
            else:
                if verbose:
                    print(f"ok {name} ({time.monotonic() - begin:.1f} s)", flush=True)
    finally:
        world.browser.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
