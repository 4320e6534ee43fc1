"""Models as files of another shape: in shards, in one file, with fewer tensors, with other names.
Sources are paths, URLs, Files and tensors in memory. Tensors are copied as they are written, a few
MiB at a time: no model is loaded. Ctrl-C and a progress that raises end the work, and nothing is
left of it."""
from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from operator import index
from typing import Any

from . import _core
from ._command import one_model, one_result, operand, options, results_of
from ._errors import coded, near
from ._memory import is_one, rows_of
from ._output import SHARD, Size, byte_size, keep_times, row_bytes, to_file, to_folder
from ._progress import Tick, watch
from ._told import DECLARED, LISTED, LORA, QUANTISED, alike, check_config, check_quantiser, \
    config_beside, declared_otherwise, joined, names_layers, tells_beside
from ._types import Link, Model, Path, Progress
from ._written import Renamed, Written, WrittenFile, made

__all__ = ["merge", "rename", "save_sharded", "select", "split"]

_STALE = ("sshs_model_hash", "sshs_legacy_hash", "modelspec.hash_*")
# ── Models ──

class _Opened:
    """A model whose tensors are written: a File, or a mapping of names to tensors."""

    def __init__(self, source: Model, stack: ExitStack) -> None:
        self.path: str | None = None
        self.as_stored = not isinstance(source, Mapping)  # memory of a given File may be changed
        if not isinstance(source, Mapping):
            source = stack.enter_context(_core.open(source, mode="read"))
        self.tensors = source
        self.file = source if isinstance(source, _core.File) else None
        if self.file is not None:
            index = self.file._index()
            paths = self.file.paths
            self.path = index[0] if index else paths[0] if len(paths) == 1 else None

    def names(self) -> list[str]:
        """In natural order; of a mapping in its own."""
        return list(self.tensors) if self.file is None else self.file.keys("natural")

    def metadata(self) -> Iterator[dict[str, str]]:
        """Of each file that has any."""
        if self.file is None:
            given = getattr(self.tensors, "metadata", None)
            found = given() if callable(given) else None
            if found is not None:
                yield found
            return
        if len(self.file.paths) < 2:
            one = self.file.metadata()
            if one is not None:
                yield one
            return
        import json
        for shard in range(len(self.file.paths)):
            found = json.loads(self.file.header(shard)).get("__metadata__")
            if found is not None:
                yield found

    def index_metadata(self, kept: int) -> str | None:
        """Of the index, as JSON; a number of parameters holds for all tensors only."""
        index = None if self.file is None else self.file._index()
        if not index or not index[1]:
            return None
        if kept == len(self.tensors) or '"total_parameters"' not in index[1]:
            return index[1]
        import json
        found = json.loads(index[1])
        found.pop("total_parameters", None)
        return json.dumps(found)

    def stem(self) -> str | None:
        """How the names of its shards begin."""
        name = os.path.basename(self.path or "")
        return name.partition(".safetensors.index")[0] if ".safetensors.index" in name else None


def _is_stale(key: str) -> bool:
    return key in _STALE or (key.startswith("modelspec.hash_") and key != "modelspec.hash_")


def _has_official_order(file: _core.File) -> bool:
    """Whether the data of one file are in the order of the official writer, as they are written."""
    ranks = {dtype: rank for rank, dtype in enumerate(reversed(_core.DTYPES))}
    order = [(ranks[tensor.dtype], name.encode()) for name, tensor in file.items()]
    return len(file.paths) == 1 and order == sorted(order)


# Tensors of these hold no codes of quantised layers.
_PLAIN = ("BF16", "BOOL", "F16", "F32", "F64", "I64", "U64")


def _check_beside(models: Sequence[_Opened], output: Path, folder: bool = False) -> None:
    """ValueError where what lies beside the output would tell something else of its tensors. folder:
    the output is a new one."""
    check_config([model.path for model in models], output, folder=folder)
    coded_in = [model for model in models if model.file is not None and any(
        tensor.dtype not in _PLAIN for tensor in model.tensors.values())]
    if coded_in and not folder:
        check_quantiser([model.path for model in coded_in], output)


