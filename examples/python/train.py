"""Train on a dataset, stop in the middle of an epoch, go on from there: the same result as
without the stop, with another number of worker processes.

usage: train.py [FOLDER]
"""
import os
import sys
import tempfile
from typing import Any, Union

import torch

from libsafetensors import dataset

ROWS, INPUTS, EPOCHS, WORKERS = 2000, 8, 3, 2

Run = tuple[torch.nn.Linear, torch.optim.SGD, dataset.Loader]


def make(path: str) -> None:
    """Rows of inputs and what they should give: y = w·x + noise."""
    random = torch.Generator().manual_seed(1)
    x = torch.randn(ROWS, INPUTS, generator=random)
    y = x @ torch.arange(1.0, INPUTS + 1) + 0.01 * torch.randn(ROWS, generator=random)
    dataset.write({"x": x.numpy(), "y": y.numpy()}, path, batch_size=256, mode="overwrite")
    made = dataset.open(path)
    print(len(made), "rows in", len(made.shards), "shards")


def begin(path: str, workers: int) -> Run:
    torch.manual_seed(0)
    model = torch.nn.Linear(INPUTS, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loader = dataset.TorchBatches(path, batch_size=32, seed=7).loader(num_workers=workers)
    return model, optimizer, loader


def train(model: torch.nn.Linear, optimizer: torch.optim.SGD, loader: dataset.Loader,
          stop_after: Union[int, None] = None) -> dict[str, Any]:
    """Until the last epoch is over; or to a checkpoint after so many batches."""
    done = 0
    while loader.epoch < EPOCHS:
        for batch in loader:
            loss = torch.nn.functional.mse_loss(model(batch["x"])[:, 0], batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
            if done == stop_after:
                return {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                        "loader": loader.state_dict()}
    return {}


def main(folder: str) -> None:
    path = os.path.join(folder, "rows")
    make(path)

    whole = begin(path, 0)
    train(*whole)

    model, optimizer, loader = begin(path, 0)
    state = train(model, optimizer, loader, stop_after=100)
    torch.save(state, os.path.join(folder, "checkpoint.pt"))
    print("stopped in epoch %(epoch)d after %(delivered)d batches" % state["loader"])

    model, optimizer, loader = begin(path, WORKERS)
    state = torch.load(os.path.join(folder, "checkpoint.pt"))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    loader.load_state_dict(state["loader"])
    train(model, optimizer, loader)

    print("weights", [round(value, 1) for value in model.weight[0].tolist()])
    print("the same as without a stop:", torch.equal(model.weight, whole[0].weight))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as made:
            main(made)
