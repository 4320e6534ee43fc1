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


def main() -> int:
    """Becomes the command; 127 if it is not there."""
    path = find_command()
    if path is None:
        print("python -m libsafetensors: expected the command safetensors, found none in this "
              "environment or on PATH; pip install libsafetensors installs it", file=sys.stderr)
        return 127
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
