"""What others do to the files of an agent while it is open, and whether all that was saved is whole."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from input import Outside


class Files:
    """The files of one agent. Knows every text that was written by others: those may be broken."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._first = {path: path.read_text("utf-8") for path in self._all("*.py", "*.json")}
        self._written: set[str] = set(self._first.values())
        self._made = 0

    def _all(self, *patterns: str) -> list[Path]:
        hidden = {".evaltui", ".adk", "__pycache__"}
        found = (path for pattern in patterns for path in self._folder.rglob(pattern))
        return sorted(path for path in found if not hidden & set(path.parts))

    def _one(self, number: int, *patterns: str) -> Path | None:
        found = [path for path in self._first if any(path.match(pattern) for pattern in patterns)]
        return found[number % len(found)] if found else None

    def change(self, outside: Outside) -> None:
        what, number = outside
        eval_set, config = self._one(number, "*.evalset.json"), self._one(number, "test_config.json")
        agent = self._one(number, "agent.py")
        match what:
            case "forget runs":
                shutil.rmtree(self._folder / ".evaltui" / "runs", ignore_errors=True)
            case "new set":
                self._made += 1
                data = {"eval_set_id": f"made_{self._made}", "eval_cases": []}
                self._write(self._folder / f"made_{self._made}.evalset.json", json.dumps(data))
            case "delete" if eval_set:
                eval_set.unlink(missing_ok=True)
            case "break" if eval_set:
                self._write(eval_set, self._first[eval_set][: number % 500])
            case "restore" if eval_set:
                self._write(eval_set, self._first[eval_set])
            case "text" | "empty" | "drop case" | "rename case" if eval_set:
                self._change_set(eval_set, what, number)
            case "config" if config:
                threshold = {"criteria": {"response_match_score": (number % 11) / 10}}
                self._write(config, json.dumps(threshold))
            case "break config" if config:
                self._write(config, '{"criteria": ')
            case "delete config" if config:
                config.unlink(missing_ok=True)
            case "agent" if agent:
                self._write(agent, f"{self._first[agent]}\n# {number}\n")
            case "break agent" if agent:
                self._write(agent, f"{self._first[agent]}\nraise ValueError({number})\n")

    def _change_set(self, path: Path, what: str, number: int) -> None:
        with suppress(OSError, ValueError):
            data: dict[str, Any] = json.loads(path.read_text("utf-8"))
            cases = data["eval_cases"]
            if what == "empty":
                cases.clear()
            elif not cases:
                return
            elif what == "drop case":
                del cases[number % len(cases)]
            elif what == "rename case":
                cases[number % len(cases)]["eval_id"] = f"renamed_{number}"
            elif conversation := cases[number % len(cases)].get("conversation"):
                conversation[0]["user_content"] = {"role": "user", "parts": [{"text": f"text {number}"}]}
            self._write(path, json.dumps(data, indent=2))

    def _write(self, path: Path, text: str) -> None:
        self._written.add(text)
        path.write_text(text, encoding="utf-8")

    def problems(self) -> list[str]:
        """Files that were saved and are not what they are to be."""
        found = [f"left behind: {path.name}" for path in self._all("*.tmp")]
        for path in self._all("*.json"):
            text = path.read_bytes().decode("utf-8")
            if text in self._written:
                continue
            try:
                data = json.loads(text)
            except ValueError as error:
                found.append(f"{path.name}: {error}\n{text[:2_000]}")
                continue
            if path.name.endswith(".evalset.json") and not isinstance(data.get("eval_cases"), list):
                found.append(f"{path.name} is no eval set\n{text[:2_000]}")
        return found
