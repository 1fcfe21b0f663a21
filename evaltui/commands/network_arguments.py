"""What the commands take that others connect to."""

from __future__ import annotations

from pathlib import Path

from evaltui.commands.arguments import add_read_only, add_settings
from evaltui.commands.parser import Parser, host, port


def _add_address(parser: Parser, agent_dir: str, default_port: int, wanted_elsewhere: str) -> None:
    """The agent, with the help of its argument, and where it is served."""
    add = parser.add_argument
    add("agent_dir", nargs="?", default=Path(), type=Path, metavar="AGENT_DIR", help=agent_dir)
    add(
        "--port",
        type=port,
        default=default_port,
        metavar="N",
        help=f"Port, 0 for any that is free (default: {default_port})",
    )
    add(
        "--host",
        type=host,
        default="127.0.0.1",
        metavar="ADDRESS",
        help=f"Address; others than those of this machine need {wanted_elsewhere} (default: 127.0.0.1)",
    )


def serve_parser() -> Parser:
    parser = Parser(
        prog="evaltui serve",
        description="Serve the workbench to a browser. It prints an address with a token, which gives all "
        "that the workbench can do, also running the agent. Each browser tab has a session of its own.",
        epilog="Exit codes: 2 usage error, 130 interrupted, by which it ends.",
    )
    add = parser.add_argument
    _add_address(
        parser,
        "Folder or file of the agent, or a folder of agents (default: the current folder)",
        8700,
        "TLS or --origin",
    )
    add_read_only(parser)
    add(
        "--origin",
        action="append",
        default=[],
        metavar="URL",
        help="Another address that browsers use, such as that of a proxy: https://desk.example; repeatable",
    )
    add("--tls-cert", type=Path, metavar="FILE", help="Certificate, to speak HTTPS")
    add("--tls-key", type=Path, metavar="FILE", help="Key of the certificate (default: in its file)")
    add(
        "--token-env",
        metavar="VARIABLE",
        help="Take the token from an environment variable (default: a new one every time)",
    )
    return parser


def listen_parser() -> Parser:
    parser = Parser(
        prog="evaltui listen",
        description="Receive traces of agents over OTLP/HTTP and score each session against its nearest case "
        "once it is complete. No agent is run. It takes protobuf and JSON at /v1/traces and /v1/logs.",
        epilog="Exit codes: 2 usage error, 130 interrupted, by which it ends.",
    )
    add = parser.add_argument
    _add_address(
        parser, "Folder of the agent with its eval sets (default: the current folder)", 4318, "a token"
    )
    token = parser.add_mutually_exclusive_group()
    token.add_argument("--token", metavar="TOKEN", help="Take only requests with Authorization: Bearer TOKEN")
    token.add_argument(
        "--token-env",
        metavar="VARIABLE",
        help="The same, with the value of an environment variable, which other users do not see",
    )
    add(
        "--format",
        choices=("console", "json"),
        default="console",
        help="A line per session for people, or as JSON (default: console)",
    )
    add_settings(parser, "timeout", "python", "keep-runs")
    parser.set_defaults(agent=None, module="", url="", headers=())
    return parser
