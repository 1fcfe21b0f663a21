"""The desk as a function."""

import asyncio

from evaltui import events

from . import script


async def desk(message, session):
    if message == "transfer":
        yield events.transfer("writer")
        yield events.text("written", agent="writer")
        return
    files = sum(one.inline_data is not None for one in session.content.parts)
    users = 1 + sum(one.role == "user" and bool(one.parts[0].text) for one in session.history)
    text, calls = script.answer(message, [], users, files)
    for word in text.split(" "):
        yield f"{word} " if word != text.split(" ")[-1] else word
    if not calls:
        return
    for name, args in calls:
        yield events.tool_call(name, args)
    results = await asyncio.gather(*(call(name, args, session) for name, args in calls))
    for (name, _), result in zip(calls, results, strict=True):
        yield events.tool_result(name, result)
    yield script.answer(message, [str(one) for one in results], users)[0]


async def call(name, args, session):
    if name == "note":
        session.state["noted"] = args["item"]
        return "noted"
    result = getattr(script, name)(**args)
    return await result if asyncio.iscoroutine(result) else result


root_agent = desk
