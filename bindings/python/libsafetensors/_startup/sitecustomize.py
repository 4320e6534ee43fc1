"""Run at the start of every Python that inherits PYTHONPATH from libsafetensors.install().

`import safetensors` then imports libsafetensors in its place where this Python has it; where it
has not, nothing changes. Nothing is imported before that. Any Python may come by here, so that
this file keeps to what old ones understand.
"""
import os
import sys

VARIABLE = "LIBSAFETENSORS_INSTALL"


class _Finder(object):
    """Installs the package when `safetensors` is first looked for, rather than at once: what is
    on sys.path is complete only then, and programs without tensors start as fast as before."""

    busy = False  # what the package imports may look for `safetensors` as well

    def installed(self):
        """The package's own finder, which answers by itself from then on; or None."""
        if self.busy or os.environ.get(VARIABLE) != "1":
            return None
        self.busy = True
        try:
            from libsafetensors._install import find_installed, install
            if find_installed():
                return None
            install(children=False)  # they inherit what brought this one here
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
    """Imports the sitecustomize that this one hides. Meanwhile this folder is not on the path,
    so that another hook that does the same cannot come back here."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [(i, one) for i, one in enumerate(sys.path) if os.path.abspath(one) == here]
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
        for i, one in places:
            sys.path.insert(i, one)


if os.environ.get(VARIABLE) == "1" and sys.version_info >= (3, 10):
    sys.meta_path.insert(0, _Finder())
_run_hidden()
