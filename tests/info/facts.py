"""What is expected of a case, and whether a result has it.

A file of facts holds, under [CASE], lines  PATH OPERATOR JSON  with the operators
=  has  hasnt  ~  !~  >=  <=  ; "~" takes a regular expression, not JSON. PATH goes through
objects by name, through lists by index or into each element, and stops at the value of a
fact unless source, trust or others is asked for. "triggers" are the texts of
trigger_words; "exit = N" and "ok = false" speak of the run.
"""
import json
import re

LINE = re.compile(r"(\S+) (=|has|hasnt|~|!~|>=|<=) (.*)$")
FACT = {"value", "source", "trust", "others"}


def read(path):
    """{case: [(path, operator, expected)]}"""
    found, rows = {}, None
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if line.startswith("["):
                rows = found.setdefault(line[1:-1], [])
                continue
            parts = LINE.match(line)
            if not parts:
                raise SystemExit("%s:%d: not a fact: %s" % (path, number, line))
            where, operator, text = parts.groups()
            expected = text if operator in ("~", "!~") else json.loads(text)
            rows.append((where, operator, expected))
    return found


def is_fact(value):
    return isinstance(value, dict) and set(value) == FACT


def lookup(value, steps):
    if not steps:
        return value["value"] if is_fact(value) else value
    if value is None:
        return None
    step = steps[0]
    if isinstance(value, list):
        if step.isdigit():
            return lookup(value[int(step)], steps[1:]) if int(step) < len(value) else None
        return [lookup(item, steps) for item in value]
    if isinstance(value, dict):
        if is_fact(value) and step not in FACT:
            value = value["value"]
        if step in value:
            return lookup(value[step], steps[1:])
        rest = ".".join(steps)
        return value[rest] if rest in value else "(no key %s)" % step
    return "(no key %s)" % step


def ask(result, where):
    steps = where.split(".")
    if steps[0] == "triggers":
        steps = ["trigger_words"] + (steps[1:] + ["text"] if steps[1:] else ["text"])
    return lookup(result, steps)


def same(found, expected):
    if isinstance(found, bool) or isinstance(expected, bool):
        return found is expected
    if isinstance(found, (int, float)) and isinstance(expected, (int, float)):
        return abs(found - expected) <= 1e-6 * max(1.0, abs(expected))
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, dict) and isinstance(expected, dict):
        return set(found) == set(expected) and all(same(found[k], expected[k]) for k in found)
    return found == expected


def holds(found, operator, expected):
    if operator == "=":
        return same(found, expected)
    if operator in ("has", "hasnt"):
        inside = isinstance(found, list) and any(same(item, expected) for item in found)
        return inside == (operator == "has")
    if operator in ("~", "!~"):
        text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        return bool(re.search(expected, text)) == (operator == "~")
    if found is None or isinstance(found, (str, list, dict)):
        return False
    return found >= expected if operator == ">=" else found <= expected


def differences(result, rows):
    """Lines, one per fact that the result has not."""
    for where, operator, expected in rows:
        found = ask(result, where)
        if not holds(found, operator, expected):
            yield "%s: expected %s %s, found %s" % (
                where, operator,
                expected if operator in ("~", "!~") else json.dumps(expected, ensure_ascii=False),
                json.dumps(found, ensure_ascii=False)[:300])
