#!/usr/bin/env python3
"""Render README.md and docs/ as a static site in build/site, by mkdocs.

usage: build/docs/bin/python tools/docs_site.py

README.md becomes the first page. Links to files that are no pages (headers, examples, tests) become
plain text: the site stands by itself, also from a disk."""
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCE = os.path.join(ROOT, "build", "site-source")
SITE = os.path.join(ROOT, "build", "site")
OUTSIDE = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")
GROUPS = (
    ("Start", ("index.md", "install.md", "cookbook.md", "faq.md", "glossary.md", "moving.md")),
    ("Command", ("cli.md", "catalogue.md", "collecting.md", "editing.md", "convert.md", "adapters.md",
                 "layouts.md", "merging.md", "disagreements.md", "quantise.md", "import.md", "repair.md",
                 "sidecars.md", "records.md", "remote.md", "errors.md", "json.md", "json-info.md",
                 "json-vocabularies.md")),
    ("Programs", ("c.md", "cpp.md", "python.md", "python-api.md", "abi.md", "dataset.md", "spark.md",
                  "spark-connector.md", "ray.md", "daft.md")),
    ("About", ("format.md", "conformance.md", "platforms.md", "macos.md", "accuracy.md",
               "measured.md", "design.md", "SECURITY.md", "CONTRIBUTING.md",
               "CHANGELOG.md")),
)
LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def pages():
    """{path in the project: path in the site}"""
    found = {path: "index.md" if path == "README.md" else path for path in OUTSIDE}
    for path in glob.glob("docs/*.md", root_dir=ROOT):
        found[path] = os.path.basename(path)
    return found


def moved(text, path, known):
    """The page with links as they are in the site."""
    def link(found):
        image, words, target = found.groups()
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        name, _, anchor = target.partition("#")
        place = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if image:
            return "![%s](%s)" % (words, os.path.relpath(place, "docs"))
        if place not in known:
            return words if words.startswith("`") else "%s (`%s`)" % (words, place) \
                if words != place else "`%s`" % words
        return "[%s](%s%s)" % (words, known[place], "#" + anchor if anchor else "")
    return LINK.sub(link, text)


def write_source(known):
    shutil.rmtree(SOURCE, ignore_errors=True)
    os.makedirs(os.path.join(SOURCE, "docs"))
    for path, name in known.items():
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = moved(file.read(), path, known)
        with open(os.path.join(SOURCE, "docs", name), "w", encoding="utf-8") as file:
            file.write(text)
    for folder in ("pictures", "schema"):
        shutil.copytree(os.path.join(ROOT, "docs", folder), os.path.join(SOURCE, "docs", folder))
    listed = {name for _, names in GROUPS for name in names}
    if listed != set(known.values()):
        sys.exit("tools/docs_site.py: GROUPS and the pages differ: %s" %
                 sorted(listed ^ set(known.values())))
    nav = "".join("  - %s:\n%s" % (title, "".join("    - %s\n" % name for name in names))
                  for title, names in GROUPS)
    with open(os.path.join(SOURCE, "mkdocs.yml"), "w", encoding="utf-8") as file:
        file.write("site_name: libsafetensors\ndocs_dir: docs\nsite_dir: %s\ntheme: readthedocs\n"
                   "use_directory_urls: false\nplugins: [search]\n"
                   "validation: {links: {anchors: warn}}\nnav:\n%s" % (SITE, nav))


def main():
    write_source(pages())
    return subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f",
                           os.path.join(SOURCE, "mkdocs.yml")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
