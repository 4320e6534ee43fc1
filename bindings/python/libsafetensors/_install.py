"""Puts our modules in the place of the official package."""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

OFFICIAL = "safetensors"
# The release whose interface ours is, and the names of its top level.
OFFICIAL_VERSION = "0.8.0"
_OFFICIAL_NAMES = ("SafetensorError", "TensorSpec", "deserialize", "safe_open", "serialize",
                   "serialize_file")
# What its modules import, and those of them that import its numpy module.
_TYPING = ("Any", "Dict", "List", "Optional", "Set", "Tuple", "Union")
_OVER_NUMPY = (OFFICIAL + ".flax", OFFICIAL + ".tensorflow", OFFICIAL + ".mlx",
               OFFICIAL + ".paddle")
# The public names of its modules: what dir() and a star import show.
_COMMON = "Dict Optional Union load load_file np os safe_open save save_file"
_LOW = " List TensorSpec deserialize serialize serialize_file sys"
_PUBLIC = {".numpy": _COMMON + _LOW, ".flax": _COMMON + " Array jnp numpy",
           ".tensorflow": _COMMON + " numpy tf", ".mlx": _COMMON + " mx numpy",
           ".paddle": _COMMON + _LOW + " Any NPDTYPES numpy paddle",
           ".torch": _COMMON.replace(" np ", " ") + _LOW + " Any Set Tuple defaultdict load_model "
                     "save_model storage_ptr storage_size torch"}
# Module of the official package -> ours.
_MODULES = {"": "", ".numpy": ".numpy", ".torch": ".torch", ".flax": ".flax",
            ".tensorflow": ".tensorflow", ".mlx": ".mlx", ".paddle": ".paddle",
            "._safetensors_rust": "._official"}

# Our module -> the dict of the module of `safetensors` that forwards to it, and what was in it: what
# a program has put in the place of a name since (unittest.mock.patch), official functions call.
FORWARDED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}


def forward(name: str, into: dict[str, Any]) -> None:
    """Fills the dict of a module (`safetensors` or a submodule) with our names; names added to
    ours later are looked up on demand."""
    from importlib import import_module
    source = import_module(__package__ + _MODULES[name[len(OFFICIAL):]])
    # The official modules have no __all__: a star import takes every public name. From the
    # package it must not take ours, such as open and hash; from the others it takes what they
    # import, too. The package's names are imported on first use: what install() imports, every
    # child process does.
    if name == OFFICIAL:
        into["__all__"] = list(_OFFICIAL_NAMES)
        into["__dir__"] = lambda: sorted({*into, *_OFFICIAL_NAMES})
        for key in [one for one in into if one[0] != "_" and "." + one not in _MODULES]:
            del into[key]
    else:
        import typing
        into.update((key, getattr(typing, key)) for key in _TYPING)
        into.update((key, value) for key, value in vars(source).items()
                    if not (key.startswith("__") and key.endswith("__")))
        into["os"] = os
        into["safe_open"] = getattr(import_module(__package__), "safe_open")
        for key in _OFFICIAL_NAMES:  # which our modules import on first use
            if hasattr(source, key):
                into[key] = getattr(source, key)
        if name in _OVER_NUMPY:
            into["numpy"] = import_module(OFFICIAL + ".numpy")
        known = _PUBLIC.get(name[len(OFFICIAL):], "").split()
        if known:
            into["__all__"] = [one for one in known if one in into]
            into["__dir__"] = lambda: sorted({one for one in into if one[0] == "_"}
                                             | set(into["__all__"]))
    into["__version__"] = OFFICIAL_VERSION
    into["__doc__"] = source.__doc__

    def look_up(key: str) -> Any:
        if key.startswith("__") or name == OFFICIAL and "." + key in _MODULES:
            raise AttributeError("module %r has no attribute %r" % (name, key))
        return getattr(source, key)

    into["__getattr__"] = look_up
    FORWARDED[source.__name__] = into, dict(into)


