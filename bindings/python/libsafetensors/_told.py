"""What metadata say of reading tensors, where models are joined or get other names."""

from __future__ import annotations

import errno
import json
import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from ._errors import coded, open_coded

DECLARED = "_quantization_metadata"
LORA = "lora_adapter_metadata"
LISTED = "tensor_names"
QUANTISED = "quantization_config"
_ALPHAS = ("lora_alpha", "alpha", "alpha_pattern")
_CONFIG_MOST = 4 << 20
_QUANTISER_MOST = 16 << 20
# PEFT's file of a fixed name, its numbered shards and their index.
_PEFT_NAME = r"adapter_model(-[0-9]+-of-[0-9]+(-[0-9a-f]{8})?)?\.\w+(\.index\.json)?"


def is_peft_name(path: str) -> bool:
    """Whether adapter_config.json beside the file is about it."""
    from re import fullmatch
    return fullmatch(_PEFT_NAME, os.path.basename(path)) is not None


def has_adapter_config(path: str | None) -> bool:
    """Whether PEFT's adapter_config.json beside a file tells its alpha."""
    return path is not None and is_peft_name(path) \
        and os.path.lexists(os.path.join(os.path.dirname(path), "adapter_config.json"))


def config_beside(path: str | None) -> bytes | None:
    """The text of PEFT's adapter_config.json beside a file of its fixed name; None if there is none."""
    if path is None or "://" in path or not is_peft_name(path):
        return None
    return read_config(os.path.join(os.path.dirname(path), "adapter_config.json"))


def read_config(path: str) -> bytes | None:
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for
        raise coded(OSError, "%s: expected a file, found something else" % path, "io_not_file",
                    errno=errno.EINVAL, path=path)
    try:
        with open_coded(path) as file:
            text = file.read(_CONFIG_MOST + 1)
    except FileNotFoundError:
        return None
    if len(text) > _CONFIG_MOST:
        raise ValueError("expected an adapter_config.json of at most 4 MiB, found a larger one")
    return text


def _parsed(text: bytes) -> Any:
    """JSON, or the bytes where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _in_one_folder(path: str, output: str) -> bool:
    folders = [os.path.dirname(one) or "." for one in (path, output)]
    return "://" not in path and all(map(os.path.isdir, folders)) and os.path.samefile(*folders)


def alike(a: bytes | None, b: bytes | None) -> bool:
    """Whether two files, or none, say the same."""
    return a == b or (a is not None and b is not None and _parsed(a) == _parsed(b))


def _tells_alpha(text: bytes | None) -> bool:
    told = None if text is None else _parsed(text)
    return isinstance(told, dict) and (told.get("peft_type") in ("LORA", "LOHA", "LOKR")
                                       or any(key in told for key in _ALPHAS))


def check_config(paths: Sequence[str | None], output: Any, *, folded: bool = False,
                 folder: bool = False) -> None:
    """ValueError where adapter_config.json beside the output would tell of it another alpha than it
    has; a warning where the alpha of a model is told by one that does not go along. folded: alphas
    are in the factors. folder: the output is a new one."""
    import warnings
    name = os.fsdecode(output)
    there = None if folder else config_beside(name)
    own = [config_beside(path) for path in paths]
    if there is None:
        for path, text in zip(paths, own):
            if not folded and _tells_alpha(text):
                warnings.warn("%s: its adapter_config.json, which tells its alpha, is not copied, and "
                              "is read only beside a file called adapter_model.*" % path,
                              stacklevel=4)
        return
    fits = not folded and all(alike(text, there) or (text is None and path is not None
                                                     and _in_one_folder(path, name))
                              for path, text in zip(paths, own))
    if not fits:
        raise coded(ValueError, "%s: expected no adapter_config.json beside a new file of this name, "
                    "which would be read with its alpha, found one: write it to another folder, or "
                    "under another name" % name, "bad_argument", path=name)


def _quantisers(path: str | None) -> list[Any]:
    """What files beside a model say of how its tensors are quantised."""
    found: list[Any] = []
    if path is None or "://" in path:
        return found
    for name, key in (("config.json", QUANTISED), ("config.json", "quantization"),
                      ("quantize_config.json", None), ("hf_quant_config.json", "quantization")):
        try:
            with open(os.path.join(os.path.dirname(path), name), "rb") as file:
                told = _parsed(file.read(_QUANTISER_MOST))
        except OSError:
            continue
        texts = [told, told.get("text_config")] if key and isinstance(told, dict) else [told]
        found += [one.get(key) if key and isinstance(one, dict) else None if key else one
                  for one in texts]
    return [one for one in found if one is not None]


def check_quantiser(paths: Sequence[str | None], output: Any) -> None:
    """ValueError where tensors that may be codes of quantised layers would be read by what lies
    beside the output, and does not lie beside their model."""
    name = os.fsdecode(output)
    there = _quantisers(name)
    if there and any(_quantisers(path) != there for path in paths):
        raise coded(ValueError, "%s: expected beside a new file what declares the quantised layers of "
                    "its model, or nothing, found a quantization_config of others, by which they "
                    "would be read: write it to another folder" % name, "bad_argument", path=name)


def tells_beside(path: str, output: Any) -> bool:
    """Whether a file beside the model, and beside the output unless that is None, may tell
    something of its tensors by their names."""
    folder = os.path.dirname(path)
    if output is not None and not _in_one_folder(path, os.fsdecode(output)):
        return False
    return has_adapter_config(path) or any(
        os.path.lexists(os.path.join(folder, name))
        for name in ("config.json", "quantize_config.json", "hf_quant_config.json"))


def declared_otherwise(key: str) -> ValueError:
    if key == LORA:
        return coded(ValueError, "expected one configuration of adapters (%s), found different ones "
                     "in the files: without its own, a module would be read with another alpha; "
                     "convert the names of each file first" % key, "bad_argument")
    return coded(ValueError, "expected one declaration of quantised layers (%s), found different "
                 "ones in the files: without its own, a layer would be read wrong; dequantize the "
                 "files first" % key, "bad_argument")


def joined(first: str, second: str) -> str:
    """Two of torchao's lists as one that has each name once; the first if one is another text."""
    try:
        lists = [json.loads(first), json.loads(second)]
    except (ValueError, RecursionError):
        return first
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names)
               for names in lists):
        return first
    return json.dumps(list(dict.fromkeys(lists[0] + lists[1])), ensure_ascii=False)


def names_layers(config: str, tensors: Iterable[str]) -> bool:
    """Whether a key or text of the JSON is a layer of the tensors, or may be a pattern."""
    names = sorted(tensors)

    def is_layer(text: str) -> bool:
        return any(at < len(names) and (names[at] == text or names[at].startswith(text + "."))
                   for at in (bisect_left(names, text), bisect_left(names, text + ".")))
    try:
        todo: list[Any] = [json.loads(config)]
    except ValueError:
        return False
    except RecursionError:
        return True
    while todo:
        one = todo.pop()
        if isinstance(one, (dict, list)):
            todo += one
            todo += one.values() if isinstance(one, dict) else ()
        elif isinstance(one, str) and (is_layer(one) or one.startswith(("re:", "-:"))
                                       or any(c in one for c in "*^$?[(|\\+")):
            return True
    return False
