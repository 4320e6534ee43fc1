import os, time
import frames
from mishaps import mishap, ran
def test_probe(spark, flags, tmp_path):
    df = frames.frame(spark)
    rows = df.select("id").mapInArrow(mishap("reader", str(tmp_path), flags, partition=9), "id bigint")
    assert rows.count()==100
    print(ran(flags), spark.master_kind, os.listdir(os.environ["SPARK_HOME"]+"/work"))
import pytest
@pytest.mark.cluster
def test_kill(spark, flags, tmp_path):
    (tmp_path/"_job-1").mkdir(); (tmp_path/"_job-1"/"a.safetensors").touch()
    rows = frames.frame(spark).select("id").mapInArrow(mishap("executor", str(tmp_path), flags, partition=1, after=0), "id bigint")
    t=time.time()
    assert rows.count()==100
    print(time.time()-t, ran(flags), os.listdir(flags))
