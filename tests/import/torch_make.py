"""Random checkpoints, as trainers and people save them, and the tensors that they hold."""
import argparse
import collections
import random

import numpy as np
import torch

DTYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.float64: "F64", torch.int64: "I64", torch.int32: "I32", torch.int16: "I16",
          torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL", torch.uint16: "U16",
          torch.uint32: "U32", torch.uint64: "U64", torch.complex64: "C64",
          torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
          torch.float8_e4m3fnuz: "F8_E4M3FNUZ", torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
          torch.float8_e8m0fnu: "F8_E8M0"}
NUMPY = {"<f4": "F32", "<f2": "F16", "<f8": "F64", "<i8": "I64", "<i4": "I32", "<i2": "I16",
         "|i1": "I8", "|u1": "U8", "<u2": "U16", "<u4": "U32", "<u8": "U64", "|b1": "BOOL",
         "<c8": "C64"}


def raw(value):
    """(dtype, shape, bytes) of a tensor or array."""
    if isinstance(value, np.ndarray):
        little = np.ascontiguousarray(value).reshape(value.shape)
        little = little.astype(little.dtype.newbyteorder("<"))
        return NUMPY[little.dtype.str], list(value.shape), little.tobytes()
    plain = torch.empty(value.numel(), dtype=value.dtype)
    plain.copy_(value.detach().resolve_conj().resolve_neg().reshape(-1))
    return DTYPES[value.dtype], list(value.shape), plain.view(torch.uint8).numpy().tobytes()


def flat(tree, name=""):
    """(name, tensor) of all tensors and arrays of a tree, in order."""
    if isinstance(tree, (torch.Tensor, np.ndarray)):
        yield name, tree
        return
    pairs = ()
    if isinstance(tree, dict):
        pairs = tree.items()
    elif isinstance(tree, (list, tuple)):
        pairs = enumerate(tree)
    for key, value in pairs:
        yield from flat(value, f"{name}.{key}" if name else str(key))


def random_tensor(rng, dtype):
    shape = [rng.choice([0, 1, 2, 3, 5, 8]) if rng.random() < 0.9 else 1
             for _ in range(rng.randrange(5))]
    count = int(np.prod(shape)) if shape else 1
    size = torch.empty(0, dtype=dtype).element_size()
    data = bytearray(rng.randbytes(count * size))
    if dtype == torch.bool:
        data = bytearray(b & 1 for b in data)
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(shape)


def random_view(rng, tensor):
    """The tensor as some view of a storage."""
    how = rng.randrange(9)
    if how == 0 and tensor.dim() > 1:
        return tensor.permute(*rng.sample(range(tensor.dim()), tensor.dim()))
    if how == 1 and tensor.dim() and tensor.shape[0] > 1:
        return tensor[1:]
    if how == 2 and tensor.dim() and tensor.shape[-1] > 2:
        return tensor[..., ::2]
    if how == 3 and tensor.dim():
        return tensor[:1].expand(rng.choice([1, 3]) if tensor.shape[0] else 0, *tensor.shape[1:])
    if how == 4 and tensor.dim() > 1 and tensor.shape[0]:
        return tensor[tensor.shape[0] - 1]
    # PyTorch changes the bits of a NaN where it turns its sign.
    if how == 5 and tensor.dtype == torch.complex64 and not tensor.isnan().any():
        return tensor.conj()
    if how == 6 and tensor.dtype in (torch.float32, torch.bfloat16, torch.complex64) \
            and not tensor.isnan().any():
        return torch._neg_view(tensor)  # pylint: disable=protected-access
    if how == 7:
        return tensor.unsqueeze(0).expand(2, *tensor.shape)
    return tensor


def random_state(rng):
    """Tensors by name, some of which share storages."""
    state = collections.OrderedDict() if rng.random() < 0.5 else {}
    for i in range(rng.randrange(1, 7)):
        dtype = rng.choice(list(DTYPES))
        tensor = random_view(rng, random_tensor(rng, dtype))
        if tensor.is_floating_point() and dtype.itemsize > 1 and rng.random() < 0.3:
            tensor = torch.nn.Parameter(tensor, requires_grad=rng.random() < 0.5)
        state[f"layer{i}.{rng.choice(['weight', 'bias', 'gewicht é'])}"] = tensor
        if rng.random() < 0.3:
            state[f"tied{i}"] = tensor
        if rng.random() < 0.3:
            with torch.no_grad():
                state[f"view{i}"] = random_view(rng, tensor)
    return state


def random_array(rng):
    kind = rng.choice(list(NUMPY))
    array = random_tensor(rng, torch.uint8).numpy().astype(kind)
    if rng.random() < 0.3 and array.dtype.itemsize > 1:
        array = array.astype(array.dtype.newbyteorder(">"))
    return np.asfortranarray(array) if rng.random() < 0.3 else array


def optimizer_state(rng, state):
    moments = {i: {"step": torch.tensor(float(i)), "exp_avg": torch.zeros(t.shape),
                   "exp_avg_sq": torch.ones(t.shape)}
               for i, t in enumerate(state.values())}
    return {"state": moments, "param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999),
                                                "params": list(moments)}]}


def random_checkpoint(rng):
    """(tree, tensors by the names that the default import gives them)."""
    state = random_state(rng)
    kind = rng.randrange(6)
    if kind < 2:
        return state, state
    extra = {"epoch": 3, "lr": 1e-3, "big": 1 << 100, "name": "é", "flags": {1, 2},
             "raw": bytes(range(256)), "none": None, "best": np.float64(0.5),
             "args": argparse.Namespace(a=1, b=[2]), "done": False}
    if kind == 2:
        key = rng.choice(["state_dict", "model", "model_state_dict", "net", "params_ema"])
        return {**extra, key: state, "optimizer": optimizer_state(rng, state)}, state
    if kind == 3:
        nested = {"encoder": {"block": state}, "heads": [random_tensor(rng, torch.float32), state]}
        return nested, dict(flat(nested))
    if kind == 4:
        whole = {"netG": state, "arrays": {"a": random_array(rng), "b": random_array(rng)},
                 "optimizer_G": optimizer_state(rng, state), **extra}
        return whole, dict(flat({"netG": state, "arrays": whole["arrays"]}))
    return {"model": {"state_dict": state, "version": 1}}, state


def seeded(seed):
    return random.Random(seed)
