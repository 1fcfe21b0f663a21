"""How sessions end: the code that says why, the place that becomes free, and what the page makes of both."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest
import waiting
from environments import browser_path
from playwright.async_api import Browser, Page, async_playwright, expect

from evaltui.serving.access import Access
from evaltui.serving.server import FILES, IDLE, IDLE_SECONDS, LONGEST_MESSAGE, Limits, Served, serving
from evaltui.text.figures import counted, show_size
from tests.serving.test_attacks_on_serving import CAT, TOKEN, Attacked, heard, sessions

ACCESS = Access("127.0.0.1", TOKEN)
# Leaves at the first line, as a workbench does at `q`.
LEAVES = Served(["sh", "-c", "echo ready to be left; read line"], "desk")


@asynccontextmanager
async def browsing(served: Served, **limits: Any) -> AsyncIterator[Callable[[], Any]]:
    """A server and a browser that has opened its address; gives what opens a socket."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(served, ACCESS, 0, limits=Limits(**limits)))
        attacked = Attacked(url, [])
        headers = {"Cookie": await attacked.cookie()} | attacked.own
        client = await stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        yield lambda: client.ws_connect(f"{url}/ws")


async def code_of(socket: aiohttp.ClientWebSocketResponse) -> int | None:
    """With which it is closed in the end."""
    while not socket.closed:
        await socket.receive(timeout=10)
    return socket.close_code


async def test_a_session_ends_with_a_code_that_says_why():
    async with browsing(LEAVES) as open_socket:
        socket = await open_socket()
        await heard(socket, "ready")
        await socket.send_json(["stdin", "\n"])
        assert await code_of(socket) == 1000
        socket = await open_socket()
        await socket.send_str("x" * (LONGEST_MESSAGE + 1))
        assert await code_of(socket) == 1009
    async with browsing(CAT, idle=0.05) as open_socket:
        assert await code_of(await open_socket()) == IDLE
    async with browsing(CAT, idle=math.inf) as open_socket:
        socket = await open_socket()
        await socket.send_json(["stdin", "here\n"])
        await heard(socket, "here")
    assert not sessions()


async def test_the_end_of_the_server_is_the_end_of_its_sessions_and_has_its_code():
    async with aiohttp.ClientSession() as client:
        async with serving(CAT, ACCESS, 0) as url:
            attacked = Attacked(url, [])
            headers = {"Cookie": await attacked.cookie()} | attacked.own
            socket = await client.ws_connect(f"{url}/ws", headers=headers)
            await waiting.until(sessions)
            closed = asyncio.create_task(code_of(socket))
        assert not sessions()
        assert await closed == 1001


async def test_a_tab_that_is_loaded_again_gets_its_own_place_where_all_are_taken(tmp_path):
    # Takes its time to end, as a workbench does that ends its agent.
    slow = 'trap "touch ending; while [ ! -e go ]; do sleep 0.01; done; exit" TERM; echo ready'
    served = Served(["sh", "-c", f"cd '{tmp_path}'; {slow}; while :; do sleep 0.01; done"], "desk")
    async with browsing(served, sessions=1) as open_socket:
        socket = await open_socket()
        await heard(socket, "ready")
        await socket.close()
        await waiting.until((tmp_path / "ending").exists)
        again = await open_socket()
        first = asyncio.create_task(heard(again, "ready"))
        # Whoever comes behind it finds the place taken.
        late = await open_socket()
        (tmp_path / "go").touch()
        await first
        assert await code_of(late) == aiohttp.WSCloseCode.TRY_AGAIN_LATER


def test_the_page_knows_every_code_and_the_limits_as_they_are():
    script = FILES["page.js"].read_text(encoding="utf-8")
    for code in (1001, 1009, 1013, IDLE):
        assert f"  {code}: " in script
    assert counted(int(IDLE_SECONDS / 60), "minute") in script
    assert show_size(LONGEST_MESSAGE).replace(".0", "") in script


async def test_what_refuses_a_browser_leads_nowhere_else():
    async with serving(CAT, ACCESS, 0) as url:
        status, _, body = await Attacked(url, []).get()
    assert status == 401
    assert "open the address" in body
    assert "href" not in body


# In a browser


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield browser
        await browser.close()


async def opened(browser: Browser, url: str) -> Page:
    page = await browser.new_page()
    await page.goto(f"{url}/?t={TOKEN}")
    return page


async def runs(page: Page) -> None:
    """Waits until its session has shown something, and keys go there."""
    await expect(page.locator("body")).to_have_class(re.compile("-first-byte"))
    await expect(page.locator(".xterm-helper-textarea")).to_be_focused()


async def says(page: Page, sentence: str, *, offers: bool = True) -> None:
    """Waits until the bar at the end of a session says this."""
    why = page.locator("#why")
    await expect(why).to_contain_text(sentence)
    await expect(why).to_be_visible()
    assert ("Unsaved changes" in (await why.text_content() or "")) is offers


@pytest.mark.thorough
async def test_the_page_says_why_a_session_has_ended(browser):
    async with serving(LEAVES, ACCESS, 0, limits=Limits(sessions=1)) as url:
        page = await opened(browser, url)
        await runs(page)
        other = await opened(browser, url)
        await says(other, "All sessions are in use", offers=False)
        await page.keyboard.press("Enter")
        await says(page, "This session has ended. Unsaved changes")
        # The place is free again.
        await other.get_by_role("button", name="Start again").click()
        await runs(other)
        await other.keyboard.insert_text("x" * (LONGEST_MESSAGE + 1))
        await says(other, "over 1 MB")
        await page.get_by_role("button", name="Start again").click()
        await runs(page)
        await page.reload()
        await runs(page)
    await says(page, "evaltui serve was ended")
    async with serving(CAT, ACCESS, 0, limits=Limits(idle=0.05)) as url:
        await says(await opened(browser, url), "no key and no click for 30 minutes")


@pytest.mark.thorough
async def test_start_again_leaves_the_page_only_for_a_server_that_knows_it(browser):
    async with serving(LEAVES, ACCESS, 0) as url:
        page = await opened(browser, url)
        await runs(page)
    start_again = page.get_by_role("button", name="Start again")
    await start_again.click()
    await says(page, "evaltui does not respond", offers=False)
    assert page.url == f"{url}/"
    # Another server, another cookie.
    async with serving(LEAVES, Access("127.0.0.1", TOKEN), int(url.rpartition(":")[2])):
        await start_again.click()
        await says(page, "Open the address that evaltui serve prints", offers=False)
        await page.goto(f"{url}/?t={TOKEN}")
        await runs(page)
