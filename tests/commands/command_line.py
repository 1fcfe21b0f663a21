"""Calling the command line in this process."""

import pytest

from evaltui.cli import main


def call(*words):
    """Returns the exit code."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code


# The kinds of reports, and how their files end.
REPORTS = {"json": "json", "junit": "xml", "csv": "csv", "markdown": "md", "html": "html", "console": "txt"}


def every_report(folder, *words, kinds=tuple(REPORTS)):
    """Returns the exit code of a command, and the text of each report that it writes."""
    files = {kind: folder / f"out.{REPORTS[kind]}" for kind in kinds}
    code = call(*words, *(word for kind, file in files.items() for word in ("--report", f"{kind}={file}")))
    return code, {kind: file.read_text(encoding="utf-8") for kind, file in files.items()}
