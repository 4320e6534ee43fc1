"""catalog(): a page that the command writes."""
from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Iterable
from typing import Any, NoReturn

from . import _core
from ._errors import coded
from ._results import CatalogResult, Error
from ._types import Path, parse

__all__ = ["catalog"]

# On Windows only a group of processes can be told to stop.
_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


def _operand(path: Path) -> str:
    """A path as an operand: "-" would be standard input or output."""
    text = os.fsdecode(path)
    return "./" + text if text.startswith("-") else text


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, bytes, os.PathLike)) else list(value)


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Ends a command as its user would, so that it removes its temporary file."""
    if os.name == "nt":
        child.send_signal(signal.CTRL_BREAK_EVENT)  # type: ignore[attr-defined,unused-ignore]
    else:
        child.terminate()


def _run(words: list[str]) -> tuple[str, str]:
    """What the package's own command prints as a result, and its messages."""
    from .__main__ import command_line, find_own_command
    command = find_own_command()
    if command is None:
        raise FileNotFoundError(errno.ENOENT, "expected the command of this package, found none; "
                                "pip install --force-reinstall libsafetensors installs it",
                                "safetensors")
    line = command_line([command, *words]) if os.name == "nt" else [command, *words]
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, creationflags=_GROUP) as child:
        try:
            out, messages = child.communicate()
        except BaseException:
            _stop(child)
            child.wait()
            raise
    if child.returncode not in (0, 1, 2):
        raise OSError("the command safetensors ended with status %d" % child.returncode)
    return out.decode("utf-8", "replace"), messages.decode("utf-8", "replace")


def _raise(error: Error, path: str) -> NoReturn:
    """The exception that the library raises for that code."""
    import builtins
    code, message = error["code"], error["message"]
    kind = vars(builtins).get(_core.CODES[code][2], _core.SafetensorError)
    said = {os.strerror(number): number for number in errno.errorcode}
    number = {"exists": errno.EEXIST, "not_found": errno.ENOENT}.get(
        code, said.get(message.rpartition(": ")[2]))
    if kind is OSError and number is not None:
        kind = type(OSError(number, ""))
    offset, hint = error.get("offset"), error.get("hint")
    raise coded(kind, "%s: %s%s" % (path, "" if offset is None else "byte %d: " % offset, message),
                code, "overwrite=True replaces it" if code == "exists" else hint,
                tensor=error.get("tensor"), offset=offset, errno=number, path=path)


def catalog(folders: Path | Iterable[Path], output: Path, *, title: str | None = None,
            embed: bool | int | None = None, where: str | Iterable[str] = (),
            hash: str | Iterable[str] | None = None, online: bool = False, model: bool = False,
            deep: bool = False, overwrite: bool = False) -> CatalogResult:
    """Writes an HTML page of the models below folders, to be opened in a browser: it needs no
    server and no network (docs/catalogue.md). Runs the command of this package.

    folders: folders and files, or with model=True one model, whose tensors the page then shows;
    deep, of that, also reads the data, for statistics. title: of the page. embed: put pictures of
    up to 64 KiB (True), or that many, into the page. where: "kind=adapter" and other conditions
    as for "safetensors find --where". hash: digests to compute, as for hash(); models with the
    same are marked as copies. online: ask CivitAI about the models, which sends it their digests.
    overwrite: replace an existing page, atomically.

    Returns the number of "models", how many of these are "unreadable" (they are in the page, with
    the reason), "bytes" of the page, and "embedded_pictures" with their "embedded_bytes".
    Without a model the page says which files it takes. FileExistsError; FileNotFoundError if there
    is no such folder or model; ValueError for arguments that the command refuses, and for a folder
    without models as the one model; SafetensorError if that is invalid; OSError. Nothing is written
    if it raises."""
    paths = [_operand(path) for path in _listed(folders)]
    words = ["catalog", "--json", "--output=" + _operand(output)]
    if title is not None:
        words.append("--title=" + title)
    if embed is not None and embed is not False:
        words.append("--embed" if embed is True else "--embed=%d" % embed)
    words.extend("--where=%s" % condition for condition in _listed(where))
    if hash is not None:
        words.append("--hash=" + ",".join(_listed(hash)))
    for name, given in (("online", online), ("deep", deep), ("force", overwrite)):
        words.extend(["--" + name] * given)
    if model and len(paths) != 1:
        raise ValueError("folders: expected one model, found %d" % len(paths))
    text, messages = _run(words + (["--model=" + paths[0]] if model else ["--", *paths]))
    results = parse(text)["results"] if text else []
    for result in results:
        if result["ok"] and "models" in result:
            page: CatalogResult = result
            return page
    if results:
        _raise(results[-1]["error"], results[-1]["path"])
    message = messages.partition("\n")[0].partition(": ")[2]
    if text:
        raise FileNotFoundError(errno.ENOENT, message)
    raise ValueError(message)
