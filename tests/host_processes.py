"""The processes that agents run in, as this process has started them."""

from __future__ import annotations

import shlex
from contextlib import suppress

import psutil
from forked_hosts import TEMPLATE

from evaltui.agents import bootstrap

_OF_MULTIPROCESSING = (
    "from multiprocessing.forkserver import main",
    "from multiprocessing.resource_tracker import main",
)


def hosts() -> list[psutil.Process]:
    """Each of them is the child of a guard, which is a child of this process or of the hosts' template."""
    own = [psutil.Process()]
    guards = [*_children(own, bootstrap.__file__), *_children(_children(own, str(TEMPLATE)))]
    return _children(guards)


def descendants() -> list[str]:
    """The commands of all that was started below this process, but for what stays as long as it does: the
    template, and what multiprocessing starts processes from and clears up with."""
    this = psutil.Process()
    stays = [one for word in (str(TEMPLATE), *_OF_MULTIPROCESSING) for one in _children([this], word)]
    return [shlex.join(one.cmdline()) for one in this.children(recursive=True) if one not in stays]


def is_running(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _children(parents: list[psutil.Process], word: str = "") -> list[psutil.Process]:
    """The children in whose command line a word begins so."""
    found = []
    for parent in parents:
        # Some end just now.
        with suppress(psutil.NoSuchProcess):
            for one in parent.children():
                with suppress(psutil.NoSuchProcess):
                    if any(each.startswith(word) for each in one.cmdline()):
                        found.append(one)
    return found
