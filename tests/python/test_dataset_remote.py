"""Datasets in an object store: moto's server in a process of its own."""
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from libsafetensors import SafetensorError, dataset
from libsafetensors.dataset._conditional import Conditional

pa = pytest.importorskip("pyarrow")
pytest.importorskip("moto.server")
fs = pytest.importorskip("pyarrow.fs")
if not hasattr(fs, "S3FileSystem"):
    pytest.skip("pyarrow without S3", allow_module_level=True)


@pytest.fixture(scope="module")
def server():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    env = dict(os.environ, MOTO_EC2_LOAD_DEFAULT_AMIS="false")
    running = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p",
                                str(port)], env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    url = "http://127.0.0.1:%d" % port
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(url + "/moto-api/", timeout=5).close()
                break
            except OSError:
                assert running.poll() is None, "moto's server did not start"
                time.sleep(0.2)
        yield "127.0.0.1:%d" % port
    finally:
        running.terminate()
        running.wait()


@pytest.fixture
def s3(server, request):
    """(URL of a folder in a new bucket, storage options, the bucket's filesystem)."""
    options = {"endpoint_override": server, "scheme": "http", "access_key": "key",
               "secret_key": "very-secret", "region": "us-east-1",
               "allow_bucket_creation": "true"}
    store = fs.S3FileSystem(**{**options, "allow_bucket_creation": True})
    bucket = "b%d" % abs(hash(request.node.name))
    store.create_dir(bucket)
    return ("s3://%s/a folder/100%%25" % bucket,
            {"storage." + key: value for key, value in options.items()},
            fs.SubTreeFileSystem(bucket + "/a folder/100%25", store))


def table(*values):
    return pa.table({"c": pa.array(values, pa.int64())})


def values(url, storage, **options):
    with dataset.open(url, **storage, **options) as found:
        return [row["c"].item() for row in found]


def names(store):
    selector = fs.FileSelector("", recursive=True, allow_not_found=True)
    return sorted(one.path for one in store.get_file_info(selector)
                  if one.type == fs.FileType.File)


def test_write_append_overwrite(s3):
    url, storage, store = s3
    made = dataset.write(table(1, 2, 3), url, batch_size=2, **storage)
    assert made["total_samples"] == 3 and values(url, storage) == [1, 2, 3]
    with pytest.raises(FileExistsError):
        dataset.write(table(1), url, batch_size=2, **storage)
    dataset.write(table(4), url.replace("s3:", "s3a:"), batch_size=2, mode="append",
                  generate_index=True, **storage)
    assert values(url, storage) == [1, 2, 3, 4]
    assert "_tensor_index.parquet" in names(store) and len(names(store)) == 6
    found = dataset.open(url, **storage)
    assert found.take([3, 0])["c"].tolist() == [4, 1]
    assert dataset.verify(url, deep=True, **storage)["ok"]
    dataset.write(table(5), url, batch_size=2, mode="overwrite", **storage)
    assert values(url, storage) == [5]
    for version, rows in ((1, [1, 2, 3]), (2, [1, 2, 3, 4])):
        with dataset.open(url, version=version, **storage) as found:
            assert [row["c"].item() for row in found] == rows
    assert dataset.verify(url, **storage)["versions"] == 3
    dataset.gc(url, delete=True, grace=0, keep=1, **storage)
    assert values(url, storage) == [5] and len(names(store)) == 2
    assert json.loads(store.open_input_file("dataset_manifest.json").read())["version"] == 3


def test_overwrite_leaves_what_is_not_ours(s3):
    url, storage, store = s3
    made = dataset.write(table(1), url, batch_size=1, generate_index=True, **storage)
    for name in ("thesis.docx", "dataset_manifest.json"):
        made["shards"].append({"shard_path": name, "samples_count": 0, "bytes": 1})
    for name, data in (("dataset_manifest.json", json.dumps(made).encode()), ("thesis.docx", b"x")):
        with store.open_output_stream(name) as out:
            out.write(data)
    with pytest.warns(UserWarning, match="2 files that the replaced manifest named"):
        dataset.write(table(4), url, batch_size=1, mode="overwrite", keep_old=0, **storage)
    assert values(url, storage) == [4]
    assert len(names(store)) == 3 and "thesis.docx" in names(store)


