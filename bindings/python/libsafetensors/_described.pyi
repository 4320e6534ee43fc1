"""Types of what is in the results of info, check, hash and diff: for type checkers only, made of
docs/schema by tools/result_types.py. docs/json-info.md and docs/json.md explain the fields."""
from typing import Literal, TypedDict, Union

from typing_extensions import NotRequired


InfoGood = TypedDict('InfoGood', {'import': NotRequired[InfoImport], 'path': Union[str, None], 'path_bytes': NotRequired[str], 'remote': NotRequired[InfoRemote], 'ok': Literal[True], 'complete': bool, 'file': InfoFile, 'metadata': dict[str, str], 'shards': NotRequired[list[InfoShard]], 'metadata_cut': dict[str, int], 'set': NotRequired[InfoSet], 'parts': NotRequired[list[InfoGood]], 'model': InfoModel, 'adapter': Union[InfoAdapter, None], 'trigger_words': list[InfoTrigger], 'prompts': InfoPrompts, 'frequent_tags': list[InfoTag], 'example_prompts': list[InfoExample], 'civitai': Union[InfoCivitai, None], 'links': list[InfoLink], 'training': Union[InfoTraining, None], 'merge': Union[InfoMerge, None], 'provenance': Union[InfoProvenance, None], 'hashes': InfoHashes, 'previews': list[InfoPreview], 'sidecars': list[InfoSidecar], 'privacy': list[InfoPrivate], 'conflicts': list[InfoConflict]})

class InfoImport(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]
    ok: Literal[True]
    format: Literal['torch', 'torchscript', 'npz', 'npy', 'gguf', 'torch_legacy', 'torch_tar', 'torch_index', 'tensorflow', 'pickle', 'onnx', 'flax']
    title: str
    tensors: int
    bytes: int
    input_bytes: int
    branches: list[InfoImportBranches]
    aliases: list[InfoImportAliases]
    left_out: list[InfoImportLeftOut]
    globals: list[InfoImportGlobals]
    metadata: dict[str, str]

class InfoImportBranches(TypedDict):
    path: str
    tensors: int
    bytes: int
    chosen: bool

class InfoImportAliases(TypedDict):
    name: str
    of: str
    copied: bool
    partial: bool

class InfoImportLeftOut(TypedDict):
    reason: Literal['branch', 'skipped', 'value', 'record', 'note']
    path: str
    text: str
    count: int
    bytes: int

class InfoImportGlobals(TypedDict):
    module: str
    name: str
    named: int
    calls: int

class InfoRemote(TypedDict):
    url: str
    bytes: Union[int, None]
    sha256: Union[str, None]
    commit: Union[str, None]
    etag: Union[str, None]
    local: bool

