"""The files of an agent that a run was of, and which of them have changed since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from evaltui.agents.protocol import FilesOpened
from evaltui.project.agent_address import AgentAddress, files_of_agent
from evaltui.project.agent_files import (
    UNKNOWN,
    changed_files,
    is_prompt,
    is_read_only,
    prints_of,
    used_files,
    was_written_since,
)
from evaltui.project.folders import agent_folder
from evaltui.runs.run_file import RunFile
from evaltui.runs.run_header import RunHeader

# Seconds.
_MOMENT = 1.0


def with_opened(header: RunHeader, agent: AgentAddress, opened: FilesOpened) -> RunHeader:
    """The header of a run with the files that its processes have opened by now.

    A file that was found only now and is newer than the run is `UNKNOWN`: nobody knows what it held for the
    first cases. Of an agent behind a network, only what scores it is read here.
    """
    read, written = (used_files(agent.code, paths) for paths in (opened.read, opened.written))
    new = {name: path for name, path in read.items() if name not in header.files and name not in written}
    started = header.started.timestamp()
    prints = {} if header.url else prints_of(agent.code, new)
    prints |= {name: UNKNOWN for name in prints if was_written_since(new[name], started)}
    missing = {} if header.url else dict.fromkeys(new, "")
    return replace(
        header,
        files={**header.files, **missing, **prints},
        read=tuple(sorted({*header.read, *read})),
        written=tuple(sorted({*header.written, *written})),
    )


def changed_meanwhile(header: RunHeader, files: Mapping[str, str]) -> list[str]:
    """The files that changed between the begin of a run and its end, which is now, but for data that the
    agent may have written itself; `files` are those of now."""
    changed = changed_files(header.files, files)
    return [
        name for name in changed if _is_read_only(name, header) or (name in header.files and is_prompt(name))
    ]


def files_changed_since(file: RunFile, agent: AgentAddress, written: Collection[str] = ()) -> tuple[str, ...]:
    """The agent's files that are not what they were when a run began.

    Data that its processes wrote, or those of later runs, which are `written`, is left out, and what the
    agent may have changed before the end of the run. Of an agent behind a network those that scored it, once
    the run began: only their times are known. Raises what `RunFile` raises.
    """
    header, folder = file.header, agent_folder(agent.code)
    if header.url:
        began = header.started.timestamp()
        read = (name for name in header.read if name not in header.written)
        return tuple(name for name in read if was_written_since(folder / name, began))

    # Of a run that was cut off only the last event is known.
    end = file.last_moment + (_MOMENT if file.seconds is None else 0.0)

    def may_be_own(name: str) -> bool:
        if _is_read_only(name, header):
            return False
        return name in header.written or name in written or not was_written_since(folder / name, end)

    changed = changed_files(header.files, files_of_agent(agent, header.files))
    return tuple(name for name in changed if not may_be_own(name))


def _is_read_only(name: str, header: RunHeader) -> bool:
    of_variant = header.variant.places if header.variant else ()
    is_of_variant = name in dict(of_variant).values()
    return is_of_variant or is_read_only(name, header.files, header.read, header.written)