def test_segments(s3):
    url, storage, store = s3
    dataset.write(table(1, 2), url, batch_size=1, manifest="segments", **storage)
    made = dataset.write(table(3), url, batch_size=1, mode="append", keep_old=0, **storage)
    assert [one["shards"] for one in made["segments"]] == [2, 1]
    dataset.write(table(4, 5), url, batch_size=1, mode="append", keep_old=0, **storage)
    assert values(url, storage) == [1, 2, 3, 4, 5] and len(names(store)) == 5 + 2
    assert dataset.compact(url, manifest="whole", drop_old=True, **storage)["segments_after"] is None
    assert values(url, storage) == [1, 2, 3, 4, 5] and len(names(store)) == 5 + 1


def test_rows_by_name_and_their_index(s3):
    url, storage, store = s3
    rows = pa.table({"k": ["a", "b", "c"], "v": [[1.0], [2.0], [3.0]]})
    dataset.write(rows, url, name_col="k", generate_index=True, **storage)
    dataset.write(rows[1:2], url, name_col="k", mode="append", duplicatesStrategy="lastWin",
                  **storage)
    found = dataset.open(url, **storage)
    assert sorted(row["k"] for row in found) == ["a", "b", "c"]
    assert [row["k"] for row in dataset.open(url, keys="b__v", **storage)] == ["b"]


def test_large_shards(s3):
    """More than is buffered, so that it is uploaded in parts."""
    url, storage, store = s3
    rows = pa.table({"c": range(3_000_000)})
    dataset.write(rows, url, batch_size=2_500_000, **storage)
    assert len(names(store)) == 3
    with dataset.open(url, **storage) as found:
        assert found.take([2_999_999, 0, 2_499_999])["c"].tolist() == [2_999_999, 0, 2_499_999]


def test_few_rows_of_a_large_tensor(s3, monkeypatch):
    """Their bytes are asked for, and not the tensor's."""
    from libsafetensors.dataset import _storage
    url, storage, store = s3
    dataset.write(pa.table({"c": range(3_000_000)}), url, batch_size=3_000_000, **storage)
    asked = []
    read_at = _storage._Reader.read_at
    monkeypatch.setattr(_storage._Reader, "read_at", lambda self, offset, length:
                        asked.append(length) or read_at(self, offset, length))
    with dataset.open(url, **storage) as found:
        assert found.take([2_999_999, 7, 0, 8, 7])["c"].tolist() == [2_999_999, 7, 0, 8, 7]
        assert found[5:9]["c"].tolist() == [5, 6, 7, 8] and found[9]["c"] == 9
        assert sum(asked) < 100_000
        assert found.take(list(range(0, 3_000_000, 500_000)) * 4)["c"].sum() == 4 * 7_500_000
        assert sum(asked) > 24_000_000


def test_a_failure_leaves_the_old_one(s3):
    url, storage, store = s3
    dataset.write(table(1), url, batch_size=1, **storage)
    before = names(store)

    def batches():
        yield pa.table({"c": range(2_000_000)}).to_batches()[0]
        raise LookupError("the source is gone")
    with pytest.raises(LookupError):
        dataset.write(batches(), url, batch_size=1_500_000, mode="overwrite", **storage)
    assert values(url, storage) == [1] and names(store) == before


def test_a_shard_that_is_gone(s3):
    url, storage, store = s3
    made = dataset.write(table(1, 2), url, batch_size=1, **storage)
    found = dataset.open(url, **storage)
    store.delete_file(made["shards"][1]["shard_path"])
    assert found[0]["c"] == 1
    with pytest.raises(SafetensorError, match="found none") as caught:
        found[1]
    assert caught.value.code == "dataset_shard"
    assert not dataset.verify(url, **storage)["ok"]


def test_secrets_are_not_shown(s3):
    url, storage, store = s3
    bad = {**storage, "storage.endpoint_override": "127.0.0.1:1",
           "storage.request_timeout": 1, "storage.connect_timeout": 1}
    bad["storage.retry_strategy"] = fs.AwsStandardS3RetryStrategy(max_attempts=1)
    with pytest.raises(OSError) as caught:
        dataset.open(url, **bad)
    assert "very-secret" not in str(caught.value) and "very-secret" not in repr(caught.value)
    dataset.write(table(1), url, batch_size=1, **storage)
    assert "very-secret" not in repr(dataset.open(url, **storage))
    with pytest.raises(TypeError, match="unexpected"):
        dataset.open(url, **storage, **{"storage.nonsense": "very-secret"})


def test_for_torch_in_processes(s3):
    torch = pytest.importorskip("torch")
    url, storage, store = s3
    dataset.write(pa.table({"c": range(40)}), url, batch_size=7, **storage)
    batches = dataset.TorchBatches(url, 4, shuffle="shards", seed=1, **storage)
    want = torch.cat([batch["c"] for batch in batches]).tolist()
    batches.set_epoch(0)
    got = torch.cat([batch["c"] for batch in batches.loader(num_workers=1)]).tolist()
    assert got == want and sorted(got) == list(range(40))


