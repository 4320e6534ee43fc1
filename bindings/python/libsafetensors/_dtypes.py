"""Names of dtypes: in a header, in numpy, ml_dtypes and torch. All other modules stand on this one;
of the package it imports only the extension and _errors.py."""
from __future__ import annotations

from functools import cache
from typing import Any

from . import _core
from ._errors import coded

__all__ = ["HEADER_NAMES", "ML_NAMES", "dtype_name", "is_kind", "known_dtype", "numpy_dtype",
           "target_dtype", "torch_dtype", "torch_types"]

# Name of a dtype in numpy and torch -> name in a header, in the order of the error message.
HEADER_NAMES = {
    "bool": "BOOL", "int8": "I8", "uint8": "U8", "int16": "I16", "uint16": "U16",
    "int32": "I32", "uint32": "U32", "int64": "I64", "uint64": "U64", "float16": "F16",
    "float32": "F32", "float64": "F64", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2": "F8_E5M2",
    "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0", "float4_e2m1fn_x2": "F4",
    "complex64": "C64"}

# Name in a header -> name in ml_dtypes, of what numpy itself lacks.
ML_NAMES = {header: name for name, header in HEADER_NAMES.items()
             if name.startswith(("bfloat", "float8"))}
ML_NAMES.update(F4="float4_e2m1fn", F6_E2M3="float6_e2m3fn", F6_E3M2="float6_e3m2fn")
# Other names that are clear: "float" is one of 32 bits in torch and of 64 in numpy.
_ALIASES = {"half": "F16", "fp16": "F16", "fp32": "F32", "fp64": "F64", "double": "F64",
            "e4m3fn": "F8_E4M3", "e5m2": "F8_E5M2"}
_ML_HEADERS = {name: header for header, name in ML_NAMES.items()}


def dtype_name(dtype: Any) -> str:
    """Name in a header of a dtype of numpy or torch, or of its name there; another str is returned
    as it is. TypeError for anything else."""
    if isinstance(dtype, str):
        name = dtype
    elif isinstance(dtype, type):
        name = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}.get(
            dtype, dtype.__name__)
    elif hasattr(dtype, "name") and hasattr(dtype, "itemsize"):
        name = dtype.name  # numpy's
    elif type(dtype).__module__ == "torch":
        name = str(dtype).rpartition(".")[2]
    else:
        raise TypeError("dtype: expected a name such as \"F32\" or a dtype of numpy or torch, "
                        "found %s" % type(dtype).__name__)
    if name in _core.DTYPES:
        return name
    header = HEADER_NAMES.get(name) or _ML_HEADERS.get(name) or _ALIASES.get(name)
    upper = name.upper()
    return header or (upper if upper in _core.DTYPES else name)


def _unknown(name: str) -> str:
    from difflib import get_close_matches
    near = get_close_matches(name, [*HEADER_NAMES, *_ALIASES, *_core.DTYPES], 1, 0.7)
    return "expected a dtype of the format, found \"%s\"%s; it has %s" % (
        name, " (did you mean \"%s\"?)" % near[0] if near else "", ", ".join(_core.DTYPES))


def known_dtype(dtype: Any) -> str:
    """dtype_name. SafetensorError for what the format lacks."""
    name = dtype_name(dtype)
    if name not in _core.DTYPES:
        raise coded(_core.SafetensorError, _unknown(name), "dtype_unknown")
    return name


def target_dtype(dtype: Any) -> str:
    """dtype_name of what is to be written. ValueError for what the format lacks."""
    name = dtype_name(dtype)
    if name not in _core.DTYPES:
        raise ValueError("dtype: " + _unknown(name))
    return name


def numpy_dtype(dtype: Any) -> Any:
    """numpy's dtype of any that dtype_name takes. TypeError if ml_dtypes is missing."""
    import numpy as np
    name = known_dtype(dtype)
    if name not in ML_NAMES:
        return np.dtype(next(known for known, header in HEADER_NAMES.items() if header == name))
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError("numpy has no dtype for %s: install ml_dtypes" % name) from None
    return np.dtype(getattr(ml_dtypes, ML_NAMES[name]))


@cache
def torch_types() -> dict[str, Any]:
    """Name in a header -> dtype, of those that this version of torch has."""
    import torch
    return {header: getattr(torch, name) for name, header in HEADER_NAMES.items()
            if hasattr(torch, name)}


def torch_dtype(dtype: Any) -> Any:
    """torch's dtype of any that dtype_name takes. TypeError if this torch lacks it."""
    name = known_dtype(dtype)
    if name not in torch_types():
        raise TypeError("this torch has no dtype for %s" % name)
    return torch_types()[name]


def is_kind(dtype: str, wanted: str) -> bool:
    """Whether a tensor of the dtype is converted when all are: floats to a float, integers to an
    integer, others to nothing but themselves."""
    kinds = [_core.DTYPES[name][1].replace("uint", "int") for name in (dtype, wanted)]
    return dtype != wanted and kinds[0] == kinds[1]
