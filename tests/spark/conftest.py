"""Fixtures of the tests of Spark: sessions of several processes.

tools/spark_env.sh makes the environment; build/spark/bin/python -m pytest tests/spark runs them.
The sessions are real ones: "local" is local[2], where tasks share a JVM with the driver;
"cluster" is local-cluster[2,1,1024], a standalone master and two executors that are processes
of their own, which share only the disk with the driver; "speculating" is a standalone
master with two workers at addresses of their own, since Spark gives a task no second attempt at
the host of the first.
"""
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

pyspark = pytest.importorskip("pyspark")

import faults  # noqa: E402
import frames  # noqa: E402
import holding  # noqa: E402
from places import flags, out  # noqa: E402, F401

# Executors do not see this folder.
pyspark.cloudpickle.register_pickle_by_value(faults)

MASTERS = {"local": "local[2]", "cluster": "local-cluster[2,1,1024]", "speculating": None}
# The sessions of a test without a mark; those of several processes are `long`.
EACH = ("local", "cluster")

# Enough for tests of a few megabytes; no network.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # An executor killed by a test is replaced immediately.
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.network.timeout": "60s",
    "spark.executor.heartbeatInterval": "5s",
    # Spark 3.5 would reuse a worker that a test has killed.
    "spark.python.worker.reuse": "true" if frames.SOURCES else "false",
}


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory):
    """The pip package as a Spark home, by links: a local cluster creates its executors' folders
    in it, regardless of SPARK_WORKER_DIR."""
    package = pathlib.Path(pyspark.__file__).parent
    home = pathlib.Path(tempfile.mkdtemp(prefix="spark-home-"))
    for one in package.iterdir():
        if one.name not in ("work", "python"):
            (home / one.name).symlink_to(one)
    (home / "work").mkdir()
    # Without the package's copy in pyspark.zip, which every Python process would compile again.
    (home / "python" / "lib").mkdir(parents=True)
    os.environ.update(SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1",
                      SPARK_WORKER_DIR=str(home / "work"), PYSPARK_PYTHON=sys.executable,
                      PYSPARK_DRIVER_PYTHON=sys.executable, PYTHONDONTWRITEBYTECODE="1",
                      SPARK_LOCAL_DIRS=str(home / "work"))
    yield home
    shutil.rmtree(home, ignore_errors=True)


def start(home, master, **settings):
    """A session with nothing registered: Spark finds the source by itself."""
    from pyspark.sql import SparkSession
    builder = SparkSession.builder.master(master).appName("libsafetensors")
    chosen = {**SETTINGS, "spark.sql.warehouse.dir": str(home / "work" / "warehouse"), **settings}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


# Second attempts start soon; Spark counts a denied one as a failure, and allows few.
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.task.maxFailures": "16",
    "spark.executor.memory": "512m",
    # Results pass through the executor's store, which delays the news that the attempt allowed to
    # commit is done, so that there is time to deny the other one.
    "spark.task.maxDirectResultSize": "1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}


def until(found, what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError("%s: not in %d s" % (what, seconds))


@contextlib.contextmanager
def standalone(home):
    """A master and two workers, each a process; yields the master's address."""
    started = []

    def launch(host, *command):
        log = home / "work" / ("%s-%d.log" % (command[0].rpartition(".")[2], len(started)))
        environment = {**os.environ, "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m",
                       "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                       "SPARK_WORKER_DIR": str(home / "work" / host)}
        with open(log, "w") as file:
            started.append(subprocess.Popen(
                [str(home / "bin" / "spark-class"), *command, "--host", host, "--webui-port",
                 "0"], stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=environment))
        return log

    try:
        log = launch("127.0.0.1", "org.apache.spark.deploy.master.Master", "--port", "0")
        address = until(lambda: re.search(r"spark://127\.0\.0\.1:\d+", log.read_text()),
                        "a standalone master")[0]
        for host in ("127.0.0.2", "127.0.0.3"):
            launch(host, "org.apache.spark.deploy.worker.Worker", address, "--cores", "2",
                   "--memory", "1g")
        until(lambda: log.read_text().count("Registering worker") == 2, "two workers")
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="session")
def spark(request, spark_home):
    kind = request.param
    with contextlib.ExitStack() as stack:
        master, more = MASTERS[kind], {}
        if master is None:
            master = stack.enter_context(standalone(spark_home))
            events = spark_home / "work" / "events"
            events.mkdir()
            more = {**SPECULATION, "spark.eventLog.dir": events.as_uri()}
        session = start(spark_home, master, **more)
        session.master_kind = kind
        yield session
        session.stop()


@pytest.fixture
def conf(spark):
    """Settings of the session for one test."""
    before = {}

    def change(**values):
        for name, value in values.items():
            name = name.replace("__", ".")
            before.setdefault(name, spark.conf.get(name, None))
            spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture
def old(spark, out, conf):
    """An existing dataset of 40 wide rows; tasks get their rows in small batches."""
    conf(spark__sql__execution__arrow__maxRecordsPerBatch="20")
    frames.write(frames.wide(spark, 40, 2, 10_000), out, batch_size=10, columns="x",
                 generate_index=True)
    holding.whole(out)
    return out


def pytest_generate_tests(metafunc):
    """Runs each test in two kinds of session, or only in those it is marked with."""
    kinds = [kind for kind in MASTERS if metafunc.definition.get_closest_marker(kind)]
    if "spark" in metafunc.fixturenames:
        metafunc.parametrize("spark", [kind if kind == "local" else pytest.param(kind, marks=pytest.mark.long)
                                       for kind in kinds or EACH], indirect=True, scope="session")


def pytest_configure(config):
    for kind, master in MASTERS.items():
        config.addinivalue_line("markers", "%s: only on %s" % (
            kind, master or "workers at two hosts"))
    # py4j leaves its connections to the garbage collector.
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
    config.addinivalue_line("markers", "source: the data source, not the functions")


def pytest_collection_modifyitems(items):
    """Before Spark 4.0 there are only the functions (frames.py uses them): skips tests marked
    "source", and speculation, where Spark denies the commit of the source."""
    for item in items if not frames.SOURCES else ():
        if item.get_closest_marker("source") or item.get_closest_marker("speculating"):
            item.add_marker(pytest.mark.skip(reason="no Python data sources before Spark 4.0"))


@pytest.fixture(scope="session")
def root_of_docs():
    return pathlib.Path(__file__).resolve().parents[2] / "docs"
