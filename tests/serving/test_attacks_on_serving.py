"""Who may in: attacks with plain sockets and a client, on a server whose sessions are `cat`."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from contextlib import AsyncExitStack, suppress

import aiohttp
import psutil
import pytest
import waiting

from evaltui.serving.access import Access, RefusedError, origin_of
from evaltui.serving.server import FILES, LONGEST_MESSAGE, Limits, Served, serving

TOKEN = "a-token-of-some-length"
PROXY = "https://desk.example"
CAT = Served([shutil.which("cat") or "cat"], "<b>desk")


class Attacked:
    """A server, and what attackers know of it."""

    def __init__(self, url: str, refused: list[str]) -> None:
        self.url = url
        self.refused = refused
        self.port = int(url.rpartition(":")[2])
        self.own = {"Origin": url}

    async def get(self, path: str = "/", *, cookie: str = "", method: str = "GET", **headers: str):
        """Status, headers and body of a request."""
        if cookie:
            headers["Cookie"] = cookie
        async with (
            aiohttp.ClientSession() as client,
            client.request(method, self.url + path, headers=headers, allow_redirects=False) as response,
        ):
            return response.status, response.headers, await response.text(errors="replace")

    async def cookie(self) -> str:
        _, headers, _ = await self.get(f"/?t={TOKEN}")
        return headers["Set-Cookie"].partition(";")[0]

    async def raw(self, text: str) -> str:
        """What comes back for bytes that no client would send."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(text.encode("latin-1"))
        try:
            return (await asyncio.wait_for(reader.read(65536), 10)).decode("latin-1")
        except ConnectionError:
            return ""
        finally:
            writer.close()

    async def lives(self) -> bool:
        with suppress(aiohttp.ClientError, OSError):
            return (await self.get())[0] == 401
        return False


@pytest.fixture
async def attacked():
    refused: list[str] = []
    access = Access("127.0.0.1", TOKEN, origins=(PROXY,))
    limits = Limits(sessions=2, connections=20, head=0.2)
    async with serving(CAT, access, 0, limits=limits, refused=refused.append) as url:
        yield Attacked(url, refused)
    assert not sessions()


def sessions() -> list[psutil.Process]:
    return [one for one in psutil.Process().children() if one.name() == "cat"]


async def test_without_the_token_there_is_nothing(attacked):
    for path in ("/", "/ws", "/static/page.js", "/static/textual.js", "/nothing"):
        status, headers, body = await attacked.get(path)
        assert (status, "Set-Cookie" in headers) == (401, False)
        assert TOKEN not in body
    for wrong in ("", "x", TOKEN[:-1], f"{TOKEN}x", "%00", "é"):
        assert (await attacked.get(f"/?t={wrong}"))[0] == 401
    assert (await attacked.get(cookie=f"evaltui-{attacked.port}={TOKEN}"))[0] == 401
    assert (await attacked.get("/ws", **attacked.own, Connection="Upgrade", Upgrade="websocket"))[0] == 401
    assert not sessions()


async def test_the_token_becomes_a_cookie_that_no_script_and_no_other_site_has(attacked):
    status, headers, _ = await attacked.get(f"/?t={TOKEN}")
    assert (status, headers["Location"]) == (303, "/")
    value, *flags = headers["Set-Cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} == set(flags)
    assert TOKEN not in value
    status, headers, body = await attacked.get(cookie=value)
    assert status == 200
    assert "<title>&lt;b&gt;desk · evaltui</title>" in body
    assert "//" not in body.replace("<!DOCTYPE html>", "")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self';" in policy
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    for name in FILES:
        assert (await attacked.get(f"/static/{name}", cookie=value))[0] == 200
    behind_proxy = await attacked.get(f"/?t={TOKEN}", Host="desk.example")
    assert "Secure" in behind_proxy[1]["Set-Cookie"]


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/%2e%2e/server.py", "/static/", "/static//etc/passwd", "//", "/ws/"],
)
async def test_no_other_file_is_given(attacked, path):
    answer = await attacked.raw(
        f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {await attacked.cookie()}\r\n\r\n"
    )
    assert answer.startswith("HTTP/1.1 404")


@pytest.mark.parametrize(
    "host",
    ["Host: evil.example", "Host: evil.example:8700", "Host: 127.0.0.1.evil.example", "Host: desk.example:9",
     "X: y", "Host: localhost\r\nHost: evil.example", "Host: [::ffff:8.8.8.8]", "Host: 0.0.0.0", "Host: ",
     "Host: [::1].evil.example:80", "Host: [::1]evil.example", "Host: [127.0.0.1]", "Host: localhost:80x",
     "Host: localhost:", "Host: desk.example:443443", "Host: evil.example@localhost", "Host: desk.example/"],
)  # fmt: skip
async def test_a_name_that_points_here_is_not_ours(attacked, host):
    answer = await attacked.raw(f"GET /?t={TOKEN} HTTP/1.1\r\n{host}\r\n\r\n")
    assert answer[:12] in ("HTTP/1.1 403", "HTTP/1.1 400", "HTTP/1.0 400")
    assert "Set-Cookie" not in answer


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1:1", "[::1]:8700", "[0:0:0:0:0:0:0:1]", "desk.example", "DESK.example",
     "desk.example.", "desk.example:443"],
)  # fmt: skip
async def test_names_of_this_machine_and_of_the_proxy_are(attacked, host):
    assert (await attacked.get(Host=host))[0] == 401


