"""Runs the command of this package, for verbs whose work is done there: nothing is looked for on
PATH. Ctrl-C, and a progress that raises, end it as its user would, so that nothing is left of it."""
from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from . import _core
from ._errors import coded
from ._progress import Tick
from ._results import Error
from ._types import Path, parse

__all__ = ["listed", "one_model", "operand", "options", "raise_error", "results_of", "run"]

# On Windows only a group of processes can be told to stop.
_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
_BREAK = 1  # CTRL_BREAK_EVENT
_PATIENCE = 10  # seconds
_PROGRESS = b"progress: "
# Options with a value; all others are flags.
_VALUED = frozenset((
    "add_prefix", "algo", "architecture", "atol", "cache", "check", "civitai_url", "clean", "drop",
    "exclude", "export_preview", "export_workflow", "fits", "for_", "hash", "keep", "layout", "level",
    "map_file", "match", "min_trust", "only", "output", "part", "quantize", "records", "regex", "rtol",
    "save_as", "scale", "size", "spare", "strip_prefix", "threads", "to", "unknown", "where"))


def operand(path: Path) -> str:
    """A path as an operand: "-" would be standard input or output."""
    text = os.fsdecode(path)
    return "./" + text if text.startswith("-") else text


def one_model(path: Path) -> str:
    """The path of one model as an operand: for a folder of several, the command would do its work for
    each. ValueError; FileNotFoundError."""
    name = os.fsdecode(path)
    if "://" not in name and not os.path.lexists(name):
        raise coded(FileNotFoundError, "%s: %s" % (name, os.strerror(errno.ENOENT)), "not_found",
                    errno=errno.ENOENT, path=name)
    if "://" not in name and os.path.isdir(name):
        import re
        files = [one for one in os.listdir(name) if one.endswith((".safetensors", ".sft"))]
        if not any(one.endswith(".safetensors.index.json") for one in os.listdir(name)):
            files = list({re.sub(r"-[0-9]+-of-[0-9]+(?=\.)", "", one) for one in files})
            if len(files) > 1:
                raise ValueError("%s: expected one model, found %d in this folder"
                                 % (name, len(files)))
    return operand(path)


def listed(value: Any) -> list[Any]:
    """One or several paths or words. TypeError for what is something else to iterate over."""
    if isinstance(value, Mapping) or hasattr(value, "read"):
        raise TypeError("expected paths or words, found %s" % type(value).__name__)
    return [value] if isinstance(value, (str, bytes, os.PathLike)) else list(value)


def _stop(child: subprocess.Popen[bytes], follows: bool) -> None:
    """Ends a command as its user would, so that it removes its temporary file."""
    if os.name != "nt":
        child.terminate()
        return
    import ctypes
    # Not send_signal: where there is no console, that ends the process at once and raises SystemError.
    kernel32 = ctypes.windll.kernel32  # type: ignore[attr-defined,unused-ignore]
    told = kernel32.GenerateConsoleCtrlEvent(_BREAK, child.pid)
    if follows and child.stderr:
        child.stderr.close()  # it ends when it tells of its progress again, told or not
    elif not told:
        child.terminate()
    try:
        child.wait(None if told else _PATIENCE)
    except subprocess.TimeoutExpired:
        child.terminate()


def _follow(child: subprocess.Popen[bytes], tick: Tick) -> tuple[bytes, bytes]:
    """communicate(), with the lines of progress among the messages."""
    from threading import Thread
    assert child.stdout is not None and child.stderr is not None
    out: list[bytes] = []
    reader = Thread(target=lambda stream: out.append(stream.read()), args=(child.stdout,))
    reader.start()
    messages = []
    for line in child.stderr:
        if not line.startswith(_PROGRESS):
            messages.append(line)
            continue
        done, total = line[len(_PROGRESS):].split()
        tick(int(done), None if total == b"-" else int(total))
    reader.join()
    child.wait()
    return b"".join(out), b"".join(messages)


def run(words: list[str], tick: Tick | None = None) -> tuple[str, str, int]:
    """What the package's own command prints as a result, its messages, and its exit status."""
    from .__main__ import command_line, find_own_command
    command = find_own_command()
    if command is None:
        raise FileNotFoundError(errno.ENOENT, "expected the command of this package, found none; "
                                "pip install --force-reinstall libsafetensors installs it",
                                "safetensors")
    line = command_line([command, *words]) if os.name == "nt" else [command, *words]
    environment = None if tick is None else {**os.environ, "LIBSAFETENSORS_PROGRESS": "lines"}
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, creationflags=_GROUP, env=environment) as child:
        try:
            out, messages = child.communicate() if tick is None else _follow(child, tick)
        except BaseException:
            _stop(child, tick is not None)
            child.wait()
            raise
    if child.returncode not in (0, 1, 2):
        raise OSError("the command safetensors ended with status %d" % child.returncode)
    return (out.decode("utf-8", "replace"), messages.decode("utf-8", "replace"),
            child.returncode)


