"""Verbs whose work is done in the command of this package, which these functions run: what they find,
write and refuse is what it does. Options have its words; docs/cli.md explains them. Paths are
those of files, folders and indexes, and URLs, which the command opens as the environment says (not
as remote.use does). Ctrl-C and a progress that raises end it, and nothing is left of what it
was writing; what it had finished by then stays. progress gets bytes of one file after the other, of find, dup and mv models as well."""
from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Union

from . import _core
from ._command import listed, one_model, one_result, operand, options, raise_error, results_of
from ._errors import coded, near
from ._labels import Info, Infos
from ._progress import watch
from ._types import Level, Link, Path, Progress
from ._written import (Duplicates, Failed, Fix, Found, Hit, ModelsFound, Moved, Noted, OnlinePlan,
                       Part, Parts, Permission, Quantised, QuantisedTensor, Repaired, SameModels,
                       Saved, Scrubbed, Spared, Thumbnail, Trashed, Updated, Updates, Verified, VerifiedHash,
                       VerifiedHashes, Version, WrittenFile, made)

__all__ = ["clean", "dup", "find", "infos", "mv", "note", "online_plan", "parts", "quantize", "repair",
           "save_as", "scrub", "thumbnail", "trash", "updates", "verify_hashes"]

Models = Union[Path, Iterable[Path]]
_Where = Union[str, Iterable[str]]
_Fact = Union[str, int, float, bool, Sequence[str], None]
_FACTS = ("name", "base", "words", "tags", "rating", "favourite", "weight", "note")


def _failed(results: Iterable[Mapping[str, Any]]) -> tuple[Failed, ...]:
    return tuple(Failed(one["path"], one["error"]) for one in results if one.get("ok") is False)


def _all(results: list[dict[str, Any]], force: str = "force") -> list[dict[str, Any]]:
    """The results of all models; the first error is raised, with the argument that is --force."""
    for one in results:
        if one.get("ok") is False:
            raise_error(one["error"], one["path"] or "", force)
    return results


def _files(result: Mapping[str, Any]) -> tuple[WrittenFile, ...]:
    return tuple(made(WrittenFile, one) for one in result["files"])


def _word(value: str, what: str) -> str:
    """TypeError for None, without which the command would do something else."""
    if not isinstance(value, str):
        raise TypeError("%s: expected a str, found %s" % (what, type(value).__name__))
    return value


def _there(paths: list[Any]) -> list[str]:
    """Operands. FileNotFoundError for what is not there: the command might take it for a word."""
    for path in paths:
        name = os.fsdecode(path)
        if "://" not in name and not os.path.lexists(name):
            raise coded(FileNotFoundError, "%s: %s" % (name, os.strerror(errno.ENOENT)), "not_found",
                        errno=errno.ENOENT, path=name)
    return [operand(path) for path in paths]


def find(paths: Models, word: str | None = None, *, where: _Where = (), fits: Path | None = None,
         all: bool = False, compute: bool = False, cache: Path | None = None, threads: int = 0,
         recursive: bool = False, level: Level = "default", legacy: bool = False,
         progress: Progress = None) -> ModelsFound:
    """Finds models by hash, word, fact, or what they fit, as "safetensors find".

    paths: files and folders; recursive: their folders, too. word: eight or more hexadecimal digits
    of a hash, or a word in name, file name, trigger words, tags, notes, base model and so on. where:
    conditions that must all hold, "base_model=Pony" or "parameters>=7B". fits: a model, which those
    found can be used with, best first; all: also those that do not fit, or of which it is not known.
    compute: hash models that no recorded digest finds. cache: a file of digests. threads: 0 is one
    per processor. legacy: read the layout of 2022, too.

    ValueError for neither of word, where and fits, or conditions that are none; FileNotFoundError
    for a path that is not there. Models that cannot be read are in "failed"."""
    if word is None and not where and fits is None:
        raise ValueError("expected a word, where or fits, found none of them")
    if word is not None and (where or fits is not None) and os.path.lexists(word):
        raise ValueError("expected a word that is no path here, as the command takes it for one, "
                         "found %r" % word)
    if fits is not None:
        _there([fits])
    words = options(where=where or None, fits=fits, all=all, compute=compute, cache=cache,
                    threads=threads or None, recursive=recursive, level=level, legacy=legacy)
    operands = _there(listed(paths))
    with watch(progress, "finding", "models") as tick:
        results = results_of(["find", *words, "--", *([] if word is None else [word]), *operands],
                             tick)["results"]
    models = tuple(made(Found, one, matches=tuple(made(Hit, hit) for hit in one["matches"]))
                   for one in results if one["ok"])
    return ModelsFound(models, _failed(results))


