"""docs/python-api.md is what the docstrings say."""
import subprocess
import sys

import pytest


def test_the_page_is_what_the_docstrings_say(root):
    pytest.importorskip("torch")
    pytest.importorskip("pyarrow")
    if sys.version_info[:2] != (3, 11):
        pytest.skip("signatures are shown in another way")
    made = subprocess.run([sys.executable, str(root / "tools/python_api.py")], text=True,
                          capture_output=True, check=True).stdout
    assert made == (root / "docs/python-api.md").read_text("utf-8"), \
        "run build/venv/bin/python tools/python_api.py > docs/python-api.md"
