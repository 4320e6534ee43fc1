"""python -m libsafetensors: the command `safetensors` of this package."""
from __future__ import annotations

import os
import shutil
import sys
import sysconfig


def find_command() -> str | None:
    """Path of the command: that of this environment, of the user's packages, or on PATH."""
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable),
               sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))]
    for folder in folders:
        path = os.path.join(folder, "safetensors")
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return shutil.which("safetensors")


def hdf5_inputs(arguments: list[str]) -> bool:
    """Whether these are "convert" with an input that only the module h5 reads."""
    if arguments[:1] != ["convert"]:
        return False
    from .h5 import reads
    inputs = [word for before, word in zip(arguments, arguments[1:])
              if not word.startswith("-") and before not in ("-o", "--output")]
    return any(os.path.isfile(word) and reads(word) for word in inputs)


def main() -> int:
    """Becomes the command; 127 if it is not there. Converts HDF5 itself."""
    if hdf5_inputs(sys.argv[1:]):
        from .h5 import main as convert
        return convert(sys.argv[2:])
    path = find_command()
    if path is None:
        print("python -m libsafetensors: expected the command safetensors, found none in this "
              "environment or on PATH; pip install libsafetensors installs it", file=sys.stderr)
        return 127
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
