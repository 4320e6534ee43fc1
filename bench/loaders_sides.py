"""The loaders that loaders.py compares: each writes the same rows in its own format, and reads them
as batches of torch tensors by its own means. Every one has

    write(plan, folder, x, labels)      static
    Side(plan, folder)                  opens what was written
    epoch(how)                          batches {"x", "label"}; how: "stored", "mixed" or "full"
    take(numbers)                       a batch of these rows
    half(how), resume(how, state)       a state after half of an epoch and the batch that comes
                                        then; batches from there

and leaves out what it cannot do. Settings are the fastest that its documentation offers for one
process (num_workers=0); "mixed" is its own shuffle of plan.open_shards shards or as many rows."""
import glob
import os
import sys
import tarfile
import types

SEED = 7
WORKERS = 0


class Plan:
    """count rows of `width` F32 and an I64, files of `each` rows, batches of `batch`."""

    def __init__(self, name, count, width, each, batch, open_shards):
        self.name, self.count, self.width, self.each = name, count, width, each
        self.batch, self.open_shards = batch, open_shards

    @property
    def shards(self):
        return -(-self.count // self.each)

    def rows(self):
        """Whole numbers, so that sums of F32 are exact in any order."""
        import numpy
        block = numpy.random.default_rng(5).integers(0, 200, 1 << 20).astype("f4")
        x = numpy.resize(block[:(1 << 20) - 3], (self.count, self.width))
        return x, numpy.arange(self.count, dtype="i8")

    def table(self, x, labels):
        import pyarrow
        flat = pyarrow.array(x.reshape(-1))
        return pyarrow.table({"x": pyarrow.FixedSizeListArray.from_arrays(flat, self.width),
                              "label": labels})

    def cuts(self):
        return [(at, min(at + self.each, self.count)) for at in range(0, self.count, self.each)]


def halved(plan, batches, state):
    """What half() returns: the state after half of these batches, and the next one."""
    half = plan.count // plan.batch // 2
    for i, batch in enumerate(batches, 1):
        if i == half:
            found = state()
        elif i > half:
            return found, batch


def tensors_of(source, batch_size, **options):
    """A DataLoader."""
    from torch.utils.data import DataLoader
    return DataLoader(source, batch_size=batch_size, num_workers=WORKERS, **options)


# ── libsafetensors ──

class Ours:
    shuffles = {"stored": False, "mixed": "blocks", "full": True}

    def __init__(self, plan, folder):
        from libsafetensors import dataset
        self.plan, self.module, self.folder = plan, dataset, folder
        self.data = dataset.open(folder)

    @staticmethod
    def write(plan, folder, x, labels):
        from libsafetensors import dataset
        dataset.write(plan.table(x, labels), folder, batch_size=plan.each, sync=False,
                      shapes={"x": [plan.width]})

    def loader(self, how, source):
        return self.module.TorchBatches(
            source, self.plan.batch, shuffle=self.shuffles[how], seed=SEED,
            open_shards=self.plan.open_shards).loader(num_workers=WORKERS)

    def epoch(self, how):
        return self.loader(how, self.data)

    def take(self, numbers):
        return self.data.take(numbers, "torch")

    def half(self, how):
        loader = self.loader(how, self.data)
        return halved(self.plan, loader, loader.state_dict)

    def resume(self, how, state):
        loader = self.loader(how, self.folder)
        loader.load_state_dict(state)
        return loader


# ── MosaicML Streaming ──

def stand_in(name, **things):
    made = sys.modules[name] = types.ModuleType(name)
    made.__dict__.update(things)
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, made)


def import_streaming():
    """Without its examples of text, images and both, which need transformers and torchvision;
    a batch from transformers is only asked for its number of rows."""
    if "streaming" not in sys.modules:
        for name in ("multimodal", "text", "vision"):
            stand_in("streaming." + name)
        stand_in("transformers")
        stand_in("transformers.tokenization_utils_base", BatchEncoding=type("Batch", (), {}))
        stand_in("transformers.feature_extraction_utils", BatchFeature=type("Batch", (), {}))
    import streaming
    for name in [name for name in sys.modules if name.partition(".")[0] == "transformers"]:
        if not hasattr(sys.modules[name], "__file__"):
            del sys.modules[name]  # datasets looks for it
    return streaming