@pytest.mark.parametrize("target", ["http://evil.example/", "http://localhost.evil.example/", "*", "evil:80"])
async def test_what_asks_for_another_host_than_its_own_is_refused(attacked, target):
    answer = await attacked.raw(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer[:12] == "HTTP/1.1 400" or answer[:12] == "HTTP/1.0 400"
    answer = await attacked.raw("GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith("HTTP/1.1 401")


async def test_no_response_says_what_the_server_is_made_of(attacked):
    cookie = await attacked.cookie()
    answers = [
        await attacked.get(),
        await attacked.get(cookie=cookie),
        await attacked.get(f"/?t={TOKEN}"),
        await attacked.get("/static/page.js", cookie=cookie),
        await attacked.get("/nothing", cookie=cookie),
        await attacked.get("/ws", cookie=cookie, **attacked.own),
    ]
    assert {headers["Server"] for _, headers, _ in answers} == {"evaltui"}
    assert [status for status, _, _ in answers] == [401, 200, 303, 200, 404, 400]
    assert "a proxy has to pass the Upgrade header on" in attacked.refused[-1]
    async with aiohttp.ClientSession(headers={"Cookie": cookie} | attacked.own) as client:
        opened = await client.ws_connect(f"{attacked.url}/ws")
        assert opened._response.headers["Server"] == "evaltui"
        await opened.close()
    answer = await attacked.raw("NO\x00NSENSE\r\n\r\n")
    assert "Server: evaltui\r\n" in answer


async def test_who_serves_is_told_what_to_do_of_sockets_only(attacked):
    await attacked.get("/ws", **attacked.own)
    await attacked.get("/ws", cookie=await attacked.cookie(), method="HEAD")
    await attacked.get("/")
    assert attacked.refused == ["a browser without the cookie of this server; open the printed address in it"]


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "http://127.0.0.1", "http://127.0.0.1:3000", "http://desk.example",
     "https://desk.example.evil.example", "file://", None],
)  # fmt: skip
async def test_a_page_of_somebody_else_gets_no_socket(attacked, origin):
    headers = {"Cookie": await attacked.cookie()} | ({} if origin is None else {"Origin": origin})
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(f"{attacked.url}/ws", headers=headers)
    assert refused.value.status == 403
    assert "Origin" in attacked.refused[-1]
    assert not sessions()


async def heard(socket: aiohttp.ClientWebSocketResponse, text: str) -> bytes:
    """What came until this did."""
    came = b""
    while text.encode() not in came:
        came += await socket.receive_bytes(timeout=10)
    return came


async def test_our_own_page_and_that_of_the_proxy_do(attacked):
    cookie = await attacked.cookie()
    for headers in (attacked.own, {"Origin": PROXY}, {"Origin": PROXY, "Host": "desk.example"}):
        async with (
            aiohttp.ClientSession(headers={"Cookie": cookie} | headers) as client,
            client.ws_connect(f"{attacked.url}/ws?width=99999999999&height=-3") as socket,
        ):
            await socket.send_json(["stdin", "hello ✓\n"])
            await heard(socket, "hello ✓\r\nhello ✓")
    await waiting.until(lambda: not sessions())


async def test_many_sockets_do_not_shut_others_out(attacked):
    cookie = await attacked.cookie()
    silent = [await asyncio.open_connection("127.0.0.1", attacked.port) for _ in range(60)]
    for _, writer in silent[::2]:
        writer.write(b"GET / HT")
    deadline = time.monotonic() + waiting.PATIENCE
    while not await attacked.lives():
        assert time.monotonic() < deadline
    for _, writer in silent:
        writer.close()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            aiohttp.ClientSession(headers={"Cookie": cookie} | attacked.own)
        )
        sockets = [await stack.enter_async_context(client.ws_connect(f"{attacked.url}/ws")) for _ in range(6)]
        for socket in sockets[2:]:
            assert b"As many sessions are open" in await socket.receive_bytes(timeout=10)
            assert (await socket.receive(timeout=10)).data == aiohttp.WSCloseCode.TRY_AGAIN_LATER
        assert len(sessions()) == 2
    await waiting.until(lambda: not sessions())


