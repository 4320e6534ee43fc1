"""Run at the start of every Python that inherits PYTHONPATH from libsafetensors.install().

`import safetensors` then imports libsafetensors instead, if this Python has it; otherwise nothing
changes. Nothing is imported before that. Any version of Python may run this file, so its syntax
is that of old ones.
"""
import os
import sys

VARIABLE = "LIBSAFETENSORS_INSTALL"


class _Finder(object):
    """Installs the package when `safetensors` is first imported: only then is sys.path complete,
    and programs that do not use it start as fast as before."""

    busy = False  # installing may itself import `safetensors`

    def installed(self):
        """The package's own finder after installing it now; else None."""
        if self.busy or os.environ.get(VARIABLE) != "1":
            return None
        self.busy = True
        try:
            from libsafetensors._install import find_installed, install
            if find_installed():
                return None
            install(children=False)  # children inherit our environment
            return find_installed()
        except Exception:
            return None
        finally:
            self.busy = False

    def find_spec(self, name, path=None, target=None):
        finder = self.installed() if name == "safetensors" else None
        return finder and finder.find_spec(name, path, target)

    def find_distributions(self, context=None):
        named = getattr(context, "name", None) in (None, "safetensors")
        finder = self.installed() if named else None
        return finder.find_distributions(context) if finder else iter(())


def _run_hidden():
    """Imports the sitecustomize that this one hides. This folder is off the path meanwhile, so
    that another hook that does the same cannot import this one again."""
    here = os.path.dirname(os.path.abspath(__file__))
    positions = [(i, one) for i, one in enumerate(sys.path) if os.path.abspath(one) == here]
    sys.path[:] = [one for one in sys.path if os.path.abspath(one) != here]
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
        if own is not None:
            sys.modules["sitecustomize"] = own
    finally:
        for i, one in positions:
            sys.path.insert(i, one)


if os.environ.get(VARIABLE) == "1" and sys.version_info >= (3, 10):
    sys.meta_path.insert(0, _Finder())
_run_hidden()
