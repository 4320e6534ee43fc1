"""What the tests of Spark share: sessions of several processes, and what a dataset must be.

tools/spark_env.sh makes the environment; build/spark/bin/python -m pytest tests/spark runs them.
The sessions are real ones: "local" is local[2], where tasks share a JVM with the driver;
"cluster" is local-cluster[2,1,1024], a standalone master and two executors that are processes
of their own, which see of the driver only what is on disk.
"""
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

pyspark = pytest.importorskip("pyspark")

import mishaps  # noqa: E402

# Executors do not see this folder.
pyspark.cloudpickle.register_pickle_by_value(mishaps)

MASTERS = {"local": "local[2]", "cluster": "local-cluster[2,1,1024]"}

# Enough for a test of a few megabytes, and nothing of a network.
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
    # An executor that a test has killed is replaced at once, and nobody waits for it.
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.network.timeout": "60s",
    "spark.executor.heartbeatInterval": "5s",
}


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory):
    """The pip package as a Spark home, by links: a local cluster puts its executors' folders
    into it, whatever SPARK_WORKER_DIR says."""
    package = pathlib.Path(pyspark.__file__).parent
    home = pathlib.Path(tempfile.mkdtemp(prefix="spark-home-"))
    for one in package.iterdir():
        if one.name != "work":
            (home / one.name).symlink_to(one)
    (home / "work").mkdir()
    os.environ.update(SPARK_HOME=str(home), SPARK_LOCAL_IP="127.0.0.1",
                      SPARK_WORKER_DIR=str(home / "work"), PYSPARK_PYTHON=sys.executable,
                      PYSPARK_DRIVER_PYTHON=sys.executable, PYTHONDONTWRITEBYTECODE="1",
                      SPARK_LOCAL_DIRS=str(home / "work"))
    yield home
    shutil.rmtree(home, ignore_errors=True)


def start(home, master, **settings):
    """A session without anything registered: Spark finds the source by itself."""
    from pyspark.sql import SparkSession
    builder = SparkSession.builder.master(master).appName("libsafetensors")
    chosen = {**SETTINGS, "spark.sql.warehouse.dir": str(home / "work" / "warehouse"), **settings}
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture(scope="session")
def spark(request, spark_home):
    session = start(spark_home, MASTERS[request.param])
    session.master_kind = request.param
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
def out(tmp_path):
    """Where a test's dataset goes; on every process's disk."""
    return str(tmp_path / "data set %41")


@pytest.fixture
def flags(tmp_path):
    folder = tmp_path / "flags"
    folder.mkdir()
    return str(folder)


def pytest_generate_tests(metafunc):
    """Each test in both kinds of session; marks "local" and "cluster" leave it one."""
    kinds = [kind for kind in MASTERS if metafunc.definition.get_closest_marker(kind)]
    if "spark" in metafunc.fixturenames:
        metafunc.parametrize("spark", kinds or list(MASTERS), indirect=True, scope="session")


def pytest_configure(config):
    for kind, master in MASTERS.items():
        config.addinivalue_line("markers", "%s: only on %s" % (kind, master))


@pytest.fixture(scope="session")
def root_of_docs():
    return pathlib.Path(__file__).resolve().parents[2] / "docs"