def infos(paths: Models, *, where: _Where = (), full: bool = False, deep: bool = False,
          hash: str | Iterable[str] | None = None, verify: bool = False, records: Models | None = None,
          user_records: bool = True, online: bool = False, save: bool = False,
          civitai_url: str | None = None, export_preview: Path | None = None,
          export_workflow: Path | None = None, force: bool = False, cache: Path | None = None,
          threads: int = 0, recursive: bool = False, level: Level = "default", legacy: bool = False,
          progress: Progress = None) -> Infos:
    """Describes all models in files and folders, as "safetensors info FOLDER": a list of what info
    returns, which notebooks show as a table. A model that cannot be read is in it with its "error".

    where: only models that match, as of find; those that cannot be read stay. full: also values of
    the metadata over 4096 bytes. deep: as of info. hash: digests to compute, named as for hash;
    verify: compute those that header and sidecars record; both are in "hashes" then, what differs in
    its "mismatches". records: files of records, or folders of them;
    user_records=False does without those of your configuration folder. online: ask CivitAI, which
    sends it digests; save: keep its answers as NAME.civitai.info and NAME.preview beside the model;
    civitai_url: another server. export_preview: a folder that the pictures of the models are written
    to; export_workflow: a file for the workflow of the one model; force: replace such files. cache: a file of
    digests. threads: 0 is one per processor. recursive: search folders of folders. legacy: read the
    layout of 2022, too.

    FileNotFoundError for a path that is not there; FileExistsError; ValueError for conditions that
    are none; OSError if a file cannot be written, or the server not be asked."""
    if records is not None:
        records = listed(records)
        _there(records)
    words = options(where=where or None, full=full, deep=deep, verify=verify, records=records,
                    hash=hash if hash is None else ",".join(listed(hash)), online=online, save=save,
                    civitai_url=civitai_url, export_preview=export_preview,
                    export_workflow=export_workflow, force=force, cache=cache,
                    threads=threads or None, no_user_records=not user_records,
                    recursive=recursive, level=level, legacy=legacy)
    operands = _there(listed(paths))
    exports = export_preview is not None or export_workflow is not None
    with watch(progress, "reading", "models") as tick:
        results = results_of(["info", *words, "--", *operands], tick, strict=exports)["results"]
    if exports:
        _all(results)
    return Infos(map(Info, results))  # type: ignore[arg-type]


def online_plan(paths: Models, *, updates: bool = False, where: _Where = (),
                cache: Path | None = None, recursive: bool = False,
                level: Level = "default") -> OnlinePlan:
    """Tells what infos(paths, online=True), or updates, would read and ask, as "safetensors info
    --online --dry-run": sends nothing and hashes nothing. Models that cannot be read are left out.

    FileNotFoundError for a path that is not there; ValueError for conditions that are none."""
    words = options(online=True, dry_run=True, updates=updates, where=where or None, cache=cache,
                    recursive=recursive, level=level)
    plan: OnlinePlan = made(OnlinePlan, results_of(["info", *words, "--", *_there(listed(paths))])
                            ["online"])
    return plan


