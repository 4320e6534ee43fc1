#!/usr/bin/env python3
"""Names of the Hub mean to us what they mean to huggingface_hub: hf:// and web pages, through
build/tests/hub_names. What we refuse beyond it is said by unnameable(), and nothing else is.

  tests/remote/hub_names_cases.py [-v]      with a Python that has huggingface_hub 2.4 or newer
"""
import itertools
import os
import subprocess
import sys
import urllib.parse

try:
    from huggingface_hub.errors import HfUriError
    from huggingface_hub.utils import parse_hf_uri
except ImportError:
    print("no huggingface_hub here, or an old one (tests/requirements-python.txt has it)")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENDPOINT = "http://127.0.0.1:8080/mirror"

TYPES = ["", "models/", "datasets/", "spaces/", "kernels/", "buckets/", "model/", "dataset/",
         "bucket/", "Models/", "models//", "/"]
IDS = ["o/n", "gpt2", "openai-community/gpt2", "O_1/n.v2-x", "_o/n_", "o/" + "n" * 96,
       "o/" + "n" * 97, "-o/n", "o-/n", "o/.n", "o/n.", "o--x/n", "o/n--x", "o/n..x", "o/n.git",
       "o/n.gitx", "o/ö", "o/n n", "", "o/", "/n", "o//n", "models/n", "datasets", "spaces/x",
       "o/n%41", "o..x/n", "o.-x/n"]
REVISIONS = ["", "@", "@main", "@v1.0", "@refs/pr/1", "@refs/pr/12abc", "@refs/pr/", "@refs/pr/x",
             "@refs/convert/parquet", "@refs/convert/duckdb.v1-x_y", "@refs/convert/é",
             "@refs/convert/", "@refs/heads/x", "@feature%2Fx", "@a%2fb%2Fc", "@a%", "@a%4",
             "@a%zzb", "@100%25", "@a%2525", "@b@c", "@%C3%A9", "@a b", "@refs%2Fpr%2F3", "@..",
             "@a%2F..%2Fb", "@a%00b", "@a%0Ab", "@%FF", "@" + "a1" * 20]
PATHS = ["", "/", "/model.safetensors", "/a/b/c.json", "/a//b", "//a", "/a/", "/a@b/c", "/a%20b",
         "/a b", "/../x", "/a/../b", "/./a", "/a/.", "/..a/b..", "/é/ü", "/a\\..\\b", "/a\\b",
         "/a%2Fb", "/...", "/a:b"]
BARE = ["hf://", "hf:", "hf:/o/n", "HF://o/n", "hf://@", "hf:///", "hf://o", "hf://@main/x",
        "hf://models", "hf://model", "hf://o@main", "hf://o@main/n", "hf://o/n@main@x/y",
        "hf://o/n/file@1.txt", "hf://o/n/a?b", "hf://o/n/a#b", "hf://o/n@a?b", "hf://o/n@a#b",
        "hf://o/n/a\nb", "hf://o/n/a\x7fb", "hf://o/n?x", "hf://buckets/o/n@main/x",
        "hf://buckets/o/n/x@y", "hf://buckets/o", "hf://buckets//o/n/x/"]

HOSTS = ["https://huggingface.co", "https://hf.co", "http://huggingface.co", "https://HF.co",
         "https://Huggingface.CO", ENDPOINT, "http://127.0.0.1:8080", "https://example.com",
         "https://huggingface.co.example.com", "https://example.com/huggingface.co"]
ROUTES = ["", "/", "/blob/main/a.json", "/resolve/main/a.json", "/raw/v1/a/b.txt", "/tree/main",
          "/tree/main/sub", "/blame/main/a.json", "/tree", "/blob", "/resolve/refs%2Fpr%2F1/a",
          "/resolve/refs/pr/1/a", "/blob/feature%2Fx/a%20b.json", "/blob/main/a%2520b",
          "/blob/main/a%2Fb", "/resolve/main/%2e%2e/x", "/resolve/main/a?download=true",
          "/resolve/main/a#L10", "/resolve/main/a%3Fb", "/resolve/main/a%23b", "/commit/abc",
          "/commits/main", "/discussions/1", "/settings", "/resolve//main//a", "/edit/main/a",
          "/resolve/main/a%00b", "/resolve/main/%FF", "/tree/sub/x", "/resolve/refs/convert/p/x"]
PAGES = ["/o/n", "/datasets/o/n", "/spaces/o/n", "/kernels/o/n", "/buckets/o/n", "/models/o/n",
         "/o", "", "/o/n--x", "/datasets/o", "//o//n", "/model/o/n"]


def texts():
    yield from BARE
    for kind, name in itertools.product(TYPES, IDS):
        yield "hf://" + kind + name
        yield "hf://" + kind + name + "@main/x"
    for kind, revision, path in itertools.product(TYPES[:6], REVISIONS, PATHS):
        yield "hf://" + kind + "o/n" + revision + path
    for host, page, route in itertools.product(HOSTS, PAGES, ROUTES):
        yield host + page + route
    # Owners that are spelt like types: only a name with its type can mean them.
    yield from ("https://hf.co/models/datasets/x/blob/main/a", "https://hf.co/models/model/x",
                "https://hf.co/models/models/x/tree/a%2Fb/c")


def odd_parts(text):
    return any(part in ("", ".", "..") for part in text.split("/")) or \
        any(part in (".", "..") for part in text.replace("\\", "/").split("/"))


def unnameable(text, name):
    """What huggingface_hub accepts and we do not."""
    parts = [name.id, name.revision or "x", name.path_in_repo or "x"]
    return (text.startswith("hf://") and any(c in text for c in "?#")
            or any(c in name.path_in_repo for c in "?#")
            or any(odd_parts(part) for part in parts)
            or any(ord(c) < 0x20 or ord(c) in (0x7F, 0xFFFD) for part in parts for c in part))


def theirs(text):
    try:
        name = parse_hf_uri(text, endpoint=ENDPOINT)
    except (HfUriError, ValueError):
        return None, False
    fields = (name.type + "s", name.id, name.revision, name.path_in_repo)
    return fields, unnameable(text, name)


def ours(line):
    fields = line.split("\t")
    if fields[0] in ("refused", "other"):
        return None
    kind, name, revision, path, _ = (f if f == "-" else urllib.parse.unquote(f) for f in fields)
    return kind, name, None if revision == "-" else revision, path


def main():
    tool = os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")),
                        "tests/hub_names")
    given = list(dict.fromkeys(texts()))
    done = subprocess.run([tool, ENDPOINT], check=True, stdout=subprocess.PIPE,
                          input="".join(text + "\0" for text in given).encode())
    lines = done.stdout.decode().splitlines()
    if len(lines) != len(given):
        print("expected %d lines, found %d" % (len(given), len(lines)))
        return 1
    failed = accepted = narrower = 0
    for text, line in zip(given, lines):
        expected, refused = theirs(text)
        accepted += expected is not None
        narrower += refused
        wrong = ours(line) != (None if refused else expected)
        failed += wrong
        if wrong or "-v" in sys.argv:
            print("%r: expected %s%s, found %r" % (text, expected, ", refused" * refused, line))
    print("huggingface_hub accepts %d, of which we refuse %d" % (accepted, narrower))
    print("%d passed, %d failed" % (len(given) - failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
