"""`python -m tests.golden [NAME...]`: run all transcripts or these, and write their outputs anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).with_name("test_golden_transcripts.py")
TEST = f"{FILE}::test_commands_do_what_the_transcript_shows"


def main(names: list[str]) -> int:
    tests = [f"{TEST}[{name}]" for name in names] or [str(FILE)]
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "--no-header", "-p", "no:cacheprovider"]
    environment = {**os.environ, "EVALTUI_REWRITE_TRANSCRIPTS": "1"}
    # Those of every day with cheap hosts, then the others.
    parts = [tests, [*tests, "--thorough", "-m", "thorough"]]
    folder = FILE.parents[2]
    codes = [subprocess.run([*command, *part], env=environment, cwd=folder).returncode for part in parts]
    # Of some names, one part may have none.
    return max(code for code in codes if code != 5) if set(codes) != {5} else 5


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
