"""What must work wherever the package is installed, without any other package.

    smoke.py FOLDER      writes there; prints "ok"

Run by tests/python/test_package.py under every CPython that the machine has.
"""
import array
import os
import subprocess
import sys
import sysconfig
import threading

import libsafetensors as st


def main(folder):
    path = os.path.join(folder, "smoke.safetensors")
    values = array.array("f", range(12))
    with st.Writer(path, [("a", "F32", [3, 4]), ("b", "U8", [0])], {"k": "v"}) as writer:
        writer.write("a", values)
    with st.open(path) as file:
        assert file.keys() == ["a", "b"], file.keys()
        assert file.metadata() == {"k": "v"}
        tensor = file["a"]
        assert (tensor.dtype, tensor.shape, tensor.nbytes) == ("F32", (3, 4), 48)
        assert tensor.tobytes() == values.tobytes()
        assert tensor[1, ::2].tobytes() == array.array("f", [4, 6]).tobytes()
        view = memoryview(tensor)
        assert view.format == "f" and view.shape == (3, 4) and view[2, 3] == 11.0
        assert file["b"].tobytes() == b""
        missing = raises(KeyError, lambda: file["c"], st.SafetensorError)
        assert missing.code == "tensor_not_found", missing.code
    # What was handed out lives on.
    del file, tensor
    assert view[1, 0] == 4.0

    with open(path, "rb") as stream:
        data = stream.read()
    assert st.open(data)["a"].tobytes() == values.tobytes()
    (name, entry), *_ = st.deserialize(data)
    assert name == "a" and entry["shape"] == [3, 4] and entry["data"] == values.tobytes()
    spec = st.TensorSpec(dtype="float32", shape=[3, 4], data_ptr=values.buffer_info()[0],
                         data_len=48)
    assert st.open(st.serialize({"a": spec}))["a"].tobytes() == values.tobytes()
    error = raises(st.SafetensorError, lambda: st.open(data[:-1]))
    assert error.code == "data_truncated", error.code
    raises(FileNotFoundError, lambda: st.open(path + ".not"))
    assert st.check(path)["ok"] is True, st.check(path)
    assert st.info(path)

    shared = st.open(path, mode="read")
    threads = [threading.Thread(target=hammer, args=(path, shared, values.tobytes()))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not FAILED, FAILED
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "the extension has turned the GIL on"

    command = os.path.join(sysconfig.get_path("scripts"), "safetensors")
    told = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert st.__version__ in told.stdout, told.stdout
    subprocess.run([command, "check", path], check=True)
    assert not {"numpy", "torch"} & set(sys.modules)
    print("ok")


FAILED = []


def hammer(path, shared, expected):
    try:
        for _ in range(50):
            assert shared["a"].tobytes() == expected
            assert shared["a"][::-1].tobytes() == expected[32:] + expected[16:32] + expected[:16]
            with st.open(path) as file:
                assert bytes(memoryview(file["a"]).cast("B")) == expected
    except BaseException as error:
        FAILED.append(error)


def raises(kind, call, *or_else):
    try:
        call()
    except (kind, *or_else) as error:
        return error
    raise AssertionError("expected %s, nothing was raised" % kind.__name__)


if __name__ == "__main__":
    main(sys.argv[1])
