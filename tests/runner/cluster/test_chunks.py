"""Who is to blame when workers die, and that every item is handed out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evaltui.runner.dask.chunks import ChunkQueue


def queue(count: int, seconds: float | None = None) -> ChunkQueue:
    made = ChunkQueue()
    if seconds is not None:
        made.on_finished(seconds)
    for item in range(count):
        made.add(item)
    return made


def test_chunks_are_in_order_half_a_minute_and_small_towards_the_end():
    made, chunks = queue(1000), []
    while (chunk := made.next_chunk(4, 4, alone=True)) is not None:
        chunks.append(chunk)
    assert [item for chunk in chunks for item in chunk.items] == list(range(1000))
    sizes = [len(chunk.items) for chunk in chunks]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1] <= 4) == (50, True)
    # Four side by side: 12 of 10 s are done in 30 s.
    assert len(queue(1200, 10.0).next_chunk(4, 4, alone=True).items) == 12
    assert len(queue(100, 3600.0).next_chunk(2, 4, alone=True).items) == 4


@given(guilty=st.sets(st.integers(0, 119), max_size=3), machines=st.integers(1, 5), data=st.data())
def test_only_the_guilty_are_blamed(guilty, machines, data):
    """Workers die of guilty items, whatever else they have, and some die of nothing."""
    made, ended, blamed = queue(120), [], []
    accidents = data.draw(st.sets(st.integers(0, 30), max_size=3))
    for step in range(10_000):
        held = []
        for _ in range(machines):
            alone = not held
            if not any(one.is_alone for one in held) and (chunk := made.next_chunk(machines, 4, alone=alone)):
                held.append(chunk)
        if not held:
            break
        dies = step in accidents and not any(one.is_alone for one in held)
        dies = dies or any(guilty.intersection(one.items) for one in held)
        for chunk in held:
            before = chunk.items[: len(chunk.items) // 2]
            done = [item for item in before if item not in guilty] if dies else list(chunk.items)
            ended += done
            chunk.unfinished -= {*done}
            if (item := made.on_lost(chunk)) is not None:
                blamed.append(item)
    assert sorted(blamed) == sorted(guilty)
    assert sorted(ended) == sorted(set(range(120)) - guilty)
