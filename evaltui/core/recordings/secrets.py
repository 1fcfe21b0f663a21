"""Keys do not enter a recording, whatever text they stand in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
# A shorter value may be a word that texts have for other reasons.
_SHORTEST = 8
# Keys that nothing else looks like: of Google, and of those who followed its example.
_SHAPES = re.compile(
    r"AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}|\bsk-[0-9A-Za-z_-]{20,}|\bgh[pousr]_[0-9A-Za-z]{36}"
)


class Secrets:
    """Replaces, in JSON data, what environments hold under a name such as GOOGLE_API_KEY by `<NAME>`, and
    what looks like nothing but a key by `<key>`."""

    def __init__(self, *environments: Mapping[str, str]) -> None:
        known = {
            _escaped(value): name
            for environment in environments
            for name, value in sorted(environment.items())
            if _NAME.search(name) and len(value) >= _SHORTEST
        }
        # The longest first: one may be the beginning of another.
        self._known = sorted(known.items(), key=lambda item: -len(item[0]))

    def without(self, data: Any) -> Any:
        """The data itself where it holds no secret. Raises TypeError or ValueError for what is no JSON."""
        text = json.dumps(data, ensure_ascii=False)
        clean = text
        for value, name in self._known:
            clean = clean.replace(value, f"<{name}>")
        clean = _SHAPES.sub("<key>", clean)
        return data if clean == text else json.loads(clean)


def _escaped(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]
