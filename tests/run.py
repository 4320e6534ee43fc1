#!/usr/bin/env python3
"""Run the suites of a target and sum what they say.

usage: tests/run.py TARGET [--only NAME,...] [--skip NAME,...] [--no-build] [-v] [--list]

A target is a preset and the suites that have it in their row of SUITES. A suite is a
command whose last line reads "N passed, N failed" (", N skipped" may follow), or a
pytest run. It gets:
  SFT_BUILD    the build folder, absolute
  SFT_COMMAND  the command as shell words (an emulator may stand before it)
  SFT_EMULATE  the emulator alone, or empty: put it before any program of SFT_BUILD
  SFT_SHARED   the folder of shared test data, absolute; it may not exist
  SFT_TARGET   the target's name
  SFT_LIMIT    the suite's limit in seconds, of which limits inside the suite are shares
  TMPDIR       a folder of its own, removed with all that a killed suite or another's library left
and runs in the repository's root. A suite that reaches its limit is killed and has failed.
Two suites run at a time, and those of BESIDE in a third lane, which then takes from the two lanes' list, too.
"""
import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PY = sys.executable
WINE = {  # tools/wine_env.sh
    "SFT_EMULATE": "/usr/lib/wine/wine64", "WINEDEBUG": "-all",
    "SFT_VERDICT": os.path.join(ROOT, "build", "mingw", "tests", "verdict.exe")}
ASAN = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1"}
QEMU = "qemu-s390x -L /usr/s390x-linux-gnu"

# target: (preset, build folder, targets to build, environment)
TARGETS = {
    "check": ("release", "build", "all tests examples", {}),
    "test": ("release", "build", "all tests examples fuzzers benches", {"FAULTS_EVERY": "500"}),
    "asan": ("asan", "build/asan", "all tests examples fuzzers", dict(ASAN, FAULTS_EVERY="8")),
    # the part in `test`, compiled in two thirds of the time: without UBSan's null, alignment and
    # pointer-overflow
    "asan-short": ("asan-short", "build/asan-short", "safetensors_command short_tests",
                   dict(ASAN, SFT_TARGET="asan", FAULTS_EVERY="1500")),
    "msan": ("msan", "build/msan", "all tests fuzzers", {"MSAN_OPTIONS": "allocator_may_return_null=1"}),
    "tsan": ("tsan", "build/tsan", "all tests", {"TSAN_OPTIONS": "halt_on_error=1"}),
    "kill": ("release", "build", "all", {}),
    "coverage": ("coverage", "build/coverage", "all tests examples fuzzers", {"FAULTS_EVERY": "12"}),
    "m32": ("m32", "build/m32", "all tests fuzzers", {}),
    "s390x": ("s390x", "build/s390x", "all tests fuzzers", {"SFT_EMULATE": QEMU}),
    "aarch64": ("aarch64", "build/aarch64", "all tests fuzzers", {
        "SFT_EMULATE": "qemu-aarch64 -L /usr/aarch64-linux-gnu"}),
    "windows": ("windows", "build/mingw", "all tests", WINE),
    "long": ("release", "build", "all tests", {}),  # of which `test` has a part
    # what releases are made by, on Linux
    "zig": ("zig-linux", "build/zig-linux", "safetensors_command", {}),
}

# The environment with this clone's package: tools/venv.sh, which `make python` runs too.
VENV = "build/venv/bin/python"
# The one with Spark: tools/spark_env.sh.
SPARK = "build/spark/bin/python"
# The one with Ray, Daft, DuckDB, Polars: tools/engines_env.sh.
ENGINES = "build/engines/bin/python"

# The one with playwright, and a Chromium beside it: tools/browser_env.sh.
BROWSER = "build/browser/bin/python"

PYTEST = ["-m", "pytest", "-q", "--durations=20"]
SHORT, LONG = ["-m", "not long"], ["-m", "long"]

# What begins, for what is short to fill both lanes to the same end: what others wait for, then the longest.
FIRST = ("venv", "spark-env", "spark", "asan", "browser-env", "page", "cli", "package",
         "unit", "info", "stats", "import")
# The suite that makes what suites of this program, or of this name, need: spark-env the wheel.
MADE_BY = {VENV: "venv", SPARK: "spark-env", ENGINES: "engines-env", BROWSER: "browser-env", "zig": "zig-env",
           "spark-env": "venv"}