def updates(paths: Models, *, same_base: bool = False, where: _Where = (),
            civitai_url: str | None = None, cache: Path | None = None, threads: int = 0,
            recursive: bool = False, level: Level = "default",
            progress: Progress = None) -> Updates:
    """Asks CivitAI for newer versions of models, deleted ones and changed permissions, as
    "safetensors info --online --updates". It is sent the ids that sidecars record, or digests of
    the files. The status "unanswered" comes with a RuntimeWarning that says why.

    same_base: only versions for the same base model. where, cache, threads, recursive: as of infos.
    civitai_url: another server. Models that cannot be read are in "failed". FileNotFoundError for a
    path that is not there; ValueError for conditions that are none."""
    words = options(online=True, updates=True, same_base=same_base, where=where or None,
                    civitai_url=civitai_url, cache=cache, threads=threads or None,
                    recursive=recursive, level=level)
    operands = _there(listed(paths))
    with watch(progress, "asking", "models") as tick:
        results = results_of(["info", *words, "--", *operands], tick)["results"]
    models = []
    for one in results:
        told = one.get("updates")
        if told is not None:
            changes = told["permissions"]
            models.append(made(
                Updated, {"path": one["path"], **told},
                newer=tuple(made(Version, version) for version in told["newer"]),
                permissions=None if changes is None else tuple(
                    made(Permission, change) for change in changes)))
    return Updates(tuple(models), _failed(results))


def parts(source: Path, *, architecture: str | None = None, level: Level = "default",
          legacy: bool = False, progress: Progress = None) -> Parts:
    """Lists the components of a model (unet, VAE, text encoders, EMA, state of training) with the
    SHA-256 of their tensors, which is the same wherever they are, as "safetensors ls --parts".
    select(part=) takes one out. Reads all data.

    architecture: what model it is, where tensors do not tell ("sdxl", "flux.1", "wan").
    FileNotFoundError; SafetensorError for an invalid model; ValueError for an architecture whose
    layouts are not known; OSError."""
    words = options(parts=True, architecture=architecture, level=level, legacy=legacy)
    with watch(progress, "reading") as tick:
        found = results_of(["ls", *words, "--", one_model(source)], tick)
    one = one_result(found["results"], source)
    done: Parts = made(Parts, one, parts=tuple(made(Part, part) for part in one["parts"]))
    return done


def verify_hashes(sums: Path, *, algo: str | None = None, read: bool = False,
                  cache: Path | None = None, threads: int = 0,
                  progress: Progress = None) -> VerifiedHashes:
    """Compares files with the digests of a list, sums, as "safetensors hash --check": lines of sha256sum
    or of "safetensors hash", whose paths count from the current folder. Reads the files.

    algo: the kind of digests whose length does not tell. read: of URLs, read the files rather than
    compare what servers claim. cache: a file of digests, which learns them. threads: 0 is one per
    processor. Files that cannot be read, and the list itself if lines of it cannot, are in
    "failed". FileNotFoundError for the list; ValueError for an unknown algorithm."""
    words = options(check=_there([sums])[0], algo=algo, read=read, cache=cache,
                    threads=threads or None)
    with watch(progress, "hashing") as tick:
        results = results_of(["hash", *words], tick)["results"]
    files = tuple(made(Verified, one, verified=tuple(made(VerifiedHash, claim)
                                                     for claim in one["verified"]))
                  for one in results if one["ok"])
    failed = _failed(results)
    return VerifiedHashes(not failed and all(claim.agrees for one in files
                                             for claim in one.verified), files, failed)


