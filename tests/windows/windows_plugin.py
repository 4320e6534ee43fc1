"""For pytest under wine: the rows of python_skips.tsv, and the results in the file SFT_RESULTS.

A row is a test (FILE::TEST, FILE::TEST[PARAMETER]) or a file, and a reason. Listed tests run and
must fail; those with "!" before them are not run, because they do not end or end the process. A
listed file is left out by python.py.

The file has a line of JSON for the begin and for the result of each test, so that it tells which
one a process has ended in.
"""
import faulthandler
import json
import os
import pathlib

import pytest

LIST = pathlib.Path(__file__).with_name("python_skips.tsv")
LIMIT = 300  # seconds of a test
OUTCOMES = {}  # node: outcome


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


def short(node):
    """A node's name without the folder of its file; parameters may have slashes, too."""
    path, colons, test = node.partition("::")
    return path.rpartition("/")[2] + colons + test


def tell(node, outcome, reason=""):
    OUTCOMES[node] = outcome
    with open(os.environ["SFT_RESULTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps([node, outcome, reason]) + "\n")


def pytest_collection_modifyitems(items):
    for item in items:
        node = short(item.nodeid)
        found = ROWS.get(node) or ROWS.get(node.partition("[")[0])
        if found and found[0]:
            item.add_marker(pytest.mark.xfail(reason=found[1], strict=True))
        elif found:
            item.add_marker(pytest.mark.skip(reason=found[1]))


def pytest_runtest_logstart(nodeid):
    tell(short(nodeid), "begun")
    faulthandler.dump_traceback_later(LIMIT, exit=True)


def pytest_runtest_logfinish():
    faulthandler.cancel_dump_traceback_later()


def reason_of(report):
    if hasattr(report, "wasxfail"):
        return report.wasxfail
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    return str(report.longrepr or "")


def pytest_runtest_logreport(report):
    """The call's result, or that of the setup or the teardown if it is worse."""
    node = short(report.nodeid)
    if report.failed or report.skipped or (report.when == "call" and OUTCOMES[node] == "begun"):
        if OUTCOMES[node] != "failed":
            tell(node, report.outcome, reason_of(report))


def pytest_collectreport(report):
    if report.failed or report.skipped:
        tell(short(report.nodeid), report.outcome, reason_of(report))
