"""Tags of eval cases as markers of their tests, for `-m`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

OF_USER = pytest.StashKey[frozenset[str]]()
"""The markers that the user has registered in the ini file."""


def registered(config: pytest.Config) -> Iterator[str]:
    """The names of the markers that are registered so far."""
    for line in config.getini("markers"):
        yield line.partition(":")[0].partition("(")[0].strip()


def marker_of(config: pytest.Config, tag: str) -> pytest.MarkDecorator | None:
    """The marker of a tag, registered if need be; None where the name is that of a marker of pytest or of a
    plugin, such as `skip`: the tag must not do what that does."""
    if tag.startswith("_"):
        # Not a name of a marker.
        return None
    ours = config.stash.setdefault(_OURS, set())
    if tag not in ours and tag not in config.stash.get(OF_USER, frozenset()):
        if tag in registered(config):
            return None
        config.addinivalue_line("markers", f"{tag}: eval cases with this tag")
        ours.add(tag)
    marker: pytest.MarkDecorator = getattr(pytest.mark, tag)
    return marker


_OURS = pytest.StashKey[set[str]]()
