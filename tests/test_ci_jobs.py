"""The jobs on the page `ci` of the guide: valid, and with what they say the whole run comes about."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from ruamel.yaml import YAML

from evaltui.commands.parser import parser_of
from evaltui.project import guide
from evaltui.runs.history import open_run

PAGE = (guide.FOLDER / "ci.md").read_text(encoding="utf-8")
JOB, NEW_FAILURES, GITHUB, GITLAB = re.findall(r"^```yml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
PATIENCE = 120
AGENT = """
async def root_agent(message, session):
    return "wrong" if message == "case 3" else "right"
"""


def lines_of(job: dict[str, Any]) -> list[str]:
    return job.get("script") or [step["run"] for step in job["steps"] if "run" in step]


def jobs_of(text: str) -> dict[str, Any]:
    data = YAML(typ="safe").load(text)
    return data.get("jobs", data)


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        (JOB, "vendor.github-workflows"),
        (NEW_FAILURES, "vendor.github-workflows"),
        (GITHUB, "vendor.github-workflows"),
        (GITLAB, "vendor.gitlab-ci"),
    ],
)
def test_the_jobs_are_what_the_service_takes(text, schema, tmp_path):
    file = tmp_path / "jobs.yml"
    for content, code in ((text, 0), (re.sub("needs:|runs-on:", "need:", text), 1)):
        file.write_text(content)
        words = ["-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        assert done.returncode == code, done.stdout


@pytest.mark.parametrize(
    ("text", "names"),
    [(JOB, ["run"]), (NEW_FAILURES, ["run", "run"]), (GITHUB, ["run", "merge"]), (GITLAB, ["run", "merge"])],
)
def test_every_command_has_the_options_it_is_given(text, names):
    lines = [line for job in jobs_of(text).values() for line in lines_of(job)]
    filled = [
        re.sub(r"\$\{\{.*?\}\}|\$CI_NODE_(INDEX|TOTAL)", "1", line).partition(" || ")[0] for line in lines
    ]
    commands = [shlex.split(line) for line in filled if line.startswith("evaltui ")]
    assert [command[1] for command in commands] == names
    for _, name, *words in commands:
        parser_of(name).parse(words)


class Service:
    """Runs the jobs of a page here: a folder of its own for each, a shell for each command."""

    def __init__(self, project: Path, place: Path) -> None:
        self.place = place
        self.failed: set[str] = set()
        self._project = project
        self._artifacts = place / "artifacts"
        programs = place / "bin"
        programs.mkdir(parents=True)
        for name, line in {"evaltui": f'exec {sys.executable} -m evaltui "$@"', "pip": "exit 0"}.items():
            (programs / name).write_text(f"#!/bin/sh\n{line}\n")
            (programs / name).chmod(0o755)
        self._path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def checkout(self, name: str) -> Path:
        return Path(shutil.copytree(self._project, self.place / name))

    def shell(self, script: str, folder: Path, **variables: str) -> bool:
        words = ["bash", "-eo", "pipefail", "-c", script]
        environment = {**os.environ, "PATH": self._path, **variables}
        return subprocess.run(words, cwd=folder, env=environment, timeout=PATIENCE).returncode == 0

    def github(self, jobs: dict[str, Any]) -> Path:
        for number in jobs["shard"]["strategy"]["matrix"]["shard"]:
            self._github_job("shard", jobs["shard"], str(number))
        return self._github_job("merge", jobs["merge"], "")

    def _github_job(self, name: str, job: dict[str, Any], shard: str) -> Path:
        folder = self.checkout(f"{name}{shard}")
        going = True
        for step in job["steps"]:
            if not going and "if" not in step:
                continue
            given = {key: value.replace("${{ matrix.shard }}", shard) for key, value in _texts(step)}
            if "run" in step:
                line = given["run"]
                done = self.shell(line, folder, GITHUB_STEP_SUMMARY=str(folder / "steps.md"))
                going = going and done
            elif "upload" in given["uses"]:
                for path in given["path"].split():
                    _copy(folder / path, self._artifacts / given["name"])
            elif "download" in given["uses"]:
                for artifact in sorted(self._artifacts.iterdir()):
                    if fnmatch.fnmatch(artifact.name, given["pattern"]):
                        _copy(artifact, folder / given["path"])
        if not going:
            self.failed.add(f"{name}{shard}")
        return folder

    def gitlab(self, jobs: dict[str, Any]) -> Path:
        count = jobs["evals"]["parallel"]
        for number in range(1, count + 1):
            variables = {"CI_NODE_INDEX": str(number), "CI_NODE_TOTAL": str(count)}
            self._gitlab_job(f"shard{number}", jobs["evals"], variables)
        return self._gitlab_job("merge", jobs["merge"], {})

    def _gitlab_job(self, name: str, job: dict[str, Any], variables: dict[str, str]) -> Path:
        folder = self.checkout(name)
        if "needs" in job:
            _copy(self._artifacts / "all", folder)
        if not self.shell("\n".join(job["script"]), folder, **variables):
            self.failed.add(name)
        for path in job["artifacts"]["paths"]:
            kept = folder / path
            _copy(kept, self._artifacts / "all" / path if kept.is_dir() else self._artifacts / "all")
        return folder


def _texts(step: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key, value) for key, value in {**step, **step.get("with", {})}.items() if isinstance(value, str)]


def _copy(source: Path, target: Path) -> None:
    """As an artifact is uploaded: without hidden files."""
    target.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
    else:
        shutil.copy(source, target)


@pytest.mark.thorough
@pytest.mark.parametrize(("service", "text"), [("github", GITHUB), ("gitlab", GITLAB)])
@pytest.mark.parametrize("cases", [8, 2], ids=["full", "empty shards"])
def test_the_jobs_give_the_whole_run(service, text, cases, tmp_path):
    project = tmp_path / "project"
    agent = project / "my_agent"
    agent.mkdir(parents=True)
    (agent / "agent.py").write_text(AGENT)
    (agent / "test_config.json").write_text('{"criteria": {"response_match_score": 1.0}}')
    turns = [
        [
            {
                "user_content": {"parts": [{"text": f"case {n}"}]},
                "final_response": {"parts": [{"text": "right"}]},
            }
        ]
        for n in range(cases)
    ]
    found = [{"eval_id": f"case_{n}", "conversation": turn} for n, turn in enumerate(turns)]
    (agent / "basics.evalset.json").write_text(json.dumps({"eval_set_id": "basics", "eval_cases": found}))
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    runner = Service(project, tmp_path / "service")
    folder = getattr(runner, service)(jobs_of(text))
    assert ("merge" in runner.failed) is (cases > 3)
    merged = open_run(folder / "all.sqlite")
    assert [case.eval_id for case in merged.summary.cases] == [f"case_{number}" for number in range(cases)]
    suite = ET.parse(folder / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == (str(cases), str(int(cases > 3)))
    assert "<title>" in (folder / "report.html").read_text()
    if service == "github":
        assert (folder / "steps.md").read_text().startswith("<!-- evaltui-report -->")
        assert (runner.place / "artifacts" / "evals" / "all.sqlite").is_file()