# Waits for servers, disks and processes for half of its time: runs beside two others. Among those that
# come after it are some that wait as much.
BESIDE = {"python"}
# One at a time: under wine each has a server, and asan-short is itself one of two.
ALONE = {"windows", "asan-short"}
TURN = threading.Condition()
SAYING = threading.Lock()
RUNNING = set()

# A limit is for what hangs: three times what the suite takes in `make test` on two processors that
# do nothing else, and a minute at least. Environments may take as long as their downloads, asan the
# time of a first build. Under targets other than check and test a suite of theirs may take ten
# times as long: sanitizers, emulators, every point at which a system can fail.
# cmocka is there neither for MemorySanitizer nor for other machines.
# name, targets, limit in seconds, command ({build}: the build folder), what must be there
# (else: skipped)
SUITES = [
    ("layers", "check test", 600, [PY, "tests/layers.py"], "tests/layers.py"),
    ("headers", "check test", 600, [PY, "tests/headers.py"], "tests/headers.py"),
    ("exports", "check test", 600, [PY, "tests/exports.py"], "tests/exports.py"),
    ("abi", "check test", 600, [PY, "tests/abi/run.py"], "tests/abi/run.py"),
    ("docs", "check test", 600, [PY, "tests/docs.py"], "tests/docs.py"),
    ("figures", "check test", 600, [PY, "tests/figures.py"], "tests/figures.py"),
    ("front", "check test", 600, [PY, "tests/front.py"], "tests/front.py"),
    ("unit", "check test asan tsan coverage windows", 600, [PY, "tests/unit.py", "unit"], "tests/unit.py"),
    # what takes ASan longest and reads no file of strangers: casts, hashes, operations on weights, many edits
    ("unit-short", "asan-short", 900,
     [PY, "tests/unit.py", "unit", "!test_convert,test_encode,test_hash_many,test_hash_threads,test_merge_cases,"
      "test_adapter_cases,test_edit_odd,test_dataset_merge,test_dataset_storages,test_direct"], "tests/unit.py"),
    ("unit-bundle", "test asan", 600, [PY, "tests/unit.py", "unit-bundle"], "tests/unit.py"),
    ("bundle", "test", 600, [PY, "tests/bundle.py"], "tests/bundle.py"),
    ("parts", "test", 600, [PY, "tests/parts.py"], "tests/parts.py"),
    ("kernels", "aarch64", 900,
     [PY, "tests/unit.py", "unit", "test_convert,test_hash,test_cpu,test_json,test_number"],
     "tests/unit.py"),
    ("corpus", "check test asan asan-short msan coverage m32 s390x aarch64 windows", 600, [PY, "tests/corpus/run.py"],
     "tests/corpus/run.py"),
    ("conformance", "check test", 600, [PY, "tests/conformance/host_cases.py"],
     "tests/conformance/host_cases.py"),
    ("cli", "check test asan coverage windows", 1400, [PY, "tests/cli/run.py"],
     "tests/cli/run.py"),
    ("cold", "test", 600, [PY, "tests/cold.py"], "tests/cold.py"),
    ("info", "check test asan coverage zig", 600, [PY, "tests/info/run.py"], "tests/info/run.py"),
    ("zoo", "test coverage", 600, [PY, "tests/zoo/run.py"], "tests/zoo/run.py"),
    ("online", "test asan coverage", 600, [PY, "tests/online/run.py"], "tests/online/run.py"),
    ("remote", "check test asan tsan coverage", 600, [PY, "tests/remote/run.py"],
     "tests/remote/run.py"),
    ("schema", "test coverage", 600, [PY, "tests/schema.py", "{build}/safetensors"], "tests/schema.py"),
    ("dataset", "check test asan coverage", 600, [PY, "tests/dataset/run.py"],
     "tests/dataset/run.py"),
    ("examples", "check test asan coverage", 600, [PY, "tests/examples/run.py"],
     "tests/examples/run.py"),
    ("nulls", "check test", 600, [PY, "tests/nulls.py"], "tests/nulls.py"),
    ("vendoring", "test", 600, [PY, "tests/vendoring/run.py"], "tests/vendoring/run.py"),
    ("vendoring-long", "long", 600, [PY, "tests/vendoring/run.py", "--fetch"], "tests/vendoring/run.py"),
    ("cpp", "test", 600, [PY, "tests/cpp/run.py"], "tests/cpp/run.py"),
    ("cpp-long", "long", 600, [PY, "tests/cpp/run.py", "--all"], "tests/cpp/run.py"),
    ("install", "test", 600, [PY, "tests/install/run.py"], "tests/install/run.py"),
    ("packaging", "test", 600, [PY, "tests/packaging/run.py"], "tests/packaging/run.py"),
    ("same", "zig", 600,
     [PY, "tools/same.py", "build/safetensors", "{build}/safetensors", "info --json", "ls --json",
      "check", "lora info --json", "hash"], "tools/same.py"),
    ("warnings", "long", 900, [PY, "tests/no_warnings.py"], "tests/no_warnings.py"),
    ("faults", "test long asan coverage windows", 600, [PY, "tests/unit.py", "faults"],
     "tests/faults/CMakeLists.txt"),
    # power cuts and commits only in `test` and `asan`: these take ASan five times as long
    ("faults-short", "asan-short", 1500, [PY, "tests/unit.py", "faults", "!test_crash,test_dataset_commit,test_weights"],
     "tests/faults/CMakeLists.txt"),
    ("macos", "test", 600, [PY, "tests/unit.py", "macos"], "tests/macos/CMakeLists.txt"),
    ("macos-cli", "long", 600,
     ["env", "SFT_COMMAND={build}/tests/macos/safetensors", PY, "tests/cli/run.py", "add", "put",
      "rm-tensor", "rename", "meta", "repair", "merge", "split", "select", "convert", "dup/plain",
      "dup/none", "hash"],
     "tests/macos/CMakeLists.txt"),
    ("kill", "test kill", 600, [PY, "tests/faults/kill/run.py"], "tests/faults/kill/run.py"),
    ("desktop", "test coverage", 600, [PY, "tests/desktop/run.py"], "tests/desktop/run.py"),
    ("move", "test long asan coverage", 600, [PY, "tests/move/run.py"], "tests/move/run.py"),
    ("managers", "test asan coverage", 600, [PY, "tests/move/managers.py"], "tests/move/managers.py"),
    ("day", "test asan coverage", 600, [PY, "tests/move/day.py"], "tests/move/day.py"),
    ("windows", "windows", 900, [PY, "tests/windows/run.py"], "tests/windows/run.py"),
    ("zip", "windows", 2400, [PY, "tests/windows/zip.py"], "tests/windows/zip.py"),
    ("disk", "test", 600, [PY, "tests/faults/disk/run.py"], "tests/faults/disk/run.py"),
    ("attack", "test", 600, [PY, "tests/attack/run.py"], "tests/attack/run.py"),
    ("modes", "check test", 600, [PY, "tests/attack/modes.py"], "tests/attack/modes.py"),
    ("replay", "test asan msan coverage m32 s390x aarch64", 600, [PY, "fuzz/run.py", "--replay"],
     "fuzz/run.py"),
    ("hostile", "test", 600, ["{build}/tests/hostile", "40"], "tests/hostile/hostile.c"),
    ("hostile-long", "long asan msan", 6000, ["{build}/tests/hostile"], "tests/hostile/hostile.c"),
    ("records", "test asan msan coverage", 600, [PY, "tests/hostile/records.py"],
     "tests/hostile/records.py"),
    ("memory", "test", 600, ["{build}/tests/memory", "{build}/safetensors", "5"],
     "tests/hostile/memory.c"),
    ("memory-long", "long", 900, ["{build}/tests/memory", "{build}/safetensors"],
     "tests/hostile/memory.c"),
    ("differential", "test", 600, [PY, "tests/compat/differential.py", "--count", "60000"],
     "tests/compat/differential.py"),
    ("differential-long", "long", 900, [PY, "tests/compat/differential.py"],
     "tests/compat/differential.py"),
    ("convert", "test coverage", 600, [PY, "tests/compat/convert.py"], "tests/compat/convert.py"),
    ("stats", "check test coverage", 600, [PY, "tests/compat/stats.py"], "tests/compat/stats.py"),
    ("model-page", "test coverage", 600, [PY, "tests/compat/model_page.py"],
     "tests/compat/model_page.py"),
    ("dequantize", "test coverage zig", 600, [PY, "tests/compat/dequantize.py"],
     "tests/compat/dequantize.py"),
    ("quant", "check test asan coverage zig", 600, [PY, "tests/quant/run.py"], "tests/quant/run.py"),
    ("adapter", "check test asan coverage zig", 600, [PY, "tests/adapter/run.py"], "tests/adapter/run.py"),
    ("adapter-quantised", "test asan coverage zig", 600, [PY, "tests/adapter/quantised.py"],
     "tests/adapter/quantised.py"),
    ("adapter-options", "test asan coverage", 600, [PY, "tests/adapter/options.py"],
     "tests/adapter/options.py"),
    ("adapter-differential", "test", 600, [PY, "tests/adapter/differential.py", "400"],
     "tests/adapter/differential.py"),
    ("adapter-grid", "test coverage", 600, [PY, "tests/adapter/grid.py"], "tests/adapter/grid.py"),
    ("adapter-differential-long", "long", 1800,
     [PY, "tests/adapter/differential.py", "20000", "1000"], "tests/adapter/differential.py"),
    ("merge", "test asan tsan m32 s390x coverage zig", 600, [PY, "tests/merge/run.py"], "tests/merge/run.py"),
    ("adapter-names", "long coverage", 600, [PY, "tests/adapter/names.py"], "tests/adapter/names.py"),
    ("adapter-fused", "test asan coverage zig", 600, [PY, "tests/adapter/fused.py"], "tests/adapter/fused.py"),
    ("adapter-factors", "test asan coverage zig", 600, [PY, "tests/adapter/factors.py"],
     "tests/adapter/factors.py"),
    ("layout", "check test asan coverage zig", 600, [PY, "tests/layout/run.py"], "tests/layout/run.py"),
    ("layout-zoo", "test coverage", 900, [PY, "tests/layout/zoo.py"], "tests/layout/zoo.py"),
    ("adapter-hostile", "test long asan coverage", 600, [PY, "tests/adapter/hostile.py"],
     "tests/adapter/hostile.py"),
    ("quant-loading", "check test", 600, [PY, "tests/quant/loading.py"], "tests/quant/loading.py"),
    ("quant-written", "test asan coverage", 900, [PY, "tests/quant/written.py"], "tests/quant/written.py"),
    ("quant-declared", "check test asan coverage", 600, [PY, "tests/quant/declared.py"],
     "tests/quant/declared.py"),
    ("quant-presets", "check test", 120, [PY, "tests/quant/presets.py"], "tests/quant/presets.py"),
    ("quant-near", "test asan coverage", 600, [PY, "tests/quant/near.py"], "tests/quant/near.py"),
    ("quant-near-long", "long", 3600, [PY, "tests/quant/near.py", "every"], "tests/quant/near.py"),
    ("quant-mutations", "test asan coverage", 600, [PY, "tests/quant/mutations.py", "800"],
     "tests/quant/mutations.py"),
    ("quant-strange", "test asan coverage", 600, [PY, "tests/quant/strange.py", "600"],
     "tests/quant/strange.py"),
    ("quant-strange-long", "long", 3600, [PY, "tests/quant/strange.py", "20000"],
     "tests/quant/strange.py"),
    ("quant-mutations-long", "long", 3600, [PY, "tests/quant/mutations.py", "100000"],
     "tests/quant/mutations.py"),
    ("mingw", "test", 600, [PY, "tests/mingw.py"], "tests/mingw.py"),
    ("regex", "check test asan coverage", 600, [PY, "tests/compat/regex.py"], "tests/compat/regex.py"),
    ("roundtrip", "test asan coverage", 600, [PY, "tests/compat/roundtrip.py"],
     "tests/compat/roundtrip.py"),
    ("import", "check test asan coverage", 600, [PY, "tests/import/run.py"],
     "tests/import/run.py"),
    ("venv", "test long", 1200, ["tools/venv.sh", "--count"], "tools/venv.sh"),
    ("python", "test", 3600,
     [VENV, *PYTEST, *SHORT, "tests/python", "--ignore=tests/python/test_package.py"], VENV),
    ("python-long", "long", 2400, [VENV, *PYTEST, *LONG, "tests/python"], VENV),
    ("remote-honest", "test coverage", 600, [VENV, "tests/remote/hub_honest.py"], VENV),
    ("remote-sign", "test coverage", 600, [VENV, "tests/remote/sign_cases.py"], VENV),
    ("remote-s3", "test coverage", 600, [VENV, "tests/remote/s3_cases.py"], VENV),
    ("remote-names", "test coverage", 600, [VENV, "tests/remote/hub_names_cases.py"], VENV),
    ("import-hostile", "test coverage", 600, [PY, "tests/import/hostile.py"],
     "tests/import/hostile.py"),
    ("import-hostile-long", "long", 600, [PY, "tests/import/hostile.py"], "tests/import/hostile.py"),
    ("readers", "test coverage", 600, [VENV, "tests/differential/run.py", "--count", "1000"], VENV),
    ("readers-long", "long", 3600, [VENV, "tests/differential/run.py", "--count", "100000"], VENV),
    ("import-full", "long coverage", 1200, [VENV, "tests/import/run.py", "--full"], VENV),
    ("package", "test", 600, [VENV, *PYTEST, *SHORT, "tests/python/test_package.py"], VENV),
    ("spark-env", "test long", 1200, ["tools/spark_env.sh", "--count"], "tools/spark_env.sh"),
    ("spark", "test", 1700, [SPARK, *PYTEST, *SHORT, "tests/spark"], SPARK),
    ("spark-long", "long", 1800, [SPARK, *PYTEST, *LONG, "tests/spark"], SPARK),
    ("engines-env", "long", 1200, ["tools/engines_env.sh", "--count"], "tools/engines_env.sh"),
    ("engines", "long", 1200, [ENGINES, *PYTEST, "tests/engines"], ENGINES),
    ("browser-env", "test", 600, ["tools/browser_env.sh", "--count"], "tools/browser_env.sh"),
    ("page-unit", "test", 600, [BROWSER, "tests/page/unit.py"], BROWSER),
    ("page", "test", 1600, [BROWSER, "tests/page/run.py"], BROWSER),
    ("official", "test", 600, [VENV, "tests/compat/official_suite.py"],
     "tests/compat/official_suite.py"),
    ("official-set", "long", 600, [VENV, "tests/compat/official_suite.py", "--official"],
     "tests/compat/official_suite.py"),
    ("mutate", "long", 600, [PY, "tests/mutate.py"], "tests/mutate.py"),
    ("asan", "test", 2200, [PY, "tests/run.py", "asan-short"], "tests/run.py"),
    ("zig-env", "long", 1200, ["tools/zig_env.sh", "--count"], "tools/zig_env.sh"),
    ("zig", "long", 1800, [PY, "tests/run.py", "zig"], "tests/run.py"),
]