def _check_joined(models: Sequence[_Opened]) -> None:
    """ValueError where a model would be read by what only another's metadata say, or a tensor and
    another name of a tensor have one name."""
    files = [model for model in models if model.file is not None]
    configs = [config_beside(model.path) for model in models]
    if not all(alike(configs[0], one) for one in configs):
        raise coded(ValueError, "expected adapters whose alphas are in their files, found an "
                    "adapter_config.json beside one: stack them, or convert each to kohya's names",
                    "bad_argument")
    for key in (QUANTISED, LORA):
        told = [any(key in metadata for metadata in model.metadata()) for model in files]
        if any(told) and any(not tells and (key == LORA or any(
                tensor.dtype not in _PLAIN for tensor in model.tensors.values()))
                for model, tells in zip(files, told)):
            raise declared_otherwise(key)
    recorded = [_aliases(model) for model in models]
    for model, aliases in zip(models, recorded):
        others = [one for one in zip(models, recorded) if one[0] is not model]
        for name, of in aliases.items():
            if any(name in other.tensors or name in known for other, known in others):
                raise coded(_core.SafetensorError, "tensor \"%s\": expected each name in one model, "
                            "found that it is another name of \"%s\" in one and in use in a second "
                            "one" % (name, of), "tensor_duplicate", tensor=name, path=model.path)


def _combined(models: Sequence[_Opened], kept: int = -1
              ) -> tuple[dict[str, str] | None, tuple[str, ...]]:
    """The metadata of all files, of a key in several the first value, without digests of the data,
    unless as many tensors as there are, kept, are written to one file in the same order; which
    digests there were. ValueError for two declarations of how layers are quantised, or of
    adapters."""
    if len(models) == 1 and models[0].as_stored and models[0].file is not None \
            and kept == len(models[0].tensors) and _has_official_order(models[0].file):
        return models[0].file.metadata(), ()
    found: dict[str, str] = {}
    any_has, dropped = False, set()
    for model in models:
        for metadata in model.metadata():
            any_has = True
            for key, value in metadata.items():
                if _is_stale(key):
                    dropped.add(key if key in _STALE else _STALE[2])
                elif found.setdefault(key, value) != value and key == LORA:
                    raise declared_otherwise(key)
                elif found[key] != value and key in (DECLARED, QUANTISED):
                    raise declared_otherwise(key)
                elif found[key] != value and key == LISTED:
                    found[key] = joined(found[key], value)
    return (found if any_has else None), tuple(key for key in _STALE if key in dropped)


def _aliases(model: _Opened) -> dict[str, str]:
    """Other names of tensors, as the metadata records them (import, save_model): the tensor of each."""
    return {key: value for metadata in model.metadata() for key, value in metadata.items()
            if "." in key and "." in value and key not in model.tensors and value in model.tensors}


def _renamed_metadata(model: _Opened, changes: Mapping[str, str]) -> dict[str, str] | None:
    """ValueError for what names tensors in other ways, which edits of one file change, too."""
    metadata, aliases = _combined([model])[0], _aliases(model)
    now = {changes.get(name, name) for name in model.tensors}
    made: dict[str, str] = {}
    for key, value in (metadata or {}).items() if changes else ():
        if key in (DECLARED, LORA, LISTED) or value.startswith('{"_type"') \
                or (key == QUANTISED and names_layers(value, model.tensors)):
            raise coded(ValueError, "expected a model in one file, whose \"%s\" of the metadata can "
                        "follow the names, found another: rename the file itself" % key,
                        "bad_argument")
        if key in aliases:
            key, value = changes.get(key, key), changes.get(value, value)
            if key == value:
                continue
            if key in now or key in made:
                raise coded(_core.SafetensorError, "tensor \"%s\": expected a free name, found that "
                            "two tensors would have this one" % key, "tensor_duplicate", tensor=key)
        made[key] = value
    return made if changes and metadata is not None else metadata


# ── Tensors ──

