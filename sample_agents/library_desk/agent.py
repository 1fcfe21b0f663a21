"""The desk of a library, with readers who are simulated and answers that are judged.

Everything is scripted, so that it works offline: the model here, and those who read and judge in
`scripted_people.py`. One case fails, always in the same way: told that there is no library card, the model
says that the book is reserved, and has not called the tool.
"""

from evaltui import Agent, Rule, ScriptedModel, ToolContext

BOOKS = {"Emma": "shelf B3", "Walden": "shelf A1", "Dracula": None, "Ulysses": None}


def find_book(title: str, context: ToolContext) -> dict[str, str | bool]:
    """Look where a book is.

    Args:
        title: The title of the book.
    """
    context.state["title"] = title
    place = BOOKS[title]
    return {"on_shelf": False, "back": "Friday"} if place is None else {"on_shelf": True, "place": place}


def reserve_book(card: str, context: ToolContext) -> dict[str, str]:
    """Reserve the book that was looked for last.

    Args:
        card: The number of the reader's library card.
    """
    context.state["reserved"] = context.state["title"]
    return {"title": context.state["title"], "kept_until": "Monday"}


TITLE = rf"(?P<title>{'|'.join(BOOKS)})"
CARD = r"(?P<card>\d{4})"


def where(situation):
    found = situation.results[-1]
    if found["on_shelf"]:
        return f"{situation['title']} is here, on {found['place']}."
    return f"{situation['title']} is lent until {found['back']}. Shall I reserve it for you?"


def reserved(situation):
    made = situation.results[-1]
    return f"{made['title']} is reserved for you. We keep it until {made['kept_until']}."


RULES = [
    Rule(user=TITLE, call=lambda s: ("find_book", {"title": s["title"]})),
    Rule(user=TITLE, after_tool="find_book", reply=where),
    Rule(user=CARD, call=lambda s: ("reserve_book", {"card": s["card"]})),
    Rule(user=CARD, after_tool="reserve_book", reply=reserved),
    Rule(user=r"(?i)\byes\b", reply="Gladly. What is the number of your library card?"),
    # It should say that there is no reservation without a card.
    Rule(user=r"(?i)no card", reply="No problem. The book is reserved for you. We keep it until Monday."),
]

root_agent = Agent(
    name="library_desk",
    model=ScriptedModel(RULES),
    instruction=(
        "You work at the desk of a library. Look for books with find_book. Offer to reserve a book that is "
        "lent, and do so with reserve_book, which needs the number of a library card. Be brief."
    ),
    tools=[find_book, reserve_book],
)
