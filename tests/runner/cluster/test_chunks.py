"""What a worker is given at once, and who is to blame when workers die."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaltui.runner.cluster.chunks import Chunk, ChunkQueue


def queue(count: int, seconds: float | None = None) -> ChunkQueue[int]:
    made = ChunkQueue[int](lambda item: seconds)
    made.add(range(count))
    return made


def all_chunks(made: ChunkQueue[int], hosts: int = 4, at_once: int = 4) -> list[Chunk[int]]:
    found = []
    while (chunk := made.take(hosts, at_once, alone=True)) is not None:
        found.append(chunk)
    return found


def test_every_item_is_handed_out_once_in_order():
    chunks = all_chunks(queue(1000))
    assert [item for chunk in chunks for item in chunk.items] == list(range(1000))
    assert max(len(chunk.items) for chunk in chunks) == 50


def test_what_is_left_is_as_many_chunks_as_are_handed_out_about():
    for count in (0, 1, 40, 1000):
        made = queue(count)
        left = made.chunks_left(4, 4)
        assert left <= len(all_chunks(made)) <= count
    assert queue(0).chunks_left(0, 4) == 0


def test_chunks_become_smaller_towards_the_end():
    sizes = [len(chunk.items) for chunk in all_chunks(queue(1000))]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] <= 4


def test_a_chunk_takes_about_half_a_minute_by_recorded_durations():
    # Four side by side: 12 of 10 s are done in 30 s.
    assert {len(chunk.items) for chunk in all_chunks(queue(1200, 10.0))[:20]} == {12}


def test_a_host_is_given_as_many_as_it_runs_at_once_however_long_they_take():
    assert len(queue(100, 3600.0).take(2, 4, alone=True).items) == 4


def test_without_durations_those_of_this_run_count():
    made = queue(1000)
    made.take(4, 1, alone=True)
    for _ in range(10):
        made.finished(6.0)
    assert len(made.take(4, 1, alone=True).items) == 5


def test_chunks_are_larger_once_items_are_known_to_be_quick():
    made = queue(10_000)
    assert len(made.take(4, 4, alone=True).items) == 50
    made.finished(0.001)
    assert len(made.take(4, 4, alone=True).items) == 120


@given(guilty=st.sets(st.integers(0, 119), max_size=3), machines=st.integers(1, 5), data=st.data())
def test_only_the_guilty_are_blamed(guilty, machines, data):
    """Workers die of guilty items, whatever else they have, and some die of nothing."""
    made, ended, blamed = queue(120), [], []
    accidents = data.draw(st.sets(st.integers(0, 30), max_size=3))
    for step in range(10_000):
        held = []
        for _ in range(machines):
            alone = not held
            if not any(one.is_alone for one in held) and (chunk := made.take(machines, 4, alone=alone)):
                held.append(chunk)
        if not held:
            break
        dies = step in accidents and not any(one.is_alone for one in held)
        dies = dies or any(guilty.intersection(one.items) for one in held)
        for chunk in held:
            before = chunk.items[: len(chunk.items) // 2]
            done = [item for item in before if item not in guilty] if dies else list(chunk.items)
            ended += done
            left = [item for item in chunk.items if item not in done]
            if (one := made.lost(chunk, left)) is not None:
                blamed.append(one)
    assert sorted(blamed) == sorted(guilty)
    assert sorted(ended) == sorted(set(range(120)) - guilty)


def test_what_may_have_ended_a_worker_runs_where_nothing_else_does():
    made = queue(1)
    made.lost(made.take(1, 1, alone=True), [0])
    assert made.take(1, 1, alone=False) is None
    assert made.take(1, 1, alone=True).is_alone
