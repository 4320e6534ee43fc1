"""python -m libsafetensors: the command `safetensors` of this package."""
from __future__ import annotations

import os
import shutil
import sys
import sysconfig

NAME = "safetensors.exe" if os.name == "nt" else "safetensors"


def _is_command(path: str) -> bool:
    return os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK)


def _installed() -> str | None:
    """Path of the command that was installed with this very package, by the list of its files."""
    from importlib.metadata import PackageNotFoundError, distribution
    try:
        found = distribution("libsafetensors")
    except PackageNotFoundError:
        return None
    here = os.path.dirname(os.path.abspath(__file__))
    if os.path.realpath(str(found.locate_file("libsafetensors"))) != os.path.realpath(here):
        return None
    for file in found.files or ():
        path = os.path.abspath(str(file.locate()))
        if file.name == NAME and _is_command(path):
            return path
    return None


def find_own_command() -> str | None:
    """Path of the command that belongs to this package: the one installed with it, else that of
    its environment. PATH and the current folder are not searched: others may write there."""
    path = _installed()
    if path is not None:
        return path
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable or "")]
    paths = [os.path.join(folder, NAME) for folder in folders]
    return next(filter(_is_command, paths), None)


def find_command() -> str | None:
    """Path of the command: that of this package, of the user's packages, or on PATH."""
    path = find_own_command()
    if path is None:
        user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
        path = os.path.join(user, NAME)
    return path if _is_command(path) else shutil.which("safetensors")


def hdf5_inputs(arguments: list[str]) -> bool:
    """Whether these are "convert" with an input that only the module h5 reads."""
    if arguments[:1] != ["convert"]:
        return False
    from .h5 import reads
    inputs = [word for before, word in zip(arguments, arguments[1:])
              if not word.startswith("-") and before not in ("-o", "--output")]
    return any(os.path.isfile(word) and reads(word) for word in inputs)


def command_line(words: list[str]) -> str:
    """These words as a command line of Windows, each in quotes: elsewhere the command expands
    patterns."""
    import re
    inner = [re.sub(r'(\\*)"', r'\1\1\\"', word) for word in words]
    return " ".join('"%s"' % re.sub(r"(\\+)$", r"\1\1", word) for word in inner)


def _become(path: str, arguments: list[str]) -> int:
    """Becomes the command, or on Windows, where a process cannot, waits for it. Ctrl-C is for the
    command, which shares the console, to answer."""
    if os.name != "nt":
        os.execv(path, [path, *arguments])
    import signal
    import subprocess
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return subprocess.call(command_line([path, *arguments]))


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
    return _become(path, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
