"""For pytest under wine: the rows of python_skips.tsv, and the results as JSON in SFT_RESULTS.

A row is a test (FILE::TEST, FILE::TEST[PARAMETER]) or a file, and a reason. Listed tests run and
must fail; those with "!" before them are not run, because they do not end or end the process. A
listed file is not run.
"""
import json
import os
import pathlib

import pytest

LIST = pathlib.Path(__file__).with_name("python_skips.tsv")
RESULTS = {}  # node: outcome and reason


def rows():
    """{case: (whether it runs, reason)}"""
    found = {}
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        case, reason = line.split("\t")
        name = case.lstrip("!")
        if not name or not reason or name in found:
            raise pytest.UsageError("python_skips.tsv: expected a case and a reason, each case "
                                    "once, found %r" % line)
        found[name] = not case.startswith("!") and "::" in name, reason
    return found


ROWS = rows()


def node_of(item):
    return item.nodeid.rpartition("/")[2]


def pytest_ignore_collect(collection_path):
    if collection_path.name in ROWS:
        RESULTS[collection_path.name] = "skipped", ROWS[collection_path.name][1]
        return True
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        node = node_of(item)
        found = ROWS.get(node) or ROWS.get(node.partition("[")[0])
        if found and found[0]:
            item.add_marker(pytest.mark.xfail(reason=found[1], strict=True))
        elif found:
            item.add_marker(pytest.mark.skip(reason=found[1]))


def pytest_runtest_logreport(report):
    node = report.nodeid.rpartition("/")[2]
    if report.outcome == "passed" and (report.when != "call" or node in RESULTS):
        return
    if RESULTS.get(node, ("passed",))[0] == "failed":
        return
    reason = str(report.longrepr or "")
    if hasattr(report, "wasxfail"):
        reason = report.wasxfail
    elif report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
    RESULTS[node] = report.outcome, reason


def pytest_collectreport(report):
    if report.failed or report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        RESULTS[report.nodeid.rpartition("/")[2]] = report.outcome, reason


def pytest_sessionfinish():
    path = os.environ.get("SFT_RESULTS")
    if path:
        pathlib.Path(path).write_text(json.dumps(RESULTS), encoding="utf-8")