def _in_python(text: str, force: str = "force") -> str:
    """Options in a message of the command as arguments, except in quotes: commands and values. force:
    the argument that is --force."""
    import re
    names = {"-o": "output", "-r": "recursive", "--force": force}

    def argument(one: re.Match[str]) -> str:
        if one[1] is None:
            return one[0]
        name = names.get(one[1], one[1].strip("-").replace("-", "_"))
        return name + ("=" if name in _VALUED else "=True")

    return re.sub(r'"[^"]*"|(?<![^\s(])(--[a-z][a-z-]*|-[or](?!\S))(?:=| (?=[A-Z]{3}))?', argument, text)


def raise_error(error: Error, path: str, force: str | None = None) -> NoReturn:
    """The exception that the library raises for that code. force: the argument that is --force; None:
    overwrite of what exists, else force."""
    import builtins
    code, message = error["code"], error["message"]
    kind = vars(builtins).get(_core.CODES[code][2], _core.SafetensorError)
    if code == "tensor_not_found":
        kind = _core.TensorNotFoundError
    said = {os.strerror(number): number for number in errno.errorcode}
    number = {"exists": errno.EEXIST, "not_found": errno.ENOENT}.get(
        code, said.get(message.rpartition(": ")[2]))
    if kind is OSError and number is not None:
        kind = type(OSError(number, ""))
    offset, hint = error.get("offset"), error.get("hint")
    force = force or ("overwrite" if code == "exists" else "force")
    raise coded(kind, "%s%s%s" % (path + ": " if path else "", "" if offset is None else "byte %d: " % offset,
                                    _in_python(message, force)),
                code, hint and _in_python(hint, force),
                tensor=error.get("tensor"), offset=offset, errno=number, path=path)


def options(**given: object) -> list[str]:
    """Options of the command: flags that are true, and values that are not None, of lists each.
    TypeError for True as a value, with which the next option would be taken for it, and for lists
    of something else than words and paths."""
    words: list[str] = []
    for name, value in given.items():
        option = "--" + name.strip("_").replace("_", "-")
        if name not in _VALUED:
            words.extend([option] * bool(value))
        elif value is True:
            raise TypeError("%s: expected a value, found True" % name.strip("_"))
        elif value is not None and value is not False:
            one = isinstance(value, (int, float))
            for part in [str(value)] if one else listed(value):
                if not isinstance(part, (str, bytes, os.PathLike)):
                    raise TypeError("%s: expected words, found %s"
                                    % (name.strip("_"), type(part).__name__))
                words.append("%s=%s" % (option, os.fsdecode(part)))
    return words


def one_result(results: list[dict[str, Any]], path: Path, force: str | None = None
               ) -> dict[str, Any]:
    """The result of one model; its error is raised, with the argument that is --force."""
    if not results:
        raise coded(FileNotFoundError, "%s: expected a model, found none" % os.fsdecode(path),
                    "not_found", errno=errno.ENOENT, path=os.fsdecode(path))
    for one in results:
        if one.get("ok") is False:
            raise_error(one["error"], one["path"] or os.fsdecode(path), force)
    return results[0]


def results_of(words: list[str], tick: Tick | None = None, *, strict: bool = False
               ) -> dict[str, Any]:
    """The JSON that the command prints. ValueError for arguments that it refuses. What failed
    beside the results, such as a cache that cannot be written or a server that does not answer, is
    a RuntimeWarning, with strict an OSError; what left no results of a request, too."""
    text, messages, status = run([words[0], "--json", *words[1:]], tick)
    if not text:
        raise ValueError(_in_python(messages.partition("\n")[0].partition(": ")[2]))
    found: dict[str, Any] = parse(text)
    if status == 2:
        strict = strict or ("--online" in words and not found["results"] and "--dry-run" not in words)
        _say(messages, [one["error"]["message"] for one in found["results"]
                        if one.get("ok") is False], strict)
    return found


def _say(messages: str, known: list[str], strict: bool) -> None:
    for line in messages.splitlines():
        if not line.startswith("safetensors: ") or any(one in line for one in known):
            continue
        told = _in_python(line.partition(": ")[2])
        if strict and ": already exists" in told:
            path = told.partition(": already exists")[0]
            raise coded(FileExistsError, "%s: already exists" % path, "exists",
                        "force=True replaces it", errno=errno.EEXIST, path=path)
        if strict:
            raise OSError(told)
        import warnings
        warnings.warn(told, RuntimeWarning, stacklevel=4)
