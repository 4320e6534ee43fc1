"""The list of what does not pass under wine: skips.tsv, for the target `windows` alone."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))


class Skips:
    """The rows of one suite, none for other targets."""

    def __init__(self, suite):
        self.reasons, self.used = {}, set()
        # Whether what a test skips by itself has to be in the list, too.
        self.listed = os.environ.get("SFT_TARGET") == "windows"
        if not self.listed:
            return
        with open(os.path.join(HERE, "skips.tsv"), encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
        for row in rows:
            if len(row) != 3 or not all(row):
                raise SystemExit("skips.tsv: expected suite, case and reason, found %r" % row)
            if row[0] == suite:
                if row[1] in self.reasons:
                    raise SystemExit("skips.tsv: %s %s is there twice" % (suite, row[1]))
                self.reasons[row[1]] = row[2]

    def __contains__(self, case):
        return case in self.reasons

    def not_run(self, case):
        return self.reasons.get(case, "").startswith("not run:")

    def verdict(self, case, ok):
        """passed, failed or skipped; a case that passes although it is listed has failed."""
        if case not in self.reasons:
            return "passed" if ok else "failed"
        self.used.add(case)
        if ok:
            print("skips.tsv: %s passes: remove its row" % case)
        return "failed" if ok else "skipped"

    def whole(self):
        """Programs that are not built."""
        names = [case for case in self.reasons if ":" not in case]
        self.used.update(names)
        return names

    def unused(self):
        """Rows of no case: errors of the list."""
        rest = sorted(set(self.reasons) - self.used)
        for case in rest:
            print("skips.tsv: no case %s" % case)
        return len(rest)
