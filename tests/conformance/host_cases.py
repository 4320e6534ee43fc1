#!/usr/bin/env python3
"""Does the host of drivers see what it should, and does the table count it as it should?"""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import cases

HERE = os.path.dirname(os.path.abspath(__file__))
HOST = os.path.join(HERE, "drivers", "host.py")
DRIVER = '''
import ctypes, os, signal
def read(path):
    if path == "segfault": os.kill(os.getpid(), signal.SIGSEGV)
    if path == "exit": os._exit(3)
    if path == "memory": bytearray(5 << 30)
    if path == "error": raise KeyError("x")
    if path == "noise": print("this is no answer")
    return {"tensors": [("t", "U8", (2,), b"ab")], "metadata": None}
'''
GOOD = {"tensors": [["t", "U8", [2],
                     "fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603"]],
        "metadata": None, "accept": True}
EXPECTED = [("good", GOOD), ("segfault", {"crash": "SIGSEGV"}), ("good", GOOD),
            ("exit", {"crash": "exit 3"}), ("memory", {"crash": "memory"}),
            ("error", {"accept": False, "error": "KeyError"}), ("noise", GOOD), ("good", GOOD)]
SHELL = 'while read -r path; do case $path in segfault) kill -SEGV $$;; exit) exit 3;; ' \
        '*) echo "{\\"accept\\":true}";; esac; done'
SPOKEN = [("good", {"accept": True}), ("segfault", {"crash": "SIGSEGV"}),
          ("good", {"accept": True}), ("exit", {"crash": "exit 3"}), ("good", {"accept": True})]
passed, failures = 0, []


def demand(ok, what):
    global passed
    passed += bool(ok)
    if not ok:
        failures.append(what)


def host(arguments, expected, folder):
    done = subprocess.run([sys.executable, HOST, *arguments], stdout=subprocess.PIPE, timeout=120,
                          env=dict(os.environ, PYTHONPATH=folder),
                          input="".join(path + "\n" for path, _ in expected).encode())
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    demand(len(answers) == len(expected), "%d answers" % len(answers))
    for (path, want), found in zip(expected, answers):
        demand(all(found.get(key) == value for key, value in want.items()),
               "%s: expected %s, found %s" % (path, want, found))


def judged():
    want = cases.content(b"\2\0\0\0\0\0\0\0{}ab", [["t", "U8", [2], [0, 2]]], None)
    digest = GOOD["tensors"][0][3]

    def of(verdict, found):
        return cases.outcome(cases.Case("x", "", "R1", verdict, want), found)

    def accepted(**change):
        row = {"name": "t", "dtype": "U8", "shape": [2], "data": digest, **change}
        return {"accept": True, "tensors": [list(row.values())]}

    refused = {"accept": False, "error": "E"}
    for verdict, found, expected in [
            ("accept", accepted(), ("agrees", "")), ("either", accepted(), ("agrees", "")),
            ("accept", accepted(data=[0, 2]), ("agrees", "")),
            ("accept", accepted(data=None), ("agrees", "")),
            ("accept", {"accept": True}, ("agrees", "")),
            ("refuse", accepted(), ("accepts", "")), ("refuse", refused, ("agrees", "E")),
            ("accept", refused, ("refuses", "E")), ("either", refused, ("agrees", "E")),
            ("accept", accepted(name="u"), ("content", "names")),
            ("accept", accepted(dtype="I8"), ("content", "dtype")),
            ("either", accepted(shape=[2.0]), ("content", "shape")),
            ("accept", accepted(shape=[True]), ("content", "shape")),
            ("accept", accepted(data="00"), ("content", "bytes")),
            ("accept", accepted(data=[0, 1]), ("content", "offsets")),
            ("accept", dict(accepted(), metadata={"a": "b"}), ("content", "metadata")),
            ("accept", dict(accepted(), metadata={}), ("agrees", "")),
            ("refuse", {"crash": "time"}, ("crash", "time"))]:
        demand(of(verdict, found) == expected, "%s %s: expected %s, found %s" % (
            verdict, found, expected, of(verdict, found)))


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "driver_of_test.py"), "w", encoding="utf-8") as f:
            f.write(DRIVER)
        host(["driver_of_test"], EXPECTED, folder)
        host(["--", "bash", "-c", SHELL], SPOKEN, folder)
    judged()
    for what in failures:
        print("FAIL", what)
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
