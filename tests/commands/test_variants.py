"""`evaltui run --variant`: what is changed and told, what is refused, and what is hidden."""

from __future__ import annotations

import subprocess

import pytest
from command_line import call
from variant_agents import write_cases

from evaltui.core.model.variants import Change, Variant
from evaltui.runs.run_file import RunFile
from tests.stored_runs import interrupt

FUNCTION = """
    import os

    def root_agent(message, session):
        return f"{message} {os.environ.get('TONE', 'plain')} {os.environ.get('MY_API_KEY', '')}".strip()
"""
SECRET = "abcdefgh12345678"


@pytest.fixture
def agent(write_agent, tmp_path, monkeypatch):
    folder = write_agent(FUNCTION)
    write_cases(folder, "{} plain")
    monkeypatch.chdir(tmp_path)
    return folder


def test_secrets_of_a_variant_are_nowhere(agent, tmp_path, capsys):
    reports = [tmp_path / f"matrix.{kind}" for kind in ("json", "html", "csv", "md")]
    kinds = ("json", "html", "csv", "markdown")
    words = [
        word for kind, path in zip(kinds, reports, strict=True) for word in ("--report", f"{kind}={path}")
    ]
    variants = ("--variant", "base", "--variant", f"keyed:env.MY_API_KEY={SECRET}")
    assert call("run", agent, *variants, "--report", "console", *words) == 0
    out, err = capsys.readouterr()
    assert "<MY_API_KEY>" in out
    assert "<MY_API_KEY>" in err
    logs = list((agent / ".evaltui" / "runs").glob("*.sqlite"))
    assert len(logs) == 2
    for text in (out, err, *(path.read_text(errors="replace") for path in (*reports, *logs))):
        assert SECRET not in text
    assert "<MY_API_KEY>" in reports[0].read_text()
    # Without its value the run cannot go on as it was.
    interrupt(max(logs), 1)
    assert call("run", agent, "--resume", "last") == 2
    assert "the value of MY_API_KEY is secret" in capsys.readouterr().err


def test_another_folder_is_named_as_the_user_does(agent, write_agent, capsys, monkeypatch):
    other = write_agent(FUNCTION.replace("plain", "other"), "other_agent")
    (agent / "inner").mkdir()
    monkeypatch.chdir(agent / "inner")
    assert call("run", agent, "--variant", "other:agent=../../other_agent") == 1
    assert "note  variant other: agent ../../other_agent" in capsys.readouterr().out
    (log,) = (agent / ".evaltui" / "runs").glob("*.sqlite")
    change = Change("agent", "../../other_agent")
    places = (("agent", f"../{other.name}"),)
    assert RunFile(log).header.variant == Variant("other", (change,), places=places)


@pytest.mark.parametrize("changes", ["git=HEAD", "agent=../other_agent", "env.TONE=plain"])
@pytest.mark.parametrize("place", ["inside", "above", "new"])
def test_other_code_has_the_env_file_of_the_agent(agent, write_agent, changes, place, capsys, monkeypatch):
    new, old = (agent / "agent.py").read_text(), FUNCTION.replace("'plain'", "'old'")
    write_cases(agent, "{} plain", ["c0", "c1"])
    other = write_agent(old, "other_agent")
    (agent / "agent.py").write_text((other / "agent.py").read_text())
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (["init", "-q"], ["add", "-A", agent, other], ["commit", "-qm", "old"]):
        subprocess.run(["git", *who, *words], cwd=agent.parent, check=True)
    (agent / "agent.py").write_text(new)
    monkeypatch.chdir(agent)
    monkeypatch.setenv("TONE", "plain" if "TONE" not in changes else "")
    env = agent.parent / ".env" if place == "above" else agent / ".env"
    if place != "new":
        env.write_text("MORE=1\n")
    assert call("run", agent, "--variant", f"v:{changes}") == 0
    (log,) = (agent / ".evaltui" / "runs").glob("*.sqlite")
    interrupt(log, 1)
    env.write_text("MORE=2\n")
    assert call("run", agent, "--resume", "last") == 2
    assert ".env changed" in capsys.readouterr().err
    env.unlink() if place == "new" else env.write_text("MORE=1\n")
    assert call("run", agent, "--resume", "last") == 0


WRONG = {
    "v:model=gemini-b": "--variant v: model cannot be changed in a function, only env, git and agent can",
    "v:env.TONE=plain": "--variant v: changes nothing: TONE has this value already",
    "v:agent=my_agent": "--variant v: changes nothing: agent=my_agent has the same code",
    "v:agent=nowhere": "--variant v: agent=nowhere: nowhere does not exist",
    "v:instruction=no.md": "--variant v: instruction=no.md: no.md cannot be read: No such file or directory",
    "v:git=main": "--variant v: git=main: ",
    "v:": "changes nothing. Write v:KEY=VALUE",
}


@pytest.mark.parametrize("variant", WRONG)
def test_what_does_not_fit_is_said_before_anything_runs(agent, variant, capsys, monkeypatch):
    monkeypatch.setenv("TONE", "plain")
    assert call("run", agent, "--variant", variant) == 2
    out, err = capsys.readouterr()
    assert out == ""
    refusal, *page = err.splitlines()
    assert WRONG[variant] in refusal
    # One that is told before the agent starts names the page that helps.
    assert page in ([], ["evaltui run: see `evaltui help variants`"])
    assert not (agent / ".evaltui").exists()


def test_of_a_matrix_everything_that_is_wrong_is_said(agent, capsys):
    assert call("run", agent, "--variant", "base", "--variant", "a:model=x", "--variant", "b:agent=no") == 2
    err = capsys.readouterr().err
    assert "--variant a: model cannot be changed" in err
    assert "--variant b: agent=no: no does not exist" in err
