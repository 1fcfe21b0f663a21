"""The server with a certificate of its own: the same session over TLS, and nothing without it."""

from __future__ import annotations

import shutil
import ssl

import aiohttp
import pytest
from distributed.security import Security

from evaltui.commands.network_arguments import serve_parser
from evaltui.commands.serve import _tls
from evaltui.serving.access import Access
from evaltui.serving.server import Served, serving

TOKEN = "a-token-of-some-length"
CAT = Served([shutil.which("cat") or "cat"], "desk")


@pytest.fixture
def certificate(tmp_path):
    """The files of a certificate that nobody but the test trusts, and what trusts it."""
    own = Security.temporary()
    (tmp_path / "desk.pem").write_text(own.tls_scheduler_cert)
    (tmp_path / "desk.key").write_text(own.tls_scheduler_key)
    trusting = ssl.create_default_context(cadata=own.tls_ca_file)
    # Its name is that of no host.
    trusting.check_hostname = False
    words = ["--tls-cert", str(tmp_path / "desk.pem"), "--tls-key", str(tmp_path / "desk.key")]
    return _tls(serve_parser().parse([str(tmp_path), *words])), trusting


async def test_a_session_over_tls_and_none_without_it(certificate):
    tls, trusting = certificate
    access = Access("127.0.0.1", TOKEN, is_tls=True)
    async with serving(CAT, access, 0, tls) as url, aiohttp.ClientSession() as client:
        assert url.startswith("https://127.0.0.1:")
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await client.get(url)
        with pytest.raises(aiohttp.ClientError):
            await client.get(url.replace("https:", "http:"))
        async with client.get(f"{url}/?t={TOKEN}", ssl=trusting, allow_redirects=False) as first:
            cookie = first.headers["Set-Cookie"]
        assert cookie.endswith("; Secure") or "; Secure;" in cookie
        headers = {"Cookie": cookie.partition(";")[0]}
        plain = {"Origin": url.replace("https:", "http:")}
        async with client.get(f"{url}/ws", ssl=trusting, headers=headers | plain) as refused:
            assert refused.status == 403
        session = client.ws_connect(
            f"{url}/ws?width=80&height=24", ssl=trusting, headers=headers | {"Origin": url}
        )
        async with session as socket:
            await socket.send_json(["stdin", "over tls\r"])
            told = b""
            while b"over tls" not in told:
                message = await socket.receive(timeout=10)
                assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT)
                told += message.data if isinstance(message.data, bytes) else b""
