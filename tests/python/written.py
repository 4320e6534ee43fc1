"""What the tests of the writing half share: specs of arrays, and a reader of files that is
not ours."""
import gc
import json
import struct
import sys

NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "uint16": "U16",
    "float16": "F16", "int32": "I32", "uint32": "U32", "float32": "F32", "complex64": "C64",
    "float64": "F64", "int64": "I64", "uint64": "U64",
}


def spec_of(name, array, strides=None):
    """A spec of an array; strides True: those of the array, else packed."""
    return (name, NAMES[array.dtype.name], array.shape, array,
            array.strides if strides else None)


def parse(data):
    """(header as a dict without __metadata__, metadata or None, data region)."""
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    return header, header.pop("__metadata__", None), data[8 + n:]


def tensor_bytes(data, name):
    header, _, region = parse(data)
    begin, end = header[name]["data_offsets"]
    return region[begin:end]


def working_set():
    import ctypes
    sizes = (ctypes.c_size_t * 9)()  # PROCESS_MEMORY_COUNTERS: two DWORDs and sizes
    ctypes.windll.kernel32.GetCurrentProcess.restype = ctypes.c_void_p
    if not ctypes.windll.kernel32.K32GetProcessMemoryInfo(
            ctypes.c_void_p(ctypes.windll.kernel32.GetCurrentProcess()), sizes,
            ctypes.sizeof(sizes)):
        raise ctypes.WinError()
    return sizes[2]


def resident():
    """Bytes of this process in memory."""
    gc.collect()
    if sys.platform == "win32":
        return working_set()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def grows(work, times, warm=None):
    """By how many bytes the process grows while work() is done that often: the least of three
    times, because threads of other tests take memory, too."""
    for _ in range(warm or times):
        work()
    least = 1 << 62
    for _ in range(3):
        before = resident()
        for _ in range(times):
            work()
        least = min(least, resident() - before)
        if least < 1 << 19:
            break
    return least