def _check_shared(tensors: Mapping[str, Any]) -> None:
    """RuntimeError for tensors of torch that share memory, and what else save_file refuses."""
    import sys
    if not isinstance(tensors, Mapping):
        raise TypeError("tensors: expected a mapping of names to tensors, found %s"
                        % type(tensors).__name__)
    torch = sys.modules.get("torch")
    if torch is None:
        return
    plain = {name: one for name, one in tensors.items() if isinstance(one, torch.Tensor)}
    if plain:
        from .torch import _evaluate_tensors_for_save
        _evaluate_tensors_for_save(plain)


def _is_file_name(output: Path) -> bool:
    return os.fsdecode(output).endswith((".safetensors", ".sft"))


def save_sharded(tensors: Mapping[str, Any], folder: Path,
                 metadata: Mapping[str, str] | None = None, *, max_shard_size: Size = SHARD,
                 name: str = "model", in_place_unsafe: bool = False, sync: bool = True,
                 progress: Progress = None) -> Written:
    """Writes tensors as shards and their index, with the names that transformers uses:
    model-00001-of-00003.safetensors and model.safetensors.index.json. If one shard is enough, it
    is model.safetensors without an index.

    tensors: of torch on any device, of numpy, or Tensors of a File, by name; they are taken in the
    order of the mapping. folder: new or empty. max_shard_size: most bytes of tensors in a shard,
    as a number or "5GB", "500MiB"; a larger tensor gets a shard of its own. name: how the names of
    the files begin. metadata: of each shard. in_place_unsafe: as of save_file. sync=False does not
    wait for the disk. Tensors of a device are copied to the CPU a piece at a time.

    RuntimeError for tensors that share memory (save_model keeps one name of each); ValueError;
    SafetensorError for a dtype that the format lacks; FileExistsError for a folder that is not
    empty; OSError. Nothing is left then."""
    from ._files import check_metadata
    _check_shared(tensors)
    kept: list[Any] = []
    return to_folder(rows_of(tensors.items(), kept), folder, check_metadata(metadata), stem=name,
                      max_bytes=byte_size(max_shard_size), sync=sync, progress=progress,
                      in_place_unsafe=in_place_unsafe, title="saving")


def split(source: Model, output: Path, *, max_size: Size | None = None, count: int | None = None,
          name: str | None = None, dry_run: bool = False, keep_mtime: bool = False,
          in_place_unsafe: bool = False, sync: bool = True, progress: Progress = None) -> Written:
    """Splits a model into shards with an index, as "safetensors split". Tensors are taken in natural
    order of their names, are never split, and keep every byte; each shard has the model's metadata,
    without digests of the old data.

    source: a path, URL, folder or index, a File, or a mapping of tensors. output: a folder, new or
    empty. max_size: most bytes of tensors in a shard, as a number or a text; default "5GB". count:
    so many shards of about equal size instead. name: how the names of the files begin. dry_run:
    tell what would be written. keep_mtime: the files get the time of the model. in_place_unsafe: as
    of save_file. sync=False does not wait for the disk.

    ValueError for max_size with count, or more shards than tensors; SafetensorError for an invalid
    model; FileExistsError; OSError. Nothing is left then."""
    if max_size is not None and count is not None:
        raise ValueError("expected max_size or count, found both")
    if count is not None and not 0 < index(count) < 1 << 31:
        raise ValueError("expected a number of shards from 1 on, found %r" % (count,))
    with ExitStack() as stack:
        stack.enter_context(keep_times(keep_mtime and not dry_run, [source], output))
        model = _Opened(source, stack)
        kept: list[Any] = []
        rows = rows_of(((one, model.tensors[one]) for one in model.names()), kept)
        most = 0 if count else byte_size(SHARD if max_size is None else max_size)
        one_file = count == 1 or (not count and sum(map(row_bytes, rows)) <= most)
        check_config([model.path], output, folder=True)
        metadata, dropped = _combined([model], len(rows) if one_file else -1)
        return to_folder(rows, output, metadata, path=model.path, count=count or 0, max_bytes=most,
                          stem=name or model.stem(), index_metadata=model.index_metadata(len(rows)),
                          sync=sync, dry_run=dry_run, dropped=dropped, progress=progress,
                          in_place_unsafe=in_place_unsafe, title="splitting")


