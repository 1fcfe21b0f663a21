"""Completes the metadata of a build: a README whose links lead to the repository that it is released from."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = re.compile(r"(!\[[^\]]*\]\()(?!https?:|#)([^)\s]+)")
_LINK = re.compile(r"((?<!!)\[(?:[^\[\]]|!\[[^\]]*\]\([^)]*\))*\]\()(?!https?:|#)([^)\s]+)")


class ReleaseMetadata(MetadataHookInterface):
    """Adds the README, and the address of the repository where GitHub builds a release.

    GitHub tells its address in GITHUB_SERVER_URL and GITHUB_REPOSITORY, and the tag in GITHUB_REF_NAME.
    Elsewhere the README stays as it is.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        server, repository = (os.environ.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY"))
        if server and repository:
            home, ref = f"{server}/{repository}", os.environ.get("GITHUB_REF_NAME") or "HEAD"
            text = _IMAGE.sub(rf"\g<1>{home}/raw/{ref}/\g<2>", text)
            text = _LINK.sub(rf"\g<1>{home}/blob/{ref}/\g<2>", text)
            metadata["urls"] = {
                "Homepage": home,
                "Changelog": f"{home}/blob/{ref}/CHANGELOG.md",
                "Issues": f"{home}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
