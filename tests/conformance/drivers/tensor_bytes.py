"""Bytes of a torch tensor."""
import torch


def of(tensor):
    if not tensor.numel():
        return b""
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