SLOWER = 10


def limit_of(row, target):
    """Seconds."""
    slower = "test" in row[1].split() and target not in ("check", "test") and row[0][-3:] != "env"
    return row[2] * (SLOWER if slower else 1)


CLOSING = re.compile(rb"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
PYTEST_CLOSING = re.compile(rb"^=*\s*(\d+ (?:passed|failed|skipped|error|xfailed|xpassed|deselected).*) in [\d.]+s",
                    re.M)


def counts(output):
    """(passed, failed, skipped) as the suite says, or None."""
    closing = CLOSING.findall(output)
    if closing:
        return tuple(int(n or 0) for n in closing[-1])
    summary = PYTEST_CLOSING.findall(output)
    if not summary:
        return None

    def number(*words):
        return sum(int(m) for w in words
                   for m in re.findall(rb"(\d+) " + w + rb"s?\b", summary[-1]))

    return number(b"passed", b"xfailed"), number(b"failed", b"error", b"xpassed"), \
        number(b"skipped")


# How suites, pytest and cmocka begin a line that names a failure.
FAILURE = re.compile(r"^(?:[\w./-]+: )?(?:FAIL(?:ED)?\b|ERROR\b|failed: |\[  FAILED  \]).*", re.M)


def failures(name, remark, output):
    """Lines that tell what failed in a suite, for the end of the run."""
    text = output.decode("utf-8", "replace")
    lines = FAILURE.findall(text) or text.splitlines()[-6:]
    return [f"{name}: {line[:300]}" for line in ([remark] if remark else []) + lines[:12]]


def run(command, limit, env, log):
    """Exit status (None when killed at the limit), output, kept in log, and seconds of processor time."""
    with open(log, "wb") as out:
        child = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL,
                                 stdout=out,
                                 stderr=subprocess.STDOUT, start_new_session=True)
        RUNNING.add(child)
        late = threading.Event()
        timer = threading.Timer(limit, lambda: (late.set(), stop(child)))
        timer.daemon = True  # Ctrl-C does not wait for it
        timer.start()
        try:
            _, status, used = os.wait4(child.pid, 0)
        finally:
            timer.cancel()
            stop(child)
            RUNNING.discard(child)
        child.returncode = os.waitstatus_to_exitcode(status)
    with open(log, "rb") as text:
        return None if late.is_set() else child.returncode, text.read(), used.ru_utime + used.ru_stime


