"""Senders that are slow, leave midway, send too much or garbage: the receiver goes on, and keeps what it has
acknowledged."""

import asyncio
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress

import httpx
import psutil
import pytest

from evaltui.traces.receiver import http
from evaltui.traces.receiver import intake as intake_module
from evaltui.traces.receiver import spool as spool_module
from evaltui.traces.receiver.parts import read_request
from evaltui.traces.receiver.spool import (
    SPOOL,
    Spool,
    SpoolError,
    SpoolFullError,
    SpoolInUseError,
    open_spool,
    read_spool,
)
from tests.traces.receiver.senders import JSON, PROTOBUF, body, ids, kept, receiver, spans, wanted

_TYPE = {"content-type": JSON}


async def send(client, numbers, media_type=JSON):
    answer = await client.post(
        "/v1/traces", content=body(spans(numbers), media_type), headers={"content-type": media_type}
    )
    return answer.status_code


def head(length):
    kind = f"Content-Type: {JSON}"
    lines = ("POST /v1/traces HTTP/1.1", "Host: localhost", kind, f"Content-Length: {length}", "", "")
    return "\r\n".join(lines).encode()


async def test_slow_senders_are_answered_in_the_end_and_hold_up_nobody(tmp_path, monkeypatch):
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "IDLE_SECONDS"):
        monkeypatch.setattr(http, name, 0.2)

    async def send_at_once(number):
        """On a connection of its own; on a busy machine it may be too slow, too."""
        async with httpx.AsyncClient(base_url=mine.url) as client:
            while (status := await send(client, [number])) == 408:
                pass
        return status

    async with receiver(tmp_path) as mine:
        slow = [
            asyncio.create_task(mine.raw(data, end=False))
            for data in (b"", b"POST /v1/tr", head(100), head(100) + b"{") * 4
        ]
        await asyncio.sleep(0)
        assert await send_at_once(1) == 200
        answers = Counter(one.partition(b"\r\n")[0] for one in await asyncio.gather(*slow))
        assert answers == {b"": 8, b"HTTP/1.1 408 Request Timeout": 8}
        assert await send_at_once(2) == 200
        assert kept(mine.spool) == wanted([1, 2])
        assert mine.intake._bytes == 0


async def test_senders_that_leave_midway_leave_nothing_behind(tmp_path):
    data = head(1000) + body(spans([1]))
    async with receiver(tmp_path) as mine, httpx.AsyncClient(base_url=mine.url) as client:
        for at in range(0, len(data), 40):
            await mine.raw(data[:at])
        assert await send(client, [2]) == 200
        assert kept(mine.spool) == wanted([2])
        assert mine.intake._bytes == 0


async def test_garbage_instead_of_http_is_answered(tmp_path):
    chance = random.Random(5)
    garbage = [bytes(chance.randrange(256) for _ in range(200)) for _ in range(20)]
    garbage += [b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\n\r\n", b"X" * 100_000, b"PRI * HTTP/2.0\r\n\r\n"]
    garbage += [
        head(5).replace(b"Content-Length: 5", b"Content-Length: -5"),
        head(5).replace(b"Content-Length: 5", b"Content-Length: 5\r\nContent-Length: 6"),
        head(5).replace(b"Content-Length: 5", b"Transfer-Encoding: chunked") + b"zz\r\n",
        head(5).replace(b"Content-Length: 5", b"Content-Length: " + b"9" * 20),
    ]
    async with receiver(tmp_path) as mine, httpx.AsyncClient(base_url=mine.url) as client:
        for one in garbage:
            answer = await mine.raw(one)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), one
        assert await send(client, [2]) == 200


