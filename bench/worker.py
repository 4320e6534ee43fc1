"""A contestant in Python, told what to do as worker.h has it:
worker.py open|json|get FILE, worker.py slice FILE EXPRESSION, worker.py sha256,
worker.py gguf FILE, worker.py cast|torch FILE DTYPE [OUT], worker.py save OUT BYTES,
worker.py rewrite FILE; the last two answer to the name of a mode (bench_serve_modes)."""
import json
import os
import struct
import sys
import time


now = time.process_time_ns if os.environ.get("BENCH_CPU") else time.perf_counter_ns


def peak_rss():
    with open("/proc/self/status") as f:
        return next((int(line.split()[1]) for line in f if line.startswith("VmHWM:")), 0)


def make_open(path):
    import numpy  # noqa: F401, which the first safe_open would load
    from safetensors import safe_open

    def run():
        with safe_open(path, "np"):
            pass
        return 0
    return run


def make_json(path):
    with open(path, "rb") as f:
        text = f.read(struct.unpack("<Q", f.read(8))[0])
    return lambda: len(json.loads(text))


def make_get(path):
    import numpy
    from safetensors import safe_open
    file = safe_open(path, "np").__enter__()
    names = list(file.keys())

    def run():
        total = 0
        for name in names:
            words = file.get_tensor(name).reshape(-1).view(numpy.uint64)
            total += int(words.sum(dtype=numpy.uint64))
        return total & (2**64 - 1)
    return run


def make_slice(path, expression):
    import numpy
    from safetensors import safe_open
    file = safe_open(path, "np").__enter__()
    name = list(file.keys())[0]
    index = eval("numpy.s_[%s]" % expression, {"numpy": numpy})

    def run():
        part = numpy.ascontiguousarray(file.get_slice(name)[index])
        return int(part.reshape(-1).view(numpy.uint64).sum(dtype=numpy.uint64))
    return run


def tensor_of(path):
    """The only tensor: dtype, shape, and where its bytes begin."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        entry = json.loads(f.read(size))["w"]
    return entry["dtype"], entry["shape"], 8 + size


def make_cast(path, dtype, out=None):
    """numpy with ml_dtypes: in memory, or from file to file."""
    import ml_dtypes
    import numpy
    kinds = {"F32": "f4", "F16": "f2", "BF16": ml_dtypes.bfloat16, "F8_E4M3":
             ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}
    name, shape, at = tensor_of(path)
    source = numpy.fromfile(path, kinds[name], offset=at).reshape(shape)
    target = numpy.empty(shape, kinds[dtype])

    def run():
        numpy.copyto(target, source, casting="unsafe")
        return target.nbytes

    def run_file():
        with open(out, "wb") as f:
            numpy.memmap(path, kinds[name], "r", at, tuple(shape)).astype(kinds[dtype]).tofile(f)
        return target.nbytes
    return run_file if out else run


def make_torch(path, dtype, out=None):
    """torch with one thread; file to file by the official package."""
    import torch
    torch.set_num_threads(1)
    kinds = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
             "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2}
    name, shape, at = tensor_of(path)
    with open(path, "rb") as f:
        f.seek(at)
        source = torch.frombuffer(bytearray(f.read()), dtype=kinds[name]).reshape(shape)
    target = torch.empty(shape, dtype=kinds[dtype])

    def run():
        target.copy_(source)
        return target.numel() * target.element_size()

    def run_file():
        from safetensors.torch import load_file, save_file
        save_file({k: v.to(kinds[dtype]) for k, v in load_file(path).items()}, out)
        return target.numel() * target.element_size()
    return run_file if out else run


def make_gguf(path):
    """gguf-py: all tensors as F32."""
    from gguf import GGUFReader
    from gguf.quants import dequantize
    return lambda: sum(dequantize(tensor.data, tensor.tensor_type).nbytes
                       for tensor in GGUFReader(path).tensors)


def make_sha256():
    """The streams of bench_hash.c, by hashlib's OpenSSL."""
    import hashlib
    piece = memoryview(b"\1" * (64 << 10))

    def run():
        total = 0
        for i in range(16):
            sum256 = hashlib.sha256()
            for _ in range(16):
                sum256.update(piece)
            digest = sum256.digest()
            total += digest[0] + i * digest[31]
        return total
    return run


