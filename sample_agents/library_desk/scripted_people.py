"""A reader and a judge who are scripted: they stand in for models, so that the cases run offline.

Each takes a prompt and returns an answer, as a model would. `test_config.json` names them where a model could
be named; google-adk knows models only. With `gemini-2.5-flash` in their place, a real one reads and judges.
"""

import json
import re


def reader(prompt: str) -> str:
    """A scripted reader: agrees to what the desk offers, and has a library card if the plan says so."""
    plan, conversation = texts_in(prompt)
    last = conversation.rpartition("library_desk: ")[2]
    if "Shall I reserve it" in last:
        return "Yes, please."
    if "library card?" in last:
        card = re.search(r"card (\d{4})", plan)
        return f"It is {card[1]}." if card else "Sorry, I have no card."
    return "Thank you. </finished>"


def judge(prompt: str) -> str:
    """A scripted judge: looks for the words and calls that the rubrics of the eval config are about."""
    *_, conversation, answer, rubrics = texts_in(prompt)
    verdicts = {"says_until_when": says_until_when(answer), "is_reserved": is_reserved(answer, conversation)}
    found = [
        {"id": rubric["id"], "rationale": f"Scripted judge, no model: {why}.", "verdict": verdict}
        for rubric in json.loads(rubrics)
        for verdict, why in [verdicts[rubric["id"]]]
    ]
    return json.dumps({"rubrics": found})


def says_until_when(answer):
    if "reserved for you" not in answer:
        return "yes", "the answer reserves nothing"
    return ("yes", "it names the day") if "until" in answer else ("no", "it names no day")


def is_reserved(answer, conversation):
    if "reserved for you" not in answer:
        return "yes", "the answer does not say that a book is reserved"
    if "reserve_book" in conversation:
        return "yes", "reserve_book was called"
    return "no", "the answer says that a book is reserved, and reserve_book was not called"


def texts_in(prompt):
    """What a prompt of evaltui has between its marks, in order."""
    return [text for _, text in re.findall(r"<text (\w+)>\n(.*?)\n</text \1>", prompt, re.DOTALL)]
