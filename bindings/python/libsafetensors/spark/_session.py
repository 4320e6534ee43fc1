"""Sessions: the folder of relative paths, the Python of the workers, data sources in this thread;
and the environment of tasks: hints in errors, and time saved between tasks."""
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

__all__ = ["activate", "check_workers", "speed_up_tasks", "with_hints", "path_on_driver",
           "source_name", "within_command"]

_NEEDED = "import pyarrow, libsafetensors._core"
_PYTHON = "spark.sql.execution.pyspark.python"
_ARCHIVES = ("pyspark.zip", "py4j-", "spark-core_")
_checked: dict[str, str] = {}  # Python -> why it cannot be used, "" when it can


def source_name() -> str:
    """The short name of the data source."""
    return os.environ.get("LIBSAFETENSORS_SPARK_NAME") or "safetensors"


def _jvm_of(spark: Any) -> Any:
    """The JVM, or None for a session without one in this process, such as Connect's."""
    try:
        return spark._jvm
    except Exception:
        return None


def activate(spark: Any) -> None:
    """Makes the session the active one of this thread: Spark looks for Python data sources only
    there, and a thread started by the program has none."""
    jvm = _jvm_of(spark)
    if jvm is None:
        return
    kind = getattr(spark, "_get_j_spark_session_class", None)  # before 4.0 there was one only
    (kind(jvm) if kind else jvm.SparkSession).setActiveSession(spark._jsparkSession)


def path_on_driver(path: str, spark: Any = None) -> str:
    """Absolute path. A relative one is relative to the folder that the driver's JVM runs in, as
    with Spark's own sources; without a session, or over Connect, to this process's."""
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
    """RuntimeError if the Python that Spark starts for tasks lacks the needed packages; only a
    warning if it also runs on other machines."""
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


# Errors that the caller can act on: the message is enough.
_EXPECTED = (ValueError, OSError, KeyError, ImportError, SafetensorError)


@contextlib.contextmanager
def with_hints() -> Iterator[None]:
    """Spark passes on only the text of an error: adds the hint to it, and hides the traceback of
    an expected error."""
    try:
        yield
    except _EXPECTED as error:
        hint = getattr(error, "hint", None)
        if hint and hint not in str(error):
            error.args = ("%s (%s)" % (error, hint),)
            error.__notes__ = [note for note in getattr(error, "__notes__", []) if note != hint]
        if _in_worker():
            # Read when Spark passes on the error, after which this process exits.
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


def _in_worker() -> bool:
    """Whether Spark started this process to plan or run tasks."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.startswith("pyspark.")


def within_command() -> bool:
    """Whether the job of this task is part of another command, as that of a new table of the
    catalog is (saveAsTable), but not that of save(path). The same options are passed for both.
    Batches of a stream are always part of one."""
    from pyspark import TaskContext
    context = TaskContext.get()
    if context is None or context.getLocalProperty("sql.streaming.queryId"):
        return False
    own, root = (context.getLocalProperty("spark.sql.execution." + name)
                 for name in ("id", "root.id"))
    return None not in (own, root) and own != root


def speed_up_tasks() -> None:
    """Saves 0.15 s for each further task of a process that Spark plans or runs tasks in. Before
    each task Spark invalidates all module finders, and those of its own archives on the path
    (about 20) then read the archive's directory again. Finders removed here are made again
    when needed, from the directory that Python has cached. After each task Spark collects
    garbage: objects of now, mostly modules, are exempted."""
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
