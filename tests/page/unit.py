#!/usr/bin/env python3
"""What page/ must keep to, without a browser: the rules of page/README.md, types, unit tests.

usage: build/browser/bin/python tests/page/unit.py [-v] [NAME...]
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pages  # noqa: E402
import synthetic  # noqa: E402
import tensors  # noqa: E402

ROOT, PAGE = pages.ROOT, pages.PAGE
TOOLS = os.path.join(ROOT, "build", "browser")
NODE = os.path.join(TOOLS, "bin", "node")
TSC = [NODE, os.path.join(TOOLS, "node_modules", "typescript", "bin", "tsc")]
MOST = 128 * 1024
IMPORT = re.compile(r"^import \{ [\w, ]+ \} from '\./(\w+)\.js';$")
# Comments of whole lines, which may name what code may not.
COMMENT = re.compile(r"/\*.*?\*/|^\s*//[^\n]*", re.S | re.M)
# pattern -> files that may have it
FORBIDDEN = {
    r"\b(inner|outer)HTML\b|insertAdjacentHTML|createContextualFragment|DOMParser|setHTML": (),
    r"\bdocument\.write": (),
    r"\beval\b|new Function|setTimeout\(['\"]|setInterval\(['\"]": (),
    r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|\bimport\(|Worker\(": (),
    r"setAttribute\(\s*['\"](on|style|src|href)|cssText|setAttributeNode": (),
    r"\bstyle:|['\"]style['\"]": (),
    r"createElement(NS)?\(": ("dom.js",),
    r"setAttribute\((?!['\"])": ("dom.js",),
    r"\.(src|srcset|poster)\s*=[^=]": ("preview.js",),
    r"\.href\s*=[^=]": ("dom.js", "preview.js"),
    r"window\.open": ("detail.js",),
    r"location\s*=[^=]|location\.(assign|replace)\(": (),
    r"navigator\.clipboard|execCommand": ("copy.js",),
    r"localStorage|sessionStorage": ("prefs.js",),
    r"document\.cookie|indexedDB|postMessage": (),
    r"http://(?!www\.w3\.org/2000/svg)": (),
    r"export default|export \{|export \*|\bimport \*|\brequire\(": (),
    r"debugger|console\.": (),
}
STYLE = {r"url\(|@import|@font-face|expression\(|(?<![a-z-])behavior:": ()}


def sources(kind=".js"):
    return {
        name: text(name)
        for names in pages.listed().values()
        for name in names
        if name.endswith(kind)
    }


def text(name):
    with open(os.path.join(PAGE, name), encoding="utf-8") as file:
        return file.read()


def same(found, expected, what):
    assert found == expected, f"{what}: expected {expected!r}, found {found!r}"


def run(words, **options):
    done = subprocess.run(
        words,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        **options,
    )
    assert (
        not done.returncode
    ), f"{' '.join(words[:3])} …: exit {done.returncode}\n{done.stdout[-6000:]}"
    return done.stdout


def test_listed():
    """modules.txt has every file of page/ once."""
    listed = [name for names in pages.listed().values() for name in names]
    there = [
        os.path.basename(path) for path in glob.glob(PAGE + "/*.js") + glob.glob(PAGE + "/*.css")
    ]
    same(sorted(listed), sorted(there), "files")


def test_size():
    """Scripts and styles of a page of either kind."""
    wrong = []
    for kind in ("catalog", "model"):
        sizes = {part: len(pages.join(part).encode()) for part in ("shared", kind, "style", "style-" + kind)}
        print(f"    {kind}: {sum(sizes.values())} of {MOST} bytes: {sizes}")
        wrong += [kind] if sum(sizes.values()) > MOST else []
    assert not wrong, f"expected {MOST} bytes at most"


def test_imports():
    """One line each, of files above in the same script, of names that are exported there."""
    listed = pages.listed()
    exported = {
        name: set(
            re.findall(r"^export (?:async )?(?:function\*?|const|let|class) (\w+)", code, re.M)
        )
        for name, code in sources().items()
    }
    for script in ("shared", "catalog", "model"):
        above = list(listed["shared"]) if script != "shared" else []
        for name in listed[script]:
            for line in text(name).splitlines():
                if not re.match(r"import\b", line):
                    continue
                found = IMPORT.match(line)
                assert found, f"{name}: expected import {{ a, b }} from './file.js'; found {line}"
                origin = found.group(1) + ".js"
                assert origin in above, f"{name}: {origin} is not above it"
                wanted = set(re.findall(r"\w+", line[line.index("{") : line.index("}")]))
                assert (
                    wanted <= exported[origin]
                ), f"{name}: {origin} does not export {wanted - exported[origin]}"
            above.append(name)


def test_names():
    """Top-level names are unique over all modules of a page, and each script parses."""
    for kind in ("catalog", "model"):
        found = {}
        for name in pages.listed()["shared"] + pages.listed()[kind]:
            for one in re.findall(
                r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", text(name), re.M
            ):
                assert one not in found, f"{one} is in {found[one]} and in {name}"
                found[one] = name
        with tempfile.TemporaryDirectory() as folder:
            run(
                [
                    NODE,
                    "--check",
                    pages.keep(folder, kind + ".mjs", pages.join("shared") + pages.join(kind)),
                ]
            )


def test_rules():
    """Nothing that parses markup, runs text, asks a network or stores what it should not."""
    wrong = []
    for kind, rules in ((".js", FORBIDDEN), (".css", STYLE)):
        for name, code in sources(kind).items():
            bare = COMMENT.sub(lambda one: "\n" * one.group().count("\n"), code)
            for pattern, allowed in rules.items():
                if name in allowed:
                    continue
                wrong += [
                    f"{name}:{bare[:found.start()].count(chr(10)) + 1}: {found.group()}"
                    for found in re.finditer(pattern, bare)
                ]
    assert not wrong, "\n".join(wrong)


def test_types():
    run([*TSC, "-p", "page"])


def test_join():
    """The arrays of page.c are the joined scripts and styles."""
    with tempfile.TemporaryDirectory() as folder:
        run(["cmake", f"-DPAGE={PAGE}", f"-DOUT={folder}", "-P", "cmake/page.cmake"])
        code = pages.read(os.path.join(folder, "page.c"))
        arrays = dict(re.findall(r"unsigned char (\w+)_bytes\[\] = \{([^}]*)\}", code))
        same(sorted(arrays), sorted(script.replace("-", "_") for script in pages.listed()), "arrays")
        for script in pages.listed():
            found = bytes.fromhex("".join(re.findall("0x(..)", arrays[script.replace("-", "_")])))
            assert found.decode() == pages.join(script), f"{script}: not the same"


def test_spaces():
    """What joining removes is in no literal, and separates nothing: the program is the same."""
    joined = pages.joined()
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("catalog", "model"):
            ours = joined["shared"] + joined[kind]
            whole = pages.keep(folder, "whole.js", pages.whole("shared") + pages.whole(kind))
            run(is_same(whole, pages.keep(folder, "joined.js", ours)))
            for broken in (ours.replace("$a", "$b", 1), ours.replace("let ", "var ", 1),
                           ours.replace("'none'", "'nine'", 1), ours.replace("$a", "name", 1)):
                assert broken != ours
                found = subprocess.run(is_same(whole, pages.keep(folder, "broken.js", broken)),
                                       capture_output=True, check=False)
                assert found.returncode == 1 and b"expected" in found.stderr, found


def is_same(whole, joined):
    return [NODE, os.path.join(pages.HERE, "node", "same.cjs"), TSC[1], whole, joined]


def columns():
    """Names of the columns of Rows, of types.d.ts."""
    body = re.search(r"interface Rows \{(.*?)\n\}", text("types.d.ts"), re.S).group(1)
    body = re.sub(r"/\*.*?\*/|//[^\n]*|dict: \{.*?\};", "", body, flags=re.S)
    found = re.findall(r"(\w+): (?:number|string|\(Picture \| 0\))(?:\[\])?\[\];", body)
    return [name for name in found if name not in ("roots", "takes")]


def of_type(values):
    """tsc accepts each (type, value) as a literal of that type."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(os.path.join(PAGE, "types.d.ts"), folder)
        lines = [
            f"export const value{i}: {kind} = {pages.json.dumps(value)};\n"
            for i, (kind, value) in enumerate(values)
        ]
        pages.keep(folder, "values.ts", "".join(lines))
        options = {
            "noEmit": True,
            "strict": True,
            "target": "es2022",
            "module": "es2022",
            "types": [],
        }
        pages.keep(folder, "tsconfig.json", pages.json.dumps({"compilerOptions": options}))
        run([*TSC, "-p", folder])