def _each_model(sources: Model | Iterable[Model]) -> list[Model]:
    """The models; those in a folder that has no index."""
    from ._layout import _models_in
    several: Any = [sources] if is_one(sources) else sources
    found: list[Model] = []
    for source in several:
        name = os.fsdecode(source) if isinstance(source, (str, bytes, os.PathLike)) else ""
        if not name or "://" in name or not os.path.isdir(name):
            found.append(source)
            continue
        inside = _models_in(name)
        if not inside:
            raise coded(FileNotFoundError, "%s: expected models (*.safetensors, *.sft or an index) "
                        "in this folder, found none" % name, "not_found", errno=errno.ENOENT,
                        path=name)
        found.extend(inside)
    if not found:
        raise ValueError("expected models to be merged, found none")
    return found


def merge(sources: Model | Iterable[Model], output: Path, *, dry_run: bool = False,
          overwrite: bool = False, keep_mtime: bool = False, in_place_unsafe: bool = False,
          sync: bool = True, progress: Progress = None) -> Written:
    """Writes all tensors of all models to one file, byte for byte, as "safetensors merge" without a
    method; merge_models computes one model from several.

    sources: a path, URL, index or folder (all models in it), a File, a mapping of tensors, or
    several of these. Metadata is combined; of a key in several files the first value is kept, and
    digests of the old data are not. dry_run: tell what would be written. overwrite: replace the
    output, atomically. keep_mtime: it gets the time of the youngest source. in_place_unsafe: as of
    save_file. sync=False does not wait for the disk.

    SafetensorError (tensor_duplicate) for a name in two models, or an invalid model; ValueError for
    models that declare quantised layers differently, or an output beside a configuration
    (adapter_config.json, config.json) by which it would be read otherwise; FileExistsError; OSError. Nothing is written
    then."""
    with ExitStack() as stack:
        given = _each_model(sources)
        stack.enter_context(keep_times(keep_mtime and not dry_run, given, output))
        models = [_Opened(source, stack) for source in given]
        first: dict[str, _Opened] = {}
        for model in models:
            for name in model.tensors:
                other = first.setdefault(name, model)
                if other is not model:
                    raise coded(_core.SafetensorError, "tensor \"%s\": expected one tensor of this "
                                "name, found two, in %s and %s"
                                % (name, other.path or "memory", model.path or "memory"),
                                "tensor_duplicate", tensor=name, path=model.path)
        kept: list[Any] = []
        rows = rows_of(((name, model.tensors[name]) for name, model in first.items()), kept)
        _check_joined(models)
        _check_beside(models, output)
        metadata, dropped = _combined(models, len(rows))
        return to_file(rows, output, metadata, path=models[0].path if len(models) == 1 else None,
                        overwrite=overwrite, sync=sync, dry_run=dry_run, dropped=dropped,
                        in_place_unsafe=in_place_unsafe, progress=progress, title="merging")


def _patterns(given: str | Iterable[str] | None, needed: str = "") -> list[str]:
    """needed: the argument that chooses nothing if it is an empty list, and everything if it is None."""
    found = [] if given is None else [given] if isinstance(given, str) else list(given)
    if not found and given is not None and needed:
        raise ValueError("%s: expected patterns of names, found none" % needed)
    for one in found:
        if not isinstance(one, str):
            raise TypeError("expected patterns of names, found %s" % type(one).__name__)
    return found


def _matcher(patterns: list[str]) -> Callable[[str], bool]:
    from fnmatch import translate
    from re import compile as compiled
    if not patterns:
        return lambda name: False
    fits = compiled("|".join(translate(one.replace("[^", "[!")) for one in patterns)).match
    return lambda name: fits(name) is not None


def _is_one_file(path: Any) -> bool:
    """Whether it is a file itself, and no index, folder or URL."""
    name = os.path.basename(os.fsdecode(path))
    return os.path.isfile(path) and not name.endswith(".json")


def _by_command(verb: str, source: Any, progress: Progress, title: str,
                words: list[str]) -> Written:
    """What the command of the package does with a model, which must be there."""
    with watch(progress, title) as tick:
        results = results_of([verb, *words, "--", one_model(source)], tick)["results"]
    one = one_result(results, source)
    files = tuple(made(WrittenFile, file) for file in one["files"])
    done: Written = made(Written, one, files=files)
    return done


