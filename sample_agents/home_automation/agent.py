"""A house with lights and heating, and a model that does not always do as it should.

A scripted model stands in for a real one, so that it works offline and the cases that fail always fail in
the same way. Each failing case shows one kind of mistake; the eval sets say which in their descriptions.
"""

from typing import Literal

from evaltui import Agent, Rule, ScriptedModel, ToolContext

Room = Literal["Bedroom", "Kitchen", "Living Room"]

LIGHTS = {"Bedroom": "ON", "Kitchen": "OFF", "Living Room": "ON"}
TEMPERATURES = {"Bedroom": 20.5, "Kitchen": 17.5, "Living Room": 21.0}
LOWEST_TARGET = 15


def list_lights(context: ToolContext) -> dict[str, str]:
    """Every room, and whether its light is ON or OFF."""
    return context.state.setdefault("lights", dict(LIGHTS))


def set_light(location: Room, status: Literal["ON", "OFF"], context: ToolContext) -> dict[str, str]:
    """Switch the light of a room."""
    context.state.setdefault("lights", dict(LIGHTS))[location] = status
    return {"location": location, "status": status}


def get_temperature(location: Room) -> dict[str, str | float]:
    """How warm a room is, in degrees Celsius."""
    return {"location": location, "degrees": TEMPERATURES[location]}


def set_temperature(location: Room, degrees: int, context: ToolContext) -> dict[str, str]:
    """Heat a room to a temperature in degrees Celsius."""
    # The pipes must not freeze: the thermostat keeps to its minimum and tells nobody.
    context.state.setdefault("targets", {})[location] = max(degrees, LOWEST_TARGET)
    return {"status": "ok"}


def notify_user(message: str) -> None:
    """Send a message to the user's phone."""


SWITCH = r"(?i)turn (on|off) the (bedroom|kitchen|living room) light"
HEAT = r"(?i)set the (bedroom|kitchen|living room) to (\d+) degrees"
HEAT_IF = r"(?i)the (bedroom|kitchen|living room), but only if it is below (\d+)"
HOW_WARM = r"(?i)how warm is the (bedroom|kitchen|living room)"


def lights_on(situation):
    rooms = [room.lower() for room, status in situation.results[-1].items() if status == "ON"]
    return f"The light is on in the {' and the '.join(rooms)}." if rooms else "No light is on."


RULES = [
    Rule(user=r"(?i)^(hello|hi)\b", reply="Hello, I look after the lights and the heating of your house."),
    Rule(user=r"(?i)^thank", reply="You are welcome."),
    Rule(user=SWITCH, call=lambda s: ("set_light", {"location": s[2].title(), "status": s[1].upper()})),
    Rule(user=SWITCH, after_tool="set_light", reply=lambda s: f"The {s[2].lower()} light is {s[1].lower()}."),
    Rule(user=r"(?i)which lights are on", call=("list_lights", {})),
    Rule(user=r"(?i)which lights are on", after_tool="list_lights", reply=lights_on),
    # Wording: right, but not in the words that are expected.
    Rule(user=r"(?i)is the kitchen light on", call=("list_lights", {})),
    Rule(
        user=r"(?i)is the kitchen light on",
        after_tool="list_lights",
        reply="I just checked for you: it is dark in there.",
    ),
    # Order: looks at the lights after switching them, not before.
    Rule(user=r"(?i)movie", call=("set_light", {"location": "Living Room", "status": "OFF"})),
    Rule(user=r"(?i)movie", after_tool="set_light", call=("list_lights", {})),
    Rule(
        user=r"(?i)movie",
        after_tool="list_lights",
        reply="The living room light is off. Enjoy the movie!",
    ),
    # Missing: forgets the kitchen.
    Rule(
        user=r"(?i)good night",
        call=[
            ("set_light", {"location": "Bedroom", "status": "OFF"}),
            ("set_light", {"location": "Living Room", "status": "OFF"}),
        ],
    ),
    Rule(user=r"(?i)good night", after_tool="set_light", reply="All lights are off. Good night!"),
    Rule(user=HEAT, call=lambda s: ("set_temperature", {"location": s[1].title(), "degrees": int(s[2])})),
    Rule(
        user=HEAT,
        after_tool="set_temperature",
        reply=lambda s: f"The {s[1].lower()} is set to {s[2]} °C.",
    ),
    Rule(user=HEAT_IF, call=lambda s: ("get_temperature", {"location": s[1].title()})),
    # Argument and extra call: the degrees are text, and nobody asked for a message.
    Rule(
        user=HEAT_IF,
        after_tool="get_temperature",
        call=lambda s: [
            ("set_temperature", {"location": s[1].title(), "degrees": "19"}),
            ("notify_user", {"message": f"It was {s.results[-1]['degrees']} °C in the {s[1].lower()}."}),
        ],
    ),
    Rule(
        user=HEAT_IF,
        after_tool="notify_user",
        reply=lambda s: f"The {s[1].lower()} is set to 19 °C.",
    ),
    Rule(user=HOW_WARM, call=lambda s: ("get_temperature", {"location": s[1].title()})),
    Rule(
        user=HOW_WARM,
        after_tool="get_temperature",
        reply=lambda s: f"It is {s.results[-1]['degrees']} °C in the {s[1].lower()}.",
    ),
    # State: says what was asked for; what the thermostat made of it shows in the session state only.
    Rule(
        user=r"(?i)away for a week",
        call=[
            ("set_temperature", {"location": room, "degrees": 12})
            for room in ("Bedroom", "Kitchen", "Living Room")
        ],
    ),
    Rule(
        user=r"(?i)away for a week",
        after_tool="set_temperature",
        reply="Every room is set to 12 °C until you are back.",
    ),
]

root_agent = Agent(
    name="home_automation",
    model=ScriptedModel(RULES),
    instruction=(
        "You look after the lights and the heating of a house. Do what the user asks with your tools, "
        "nothing more, and say in one short sentence what you did."
    ),
    tools=[list_lights, set_light, get_temperature, set_temperature, notify_user],
)
