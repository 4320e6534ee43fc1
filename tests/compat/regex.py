#!/usr/bin/env python3
"""src/core/base/regex.h against the C library's regcomp (where the match lies) and Python's re (what
the groups took), on generated patterns and texts."""
import ctypes
import os
import random
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
LIBC = ctypes.CDLL(None)
COUNT = 10000


class Match(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_int), ("end", ctypes.c_int)]


def libc(pattern, text):
    """(begin, end), None without a match, "bad" for no pattern."""
    regex = ctypes.create_string_buffer(256)
    if LIBC.regcomp(regex, pattern.encode(), 1):
        return "bad"
    groups = (Match * 1)()
    found = LIBC.regexec(regex, text.encode(), 1, groups, 0)
    LIBC.regfree(regex)
    return None if found else (groups[0].begin, groups[0].end)


def atom(rng, depth):
    kind = rng.random()
    if kind < 0.5 or depth == 0:
        return rng.choice(["a", "b", "c", "1", ".", r"\.", "_"])
    if kind < 0.6:
        return rng.choice(["[ab]", "[^a]", "[a-c1]", "[^b-c.]", "[[:digit:]_]", r"\w", r"\W"])
    return "(" + pattern(rng, depth - 1) + ")"


def pattern(rng, depth):
    branches = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        items = [atom(rng, depth) + rng.choice(["", "", "", "*", "+", "?", "{2}", "{1,3}", "{0,2}",
                                                "{2,}"])
                 for _ in range(rng.randint(1, 4))]
        branches.append("".join(items))
    return "|".join(branches)


def whole(rng):
    """With conditions of its ends: glibc drops those within what repeats."""
    return rng.choice(["", "", "", "^"]) + pattern(rng, 2) + rng.choice(["", "", "", "$"])


def ours(rows):
    lines = "".join(f"{p}\t{t}\n" for p, t in rows)
    done = subprocess.run([os.path.join(BUILD, "tests", "regex")], input=lines.encode("utf-8", "surrogateescape"),
                          stdout=subprocess.PIPE, check=True)
    return done.stdout.decode().splitlines()


def numbers(line):
    words = [int(word) for word in line.split()]
    return list(zip(words[::2], words[1::2]))


# One alternative and nothing optional within a repetition: here the longest match is the greedy
# one, and Python's groups are ours.
GREEDY = [r"^([a-z]+)\.([0-9]+)\.(.*)$", r"([^.]*)[.]([^.]*)", r"(layers|blocks)\.([0-9]{1,3})",
          r"(a+)(b*)c", r"([ab]{2})([ab]{2})?", r"^(.)(.)(.)", r"(((((((((a)b)c)1)_)a)b)c)1)",
          r"(\w+)_(\w+)$", r"(^|_)lora_(up|down)", r"([a-c])([a-c])*"]
BAD = ["(", "a)", "*a", "a|*", "[", "[a", "[]", "a{2", "a{3,1}", "a{1001}", "a{", "\\", "(a)\\1",
       "[b-a]", "[[:nosuch:]]", "[[.a.]]", "\\d", "(" * 65 + ")" * 65, "(((a{99}){99}){99})", "+",
       "((a{40}){40}){0,1000}", "a{1,1001}", "a{99999}", "[[:alpha", "[[=a=]]", "[[:", "a{,1}", "^*",
       "\\b+", "(|*)"]
# A pattern, a text, the match: what is ours to decide.
FIXED = [("a.b", "a\u00e9b", (0, 4)), ("^.$", "\u20ac", (0, 3)), ("[\u00e0-\u00ff]+", "x\u00e9\u00e8", (1, 5)),
         ("[^a]", "\u20ac", (0, 3)), (r"\bb", "ab b", (3, 4)), (r"\<b\>", "ab b", (3, 4)),
         (r"a\B.", "a ab", (2, 4)), ("a|ab|abc", "abc", (0, 3)), ("(a|ab)(c|bcd)", "abcd", (0, 4)),
         ("[]]", "a]", (1, 2)), ("[a-]", "-", (0, 1)), ("[\\]", "\\", (0, 1)), ("x*", "aaa", (0, 0)),
         ("()", "a", (0, 0)), ("a||b", "b", (0, 1)), ("a{0}b", "ab", (1, 2)), (r"\{", "a{", (1, 2)),
         ("(a*)*", "b", (0, 0)), ("(a*)+c", "aac", (0, 3)), ("(a|b)*abb", "ababb", (0, 5)),
         ("b$", "ab", (1, 2)), ("$", "ab", (2, 2)), ("^b", "ab", None), (r"\s\S", "a b", (1, 3)),
         (r"\<b", "ab", None), (r"a\>", "ab", None), (r"\<-", "-", None), (r"-\>", "-", None),
         # a byte that is no UTF-8 is a character
         ("a.c", "a\udcffc", (0, 3)), ("\udcff+", "a\udcff\udcff", (1, 3)), ("[[]", "a[", (1, 2)),
         ("[a[]", "[", (0, 1)), ("a{0,0}b", "ab", (1, 2)), ("[^\udcff]", "\udcff\udcfe", (1, 2))]


def main():
    rng = random.Random(20)
    bad = []
    rows = [(whole(rng), "".join(rng.choice("aabbc1_.") for _ in range(rng.randint(0, 12))))
            for _ in range(COUNT)]
    checks = len(rows)
    for (form, text), line in zip(rows, ours(rows)):
        found = line if line == "bad" else None if line == "none" else numbers(line)[0]
        wanted = libc(form, text)
        if found != wanted:
            bad.append(f"{form!r} in {text!r}: expected {wanted}, found {found}")

    rows = [(form, "".join(rng.choice(["a", "b", "c", "1", "_", ".", "lora_up", "layers.1"])
                           for _ in range(rng.randint(0, 9))))
            for form in GREEDY for _ in range(500)]
    checks += len(rows)
    for (form, text), line in zip(rows, ours(rows)):
        match = re.search(form, text)
        wanted = match and [match.span(i) if i <= match.re.groups else (-1, -1) for i in range(10)]
        found = None if line == "none" else numbers(line)
        if found != wanted:
            bad.append(f"groups of {form!r} in {text!r}: expected {wanted}, found {found}")

    checks += len(BAD) + len(FIXED)
    bad += [f"{form!r} is taken" for form, line in zip(BAD, ours([(b, "a") for b in BAD]))
            if line != "bad"]
    for (form, text, wanted), line in zip(FIXED, ours([row[:2] for row in FIXED])):
        found = line if line == "bad" else None if line == "none" else numbers(line)[0]
        if found != wanted:
            bad.append(f"{form!r} in {text!r}: expected {wanted}, found {found}")

    # Exponential for who goes back; quadratic for who begins anew at every character.
    hard = [("(a*)*b", "a" * 30000), ("(a|aa)+$", "a" * 30000 + "b"), ("(a?){500}a{500}", "a" * 500),
            (".*.*.*x", "a" * 30000)]
    begin = time.monotonic()
    ours(hard)
    spent = time.monotonic() - begin
    checks += 1
    if spent > 20:
        bad.append(f"hard patterns: expected under 20 s, found {spent:.0f} s")
    print("\n".join(bad[:30]))
    print(f"{checks - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