class Mosaic:
    def __init__(self, plan, folder):
        self.plan, self.folder = plan, folder
        self.data = None

    @staticmethod
    def write(plan, folder, x, labels):
        columns = {"x": "ndarray:float32:%d" % plan.width, "label": "int"}
        limit = plan.each * (4 * plan.width + 16) + 4096  # of a file, an index of its rows included
        with import_streaming().MDSWriter(out=folder, columns=columns, size_limit=limit) as out:
            for row, label in zip(x, labels.tolist()):
                out.write({"x": row, "label": label})

    def opened(self, how):
        if self.data is not None:
            self.close()
        mixed = {} if how != "mixed" else {
            "shuffle_block_size": self.plan.open_shards * self.plan.each}
        self.data = import_streaming().StreamingDataset(
            local=self.folder, batch_size=self.plan.batch, shuffle=how != "stored",
            shuffle_algo="naive" if how == "full" else "py1e", shuffle_seed=SEED,
            num_canonical_nodes=1, **mixed)
        self.how = how
        return self.data

    def close(self):
        from streaming.base.util import clean_stale_shared_memory
        self.data = None
        clean_stale_shared_memory()

    def loader(self, data):
        return import_streaming().StreamingDataLoader(data, batch_size=self.plan.batch,
                                                      num_workers=WORKERS)

    def epoch(self, how):
        if self.data is None or self.how != how:
            self.opened(how)
        return self.loader(self.data)

    def take(self, numbers):
        from torch.utils.data import default_collate
        if self.data is None:
            self.opened("stored")
        return default_collate(self.data[list(numbers)])

    def half(self, how):
        loader = self.loader(self.opened(how))
        return halved(self.plan, loader, loader.state_dict)

    def resume(self, how, state):
        loader = self.loader(self.opened(how))
        loader.load_state_dict(state)
        return loader


# ── WebDataset ──

class Web:
    def __init__(self, plan, folder):
        self.plan = plan
        self.files = sorted(glob.glob(os.path.join(folder, "*.tar")))

    @staticmethod
    def write(plan, folder, x, labels):
        import io
        for i, (begin, end) in enumerate(plan.cuts()):
            with tarfile.open(os.path.join(folder, "%05d.tar" % i), "w") as out:
                for row in range(begin, end):
                    for name, data in (("x", x[row].tobytes()), ("label", labels[row].tobytes())):
                        entry = tarfile.TarInfo("%08d.%s" % (row, name))
                        entry.size = len(data)
                        out.addfile(entry, io.BytesIO(data))

    @staticmethod
    def decoded(sample):
        import numpy
        return {"x": numpy.frombuffer(sample["x"], "f4"),
                "label": numpy.frombuffer(sample["label"], "i8")[0]}

    @staticmethod
    def stacked(rows):
        import numpy
        import torch
        return {name: torch.from_numpy(numpy.stack([row[name] for row in rows]))
                for name in ("x", "label")}

    def epoch(self, how):
        import webdataset
        if how == "full":
            return None
        mixed = how == "mixed"
        held = self.plan.open_shards * self.plan.each
        made = webdataset.WebDataset(self.files, shardshuffle=len(self.files) if mixed else False,
                                     seed=SEED, empty_check=False)
        if mixed:
            made = made.shuffle(held, initial=held)
        made = made.map(self.decoded).batched(self.plan.batch, collation_fn=self.stacked)
        return tensors_of(made, None)


# ── Hugging Face datasets ──