async def test_more_connections_than_there_may_be_are_turned_away(tmp_path, monkeypatch):
    monkeypatch.setattr(http, "MOST_CONNECTIONS", 3)
    async with receiver(tmp_path) as mine:
        waiting = [await asyncio.open_connection("127.0.0.1", mine.port) for _ in range(3)]
        answer = await mine.raw(head(2) + b"{}")
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1\r\n" in answer.lower()
        # Who is turned away may still read the answer; a flood of such senders takes no more connections.
        reading = [await asyncio.open_connection("127.0.0.1", mine.port) for _ in range(3)]
        assert await mine.raw(head(2) + b"{}", end=False) == b""
        for _, writer in waiting + reading:
            writer.close()


async def test_under_pressure_senders_are_asked_to_wait(tmp_path, monkeypatch):
    data = body(spans([1]))
    monkeypatch.setattr(intake_module, "MOST_WAITING", len(data))
    async with receiver(tmp_path) as mine, httpx.AsyncClient(base_url=mine.url) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", mine.port)
        writer.write(head(len(data)) + data[:-1])
        while not mine.intake._bytes:
            await asyncio.sleep(0)
        answer = await client.post("/v1/traces", content=body(spans([2])), headers=_TYPE)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        writer.write(data[-1:])
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert await send(client, [2]) == 200
        writer.close()
        assert kept(mine.spool) == wanted([1, 2])


async def test_a_disk_that_is_full_is_said_and_nothing_of_the_request_is_kept(tmp_path):
    async with receiver(tmp_path) as mine, httpx.AsyncClient(base_url=mine.url) as client:
        assert await send(client, [1]) == 200
        database = mine.spool
        ((pages,),) = database.rows("pragma page_count")
        database.rows(f"pragma max_page_count={pages}")
        answer = await client.post("/v1/traces", content=body(spans(range(2, 200))), headers=_TYPE)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
        assert "full" in answer.json()["message"]
        assert kept(mine.spool) == wanted([1])
        database.rows("pragma max_page_count=1000000")
        assert await send(client, range(2, 200)) == 200
        assert kept(mine.spool) == wanted(range(1, 200))


def test_a_spool_makes_room_by_what_was_handed_on_only(tmp_path, monkeypatch):
    monkeypatch.setattr(spool_module, "LARGEST_SPOOL", 1_000_000)

    def part(number):
        document = spans([number])
        document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] = "x" * 50_000
        return read_request(body(document), "traces", "json").parts

    with open_spool(tmp_path):
        pass
    spool = Spool(tmp_path / SPOOL)

    def fill():
        for number in range(1000):
            spool.add(part(number), number)

    with pytest.raises(SpoolFullError, match="not complete"):
        fill()
    known = sum(kept(spool).values())
    assert 15 < known < 100
    for trace, size in spool.quiet_traces(1e12, 1e12, 10):
        spool.settle([(trace, size, [f"talk {trace}"])])
    with pytest.raises(SpoolFullError):
        # Their sessions wait to be handed on.
        spool.add(part(2000), 2000)
    for session in spool.waiting():
        spool.handed_on(session.id)
    spool.add(part(2000), 2000)
    held = kept(spool)
    assert {ids(known - 1)[1], ids(2000)[1]} <= set(held)
    assert not set(held) & set(wanted([0]))
    spool.close()


def test_one_listener_has_a_spool_and_a_damaged_one_is_said(tmp_path):
    with open_spool(tmp_path), pytest.raises(SpoolInUseError, match=r"process \d+"), open_spool(tmp_path):
        pass
    with open_spool(tmp_path) as spool:
        spool.rows("pragma user_version=99")
    with pytest.raises(SpoolError, match="version 99"), open_spool(tmp_path):
        pass
    (tmp_path / SPOOL).write_bytes(b"garbage" * 1000)
    with pytest.raises(SpoolError, match="Delete it"), open_spool(tmp_path):
        pass
    assert (tmp_path / SPOOL).stat().st_mode & 0o077 == 0


