"""Folders of a test, for Spark and the other engines: fixtures."""
import pytest


@pytest.fixture
def out(tmp_path):
    """Where a test's dataset goes; on every process's disk."""
    return str(tmp_path / "data set %41")


@pytest.fixture
def flags(tmp_path):
    """Where tasks leave word."""
    folder = tmp_path / "flags"
    folder.mkdir()
    return str(folder)