def dup(paths: Models, *, weights: bool = False, remove: bool = False, link: bool = False,
        reflink: bool = False, keep: str | None = None, delete: bool = False, yes: bool = False,
        cache: Path | None = None, threads: int = 0, recursive: bool = False,
        level: Level = "default", legacy: bool = False, progress: Progress = None) -> Duplicates:
    """Finds duplicate models, even with different metadata, as "safetensors dup". Nothing is changed
    unless yes comes with one of remove (all but one of a group of the same file go to the trash, or
    with delete nowhere), link (they become names of one file) and reflink (they share bytes); without
    yes these tell what would be done. weights: so for the same weights with different metadata, too.
    Groups by "tensors" and "data" may be no duplicates, and stay.
    keep: which one stays, "described" (the default), "oldest", "newest", "shortest" or a folder.
    legacy: as of find.

    ValueError for options that do not go together; FileNotFoundError. Models that cannot be read
    are in "failed"."""
    words = options(weights=weights, remove=remove, link=link, reflink=reflink, keep=keep,
                    delete=delete, yes=yes, cache=cache, threads=threads or None,
                    recursive=recursive, level=level, legacy=legacy)
    operands = _there(listed(paths))
    with watch(progress, "comparing", "models") as tick:
        found = results_of(["dup", *words, "--", *operands], tick)
    return Duplicates(tuple(made(SameModels, one) for one in found["groups"]),
                      found["bytes_wasted"], found["models"], _failed(found["results"]))


def _in_several(path: Path) -> bool:
    """Whether it is an index, or a folder with one or with shards."""
    import re
    name = os.fsdecode(path)
    names = os.listdir(name) if os.path.isdir(name) else [name]
    return any(one.endswith(".index.json") or re.search(r"-[0-9]+-of-[0-9]+\.safetensors$", one)
               for one in names) and (os.path.isdir(name) or name.endswith(".index.json"))


def repair(source: Path, output: Path | None = None, *, in_place: bool = False, clip: bool = False,
           copy: bool = False, dry_run: bool = False, overwrite: bool = False,
           keep_mtime: bool = False, in_place_unsafe: bool = False, sync: bool = True,
           level: Level = "default", legacy: bool = False, progress: Progress = None) -> Repaired:
    """Rewrites a damaged file, or model of several files, as a valid one, as "safetensors repair":
    damage that has only one interpretation (docs/repair.md). Bytes of tensors are copied unchanged.

    output: a file, or for a model in several files a folder, new or empty; in_place: replace the
    source itself instead, which is one file, or with clip. clip: instead, make the position ids of
    CLIP that a cast made wrong right again (no fixes are listed then). copy: write the output even if
    nothing is to be repaired; else nothing is, and files is empty. dry_run: tell what would be
    done. overwrite: replace the output, or a file with several hard links. keep_mtime: files get the
    times of those that were damaged. in_place_unsafe: as of save_file. sync=False does not wait for
    the disk.

    SafetensorError for a file that cannot be repaired; ValueError for a model in several files with
    in_place; FileExistsError; OSError. Nothing is written then."""
    if (output is None) != in_place:
        raise TypeError("expected an output or in_place=True, found %s"
                        % ("neither" if output is None else "both"))
    if in_place and not clip and _in_several(source):
        raise ValueError("%s: expected a model in one file with in_place=True, found one in several: "
                         "give an output, the path of a new folder" % os.fsdecode(source))
    words = options(in_place=in_place, clip=clip, copy=copy, dry_run=dry_run, force=overwrite,
                    no_sync=not sync, level=level, legacy=legacy, keep_mtime=keep_mtime,
                    in_place_unsafe=in_place_unsafe,
                    output=None if output is None else operand(output))
    with watch(progress, "repairing") as tick:
        found = results_of(["repair", *words, "--", one_model(source)], tick)
    one = one_result(found["results"], source, "overwrite")
    fixes = tuple(made(Fix, fix) for fix in one.get("fixes", ()))
    done: Repaired = made(Repaired, one, files=_files(one), fixes=fixes)
    return done