def select(source: Model, output: Path | None = None, *, keep: str | Iterable[str] | None = None,
           drop: str | Iterable[str] | None = None, part: str | None = None, prune: bool = False,
           architecture: str | None = None, in_place: bool = False, copy: bool = False,
           dry_run: bool = False, overwrite: bool = False, force: bool = False,
           link: Link = "replace", keep_mtime: bool = False, in_place_unsafe: bool = False,
           sync: bool = True, progress: Progress = None) -> Written:
    """Writes some of the tensors of a model, as "safetensors select": those whose name matches one
    of keep (all without it) and none of drop, patterns of *, ?, [a-z] and [!a-z]. Bytes and
    metadata is kept, except for digests of the old data; other names of a tensor that the metadata
    tell are chosen like tensors, and need it. part: only one component (unet, vae,
    text_encoder, ...); prune: nothing that only training needs; architecture: what model it is, where
    tensors do not tell; these, and in_place of a model in several files, are done by the command of
    the package, from a path or URL.

    source: a path, URL, folder or index, a File, or a mapping of tensors. output: a file, or, of a
    model in several files, a new or empty folder unless it ends in .safetensors or .sft. in_place:
    replace the model itself, atomically, instead; force: even a file with several hard links; link:
    as of save_file. copy: write the output even if all tensors stay. dry_run: tell what would be
    written. overwrite: replace the output. keep_mtime: files get the times of those that their
    tensors come from. in_place_unsafe: as of save_file.

    TensorNotFoundError if no tensor is left; ValueError for in_place, part or prune of what is no path,
    for a tensor that goes while another name of it stays, or for an output beside a configuration by
    which it would be read otherwise, as in merge;
    SafetensorError, FileExistsError, OSError. Nothing is written then."""
    if (output is None) != in_place:
        raise TypeError("expected an output or in_place=True, found %s"
                        % ("neither" if output is None else "both"))
    keeps, drops = _patterns(keep, "keep"), _patterns(drop)
    if isinstance(source, Mapping) and (in_place or part is not None or prune):
        raise ValueError("expected a path with in_place, part or prune, found tensors")
    if part is not None or prune or in_place and not _is_one_file(source):
        return _by_command("select", source, progress, "selecting", options(
            keep=keeps, drop=drops, part=part, prune=prune, architecture=architecture,
            in_place=in_place, copy=copy, dry_run=dry_run, force=overwrite or force,
            follow=link == "follow", no_sync=not sync, keep_mtime=keep_mtime,
            in_place_unsafe=in_place_unsafe, output=None if output is None else operand(output)))
    is_kept, is_dropped = _matcher(keeps), _matcher(drops)
    if in_place:
        # Changes nothing: recovers from an interrupted edit, and refuses links as an edit does.
        _core.edit(os.fsdecode(source), force=force, link=link, sync=sync,  # type: ignore[arg-type]
                   dry_run=dry_run)
    with ExitStack() as stack:
        stack.enter_context(keep_times(keep_mtime and not dry_run, [source],
                                       source if output is None else output))  # type: ignore[arg-type]
        model = _Opened(source, stack)
        def stays(name: str) -> bool:
            return (not keeps or is_kept(name)) and not is_dropped(name)
        names = [one for one in model.names() if stays(one)]
        aliases, left = _aliases(model), set(names)
        gone = [one for one in aliases if not stays(one) or aliases[one] not in left]
        if not names:
            raise coded(_core.TensorNotFoundError, "%sexpected at least one tensor to remain, found none of %d%s"
                        % (model.path + ": " if model.path else "", len(model.tensors),
                           near(keeps[0], model.tensors) if keeps else ""),
                        "tensor_not_found", path=model.path)
        target: Path = output if output is not None else os.fsdecode(source)  # type: ignore[arg-type]
        set_of = model.file is not None and len(model.file.paths) > 1
        into_folder = set_of and not in_place and not _is_file_name(target)
        for one in gone:
            if stays(one):
                raise coded(ValueError, "%stensor \"%s\": expected \"%s\", another name of it by the "
                            "metadata, to go, too, found that it stays; drop that name, too, or rename "
                            "the tensor to it first"
                            % (model.path + ": " if model.path else "", aliases[one], one),
                            "bad_argument", tensor=aliases[one], path=model.path)
        unchanged = len(names) == len(model.tensors) and not gone and (into_folder or not set_of)
        if unchanged and model.path is not None and "://" not in model.path and not copy:
            return Written(model.path, model.path, dry_run, 0, 0, ())
        kept: list[Any] = []
        rows = rows_of(((one, model.tensors[one]) for one in names), kept)
        if not in_place:
            _check_beside([model], target, into_folder)
        metadata, dropped = _combined([model], -1 if into_folder else len(rows))
        metadata = metadata and {key: metadata[key] for key in metadata if key not in gone}
        if into_folder:
            shards = [model.tensors[one].shard for one in names]
            numbers = {shard: number for number, shard in enumerate(sorted(set(shards)))}
            return to_folder(rows, target, metadata, path=model.path,
                              shards=[numbers[one] for one in shards], stem=model.stem(),
                              index_metadata=model.index_metadata(len(rows)), sync=sync,
                              dry_run=dry_run, dropped=dropped, progress=progress,
                              in_place_unsafe=in_place_unsafe, title="selecting")
        return to_file(rows, target, metadata, path=model.path, overwrite=overwrite or in_place,
                        sync=sync, dry_run=dry_run, dropped=dropped, link=link, progress=progress,
                        in_place_unsafe=in_place_unsafe, title="selecting")


