"""catalog(): a page that the command writes."""
from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from ._command import listed, operand, raise_error, run
from ._results import CatalogResult
from ._types import Path, parse

__all__ = ["catalog"]

def catalog(folders: Path | Iterable[Path], output: Path, *, title: str | None = None,
            embed: bool | int | None = None, where: str | Iterable[str] = (),
            hash: str | Iterable[str] | None = None, online: bool = False, model: bool = False,
            deep: bool = False, values: bool = False, overwrite: bool = False,
            cache: Path | None = None, threads: int = 0,
            civitai_url: str | None = None) -> CatalogResult:
    """Writes an HTML page of the models below folders, to be opened in a browser: it needs no
    server and no network (docs/catalogue.md). Runs the command of this package.

    folders: folders and files, or with model=True one model, whose tensors the page then shows;
    deep, of that, also reads the data, for statistics; values: of quantised tensors, the values
    that they stand for, as of open(). title: of the page. embed: put pictures of
    up to 64 KiB (True), or that many, into the page. where: "kind=adapter" and other conditions
    as for "safetensors find --where". hash: digests to compute, as for hash(); models with the
    same are marked as copies. cache: a file of digests. threads: 0 is one per processor. online: ask
    CivitAI about the models, which sends it their digests; civitai_url: another server.
    overwrite: replace an existing page, atomically.

    Returns the number of "models", how many of these are "unreadable" (they are in the page, with
    the reason), "bytes" of the page, and "embedded_pictures" with their "embedded_bytes".
    Without a model the page says which files it takes. FileExistsError; FileNotFoundError if there
    is no such folder or model; ValueError for arguments that the command refuses, and for a folder
    without models as the one model; SafetensorError if that is invalid; OSError. Nothing is written
    if it raises."""
    paths = [operand(path) for path in listed(folders)]
    words = ["catalog", "--json", "--output=" + operand(output)]
    if title is not None:
        words.append("--title=" + title)
    if embed is not None and embed is not False:
        words.append("--embed" if embed is True else "--embed=%d" % embed)
    words.extend("--where=%s" % condition for condition in listed(where))
    if hash is not None:
        words.append("--hash=" + ",".join(listed(hash)))
    if cache is not None:
        words.append("--cache=" + os.fsdecode(cache))
    if threads:
        words.append("--threads=%d" % threads)
    if civitai_url is not None:
        words.append("--civitai-url=" + civitai_url)
    for name, given in (("online", online), ("deep", deep), ("values", values),
                        ("force", overwrite)):
        words.extend(["--" + name] * given)
    if model and len(paths) != 1:
        raise ValueError("folders: expected one model, found %d" % len(paths))
    text, messages, _ = run(words + (["--model=" + paths[0]] if model else ["--", *paths]))
    results = parse(text)["results"] if text else []
    for result in results:
        if result["ok"] and "models" in result:
            page: CatalogResult = result
            return page
    if results:
        raise_error(results[-1]["error"], results[-1]["path"], "overwrite")
    message = messages.partition("\n")[0].partition(": ")[2]
    if text:
        raise FileNotFoundError(errno.ENOENT, message)
    raise ValueError(message)
