"""When models and tools are asked, and when what they answered before is taken: what a user may choose."""

from __future__ import annotations

from typing import Literal

# auto: replay what is known, ask for what is not, and keep it. replay: never ask. record: ask, and keep it in
# place of what was known. off: ask, and keep nothing.
RecordMode = Literal["auto", "replay", "record", "off"]
# live: call, and keep nothing. record: call, and keep the result. stub: never call.
ToolMode = Literal["live", "record", "stub"]

# Nothing is written beside the sets, and nothing old is shown as new, unless somebody asks for it.
DEFAULT_MODE: RecordMode = "off"
