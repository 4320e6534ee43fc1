"""A rank of test_dataset_torchrun.py, which torchrun starts: dataset_rank.py PLAN.json

Trains as programs do: a collective operation each step, a checkpoint every few steps, which counts
once all ranks have written theirs. Each rank tells the rows that it was given, with epoch and
step. The plan may have a rank kill itself in a step."""
import json
import os
import signal
import sys

import torch
import torch.distributed as dist

from libsafetensors import dataset


def write(path, value):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(path + ".new", path)


def reduced(value, how):
    found = torch.tensor([value])
    dist.all_reduce(found, how)
    return int(found)


def train(plan, loader, told):
    rank, folder, step = dist.get_rank(), plan["folder"], 0
    while loader.epoch < plan["epochs"]:
        epoch, batches = loader.epoch, iter(loader)
        while True:
            batch = next(batches, None)
            if not reduced(batch is not None, dist.ReduceOp.MAX):
                break
            step += 1
            rows = [] if batch is None else batch["c"].tolist()
            told.write(json.dumps([epoch, step, rows]) + "\n")
            told.flush()
            if [rank, step] == plan["kill"]:
                os.kill(os.getpid(), signal.SIGKILL)
            # With ends="uneven" some ranks have a batch less.
            if reduced(batch is not None, dist.ReduceOp.MIN) and step % plan["every"] == 0:
                write("%s/state-%d" % (folder, rank), [step, loader.state_dict()])
                dist.barrier()
                if rank == 0:
                    os.replace(folder + "/state-0", folder + "/checkpoint")
                dist.barrier()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    dist.init_process_group("gloo")
    source = dataset.Mix(plan["mix"], until="all_exhausted") if "mix" in plan else plan["path"]
    loader = dataset.TorchBatches(source, 4, ends="uneven", **plan["options"]).loader(
        num_workers=plan["workers"])
    assert loader.dataset.ranks == int(os.environ["WORLD_SIZE"])
    if plan["state"] is not None:
        loader.load_state_dict(plan["state"])
    with open("%s/told-%d" % (plan["folder"], dist.get_rank()), "w", encoding="utf-8") as told:
        train(plan, loader, told)
    dist.barrier()
    dist.destroy_process_group()


main()
