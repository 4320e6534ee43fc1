"""A rank of test_group.py: python group_rank.py RANK RANKS STORE CASE ARGUMENTS…"""
import sys

import torch
import torch.distributed as dist

from libsafetensors import _group
from libsafetensors.torch import load_file, load_group


def same(found, paths):
    plain = {}
    for path in paths:
        plain.update(load_file(path))
    assert list(found) == list(plain), (list(found), list(plain))
    for name, tensor in plain.items():
        one = found[name]
        assert one.dtype is tensor.dtype and one.shape == tensor.shape, name
        assert torch.equal(one.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8))


def whole(rank, *paths):
    _group.WINDOW_BYTES = 1 << 20
    same(load_group(list(paths)), paths)
    same(load_group(paths[0]), paths[:1])


def fails(rank, path, what):
    """Rank 1 fails; all say so, and the group goes on."""
    _group.WINDOW_BYTES = 1 << 20
    plain = {"open": (_group, "open_file"), "read": (_group._Piece, "read"),
             "copy": (_group._Exchange, "_copy")}[what]
    before = getattr(*plain)
    if rank == 1:
        calls = []

        def fail(*args, **more):
            calls.append(1)
            if what == "open" or len(calls) == 2:
                raise KeyboardInterrupt("of rank 1") if what == "copy" else OSError("of rank 1")
            return before(*args, **more)
        setattr(*plain, fail)
    try:
        load_group(path)
    except (OSError, KeyboardInterrupt) as error:
        assert rank == 1 and "of rank 1" in str(error), (rank, error)
    except RuntimeError as error:
        assert rank != 1 and "rank 1 has failed" in str(error), (rank, error)
    else:
        raise AssertionError("nothing was raised")
    setattr(*plain, before)
    same(load_group(path), [path])


def differ(rank, *paths):
    try:
        load_group(paths[rank % 2])
    except RuntimeError as error:
        assert "the same files on all ranks" in str(error)
    else:
        raise AssertionError("nothing was raised")


def everything(rank, *paths):
    whole(rank, *paths)
    for what in ("open", "read", "copy"):
        fails(rank, paths[0], what)
    differ(rank, *paths)


def main():
    rank, ranks, store, case, *arguments = sys.argv[1:]
    rank, ranks = int(rank), int(ranks)
    dist.init_process_group("gloo", store=dist.FileStore(store, ranks), rank=rank,
                            world_size=ranks)
    globals()[case](rank, *arguments)
    dist.barrier()
    dist.destroy_process_group()


main()
