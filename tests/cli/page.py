"""What a page of `catalog` holds: page.py FILE EXPRESSION prints the expression, in which `rows` and
`more` (unpacked, of all models) are the data, `embedded` the pictures and `text` the page; `data` is
the one model's. Fails if a block is not JSON, if something runs that the policy does not name, or if
the members of rows are not those of page/types.d.ts."""
import base64
import hashlib
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BLOCK = re.compile(r'<script type="application/json" id="([a-z]+)(?:-(\d+))?">(.*?)</script>\n', re.S)


def unpack(value, part):
    if isinstance(value, str) and value[:1] == "~":
        return value[1:] if value[1:2] == "~" else unpack(part["shared"][int(value[1:])], part)
    if not isinstance(value, list):
        return value
    whole = [unpack(one, part) for one in value[1:]]
    return whole if value[0] < 0 else dict(zip(part["shapes"][value[0]], whole, strict=True))


def digest(text):
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def check_policy(text):
    """Nothing but the two that it names can run or style."""
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    script, = re.findall(r'<script type="module">(.*?)</script>', text, re.S)
    style, = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert policy.start() < min(text.index("<style"), text.index("<script"))
    assert f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)};" in policy[1]
    for part in ("base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
                 "trusted-types 'none'"):
        assert part in policy[1], part
    rest = BLOCK.sub("", text).replace(script, "").replace(style, "")
    assert len(re.findall("<script|<style|<img|<iframe|<link|<object", rest, re.I)) == 2, rest
    assert not re.search(r"<[^>]*\son\w+=|javascript:", rest, re.I)


def check_members(rows):
    with open(os.path.join(ROOT, "page/types.d.ts"), encoding="utf-8") as types:
        interface = re.search(r"interface Rows \{(.*?)\n\}", types.read(), re.S)[1]
    interface = re.sub(r"/\*.*?\*/|//[^\n]*", "", interface, flags=re.S)
    inner = re.search(r"dict: \{(.*?)\}", interface, re.S)[1]
    outer = interface.replace(inner, "")
    assert set(rows) == set(re.findall(r"(\w+):", outer)), set(rows) ^ set(re.findall(r"(\w+):", outer))
    assert set(rows["dict"]) == set(re.findall(r"(\w+):", inner))
    for name, column in rows.items():
        assert not isinstance(column, list) or name in ("roots", "takes") or len(column) == rows["count"], name


def main(path, expression):
    with open(path, encoding="utf-8", newline="") as page:
        text = page.read()
    found = {"rows": None, "model": None, "more": [], "embed": []}
    for name, _, value in BLOCK.findall(text):
        assert not re.search("[<>&\u2028\u2029]", value), name
        value = json.loads(value)
        if isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = value
    check_policy(text)
    if found["rows"]:
        check_members(found["rows"])
    more = [unpack(one, part) for part in found["more"] for one in part["models"]]
    assert not found["rows"] or len(more) == found["rows"]["count"]
    names = {"rows": found["rows"], "data": found["model"], "more": more, "text": text,
             "blocks": found["more"], "json": json, "re": re,
             "embedded": found["embed"]}
    print(eval(expression, names))


main(*sys.argv[1:])