@pytest.mark.long
def test_workers_run_the_program_again(s3, tmp_path):
    """One that trains without asking whether it is a worker is told why that fails."""
    pytest.importorskip("torch")
    url, storage, store = s3
    dataset.write(pa.table({"c": range(8)}), url, batch_size=4, **storage)
    program = tmp_path / "train.py"
    program.write_text("from libsafetensors import dataset\n"
                       "for batch in dataset.TorchBatches(%r, 4, **%r).loader(num_workers=1):\n"
                       "    print(len(batch['c']))\n" % (url, storage))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300)
    assert done.returncode and "started by spawn" in done.stderr and not done.stdout
    assert "AttributeError" not in done.stderr


@pytest.mark.long
def test_ranks_read_shards_once(s3, monkeypatch):
    """Bytes of an epoch over all ranks: with partition="shards" those of the data, but for shards
    at the border of two ranks."""
    pytest.importorskip("torch")
    from libsafetensors.dataset import _storage
    url, storage, store = s3
    rows, count = 50, 36
    dataset.write(pa.table({"x": pa.array([[float(i)] * 64 for i in range(rows * count)],
                                          pa.list_(pa.float32(), 64))}),
                  url, batch_size=rows, **storage)
    size = sum(one.size for one in store.get_file_info(fs.FileSelector("", recursive=True))
               if one.path.endswith(".safetensors"))
    fetched, get = [], _storage._Reader._get

    def counted(self, begin, end):
        data = get(self, begin, end)
        fetched.append(len(data) if self.name.endswith(".safetensors") else 0)
        return data
    monkeypatch.setattr(_storage._Reader, "_get", counted)
    total = {}
    for partition in ("shards", "batches"):
        fetched.clear()
        seen = []
        for rank in range(4):
            with dataset.open(url, **storage) as own:
                for batch in dataset.TorchBatches(own, 25, partition=partition, shuffle="blocks",
                                                  rank=rank, ranks=4):
                    seen += batch["x"][:, 0].tolist()
        assert sorted(seen) == list(range(rows * count))
        total[partition] = sum(fetched) / size
    assert total["shards"] <= 1.1 and total["batches"] > 2, total


@pytest.mark.long
def test_a_mix_of_a_store_and_a_folder(s3, tmp_path):
    """Its workers are started anew, since one of its datasets is remote."""
    pytest.importorskip("torch")
    url, storage, _ = s3
    dataset.write(table(*range(60)), url, batch_size=10, **storage)
    dataset.write(table(*range(100, 130)), tmp_path / "folder", batch_size=10)

    def loader(workers):
        mix = dataset.Mix([(dataset.open(url, **storage), 2), (tmp_path / "folder", 1)])
        return dataset.TorchBatches(mix, 8, ends="uneven", seed=4,
                                    partition="shards").loader(num_workers=workers)
    made = loader(2)
    assert made.multiprocessing_context.get_start_method() == "spawn"
    seen, state = [], None
    for batch in made:
        seen += batch["c"].tolist()
        if len(seen) > 30:
            state = made.state_dict()
            break
    resumed = loader(0)
    resumed.load_state_dict(state)
    seen += [row for batch in resumed for row in batch["c"].tolist()]
    assert sorted(seen) == [*range(60), *range(100, 130)]


def test_a_cache_of_shards(s3, tmp_path):
    """What was read once is read without the bucket's shards."""
    pytest.importorskip("fcntl")
    url, storage, store = s3
    dataset.write(table(*range(60)), url, batch_size=10, **storage)
    kept = {"cache_dir": tmp_path / "cache", **storage}
    assert values(url, kept) == list(range(60))
    for name in names(store):
        if name.endswith(".safetensors"):
            store.delete_file(name)
    assert values(url, kept) == list(range(60))
    with pytest.raises(SafetensorError):
        values(url, storage)


def test_a_manifest_that_breaks_off_is_an_oserror():
    """Of botocore's exceptions the network's are no OSError."""
    from botocore.exceptions import ClientError, ReadTimeoutError

    class Client:
        def put_object(self, **_):
            raise ClientError({"ResponseMetadata": {"HTTPStatusCode": 412}}, "PutObject")

        def get_object(self, **_):
            raise ReadTimeoutError(endpoint_url="http://host")

    made = Conditional("bucket/folder", {})
    made._client = Client()
    with pytest.raises(OSError, match="GET: .*http://host"):
        made.fetch("dataset_manifest.json")