def sync_file(path):
    """What makes a file durable: its bytes, then its name."""
    for name, flags in ((path, os.O_RDONLY), (os.path.dirname(path) or ".", os.O_DIRECTORY)):
        fd = os.open(name, flags)
        os.fsync(fd)
        os.close(fd)
    return 0


def make_save(path, size):
    """Tensors of 32 MiB in memory, as bench_save has them."""
    import numpy
    from safetensors.numpy import save_file
    whole = numpy.random.default_rng(1).integers(0, 2**63, int(size) // 8).view(numpy.float32)
    tensors = {"layer.%03d.weight" % i: part
               for i, part in enumerate(whole.reshape(-1, 8 << 20))}
    modes = {"numpy": lambda: numpy.save(path + ".npy", whole)}
    try:
        import torch
        from safetensors.torch import save_file
        tensors = {name: torch.from_numpy(part) for name, part in tensors.items()}
        modes["torch"] = lambda: torch.save(tensors, path)
    except ImportError:
        pass
    modes["official"] = lambda: save_file(tensors, path)

    def fresh(mode):
        for name in (path, path + ".npy"):
            if os.path.exists(name):
                os.unlink(name)
        os.sync()
        if mode:
            with open(path, "wb", buffering=0) as f:  # as bench_save's remove_old, and why
                for part in whole.reshape(-1, 2 << 20):
                    f.write(part)
            os.unlink(path)
    for name, run in list(modes.items()):
        at = path + ".npy" if name == "numpy" else path
        modes[name + "-synced"] = lambda run=run, at=at: (run(), sync_file(at))
    serve_modes(modes, fresh)
    fresh("")


def make_rewrite(path):
    """One key of the metadata changed by the official package: load all, save all."""
    from safetensors import safe_open
    try:
        from safetensors.torch import load_file, save_file
    except ImportError:
        from safetensors.numpy import load_file, save_file

    def prepare(mode):
        os.sync()
        time.sleep(2)  # as bench_edit's let_rest
        with open(path, "rb") as f:
            if mode.startswith("uncached"):
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while not mode.startswith("uncached") and f.read(1 << 20):
                pass

    def run(sync):
        with safe_open(path, "np") as f:
            metadata = dict(f.metadata() or {})
        metadata["modelspec.title"] = "b" if metadata.get("modelspec.title") == "a" else "a"
        save_file(load_file(path), path, metadata)
        return sync_file(path) if sync else 0
    serve_modes({"cached": lambda: run(False), "cached-synced": lambda: run(True),
                 "uncached": lambda: run(False), "uncached-synced": lambda: run(True)}, prepare)


def serve_modes(modes, prepare):
    """bench_serve_modes of worker.h."""
    print("memory 0 0", flush=True)
    for line in sys.stdin:
        mode = line.strip()
        prepare(mode)
        start = now()
        modes[mode]()
        print("%.1f 0" % (now() - start), flush=True)


def serve(run, prepare=None):
    """prepare comes before each run, and is not measured."""
    if prepare:
        prepare()
    before, start = peak_rss(), now()
    run()
    once = now() - start
    print("memory %d %d" % (before, peak_rss()), flush=True)
    loops = 1 if prepare or once >= 10_000_000 else min(1000, 10_000_000 // (once + 1) + 1)
    for _ in sys.stdin:
        if prepare:
            prepare()
        start = now()
        for _ in range(loops):
            total = run()
        print("%.1f %d" % ((now() - start) / loops, total), flush=True)


if __name__ == "__main__":
    make = {"open": make_open, "json": make_json, "get": make_get, "slice": make_slice,
            "cast": make_cast, "torch": make_torch, "gguf": make_gguf,
            "sha256": make_sha256}
    many = {"save": make_save, "rewrite": make_rewrite}
    if sys.argv[1] in many:
        many[sys.argv[1]](*sys.argv[2:])
    else:
        serve(make[sys.argv[1]](*sys.argv[2:]))
