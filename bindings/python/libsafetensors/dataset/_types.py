"""Types of the arguments and results of datasets. The fields of results are those of docs/json.md
and docs/dataset.md."""
from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable, Literal, Optional, TypedDict, Union

from ._names import Name, Names

__all__ = ["Adopt", "ColumnFacts", "CompactResult", "DatasetInfo", "DatasetMode", "DatasetTensors",
           "Engine", "GcResult", "LoaderOptions", "Manifest", "ManifestForm", "Moment", "OpenOptions",
           "ReadOptions", "ScanOptions",
           "ShardFacts", "StorageOptions", "VerifyResult", "VersionFacts", "VersionsResult", "WriteMode",
           "WriteOptions"]

DatasetMode = Literal["batch", "kv"]
ManifestForm = Literal["whole", "segments"]
WriteMode = Literal["error", "append", "overwrite"]
Adopt = Union[Literal["listing"], None]
Engine = Literal["numpy", "torch"]
# Seconds since 1970, a date or time (without a zone: of this computer), or one as ISO 8601 has it.
Moment = Union[int, float, str, datetime.date]

# ── Arguments ──

# Options of the filesystem of a URL, which pyarrow documents: each is an argument of its
# S3FileSystem, GcsFileSystem, AzureFileSystem or HadoopFileSystem. The texts "true" and "false"
# count as truth values.
StorageOptions = TypedDict("StorageOptions", {
    # of several
    "storage.anonymous": Union[bool, str], "storage.scheme": str,
    "storage.endpoint_override": str, "storage.default_metadata": Any,
    # S3
    "storage.access_key": str, "storage.secret_key": str, "storage.session_token": str,
    "storage.region": str, "storage.request_timeout": float, "storage.connect_timeout": float,
    "storage.background_writes": Union[bool, str], "storage.role_arn": str,
    "storage.session_name": str, "storage.external_id": str, "storage.load_frequency": int,
    "storage.proxy_options": Any, "storage.allow_bucket_creation": Union[bool, str],
    "storage.allow_bucket_deletion": Union[bool, str],
    "storage.allow_delayed_open": Union[bool, str],
    "storage.check_directory_existence_before_creation": Union[bool, str],
    "storage.retry_strategy": Any, "storage.force_virtual_addressing": Union[bool, str],
    "storage.tls_ca_file_path": str,
    # Google
    "storage.access_token": str, "storage.target_service_account": str,
    "storage.credential_token_expiration": Any, "storage.default_bucket_location": str,
    "storage.retry_time_limit": Any, "storage.project_id": str,
    # Azure
    "storage.account_name": str, "storage.account_key": str,
    "storage.blob_storage_authority": str, "storage.blob_storage_scheme": str,
    "storage.client_id": str, "storage.client_secret": str,
    "storage.dfs_storage_authority": str, "storage.dfs_storage_scheme": str,
    "storage.sas_token": str, "storage.tenant_id": str,
    # Hadoop
    "storage.host": str, "storage.port": int, "storage.user": str, "storage.replication": int,
    "storage.buffer_size": int, "storage.default_block_size": int, "storage.kerb_ticket": str,
    "storage.extra_conf": Any,
}, total=False)


class ScanOptions(TypedDict, total=False):
    """What engines pass to the method scanner of pyarrow.dataset.Dataset; pyarrow documents it."""

    batch_readahead: int
    fragment_readahead: int
    fragment_scan_options: Any
    use_threads: bool
    cache_metadata: bool
    memory_pool: Any


class WriteOptions(StorageOptions, total=False):
    """Options of a write, which libsafetensors.dataset.OPTIONS describes; None counts as absent."""

    batch_size: int | None
    name_col: Name | None
    dtype: str | Mapping[Name, str] | None
    columns: Names | None
    shapes: str | Mapping[Name, Sequence[int]] | None
    duplicatesStrategy: Literal["fail", "lastWin"] | None
    generate_index: bool | None
    target_shard_size_mb: int | None
    kv_separator: str | None
    tail_strategy: Literal["write", "drop", "pad"] | None
    rounding: Literal["nearest", "truncate"] | None
    keep_old: int | Literal["all"] | None
    batch_id: str | None
    manifest: ManifestForm | None
    single_writer: bool | None
    merge_schema: bool | None
    compat: Literal["upstream"] | None


class OpenOptions(StorageOptions, total=False):
    """Options of libsafetensors.dataset.open()."""

    version: int | None
    asof: Moment | None
    use_manifest: bool
    columns: Names | None
    keys: str | Iterable[str] | None
    rows: range | tuple[int, int] | None
    split: str | None
    mode: DatasetMode | None
    cache_dir: str | os.PathLike[str] | None
    cache_bytes: int


# Options of Spark's data source for reading, "as" among them, which is no name in Python.
_As = TypedDict("_As", {"as": Literal["tensor", "array", "binary"]}, total=False)


class ReadOptions(_As, StorageOptions, total=False):
    """Options of libsafetensors.spark.read(), which docs/spark.md describes."""

    layout: Literal["files", "samples", "tensors"]
    use_manifest: bool
    keys: str | Iterable[str]
    data: bool
    inferSchema: bool
    pushdown: bool
    partition_mb: int
    versionAsOf: int


class LoaderOptions(TypedDict, total=False):
    """Arguments of torch.utils.data.DataLoader that go with ready batches."""

    num_workers: int
    collate_fn: Callable[[Any], Any] | None
    pin_memory: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    multiprocessing_context: Any
    generator: Any
    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory_device: str
    in_order: bool


# ── Results ──

class _MoreFacts(TypedDict, total=False):
    encoding: Literal["utf8", "binary", "list", "nested"]
    nullable: bool
    optional: bool
    type: str


