"""docs/install.md's section "Spark from a clone of this project" runs as it stands there, in a folder of its own: its program
as a process, then its command, as in an environment that is active."""
import os
import re
import subprocess
import sys

import pytest

import holding

pytestmark = [pytest.mark.source, pytest.mark.long]

TOLD = """
status = spark.sparkContext._jsc.sc().getExecutorMemoryStatus()
print("executors:", status.size() - 1)
spark.stop()
"""


def test_from_spark(spark_home, root_of_docs, tmp_path):
    text = (root_of_docs / "install.md").read_text(encoding="utf-8")
    section = re.search(r"^### Spark from a clone of this project\n(.*?)^## ", text, re.M | re.S)[1]
    (program,) = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    install, command = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    assert install.startswith("pip install .") and "pyspark" in install
    lines = [line for line in program.splitlines() if line.strip() and line[0] != "#"]
    assert len(lines) <= 12

    environment = {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        environment.pop(name, None)  # Spark takes python3 of PATH
    done = subprocess.run(["python", "-c", program + TOLD], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split("\n")[:3] == ["10000", "(1000, 64)", "executors: 2"], done.stderr
    done = subprocess.run(command.strip(), shell=True, cwd=tmp_path, env=environment,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "intact: 10000 samples" in done.stdout, done.stdout + done.stderr
    told = holding.whole(str(tmp_path / "embeddings"))
    assert told["total_samples"] == 10_000 and len(told["shards"]) >= 10