class InfoFile(TypedDict):
    bytes: Union[int, None]
    header_bytes: int
    data_offset: Union[int, None]
    data_bytes: int
    tensors: int
    parameters: int
    alignment: Literal[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    unaligned: int
    dtypes: dict[str, InfoCount]

class InfoCount(TypedDict):
    tensors: int
    parameters: int
    bytes: int

class InfoShard(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]
    bytes: Union[int, None]
    tensors: int

class InfoSet(TypedDict):
    index: Union[str, None]
    shard: int
    of: int

class InfoModel(TypedDict):
    kind: Union[InfoFact, None]
    architecture: Union[InfoFact, None]
    variant: Union[InfoFact, None]
    base_model: Union[InfoFact, None]
    base_checkpoint: Union[InfoFact, None]
    repo: Union[InfoFact, None]
    name: Union[InfoFact, None]
    version_name: Union[InfoFact, None]
    description: Union[InfoFact, None]
    version_description: Union[InfoFact, None]
    author: Union[InfoFact, None]
    license: Union[InfoFact, None]
    tags: Union[InfoFact, None]
    date: Union[InfoFact, None]
    usage_hint: Union[InfoFact, None]
    notes: list[InfoNote]
    rating: Union[float, None]
    favourite: Union[bool, None]
    prediction_type: Union[InfoFact, None]
    resolution: Union[InfoFact, None]
    clip_skip: Union[InfoFact, None]
    preferred_weight: Union[InfoFact, None]
    negative_prompt: Union[InfoFact, None]
    nsfw: Union[InfoFact, None]
    nsfw_level: Union[int, None]
    language: Union[InfoFact, None]
    components: list[InfoComponent]
    quantization: Union[InfoFact, None]
    family: Union[InfoFact, None]
    precision: Union[str, None]
    parameters: Union[int, None]
    size: Literal['full', 'pruned', None]
    vectors: Union[int, None]
    negative: Union[bool, None]
    preferred_weight_range: Union[InfoBounds, None]
    llm: Union[InfoLlm, None]
    evidence: list[str]

class InfoFact(TypedDict):
    value: Union[str, float, bool, list[str]]
    source: str
    trust: int
    others: list[InfoCandidate]

class InfoCandidate(TypedDict):
    value: Union[str, float, bool, list[str]]
    source: str
    trust: int

class InfoNote(TypedDict):
    text: str
    source: str

class InfoComponent(TypedDict):
    part: str
    architecture: Union[str, None]
    trust: Union[int, None]
    dtype: Union[str, None]
    bytes: int
    parameters: Union[int, None]

class InfoBounds(TypedDict):
    min: Union[float, None]
    max: Union[float, None]
    source: str
    trust: int

class InfoLlm(TypedDict):
    layers: Union[int, None]
    hidden: Union[int, None]
    heads: Union[int, None]
    kv_heads: Union[int, None]
    vocab: Union[int, None]

class InfoAdapter(TypedDict):
    type: Union[str, None]
    dora: bool
    rslora: bool
    format: Union[str, None]
    rank: Union[InfoRange, None]
    alpha: Union[InfoAlpha, None]
    scale: Union[float, None]
    conv_rank: Union[int, None]
    modules: Union[int, None]
    components: list[InfoComponent]
    targets: list[str]
    blocks: list[str]

class InfoRange(TypedDict):
    min: Union[float, None]
    max: Union[float, None]
    mode: Union[float, None]

class InfoAlpha(TypedDict):
    min: Union[float, None]
    max: Union[float, None]
    mode: Union[float, None]
    sampled: bool

class InfoTrigger(TypedDict):
    text: str
    prompt: str
    words: list[str]
    trust: int
    source: str
    group: Union[int, None]
    folder: Union[str, None]
    coverage: Union[float, None]
    others: list[InfoCandidate]

class InfoPrompts(TypedDict):
    a1111: Union[str, None]
    comfy: Union[str, None]

class InfoTag(TypedDict):
    tag: str
    count: int
    coverage: Union[float, None]

class InfoExample(TypedDict):
    positive: Union[str, None]
    negative: Union[str, None]
    seed: Union[float, str, None]
    steps: Union[float, str, None]
    sampler: Union[str, None]
    cfg: Union[float, str, None]
    source: Union[str, None]

class InfoCivitai(TypedDict):
    model_id: Union[int, None]
    version_id: Union[int, None]
    air: Union[str, None]
    url: str
    source: str
    trust: int
    match: Literal['sha256', 'weights', 'differs', 'size', 'size-differs', None]
    matches_file: Union[bool, None]
    published_at: Union[str, None]
    permissions: Union[InfoPermissions, None]

class InfoPermissions(TypedDict):
    credit: Union[bool, None]
    commercial: list[str]
    derivatives: Union[bool, None]
    relicense: Union[bool, None]

class InfoLink(TypedDict):
    url: str
    source: str
    model_id: Union[int, None]
    version_id: Union[int, None]

class InfoTraining(TypedDict):
    tool: Union[str, None]
    tool_version: Union[str, None]
    started_at: Union[str, None]
    finished_at: Union[str, None]
    duration_s: Union[float, None]
    epoch: Union[float, None]
    epochs: Union[float, None]
    step: Union[float, None]
    steps: Union[float, None]
    images: Union[float, None]
    images_with_repeats: Union[float, None]
    regularisation_images: Union[float, None]
    batch_size: Union[float, None]
    learning_rate: Union[float, None]
    unet_lr: Union[float, None]
    text_encoder_lr: Union[float, list[float], None]
    optimizer: Union[str, None]
    scheduler: Union[str, None]
    resolution: Union[str, None]
    network_module: Union[str, None]
    network_args: Union[dict[str, object], None]
    seed: Union[float, None]
    clip_skip: Union[float, None]
    mixed_precision: Union[str, None]
    noise_offset: Union[float, None]
    comment: Union[str, None]
    session_id: Union[str, None]
    base: InfoSourceFile
    vae: InfoSourceFile
    datasets: list[InfoDataset]
    buckets: list[InfoBucket]

class InfoSourceFile(TypedDict):
    file: Union[str, None]
    sha256: Union[str, None]
    autov1: Union[str, None]

class InfoDataset(TypedDict):
    folder: Union[str, None]
    images: Union[int, None]
    repeats: Union[int, None]
    class_tokens: Union[str, None]
    regularisation: Union[bool, None]
    resolution: Union[str, None]

class InfoBucket(TypedDict):
    resolution: Union[str, None]
    count: int

class InfoMerge(TypedDict):
    tool: Union[str, None]
    method: Union[str, None]
    recipe: Union[dict[str, object], None]
    sources: list[InfoMergeSource]

class InfoMergeSource(TypedDict):
    name: Union[str, None]
    sha256: Union[str, None]
    autov1: Union[str, None]
    weight: Union[float, str, None]

class InfoProvenance(TypedDict):
    workflow: bool
    prompt: bool
    loaders: list[InfoLoader]

class InfoLoader(TypedDict):
    type: Union[str, None]
    name: Union[str, None]
    strength_model: Union[float, str, None]
    strength_clip: Union[float, str, None]

class InfoHashes(TypedDict):
    recorded: list[InfoClaim]
    computed: dict[str, Union[str, None]]
    mismatches: list[InfoMismatch]
    lookup_url: Union[str, None]

class InfoClaim(TypedDict):
    algo: Literal['sha256', 'autov1', 'autov1_civitai', 'autov2', 'autov3', 'sshs_model', 'sshs_legacy', 'crc32', 'crc32_civitai', 'blake3', 'content']
    value: str
    source: str

class InfoMismatch(TypedDict):
    algo: Literal['sha256', 'autov1', 'autov1_civitai', 'autov2', 'autov3', 'sshs_model', 'sshs_legacy', 'crc32', 'crc32_civitai', 'blake3', 'content']
    recorded: str
    computed: str
    source: str
    known: Union[str, None]

class InfoPreview(TypedDict):
    path: Union[str, None]
    source: str
    media_type: Union[str, None]
    bytes: int
    width: Union[int, None]
    height: Union[int, None]
    nsfw_level: Union[int, None]

class InfoSidecar(TypedDict):
    path: str
    kind: str
    match: Literal['sha256', 'weights', 'differs', 'size', 'size-differs', None]
    error: Union[str, None]

class InfoPrivate(TypedDict):
    key: str
    what: Literal['path', 'user', 'folder-names', 'session', 'comment', 'workflow', 'config']

class InfoConflict(TypedDict):
    field: Literal['architecture', 'kind', 'base_model', 'prediction_type', 'adapter.rank', 'adapter.alpha', 'llm.layers', 'llm.hidden', 'llm.heads', 'llm.kv_heads', 'civitai.model_id', 'civitai.version_id']
    candidates: list[InfoCandidate]

class InfoDatasetResult(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]
    ok: Literal[True]
    file: InfoDatasetResultFile
    model: InfoDatasetResultModel
    dataset: InfoManifest

class InfoDatasetResultFile(TypedDict):
    bytes: int

class InfoDatasetResultModel(TypedDict):
    kind: InfoFact
    name: Union[InfoFact, None]

class InfoManifest(TypedDict):
    mode: Literal['batch', 'kv', None]
    generator: Union[str, None]
    commit: Union[str, None]
    version: int
    batch_size: Union[int, None]
    name_col: Union[str, None]
    kv_separator: Union[str, None]
    tail_strategy: Literal['write', 'drop', 'pad', None]
    index: Union[str, None]
    segments: Union[int, None]
    samples: int
    valid_samples: int
    padded_samples: int
    dropped_samples: int
    deleted_samples: int
    places: int
    bytes: int
    shards: int
    tensors: Union[int, None]
    shadowed: int
    columns: dict[str, InfoColumn]

class InfoColumn(TypedDict):
    dtype: Union[str, None]
    shape: Union[list[int], None]

CheckGood = TypedDict('CheckGood', {'import': NotRequired[CheckImport], 'path': Union[str, None], 'path_bytes': NotRequired[str], 'remote': NotRequired[CheckRemote], 'ok': bool, 'level': Literal['compat', 'default', 'strict'], 'error': Union[CheckError, None], 'findings': list[CheckFinding], 'notes': list[CheckNote], 'deep': Union[CheckDeep, None], 'quantised': NotRequired[list[CheckError]], 'shards': NotRequired[list[Union[CheckFailed, CheckGood]]]})

class CheckImport(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]
    ok: Literal[True]
    format: Literal['torch', 'torchscript', 'npz', 'npy', 'gguf', 'torch_legacy', 'torch_tar', 'torch_index', 'tensorflow', 'pickle', 'onnx', 'flax']
    title: str
    tensors: int
    bytes: int
    input_bytes: int
    branches: list[CheckImportBranches]
    aliases: list[CheckImportAliases]
    left_out: list[CheckImportLeftOut]
    globals: list[CheckImportGlobals]
    metadata: dict[str, str]

class CheckImportBranches(TypedDict):
    path: str
    tensors: int
    bytes: int
    chosen: bool

class CheckImportAliases(TypedDict):
    name: str
    of: str
    copied: bool
    partial: bool

class CheckImportLeftOut(TypedDict):
    reason: Literal['branch', 'skipped', 'value', 'record', 'note']
    path: str
    text: str
    count: int
    bytes: int

class CheckImportGlobals(TypedDict):
    module: str
    name: str
    named: int
    calls: int

class CheckRemote(TypedDict):
    url: str
    bytes: Union[int, None]
    sha256: Union[str, None]
    commit: Union[str, None]
    etag: Union[str, None]
    local: bool
    data_read: bool

class CheckError(TypedDict):
    code: str
    offset: Union[int, None]
    tensor: Union[str, None]
    message: str
    hint: Union[str, None]

class CheckFinding(TypedDict):
    code: str
    rule: Union[str, None]
    offset: Union[int, None]
    tensor: Union[str, None]
    message: str
    hint: Union[str, None]

class CheckNote(TypedDict):
    code: str
    message: str
    offset: Union[int, None]
    tensor: Union[str, None]

class CheckDeep(TypedDict):
    tensors: int
    values: int
    nan: int
    inf: int
    tensors_with_nan: int
    tensors_with_inf: int
    first_nan_tensor: Union[int, None]
    first_inf_tensor: Union[int, None]

class CheckFailed(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]
    ok: Literal[False]
    error: CheckError

class HashGood(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]
    remote: NotRequired[HashRemote]
    ok: Literal[True]
    bytes: Union[int, None]
    remembered: bool
    computed: HashComputed
    model_error: Union[HashError, None]
    verified: NotRequired[list[HashClaim]]
    shards: NotRequired[list[HashShard]]

class HashRemote(TypedDict):
    url: str
    bytes: Union[int, None]
    sha256: Union[str, None]
    commit: Union[str, None]
    etag: Union[str, None]
    local: bool

class HashComputed(TypedDict):
    sha256: NotRequired[Union[str, None]]
    autov1: NotRequired[Union[str, None]]
    autov1_civitai: NotRequired[Union[str, None]]
    autov2: NotRequired[Union[str, None]]
    autov3: NotRequired[Union[str, None]]
    sshs_model: NotRequired[Union[str, None]]
    sshs_legacy: NotRequired[Union[str, None]]
    crc32: NotRequired[Union[str, None]]
    crc32_civitai: NotRequired[Union[str, None]]
    blake3: NotRequired[Union[str, None]]
    content: NotRequired[Union[str, None]]

class HashError(TypedDict):
    code: str
    offset: Union[int, None]
    tensor: Union[str, None]
    message: str
    hint: Union[str, None]

class HashClaim(TypedDict):
    algo: str
    claimed: str
    computed: Union[str, None]
    agrees: bool

class HashShard(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]
    computed: HashComputed

class DiffGood(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]
    other: DiffModel
    remote: NotRequired[DiffRemote]
    ok: Literal[True]
    same: Union[bool, None]
    equal: int
    close: int
    max_abs: Union[Literal['NaN', 'Infinity', '-Infinity'], float]
    max_rel: Union[Literal['NaN', 'Infinity', '-Infinity'], float]
    summary: DiffGoodSummary
    removed: list[DiffTensor]
    added: list[DiffTensor]
    changed: list[DiffChange]
    metadata: list[DiffPair]

class DiffModel(TypedDict):
    path: Union[str, None]
    path_bytes: NotRequired[str]

class DiffRemote(TypedDict):
    url: str
    bytes: Union[int, None]
    sha256: Union[str, None]
    commit: Union[str, None]
    etag: Union[str, None]
    local: bool

class DiffGoodSummary(TypedDict):
    tensors: int
    changed: int
    removed: int
    added: int
    share: float

class DiffTensor(TypedDict):
    name: str
    dtype: str
    shape: list[int]

class DiffChange(TypedDict):
    name: str
    what: list[Literal['dtype', 'shape', 'data']]
    dtype: list[str]
    shape: list[list[int]]
    values: Union[DiffValues, None]

class DiffValues(TypedDict):
    compared: int
    differing: int
    beyond: int
    nan: int
    first: Union[int, None]
    max_abs: Union[Literal['NaN', 'Infinity', '-Infinity'], float]
    max_rel: Union[Literal['NaN', 'Infinity', '-Infinity'], float]
    rms: Union[Union[Literal['NaN', 'Infinity', '-Infinity'], float], None]
    cosine: Union[Union[Literal['NaN', 'Infinity', '-Infinity'], float], None]

class DiffPair(TypedDict):
    key: str
    a: Union[str, None]
    b: Union[str, None]