def test_contract():
    """What the pages of these tests have is of the types of types.d.ts, and the check notices what is not."""
    rows, more, _ = synthetic.catalogue(60)
    page = tensors.lora_page()
    of_type([("Rows", rows), ("More", more[0]), ("ModelPage", page)])
    for wrong in (
        dict(rows, extra=1),
        {key: value for key, value in rows.items() if key != "hash"},
        dict(rows, rank=["16"]),
    ):
        try:
            of_type([("Rows", wrong)])
        except AssertionError:
            continue
        raise AssertionError("a wrong value was accepted")


def test_node():
    """The unit tests by node's own runner."""
    tests = sorted(glob.glob(os.path.join(pages.HERE, "unit", "*.test.mjs")))
    said = run([NODE, "--test", "--test-reporter=tap", *tests], timeout=pages.ACTION_S * 2.5)
    count = int(re.search(r"^# pass (\d+)", said, re.M).group(1))
    assert count >= 20, said
    print(f"    {count} tests")


def main(words):
    verbose = "-v" in words
    chosen = [word for word in words if word != "-v"]
    failed = passed = 0
    for name, test in [
        (name[5:], test) for name, test in globals().items() if name.startswith("test_")
    ]:
        if chosen and name not in chosen:
            continue
        try:
            test()
            passed += 1
            if verbose:
                print(f"ok {name}")
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(
                f"FAILED {name}: {error if isinstance(error, AssertionError) else traceback.format_exc()}"
            )
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
