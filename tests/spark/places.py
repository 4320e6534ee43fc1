"""Fixtures for folders of a test, for Spark and the other engines."""
import pytest


@pytest.fixture
def out(tmp_path):
    """Folder of a test's dataset, visible to every process."""
    return str(tmp_path / "data set %41")


@pytest.fixture
def flags(tmp_path):
    """Folder where tasks leave flags."""
    folder = tmp_path / "flags"
    folder.mkdir()
    return str(folder)