class _Finder:
    """Finds `safetensors`: its modules and its distribution."""

    def find_spec(self, name: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        base, _, _ = name.partition(".")
        if base != OFFICIAL or name[len(OFFICIAL):] not in _MODULES:
            return None
        from importlib.machinery import ModuleSpec
        from importlib.util import find_spec
        ours = find_spec(__package__ + _MODULES[name[len(OFFICIAL):]])
        return ModuleSpec(name, self,  # type: ignore[arg-type]
                          origin=ours.origin if ours else None, is_package=name == OFFICIAL)

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None and module.__spec__.origin:
            module.__file__ = module.__spec__.origin
        forward(module.__name__, vars(module))

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        if getattr(context, "name", None) in (None, OFFICIAL):
            yield _distribution()


def _distribution() -> Any:
    """For importlib.metadata, where programs look up whether safetensors is installed."""
    from importlib.metadata import Distribution

    class Forwarded(Distribution):
        _texts = {"METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n"
                              % (OFFICIAL, OFFICIAL_VERSION),
                  "top_level.txt": OFFICIAL + "\n"}

        def read_text(self, filename: Any) -> str | None:
            return self._texts.get(str(filename))

        def locate_file(self, path: Any) -> Any:
            from pathlib import Path
            return Path(__file__).parent.parent / path

    return Forwarded()


# ── This process ──

_replaced: dict[str, ModuleType] = {}  # modules of the official package that were loaded


def find_installed() -> _Finder | None:
    """The finder of this process, or None."""
    return next((finder for finder in sys.meta_path if isinstance(finder, _Finder)), None)


def install(*, children: bool = True) -> None:
    """Makes `import safetensors` and its submodules import this package, whether the official
    one is installed or not. Call it before anything imports the official package; otherwise it
    warns (RuntimeWarning), because names imported from there stay what they are.

    children: also in Python processes that this one starts, through the environment (see
    docs/python.md); False leaves the environment unchanged. Raises nothing: the warning is an Error
    only where warnings are."""
    if children:
        _hook_children()
    if find_installed():
        return
    loaded = _loaded()
    if loaded and not _is_ours(sys.modules[loaded[0]]):
        import warnings
        warnings.warn("safetensors was imported before libsafetensors.install(): modules that "
                      "took names from it go on using the official package", RuntimeWarning,
                      stacklevel=2)
        _replaced.update((name, sys.modules[name]) for name in loaded)
    for name in loaded:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder())
    __import__(OFFICIAL)


def uninstall() -> None:
    """Undoes install(): `import safetensors` imports the official package again, here and in
    children started from now on. Names imported from ours stay what they are."""
    _unhook_children()
    finder = find_installed()
    if finder is None:
        return
    sys.meta_path.remove(finder)
    for name in _loaded():
        del sys.modules[name]
    sys.modules.update(_replaced)
    _replaced.clear()
    FORWARDED.clear()


def _loaded() -> list[str]:
    return [name for name in sys.modules if name == OFFICIAL or name.startswith(OFFICIAL + ".")]


def _is_ours(module: ModuleType) -> bool:
    return getattr(vars(module).get("__getattr__"), "__module__", "") == __name__


# ── Child processes ──
# A new Python runs the first sitecustomize on its path: ours installs the package if the variable
# is still set, and then runs the one that it hides.

VARIABLE = "LIBSAFETENSORS_INSTALL"
_HOOK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_startup")


def _python_path(hooked: bool) -> None:
    """Puts the hook first on PYTHONPATH, or removes it."""
    before = os.environ.get("PYTHONPATH", "")
    others = [one for one in before.split(os.pathsep) if one != _HOOK] if before else []
    path = os.pathsep.join([_HOOK] * hooked + others)
    if path:
        os.environ["PYTHONPATH"] = path
    elif before:
        del os.environ["PYTHONPATH"]


def _hook_children() -> None:
    if os.pathsep in _HOOK:
        import warnings
        warnings.warn("libsafetensors.install() does not reach child processes: %s cannot be "
                      "on PYTHONPATH, which is split at %r" % (_HOOK, os.pathsep),
                      RuntimeWarning, stacklevel=3)
        return
    os.environ[VARIABLE] = "1"
    _python_path(True)


def _unhook_children() -> None:
    os.environ.pop(VARIABLE, None)
    _python_path(False)