@pytest.mark.parametrize(
    "frame",
    ["x" * (LONGEST_MESSAGE + 1), b"\0" * 100, "no json", "[" * 100_000, "{}", '["stdin"]', '["stdin", 3]',
     '["resize", {"width": "wide", "height": 3}]', '["quit"]', "1e999", '["ping", {}]'],
    ids=lambda frame: ascii(frame[:24]),
)  # fmt: skip
async def test_whoever_sends_nonsense_is_closed_and_the_others_go_on(attacked, frame):
    headers = {"Cookie": await attacked.cookie()} | attacked.own
    async with aiohttp.ClientSession(headers=headers) as client:
        other = await client.ws_connect(f"{attacked.url}/ws")
        socket = await client.ws_connect(f"{attacked.url}/ws")
        await (socket.send_bytes(frame) if isinstance(frame, bytes) else socket.send_str(frame))
        while not socket.closed:
            await socket.receive(timeout=10)
        await other.send_json(["resize", {"width": 10**30, "height": -1}])
        await other.send_json(["stdin", "still here\udc80\n"])
        await heard(other, "still here?")
        await other.close()
    assert await attacked.lives()


async def test_other_methods_and_heads_without_end_are_refused(attacked):
    cookie = await attacked.cookie()
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
        assert (await attacked.get("/", cookie=cookie, method=method))[0] == 405
    answer = await attacked.raw(f"GET /?t={'x' * 100_000} HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith("HTTP/1.0 400") or not answer
    many = "".join(f"X-{number}: {'y' * 1000}\r\n" for number in range(500))
    answer = await attacked.raw(f"GET / HTTP/1.1\r\n{many}\r\n")
    assert answer.startswith("HTTP/1.0 400") or not answer
    assert await attacked.lives()


def test_sessions_do_not_get_the_token_nor_the_terminal_of_the_server(monkeypatch):
    monkeypatch.setenv("SERVE_TOKEN", TOKEN)
    monkeypatch.setenv("TMUX", "/tmp/tmux")
    environment = Served(["x"], "x", ["SERVE_TOKEN"]).environment()
    assert environment.keys() == (
        os.environ.keys() - {"SERVE_TOKEN", "TMUX", "COLUMNS", "LINES", "TERM_PROGRAM"}
    ) | {
        "TERM",
        "COLORTERM",
        "EVALTUI_IN_BROWSER",
    }


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://Desk.Example/", PROXY),
        ("https://desk.example:443", PROXY),
        ("http://[::1]:8700", "http://[::1]:8700"),
        ("http://localhost.:80", "http://localhost"),
        ("http://[0:0:0:0:0:0:0:1]:8700", "http://[::1]:8700"),
    ],
)
def test_origins_are_those_that_browsers_send(given, origin):
    assert origin_of(given) == origin


def test_what_is_no_origin_is_refused():
    for wrong in (
        "desk.example",
        "ftp://x",
        "https://",
        "https://a@b",
        "https://b/path",
        "https://b:x",
        "null",
    ):
        with pytest.raises(ValueError, match="origin"):
            origin_of(wrong)
    with pytest.raises(ValueError, match="origin"):
        origin_of("https://é")


@pytest.mark.parametrize(
    ("host", "tls", "origins", "said"),
    [
        ("127.0.0.1", False, (), ""),
        ("::1", False, (), ""),
        ("localhost", False, (), ""),
        ("192.0.2.1", False, (), "--tls-cert"),
        ("desk", False, (), "--tls-cert"),
        ("0.0.0.0", False, (), "--origin"),
        ("::", True, (), "--origin"),
        ("192.0.2.1", True, (), ""),
        ("0.0.0.0", False, (PROXY,), ""),
        ("192.0.2.1", False, (PROXY,), ""),
        ("0.0.0.0", False, ("http://desk.example",), "is not HTTPS"),
        ("127.0.0.1", False, (PROXY, "http://desk.example"), "is not HTTPS"),
        ("192.0.2.1", True, ("http://desk.example",), ""),
        ("192.0.2.1", False, ("http://localhost:8700",), "--tls-cert"),
        # The ports of a container.
        ("0.0.0.0", False, ("http://localhost:8700",), ""),
    ],
)
def test_beyond_this_machine_it_is_tls_or_a_named_origin(host, tls, origins, said):
    problem = Access(host, TOKEN, tls, origins).problem()
    assert (said in problem) if said else not problem


def test_the_bound_address_is_a_host_of_ours_but_not_all_of_them():
    assert Access("192.0.2.1", TOKEN, is_tls=True).check_host(["192.0.2.1:8700"])
    for host in ("vm:8700", "VM:8700", "vm.:8700"):
        assert Access("vm", TOKEN, is_tls=True).check_host([host])
    with pytest.raises(RefusedError):
        Access("0.0.0.0", TOKEN, origins=(PROXY,)).check_host(["0.0.0.0:8700"])