def rename(path: Model, names: Mapping[str, str] | Callable[[str], str] | None = None, *,
           strip_prefix: str = "", add_prefix: str = "", match: str | Iterable[str] | None = None,
           exclude: str | Iterable[str] | None = None, regex: str | Iterable[str] | None = None,
           output: Path | None = None, safe: bool = False, copy: bool = False, sync: bool = True, keep_mtime: bool = False,
           force: bool = False, link: Link = "replace", dry_run: bool = False,
           in_place_unsafe: bool = False, progress: Progress = None) -> Renamed:
    """Renames tensors, in place unless output is given, as "safetensors rename". Only the header
    changes; all renames are applied together, or none. Metadata that names tensors follows, or is a
    ValueError; other names of a tensor (aliases) are renamed like tensors. path: with an output also a
    File or other tensors by name.

    names: a mapping of old names to new ones, or a function of a name to the new one. Names that the
    mapping does not have go through strip_prefix, each of regex, then add_prefix. regex:
    "s/RE/TO/", as the command has it (for Python's own give a function with re.sub, not both). match, exclude: only tensors whose name matches one of these
    patterns, and none of those. output: a file, or, of a model in several files, a new or empty
    folder; without it such a model is changed by the command of the package. copy: write the output even if no name changes. The other options as for edit_metadata.

    TensorNotFoundError for a name in the mapping that the model lacks; SafetensorError if two would
    have one name; FileExistsError; OSError. If it raises, the model is as it was."""
    if names is not None and not isinstance(names, Mapping) and not callable(names):
        raise TypeError("names: expected a mapping or a function, found %s" % type(names).__name__)
    if regex is not None and callable(names):
        raise TypeError("expected a mapping of names beside regex, found a function")
    only, never = _patterns(match, "match"), _patterns(exclude)
    fits, refused = _matcher(only), _matcher(never)
    table = names if isinstance(names, Mapping) else {}
    with ExitStack() as stack:
        model = _Opened(path, stack)
        memory = not isinstance(path, (str, bytes, os.PathLike))
        own: Any = path  # if it is one
        if output is None and memory:
            raise ValueError("expected an output with tensors that are no file's, found none")
        aliases = _aliases(model)
        for name in table:
            if name not in model.tensors and name not in aliases:
                raise coded(_core.TensorNotFoundError, "%stensor \"%s\": expected a tensor of this "
                            "name, found none%s" % (model.path + ": " if model.path else "", name,
                                                    near(name, model.tensors)),
                            "tensor_not_found", tensor=name, path=model.path)
        changes: dict[str, str] = {}
        if regex is not None:
            changes = _replaced(own, table, options(
                regex=regex, strip_prefix=strip_prefix or None, add_prefix=add_prefix or None,
                match=only or None, exclude=never or None))
        for name in [*model.names(), *aliases] if regex is None else ():
            if (only and not fits(name)) or refused(name):
                continue
            if name in table:
                new = table[name]
            else:
                new = names(name) if callable(names) else name
                if not isinstance(new, str):
                    raise TypeError("names: expected a str for %r, found %r" % (name, new))
                new = add_prefix + (new[len(strip_prefix):] if new.startswith(strip_prefix)
                                    else new)
            if new != name:
                changes[name] = new
        if changes and not memory and tells_beside(model.path or os.fsdecode(own), output):
            _rename_by_command(own, changes, ["--dry-run", "--follow"])  # compares what they tell
        target = None if output is None else os.fsdecode(output)
        done = Renamed(model.path or (None if memory else os.fsdecode(own)), target, bool(changes), dry_run,
                       tuple(changes.items()))
        several = model.file is not None and len(model.file.paths) > 1
        if several and output is None and changes:
            stack.close()
            _rename_in_place(own, changes, options(
                safe=safe, no_sync=not sync, keep_mtime=keep_mtime, force=force,
                follow=link == "follow", dry_run=dry_run, in_place_unsafe=in_place_unsafe), progress)
            return done
        if not changes and not (copy and output is not None):
            return done
        if output is not None:
            _check_beside([model], output, (several or memory) and not _is_file_name(output))
        if (several or memory) and output is not None:
            with keep_times(keep_mtime and not dry_run, [path], output):
                _rename_set(model, changes, output, sync, dry_run, in_place_unsafe, progress)
            return done
    with watch(progress, "renaming") as tick:
        _core.edit(own, rename=changes, output=output, safe=safe, sync=sync, keep_mtime=keep_mtime,
                   force=force, link=link, dry_run=dry_run, progress=tick,
                   in_place_unsafe=in_place_unsafe)
    return done


