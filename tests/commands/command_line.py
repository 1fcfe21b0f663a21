"""Calling the command line in this process."""

import pytest

from evaltui.cli import main


def call(*words):
    """Returns the exit code."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code
