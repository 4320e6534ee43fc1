"""What the functions ask of a session: the folder of relative paths, the Python of its workers,
that Spark finds Python sources in this thread; and what tasks do for the next one."""
from __future__ import annotations

import contextlib
import gc
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from .._core import SafetensorError

__all__ = ["activate", "check_workers", "ease_tasks", "hints_told", "path_on_driver",
           "source_name"]

_NEEDED = "import pyarrow, libsafetensors._core"
_PYTHON = "spark.sql.execution.pyspark.python"
_ARCHIVES = ("pyspark.zip", "py4j-", "spark-core_")
_checked: dict[str, str] = {}  # Python -> why it cannot be used, "" when it can


def source_name() -> str:
    """What the data source is called."""
    return os.environ.get("LIBSAFETENSORS_SPARK_NAME") or "safetensors"


def _jvm_of(spark: Any) -> Any:
    """None of a session without a JVM here, as Connect's."""
    try:
        return spark._jvm
    except Exception:
        return None


def activate(spark: Any) -> None:
    """Makes the session the active one of this thread. Spark looks for Python sources in that
    one only, and a thread that the program starts has none."""
    jvm = _jvm_of(spark)
    if jvm is None:
        return
    kind = getattr(spark, "_get_j_spark_session_class", None)  # before 4.0 there was one only
    (kind(jvm) if kind else jvm.SparkSession).setActiveSession(spark._jsparkSession)


def path_on_driver(path: str, spark: Any = None) -> str:
    """A relative path is below the folder that the driver's JVM runs in, as with Spark's own
    sources. Without a session, or over Connect, below this process's."""
    from ..dataset._storage import scheme_of
    if scheme_of(path) is not None or os.path.isabs(path):
        return path
    jvm = _jvm_of(spark) if spark is not None else _active_jvm()
    folder = jvm.java.lang.System.getProperty("user.dir") if jvm is not None else os.getcwd()
    return os.path.normpath(os.path.join(folder, path))


def _active_jvm() -> Any:
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    active = getattr(context, "_active_spark_context", None)
    return active._jvm if active is not None else None


def check_workers(spark: Any) -> None:
    """RuntimeError when the Python that Spark starts for tasks lacks what they need; a warning
    where that Python is on other machines, too."""
    if _jvm_of(spark) is None:
        return
    context = spark.sparkContext
    name = spark.conf.get(_PYTHON, None) or context.pythonExec
    python = shutil.which(name)
    if python is None or os.path.abspath(python) == os.path.abspath(sys.executable):
        return
    if python not in _checked:
        _checked[python] = _missing(python)
    if _checked[python]:
        text = ("the Python of Spark's workers, %s (%s), cannot be used: %s. Set PYSPARK_PYTHON "
                "before the session is made, for this machine to %s, on a cluster to a Python "
                "that has the package for every executor"
                % (name, python, _checked[python], sys.executable))
        if context.master.split("[")[0] in ("local", "local-cluster"):
            raise RuntimeError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)


# What a caller can do something about: its text says all.
_EXPECTED = (ValueError, OSError, KeyError, ImportError, SafetensorError)


@contextlib.contextmanager
def hints_told() -> Iterator[None]:
    """Of an error Spark carries the text alone: the hint goes into it, and of one that is
    expected the traceback stays out."""
    try:
        yield
    except _EXPECTED as error:
        hint = getattr(error, "hint", None)
        if hint and hint not in str(error):
            error.args = ("%s (%s)" % (error, hint),)
        if _in_worker():
            # Read when Spark passes the error on; this process ends with that.
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def _in_worker() -> bool:
    """Whether Spark has started this process, to plan or run tasks."""
    told = getattr(sys.modules["__main__"], "__spec__", None)
    return told is not None and told.name.startswith("pyspark.")


def ease_tasks() -> None:
    """In a process that Spark plans or runs tasks in: takes 0.15 s from each further one.
    Before each, Spark has all finders of modules look anew, and those of its own archives on
    the path (about 20) read the archive's directory for that. Finders that are forgotten are
    made again when needed, from the directory that Python has kept. After each, Spark has all
    garbage collected: what is there now, modules above all, need not be looked through."""
    if not _in_worker():
        return
    from zipimport import zipimporter
    for path, finder in [*sys.path_importer_cache.items()]:
        if isinstance(finder, zipimporter) and \
                os.path.basename(finder.archive).startswith(_ARCHIVES):
            sys.path_importer_cache.pop(path, None)
    if not gc.get_freeze_count():
        gc.freeze()


def _missing(python: str) -> str:
    try:
        done = subprocess.run([python, "-c", _NEEDED], capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    last = done.stderr.strip().splitlines()[-1:]
    return "" if done.returncode == 0 else last[0] if last else "it failed"