def stop(child):
    """Stop a suite and every process that it left."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def judge(status, output):
    """The verdict on a finished suite, and a remark."""
    found = counts(output)
    if status is None:
        return (found or (0, 0, 0))[0], (found or (0, 0, 0))[1] + 1, 0, "killed at its limit"
    if found is None:
        return 0, 1, 0, f"exit {status} without a closing line"
    passed, failed, skipped = found
    if failed == 0 and status != 0:
        return passed, 1, skipped, f"exit {status}"
    if passed + failed + skipped == 0:
        return 0, 1, 0, "ran nothing"
    return passed, failed, skipped, ""


def report(name, seconds, used, limit, result, output, log):
    passed, failed, skipped, remark = result
    said = f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
    print(f"{name:<14}{seconds:7.1f} s of {limit:<4} {used:7.1f} s busy  {said}{'  (' + remark + ')' if remark else ''}",
          flush=True)
    if failed:
        tail = output.decode("utf-8", "replace").splitlines()[-40:]
        print("\n".join("    " + line for line in tail))
        print(f"    all of it: {os.path.relpath(log, ROOT)}", flush=True)


def build(target, env, logs):
    preset, _, goals, _ = TARGETS[target]
    # Without optimisation gcc warns of its own intrinsics, and frames are larger.
    strict = "OFF" if target == "coverage" else "ON"
    launcher = env.get("CMAKE_C_COMPILER_LAUNCHER", "")
    # Hundreds of programs, each with the sanitizers' runtime.
    linker = "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold" if target == "asan-short" and shutil.which("mold") else ""
    script = (f"cmake --preset {preset} -DSFT_WERROR={strict} --log-level=WARNING "
              f"-DCMAKE_C_COMPILER_LAUNCHER={launcher} {linker} && "
              f"cmake --build --preset {preset} --target {goals}")
    begin = time.monotonic()
    log = os.path.join(logs, "build.log")
    status, output, used = run(["bash", "-c", script], 900, env, log)
    result = (1, 0, 0, preset) if status == 0 else (0, 1, 0, f"exit {status}")
    report("build", time.monotonic() - begin, used, 900, result, output, log)
    # Counts of earlier runs would be added to. (Other build folders may hold wine's, which leads
    # to everything.)
    if target == "coverage":
        for path in glob.glob(os.path.join(env["SFT_BUILD"], "**", "*.gcda"), recursive=True):
            os.remove(path)
    return status == 0


def environment(target):
    _, folder, _, extra = TARGETS[target]
    env = dict(os.environ, SFT_BUILD=os.path.join(ROOT, folder), SFT_TARGET=target,
               SFT_EMULATE="", PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8")
    env.setdefault("SFT_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
    env.update(extra)
    # What a version manager puts in Python's place costs 0.2 s a start.
    python, found = os.path.realpath(PY), shutil.which("python3")
    if not found or os.path.realpath(found) != python:
        env["PATH"] = os.path.dirname(python) + os.pathsep + env.get("PATH", os.defpath)
    # What one clone compiled is another's. (Counts of coverage go to the folder that was compiled in.)
    if target in ("check", "test", "asan-short") and env.get("HOME") and shutil.which("ccache"):
        env.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CCACHE_BASEDIR=ROOT, CCACHE_NOHASHDIR="1", CCACHE_DEPEND="1")
    command = [env["SFT_EMULATE"], f"{env['SFT_BUILD']}/safetensors"]
    if target == "windows":
        env["WINEPREFIX"] = subprocess.check_output(
            [os.path.join(ROOT, "tools", "wine_env.sh"), "--prefix"], text=True).strip()
        command[1:] = [f"{env['SFT_BUILD']}/tests/start.exe", command[1] + ".exe"]
    env["SFT_COMMAND"] = " ".join(filter(None, command))
    for name in ("NO_COLOR", "CLICOLOR_FORCE", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR"):
        env.pop(name, None)
    return env


def hear_signals():
    """Restore signals that a background run starts with ignored: suites test them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def wine(env, what):
    """Under wine: begin or end its server, which is that of the suite's TMPDIR."""
    if env["SFT_TARGET"] == "windows":
        subprocess.run([os.path.join(ROOT, "tools", "wine_env.sh"), what], env=env, check=True,
                       stdin=subprocess.DEVNULL)