def quantize(source: Path, output: Path, format: Literal["fp8", "int8", "int8-convrot", "mxfp8",
                                                         "nvfp4"], *,
             layout: Literal["comfy", "modelopt", "compressed-tensors"] = "comfy",
             scale: Literal["tensor", "row", "block"] | None = None,
             only: str | Iterable[str] | None = None, spare: str | Iterable[str] | None = None,
             from_quantised: bool = False, lossy: bool = False, dry_run: bool = False,
             overwrite: bool = False, keep_mtime: bool = False, in_place_unsafe: bool = False,
             sync: bool = True, progress: Progress = None) -> Quantised:
    """Writes a model whose matrices of layers are codes with scales, as "safetensors convert
    --quantize": docs/quantise.md says which format is for what, and what is left as it is.

    layout: "comfy", for ComfyUI, has all formats; "compressed-tensors", for vLLM, SGLang and
    transformers, "fp8", "int8", "mxfp8" and "nvfp4"; "modelopt", for TensorRT-LLM and vLLM, "fp8" and
    "nvfp4". scale: for each tensor, row or block, where the layout has several. only: exactly the matrices whose names match these patterns; spare: leave those as
    they are, too. from_quantised: through the values of a model that is quantised already. lossy:
    even an adapter. dry_run: compute the errors, write nothing. overwrite: replace the output.
    keep_mtime: files get the times of the source. in_place_unsafe: as of save_file.
    Memory: a few MiB. progress: bytes.

    TypeError (cast_dtype) for an adapter, or a model that is quantised already; TensorNotFoundError
    if nothing is to be quantised; ValueError for NaN, infinities, or a format that the layout lacks;
    SafetensorError, FileExistsError, OSError. Nothing is written then."""
    only = only if only is None else listed(only)
    if only == []:
        raise ValueError("only: expected patterns of names, found none")
    words = options(quantize=_word(format, "format"), layout=layout, scale=scale, only=only, spare=spare,
                    from_quantised=from_quantised, lossy=lossy, dry_run=dry_run, force=overwrite,
                    no_sync=not sync, keep_mtime=keep_mtime, in_place_unsafe=in_place_unsafe,
                    output=operand(output))
    with watch(progress, "quantising") as tick:
        found = results_of(["convert", *words, "--", one_model(source)], tick)
    one = one_result(found["results"], source, "overwrite")
    told = one["quantised"]
    done: Quantised = made(
        Quantised, {**told, **one}, files=_files(one),
        quantised=tuple(made(QuantisedTensor, tensor) for tensor in told["tensors"]),
        spared=tuple(made(Spared, tensor) for tensor in told["spared"]))
    return done


def clean(folder: Path, *, dry_run: bool = False) -> tuple[str, ...]:
    """Removes the hidden files (.NAME.sft-XXXXXX) that writers which were killed left in a folder, to
    which nothing may be writing, as "safetensors repair --clean". Returns their paths.

    dry_run: tell what would be removed. FileNotFoundError; OSError."""
    results = _all(results_of(["repair", *options(clean=_there([folder])[0], dry_run=dry_run)])
                   ["results"])
    return tuple(os.path.join(os.fsdecode(folder), one["removed"]) for one in results)


# ── Files beside models ──

def _fact(name: str, value: _Fact) -> str:
    """As the command takes it: rating=4, tags+=a,b, favourite, favourite=."""
    if not isinstance(name, str) or name.rstrip("+-") not in _FACTS:
        raise ValueError("expected one of %s as a fact, found %r%s"
                         % (", ".join(_FACTS), name, near(name, _FACTS)))
    if value is True:
        return name
    if value is None or value is False:
        return name + "="
    if isinstance(value, (str, int, float)):
        return "%s=%s" % (name, value)
    parts = listed(value)
    for part in parts:
        if not isinstance(part, str):
            raise TypeError("%s: expected words, found %s" % (name, type(part).__name__))
        if "," in part:
            raise ValueError("expected words without commas for %s, found %r" % (name, part))
    return "%s=%s" % (name, ",".join(parts))


