"""Commits checked out for a variant: nothing of the user's repository is touched, and nothing is left."""

from __future__ import annotations

import subprocess

import pytest

from evaltui.core.model.variants import Change, Variant
from evaltui.project.variants import GitError, VariantFileError, checked_out, ready


def git(folder, *words):
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """An agent in a folder of a repository: two commits, a staged file, an uncommitted change, a hook."""
    top = tmp_path_factory.mktemp("repository") / "shop"
    agent = top / "agents" / "desk"
    agent.mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    (top / "README").touch()
    git(top, "add", "-A")
    git(top, "commit", "-qm", "no agent yet")
    (agent / "__init__.py").touch()
    for word in ("old", "new"):
        (agent / "agent.py").write_text(f"root_agent = lambda message, session: '{word}'\n")
        git(top, "add", "-A")
        git(top, "commit", "-qm", word)
    (agent / "agent.py").write_text("root_agent = lambda message, session: 'newest'\n")
    (agent / "desk.evalset.json").write_text("{}")
    (top / "staged").touch()
    git(top, "add", "staged")
    hook = top / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {top.parent}/hook_was_run\n")
    hook.chmod(0o755)
    return agent


@pytest.fixture(autouse=True)
def untouched(repository):
    """Whatever a test does, the repository is as it was."""

    def state():
        index = (repository.parents[1] / ".git" / "index").read_bytes()
        return index, git(repository, "worktree", "list"), git(repository, "status", "--porcelain")

    git(repository, "status")
    before = state()
    yield
    assert state() == before
    assert not (repository.parents[2] / "hook_was_run").exists()


def test_an_agent_in_a_folder_of_a_repository(repository):
    with checked_out(repository, "HEAD~1") as (code, commit):
        assert "'old'" in (code / "agent.py").read_text()
        assert commit == git(repository, "rev-parse", "HEAD~1")
        assert code.parts[-3:] == ("shop", "agents", "desk")
    assert not code.exists()
    # A single file is an agent, too.
    with checked_out(repository / "agent.py", "HEAD~1") as (code, _):
        assert "'old'" in code.read_text()


def test_variables_of_a_hook_do_not_lead_into_the_users_index(repository, monkeypatch):
    top = repository.parents[1]
    monkeypatch.setenv("GIT_DIR", str(top / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(top / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(top))
    with checked_out(repository, "HEAD~1") as (code, _):
        assert "'old'" in (code / "agent.py").read_text()
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_it_is_gone_however_the_work_ends(repository, error):
    with pytest.raises(error), checked_out(repository, "main") as (code, _):  # noqa: PT012
        assert code.exists()
        raise error
    assert not code.exists()


@pytest.mark.parametrize(
    ("commit", "why"),
    [
        ("nosuch", "'nosuch' is not a commit, branch or tag of "),
        ("--help", "'--help' is not a commit"),
        ("HEAD~2", "agents/desk is not in HEAD~2"),
    ],
)
def test_a_commit_that_has_no_agent_is_one_sentence(repository, commit, why):
    with pytest.raises(GitError, match=why) as refused, checked_out(repository, commit):
        pass
    assert len(str(refused.value).splitlines()) == 1


def test_a_folder_that_is_no_repository(tmp_path):
    with pytest.raises(GitError, match="not a git repository"), checked_out(tmp_path, "main"):
        pass


def test_uncommitted_code_is_said(repository):
    with ready(Variant("old", (Change("git", "HEAD~1"),)), repository) as found:
        assert found.notes == ("variant old has none of the uncommitted changes: agent.py",)
        assert found.for_host()["done"][0]["new"].startswith("HEAD~1 (")


def test_the_same_code_is_no_variant(repository):
    top = repository.parents[1]
    newest = (repository / "agent.py").read_text()
    (repository / "agent.py").write_text("root_agent = lambda message, session: 'new'\n")
    try:
        refused = pytest.raises(
            VariantFileError, match=r"changes nothing: git=main \(\w{7}\) has the same code"
        )
        with refused, ready(Variant("v", (Change("git", "main"),)), repository):
            pass
    finally:
        (repository / "agent.py").write_text(newest)
        git(top, "status")