class Faces:
    def __init__(self, plan, folder):
        self.plan, self.folder = plan, folder
        self.data = self.opened()

    @staticmethod
    def write(plan, folder, x, labels):
        import datasets
        datasets.disable_progress_bars()
        kinds = datasets.Features({"x": datasets.List(datasets.Value("float32"),
                                                      length=plan.width),
                                   "label": datasets.Value("int64")})
        made = datasets.Dataset(plan.table(x, labels).cast(kinds.arrow_schema))
        made.save_to_disk(folder, num_shards=plan.shards)

    def opened(self):
        import datasets
        datasets.disable_progress_bars()
        return datasets.load_from_disk(self.folder).with_format("torch")

    def streamed(self):
        """Rows of a buffer, as an IterableDataset."""
        made = self.opened().to_iterable_dataset(num_shards=self.plan.shards)
        held = self.plan.open_shards * self.plan.each
        return made.shuffle(seed=SEED, buffer_size=held).with_format("torch")

    def epoch(self, how):
        from torch.utils.data import BatchSampler, RandomSampler
        if how == "stored":
            return self.data.iter(self.plan.batch)
        if how == "mixed":
            return tensors_of(self.streamed(), self.plan.batch)
        import torch
        chance = RandomSampler(self.data, generator=torch.Generator().manual_seed(SEED))
        return tensors_of(self.data, None, sampler=BatchSampler(chance, self.plan.batch, False))

    def take(self, numbers):
        return self.data[list(numbers)]

    def half(self, how):
        made = self.streamed()
        return halved(self.plan, made.iter(self.plan.batch), made.state_dict)

    def resume(self, how, state):
        made = self.streamed()
        made.load_state_dict(state)
        return made.iter(self.plan.batch)


# ── Lance ──

class Lance:
    def __init__(self, plan, folder):
        import lance
        self.plan = plan
        self.data = lance.dataset(os.path.join(folder, "rows.lance"))

    @staticmethod
    def write(plan, folder, x, labels):
        import lance
        lance.write_dataset(plan.table(x, labels), os.path.join(folder, "rows.lance"),
                            max_rows_per_file=plan.each, max_rows_per_group=plan.each)

    @staticmethod
    def tensors(table):
        """As lance.torch does, which takes batches only."""
        from lance.torch.data import _to_tensor
        return _to_tensor(table.combine_chunks().to_batches()[0])

    def epoch(self, how):
        from lance.torch.data import LanceDataset
        if how == "mixed":
            return None
        if how == "stored":
            return tensors_of(LanceDataset(self.data, batch_size=self.plan.batch), None)
        import numpy
        order = numpy.random.default_rng(SEED).permutation(self.plan.count)
        return (self.take(order[at:at + self.plan.batch])
                for at in range(0, len(order), self.plan.batch))

    def take(self, numbers):
        return self.tensors(self.data.take(list(numbers)))


SIDES = {"ours": Ours, "MosaicML": Mosaic, "WebDataset": Web, "HF datasets": Faces,
         "Lance": Lance}


# ── How they mix: row numbers of an epoch, of `shards` shards of `each` rows ──

def order_of_ours(shuffle, shards, each, width):
    import numpy
    from libsafetensors.dataset._order import Order
    order = Order(shards * each, each, shuffle, SEED, "uneven", [each] * shards, width)
    return numpy.concatenate([order.batch(0, i) for i in range(shards)])


def order_of_mosaic(algorithm, shards, each, width):
    import numpy
    import_streaming()
    from streaming.base.shuffle import get_shuffle
    return numpy.asarray(get_shuffle(algorithm, numpy.full(shards, each, "i8"), 1, SEED, 0,
                                     width * each))


def shards_in_turn(shards):
    import random
    return random.Random(SEED).sample(range(shards), shards)


def order_of_web(_, shards, each, width):
    import numpy
    import webdataset
    rows = (row for shard in shards_in_turn(shards)
            for row in range(shard * each, shard * each + each))
    held = width * each
    return numpy.fromiter(webdataset.shuffle(held, initial=held, seed=SEED)(rows), "i8")


def order_of_faces(_, shards, each, width):
    import datasets
    import numpy
    made = datasets.Dataset.from_dict({"row": numpy.arange(shards * each)})
    made = made.to_iterable_dataset(num_shards=shards).shuffle(seed=SEED, buffer_size=width * each)
    return numpy.fromiter((one["row"] for one in made), "i8")