def _plain(path: str) -> str:
    """A path that is no fact for the command, whatever its name."""
    return path if "://" in path or os.path.isabs(path) else os.path.join(".", path)


def note(models: Models, facts: Mapping[str, _Fact] | None = None, *, where: _Where = (),
         rm: bool = False, for_: Literal["civitai", "lora-manager", "a1111", "modelspec"] | None = None,
         force: bool = False, adopt: bool = False, dry_run: bool = False,
         recursive: bool = False) -> tuple[Noted, ...]:
    """Shows or keeps facts of your own about models, as "safetensors note": NAME.own.json beside
    each, which info, find and catalog read.

    facts: {"name": text, "base": text, "words": [...], "tags": [...], "rating": 0 to 5, "favourite":
    True, "weight": 0.8, "note": text}; {"tags+": [...]} adds, {"tags-": [...]} takes off, None
    removes a fact. Without facts the notes are shown. rm: remove the notes. where: only models that
    match, as of find. for_: also write it where another program looks; force: replace what somebody
    else wrote. adopt: instead, bring notes whose model was renamed to it again: Noted.from_ is where
    one was. recursive: search folders. A result for each model.

    ValueError for facts that are none; FileNotFoundError; OSError. Those before a model that fails
    are written."""
    if facts is not None and not isinstance(facts, Mapping):
        raise TypeError("facts: expected a mapping, found %s" % type(facts).__name__)
    words = options(where=where or None, rm=rm, for_=for_, force=force, adopt=adopt, dry_run=dry_run,
                    recursive=recursive)
    told = [_fact(name, value) for name, value in (facts or {}).items()]
    paths = [_plain(path) for path in _there(listed(models))]
    results = _all(results_of(["note", *words, "--", *paths, *told])["results"])
    return tuple(made(Noted, one, from_=one.get("from"),
                      changed=one.get("changed", "from" in one))
                 for one in results if "saved" not in one)


def scrub(models: Models, output: Path | None = None, *, keep: str | Iterable[str] = (),
          safe: bool = False, overwrite: bool = False, link: Link = "replace",
          dry_run: bool = False, sync: bool = True, keep_mtime: bool = False,
          in_place_unsafe: bool = False, recursive: bool = False,
          level: Level = "default") -> tuple[Scrubbed, ...]:
    """Removes from metadata what may identify you or your machine, in place, as "safetensors meta
    scrub": paths, e-mail addresses, names of users and folders, session ids, secrets, workflows, and
    pictures that hold such things. What is kept although it may tell of you, an author or a comment,
    is in "kept"; sidecars and pictures beside the file are not touched.

    output: a file instead, or, of several models, a folder. keep: keys, or patterns, that are left
    alone. overwrite: replace the output, or change a file with several hard links. link: "follow" changes
    the target of a symbolic link. dry_run: tell what would be removed. recursive: search folders.
    safe, sync, keep_mtime, in_place_unsafe: as of edit_metadata. level: as of open. A result for each
    model.

    FileNotFoundError; FileExistsError; SafetensorError for an invalid file; OSError. Those before a
    model that fails are written."""
    paths = _there(listed(models))
    target = None if output is None else operand(output)
    if target is not None and (recursive or len(paths) > 1):
        target = os.path.join(target, "")  # which says that it is a folder
    words = options(keep=listed(keep or ()) or None, safe=safe, force=overwrite, follow=link == "follow",
                    dry_run=dry_run, no_sync=not sync, keep_mtime=keep_mtime,
                    in_place_unsafe=in_place_unsafe, recursive=recursive, level=level, output=target)
    results = _all(results_of(["meta", "scrub", *words, "--", *paths])["results"], "overwrite")
    return tuple(made(Scrubbed, one) for one in results)


