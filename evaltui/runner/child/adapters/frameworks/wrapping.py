"""Methods of a framework's classes, wrapped so that what they do can be followed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

Wrapper = Callable[[Any], Any]


def wrap_methods(base: Any, wrappers: Mapping[str, Wrapper], only_below: Collection[str] = ()) -> None:
    """Replace methods of a class and of every class below it, those that are defined later included.

    Those in `only_below` stay as they are in the class itself.
    """

    def wrap(cls: type) -> None:
        for name, wrapper in wrappers.items():
            method = None if cls is base and name in only_below else vars(cls).get(name)
            if method is not None and not hasattr(method, "is_watched"):
                watched = wrapper(method)
                watched.is_watched = True
                setattr(cls, name, watched)

    for cls in {base, *_subclasses(base)}:
        wrap(cls)
    inherited = vars(base).get("__init_subclass__")

    def wrap_when_defined(cls: type, /, **kwargs: Any) -> None:
        if inherited is None:
            super(base, cls).__init_subclass__(**kwargs)
        else:
            inherited.__func__(cls, **kwargs)
        wrap(cls)

    base.__init_subclass__ = classmethod(wrap_when_defined)


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)