def test_a_spool_is_closed_when_no_thread_is_at_it(tmp_path):
    """One may be: the task that waited for it was cancelled. SQLite would bring the process down."""
    request = read_request(body(spans(range(50))), "traces", "json")
    begun, goes_on, done = threading.Event(), threading.Event(), []

    def parts():
        begun.set()
        goes_on.wait()
        yield from request.parts

    def add(spool):
        spool.add(parts(), 1.0)
        done.append("added")

    def close(spool):
        spool.close()
        done.append("closed")

    def read(spool):
        """As long as it can be read."""
        with suppress(sqlite3.ProgrammingError):
            while True:
                for trace, size in spool.quiet_traces(9.0, 9.0, 10):
                    list(spool.read([trace]))
                    spool.settle([(trace, size, [trace])])
                    spool.handed_on(spool.waiting()[0].id)
        done.append("read")

    with open_spool(tmp_path) as spool:
        threads = [threading.Thread(target=one, args=[spool]) for one in (add, close, read)]
        threads[0].start()
        begun.wait()
        threads[1].start()
        threads[2].start()
        goes_on.set()
        for thread in threads:
            thread.join()
        assert sorted(done) == ["added", "closed", "read"]
        assert done.index("added") < done.index("closed")
    assert Counter(span.span_id for one in read_spool(tmp_path / SPOOL) for span in one.spans) == wanted(
        range(50)
    )


_SERVER = """
import asyncio, sys
from pathlib import Path
from tests.traces.receiver.senders import receiver

async def main():
    async with receiver(Path(sys.argv[1])) as mine:
        print(mine.port, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_what_is_acknowledged_outlives_a_process_that_is_killed(tmp_path):
    with subprocess.Popen([sys.executable, "-c", _SERVER, str(tmp_path)], stdout=subprocess.PIPE) as process:
        port = int(process.stdout.readline())
        acknowledged = []

        async def keep_sending(client, worker):
            for number in range(worker, 10_000, 4):
                assert await send(client, [number], PROTOBUF) == 200
                acknowledged.append(number)
                if len(acknowledged) == 40:
                    process.send_signal(signal.SIGKILL)

        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            done = await asyncio.gather(
                *(keep_sending(client, one) for one in range(4)), return_exceptions=True
            )
    assert all(isinstance(one, httpx.HTTPError) for one in done)
    with open_spool(tmp_path) as spool:
        held = kept(spool)
    assert set(wanted(acknowledged)) <= set(held)
    assert len(acknowledged) >= 40


@pytest.mark.thorough
async def test_a_flood_is_kept_in_bounded_memory(tmp_path, monkeypatch):
    """200,000 spans in batches of 512 from eight senders, among garbage and senders that leave."""
    batches = 400
    numbers = [range(512 * batch, 512 * (batch + 1)) for batch in range(batches)]
    acknowledged = []
    async with receiver(tmp_path) as mine, httpx.AsyncClient(base_url=mine.url, timeout=60) as client:
        await send(client, numbers[0], PROTOBUF)
        before = psutil.Process().memory_info().rss

        async def sender(mine_of):
            for batch in mine_of:
                while (status := await send(client, batch, PROTOBUF)) == 503:
                    await asyncio.sleep(0.01)
                assert status == 200
                acknowledged.extend(batch)

        async def pest():
            for at in range(200):
                await mine.raw(head(1000)[: at % 120])
                await mine.raw(b"\x00" * at * 100)

        began = time.monotonic()
        await asyncio.gather(pest(), *(sender(numbers[one::8]) for one in range(8)))
        took = time.monotonic() - began
        grown = psutil.Process().memory_info().rss - before
        print(f"{len(acknowledged) / took:.0f} spans a second, {grown / 1e6:.0f} MB more")
        ((held,),) = mine.spool.rows("select count(*) from trace")
        assert held == len(acknowledged) == 512 * batches
    assert grown < 200e6
    assert sqlite3.connect(tmp_path / SPOOL).execute("pragma integrity_check").fetchone() == ("ok",)