def mv(models: Models = (), target: Path | None = None, *, to: str | None = None,
       where: _Where = (), unknown: str | None = None, number: bool = False, copy: bool = False,
       link: bool = False, undo: bool = False, dry_run: bool = False, sync: bool = True, recursive: bool = False,
       progress: Progress = None) -> tuple[Moved, ...]:
    """Moves or renames models with everything that is their own, as "safetensors mv": shards,
    index, sidecars and pictures. target: a folder, or a new name of one model. to: instead, a path
    for each model of facts in braces, "{base_model|architecture}/{name|stem}"; unknown: what stands for facts that are not known. Nothing is overwritten; each model
    moves whole or not at all. number: put numbers behind names that are taken. copy, link: instead
    of moving. undo: without models, instead: take the last run back, of the command too; another call
    takes back the run before. A result for each model.

    ValueError, FileNotFoundError, FileExistsError, OSError."""
    if undo and (listed(models) or target is not None or to is not None):
        raise TypeError("expected undo alone, found models or a target as well")
    if not undo and (target is None) == (to is None):
        raise TypeError("expected a target or to, found %s" % ("neither" if to is None else "both"))
    if target is not None and not os.fsdecode(target):
        raise ValueError("target: expected a folder or a new name, found none")
    words = options(to=None if to is None else _word(to, "to"), where=where or None, unknown=unknown, number=number, copy=copy, link=link,
                    undo=undo, dry_run=dry_run, no_sync=not sync, recursive=recursive)
    paths = _there(listed(models))
    with watch(progress, "moving") as tick:
        found = results_of(["mv", *words, "--", *paths,
                            *([] if target is None else [operand(target)])], tick)
    return tuple(made(Moved, one, files=tuple((file["from"], file["to"]) for file in one["files"]))
                 for one in _all(found["results"]))


def trash(models: Models, *, where: _Where = (), yes: bool = False, dry_run: bool = False,
          recursive: bool = False) -> tuple[Trashed, ...]:
    """Moves models to the trash of the desktop with everything that is their own, as "safetensors
    trash". For folders yes says that all models in them are meant, or those that where keeps.
    A result for each model.

    ValueError, FileNotFoundError, OSError."""
    words = options(where=where or None, yes=yes, dry_run=dry_run, recursive=recursive)
    found = results_of(["trash", *words, "--", *_there(listed(models))])
    return tuple(made(Trashed, one) for one in _all(found["results"]))


def save_as(models: Models, program: Literal["civitai", "lora-manager", "a1111", "modelspec"], *,
            where: _Where = (), min_trust: int = 60, force: bool = False, dry_run: bool = False,
            recursive: bool = False) -> tuple[Saved, ...]:
    """Writes what is known of models for another program, as "safetensors info --save-as": as
    NAME.civitai.info, as NAME.metadata.json of ComfyUI-LoRA-Manager, as NAME.json of A1111, or into
    the header. where: only models that match, as of find. min_trust: only facts of this trust, 0 to
    100. force: replace values, and add to a file that exists. recursive: search folders. A result for each
    place.

    ValueError; FileNotFoundError; OSError. Those before a model that fails are written."""
    words = options(save_as=_word(program, "program"), where=where or None, min_trust=min_trust, force=force,
                    dry_run=dry_run, recursive=recursive)
    results = _all(results_of(["info", *words, "--", *_there(listed(models))])["results"])
    return tuple(made(Saved, {**one, **one["saved"]}) for one in results)


def thumbnail(source: Path, output: Path, *, size: int = 256, overwrite: bool = False) -> Thumbnail:
    """Writes a picture of a model as PNG, as "safetensors thumbnail": its first picture that can be
    decoded, with its kind in a corner, else a card with its name, base model and kind. size: pixels
    of the longer side, 16 to 2048.

    ValueError for a size that is none; SafetensorError, FileExistsError, OSError."""
    words = options(size=size, force=overwrite)
    found = results_of(["thumbnail", *words, "--", one_model(source), operand(output)])
    done: Thumbnail = made(Thumbnail, one_result(found["results"], source, "overwrite"))
    return done