class ColumnFacts(_MoreFacts):
    """Facts of a column in one row; None where rows differ. A scalar's shape is empty. encoding:
    of rows that vary in length; nullable: some are null; type: Arrow's, where these do not say it;
    all absent where there is nothing to say."""

    dtype: str | None
    shape: list[int] | None


# Columns that shards lack, by shard and column: the file beside it (name, bytes, sha256), or None,
# and the column.
Places = dict[int, dict[str, tuple[Optional[tuple[str, int, Optional[str]]], ColumnFacts]]]


class ShardFacts(TypedDict):
    """A file of a dataset, by the manifest. samples: rows, with those of padding; first_sample:
    number of the first; shadowed: tensors that a later shard has again; sha256: of the whole
    file, None for one that was adopted; deleted: of its rows, in KV mode of its tensors."""

    name: str
    bytes: int
    samples: int
    valid_samples: int
    first_sample: int
    tensors: int | None
    shadowed: int
    sha256: str | None
    deleted: int


class _ManifestShard(TypedDict, total=False):
    shard_path: str
    samples_count: int
    bytes: int
    sha256: str | None
    tensors: int
    first_sample: int
    valid_samples: int
    shadowed: int


class _Segment(TypedDict):
    sha256: str
    bytes: int
    shards: int


class _Places(TypedDict):
    sha256: str
    bytes: int
    count: int


class _Deleted(TypedDict):
    sha256: str
    bytes: int
    shards: int
    count: int


class Manifest(TypedDict, total=False):
    """dataset_manifest.json. One of the Scala connector lacks most fields. With manifest="segments"
    it has "segments" and the fields above them, not "shards"."""

    format_version: str
    safetensors_version: str
    generator: str | None
    commit: str
    row_order: str
    version: int
    committed: int
    history: str
    batches: dict[str, int]
    mode: DatasetMode
    batch_size: int | None
    name_col: str | None
    kv_separator: str | None
    tail_strategy: Literal["write", "drop", "pad"] | None
    index: str | None
    index_commit: str
    index_sha256: str
    features: list[str]
    deleted: _Deleted
    places: _Places
    keep_until: int
    dropped_samples: int
    total_samples: int
    total_valid_samples: int
    total_bytes: int
    columns: dict[str, ColumnFacts]
    schema: dict[str, ColumnFacts]
    shards: list[_ManifestShard]
    numbered_commits: bool
    total_shards: int
    total_rows: int
    total_padding: int
    total_tensors: int
    total_shadowed: int
    largest_shard: int
    next_file: int
    segments: list[_Segment]


class _Result(TypedDict):
    path: str | None
    ok: bool


class _Located(_Result, total=False):
    path_bytes: str


class DatasetInfo(_Located):
    """Result of info()."""

    mode: DatasetMode | None
    generator: str | None
    commit: str | None
    version: int
    batch_size: int | None
    name_col: str | None
    kv_separator: str | None
    tail_strategy: Literal["write", "drop", "pad"] | None
    index: str | None
    segments: int | None
    samples: int
    valid_samples: int
    padded_samples: int
    dropped_samples: int
    deleted_samples: int
    places: int
    bytes: int
    shards: int
    tensors: int | None
    shadowed: int
    columns: dict[str, ColumnFacts]


class _Tensor(TypedDict):
    name: str
    shard: str
    dtype: str
    shape: list[int]
    bytes: int
    begin: int
    end: int
    replaced: bool | None
    deleted_samples: int | None


class _ShardError(TypedDict):
    code: str
    offset: int | None
    tensor: str | None
    message: str
    hint: str | None


class _MaybeError(_Located, total=False):
    error: _ShardError


class DatasetTensors(_MaybeError):
    """Result of ls(); error if a shard could not be read, which ends the list."""

    tensors: list[_Tensor]


class _Finding(TypedDict):
    code: str
    shard: str
    message: str


class VerifyResult(_Located):
    """Result of verify()."""

    deep: bool
    digests: int
    shards: int
    bytes: int
    samples: int
    commit: str | None
    index: str | None
    versions: int
    finding_count: int
    findings: list[_Finding]
    orphan_count: int
    orphans: list[_Finding]


class _Foreign(TypedDict, total=False):
    foreign: int


class _Garbage(_Foreign):
    name: str
    bytes: int
    young: bool
    removed: bool


class GcResult(_Located):
    """Result of gc()."""

    garbage: list[_Garbage]
    bytes: int


class VersionFacts(TypedDict):
    """A version that is in force or kept; committed: seconds since 1970."""

    version: int
    committed: int | None
    commit: str | None
    samples: int
    bytes: int
    shards: int


class VersionsResult(_Located):
    """Result of versions(), the oldest first."""

    versions: list[VersionFacts]


class _Group(TypedDict):
    shards: list[str]
    into: int


class CompactResult(_Located):
    """Result of compact()."""

    dry_run: bool
    shards_before: int
    shards_after: int
    rewritten: int
    tensors_dropped: int
    deleted_dropped: int
    columns_merged: int
    bytes_before: int
    bytes_after: int | None
    index_removed: bool
    segments_before: int | None
    segments_after: int | None
    left: str | None
    groups: list[_Group]


class AddResult(_Located):
    """Result of add_column(). rows: of the values; files: with the column's rows, one for each shard;
    bytes: their size, None of a dry run."""

    dry_run: bool
    version: int
    rows: int
    columns: list[str]
    files: int
    bytes: int | None
    index_removed: bool


class DeleteResult(_Located):
    """Result of delete(). deleted: rows that were there before; shards: that have deleted rows now;
    mask_bytes: size of the file that says which."""

    dry_run: bool
    version: int
    rows_before: int
    deleted: int
    rows_after: int
    shards: int
    mask_bytes: int
