"""What metadata say of reading tensors, where models are joined or get other names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ._errors import coded

DECLARED = "_quantization_metadata"
LORA = "lora_adapter_metadata"
LISTED = "tensor_names"
QUANTISED = "quantization_config"
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


def tells_beside(path: str, output: Any) -> bool:
    """Whether a file beside the model, and beside the output unless that is None, may tell
    something of its tensors by their names."""
    folder = os.path.dirname(path)
    if output is not None:
        beside = os.path.dirname(os.fsdecode(output))
        if not os.path.isdir(beside or ".") or not os.path.samefile(folder or ".", beside or "."):
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
    import json
    try:
        lists = [json.loads(first), json.loads(second)]
    except ValueError:
        return first
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names)
               for names in lists):
        return first
    return json.dumps(list(dict.fromkeys(lists[0] + lists[1])), ensure_ascii=False)


def names_layers(config: str, tensors: Iterable[str]) -> bool:
    """Whether a key or text of the JSON is a layer of the tensors, or may be a pattern."""
    import json
    layers: set[str] = {name[:at] for name in tensors for at, c in enumerate(name) if c == "."}
    layers.update(tensors)
    try:
        todo: list[Any] = [json.loads(config)]
    except ValueError:
        return False
    while todo:
        one = todo.pop()
        if isinstance(one, (dict, list)):
            todo += one
            todo += one.values() if isinstance(one, dict) else ()
        elif isinstance(one, str) and (one in layers or one.startswith(("re:", "-:"))
                                       or any(c in one for c in "*^$?[(|\\+")):
            return True
    return False