def suite(row, env, logs, verbose):
    """(passed, failed, skipped, lines that tell of failures) of a suite, after printing its result."""
    name, _, _, command, needs = row
    limit = limit_of(row, env["SFT_TARGET"])
    if not glob.glob(needs, root_dir=ROOT):
        with SAYING:
            print(f"{name:<14}{'':>7}    {'':<4} {'':>7}         1 skipped  (no {needs})", flush=True)
        return 0, 0, 1, []
    started = time.monotonic()
    log = os.path.join(logs, name + ".log")
    words = [word.replace("{build}", env["SFT_BUILD"]) for word in command]
    temporary = tempfile.mkdtemp(prefix="sft-")
    os.chmod(temporary, 0o755)  # suites that become another user have folders in it
    env = dict(env, SFT_LIMIT=str(limit), TMPDIR=temporary)
    wine(env, "--serve")
    status, output, used = run(words, limit, env, log)
    wine(env, "--stop")
    subprocess.run(["chmod", "-R", "u+rwx", temporary], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(temporary, ignore_errors=True)
    result = judge(status, output)
    with SAYING:
        report(name, time.monotonic() - started, used, limit, result, output, log)
        if verbose:
            print(output.decode("utf-8", "replace"), flush=True)
    return *result[:3], failures(name, result[3], output) if result[1] else []


def lane(own, waiting, unmade, env, logs, verbose, results):
    """Run suites of `own`, then of `waiting`, which the lanes share; `unmade` has those that others wait for."""
    while True:
        with TURN:
            while True:
                rows = own or waiting
                row = next((row for row in rows if MADE_BY.get(
                    row[3][0], MADE_BY.get(row[0])) not in unmade), None)
                if row or not rows:
                    break
                TURN.wait()
            if not row:
                return
            rows.remove(row)
        try:
            results.append(suite(row, env, logs, verbose))
        finally:
            with TURN:
                unmade.discard(row[0])
                TURN.notify_all()


def main():
    hear_signals()
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-v", dest="verbose", action="store_true", help="show all output")
    args = parser.parse_args()
    only, skip = set(filter(None, args.only.split(","))), set(args.skip.split(","))
    unknown = (only | skip - {""}) - {row[0] for row in SUITES}
    if unknown:
        parser.error("no suite " + ", ".join(sorted(unknown)))
    chosen = [row for row in SUITES if args.target in row[1].split()
              and (not only or row[0] in only) and row[0] not in skip]
    if args.list:
        print("\n".join(f"{row[0]:<14}{limit_of(row, args.target):>5} s  {' '.join(row[3][1:])}" for row in chosen))
        return 0

    env = environment(args.target)
    logs = os.path.join(env["SFT_BUILD"], "logs")
    os.makedirs(logs, exist_ok=True)
    begin = time.monotonic()
    results = []
    if args.no_build or build(args.target, env, logs):
        waiting = sorted(chosen, key=lambda row: FIRST.index(row[0]) if row[0] in FIRST else len(FIRST))
        unmade = {row[0] for row in chosen} & set(MADE_BY.values())
        beside = [row for row in waiting if row[0] in BESIDE]
        waiting = [row for row in waiting if row[0] not in BESIDE]
        lanes = [threading.Thread(target=lane, daemon=True,
                                  args=(own, waiting, unmade, env, logs, args.verbose, results))
                 for own in [[]] * (1 if args.target in ALONE else 2) + [beside] * bool(beside)]
        try:
            for one in lanes:
                one.start()
            for one in lanes:
                one.join()
        finally:
            for child in list(RUNNING):
                stop(child)
        if len(results) < len(chosen):
            results.append((0, 1, 0, []))
    else:
        results.append((0, 1, 0, []))
    for line in (line for one in results for line in one[3]):
        print(line)
    totals = [sum(one[i] for one in results) for i in range(3)]
    under = ", tested under wine" if args.target == "windows" else ""
    spent = os.times()
    print(f"{args.target}{under}: {time.monotonic() - begin:.0f} s, of processors "
          f"{spent.children_user + spent.children_system:.0f} s")
    skipped = f", {totals[2]} skipped" if totals[2] else ""
    print(f"{totals[0]} passed, {totals[1]} failed{skipped}")
    return 0 if totals[0] and not totals[1] else 1


if __name__ == "__main__":
    sys.exit(main())