def _rename_by_command(path: Path, names: Mapping[str, str], words: list[str],
                       tick: Tick | None = None) -> dict[str, Any]:
    import json
    from tempfile import TemporaryDirectory
    with TemporaryDirectory() as folder:
        table = os.path.join(folder, "names.json")
        with open(table, "w", encoding="utf-8") as file:
            json.dump(dict(names), file)
        found = results_of(["rename", *options(map_file=table), *words, "--", operand(path)], tick)
        return one_result(found["results"], path)


def _replaced(path: Path, names: Mapping[str, str], rules: list[str]) -> dict[str, str]:
    """Which names become which by the rules of the command, whose regular expressions are its own."""
    one = _rename_by_command(path, names, [*rules, "--dry-run"])
    return {row["from"]: row["to"] for row in one["renamed"]}


def _rename_in_place(path: Path, changes: Mapping[str, str], words: list[str],
                     progress: Progress) -> None:
    """A model in several files, by the command: new shards, then the index."""
    with watch(progress, "renaming") as tick:
        _rename_by_command(path, changes, words, tick)


def _rename_set(model: _Opened, changes: Mapping[str, str], output: Path, sync: bool, dry_run: bool,
                in_place_unsafe: bool, progress: Progress) -> None:
    """A File or other tensors with other names: in one file, or, of several files unless the output is
    named so, in a folder."""
    kept: list[Any] = []
    metadata = _renamed_metadata(model, changes)
    names = model.names()
    rows = rows_of(((changes.get(one, one), model.tensors[one]) for one in names), kept)
    if _is_file_name(output) or model.file is None or len(model.file.paths) < 2:
        to_file(rows, output, metadata, path=model.path, overwrite=False, sync=sync,
                 dry_run=dry_run, in_place_unsafe=in_place_unsafe, progress=progress,
                 title="renaming")
    else:
        to_folder(rows, output, metadata, path=model.path,
                   shards=[model.tensors[one].shard for one in names], stem=model.stem(),
                   index_metadata=model.index_metadata(len(rows)), sync=sync, dry_run=dry_run,
                   in_place_unsafe=in_place_unsafe, progress=progress, title="renaming")
