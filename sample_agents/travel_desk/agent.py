"""A travel desk of three agents: it searches itself, asks a guide for advice, and hands over for bookings."""

from __future__ import annotations

from google.adk.agents import LlmAgent
from google.adk.tools.agent_tool import AgentTool

from .scripted_llm import Rule, ScriptedLlm
from .tools import book_flight, remember_traveller, search_flights, weather_forecast

# Called like a tool: it runs in a session of its own, and only its answer comes back.
city_guide = LlmAgent(
    name="city_guide",
    description="Knows what to do in a city, whatever the weather.",
    instruction="Look up the weather, then give one tip.",
    tools=[weather_forecast],
    model=ScriptedLlm(
        rules=[
            Rule(user=r"(?P<place>oslo|paris)", call="weather_forecast", args={"city": "{place}"}),
            Rule(user="oslo", after="weather_forecast", say="With {weather}, see the Fram museum."),
            Rule(user="paris", after="weather_forecast", say="With {weather}, walk along the Seine."),
        ]
    ),
)

# Takes the conversation over, with its history and state.
bookings = LlmAgent(
    name="bookings",
    description="Books and changes flights that were found before.",
    instruction="Book what the traveller asks for, and tell the reference.",
    tools=[book_flight],
    model=ScriptedLlm(
        rules=[
            Rule(user=r"book .*(?P<seats>\d) seat", call="book_flight", args={"seats": "{seats}"}),
            Rule(after="book_flight", say="Booked: your reference is {reference}, {total} euros in all."),
            Rule(user="thank", say="You are welcome. Have a good trip!"),
        ]
    ),
)

root_agent = LlmAgent(
    name="travel_desk",
    description="The front desk of a small travel agency.",
    instruction="Help {traveller?} to travel from {home_city?}. Leave bookings to the bookings agent.",
    tools=[remember_traveller, search_flights, AgentTool(city_guide)],
    sub_agents=[bookings],
    model=ScriptedLlm(
        rules=[
            Rule(
                user=r"I am (?P<name>\w+) from (?P<home_city>\w+)",
                call="remember_traveller",
                args={"name": "{name}", "home_city": "{home_city}"},
            ),
            Rule(
                after="remember_traveller", say="Hello {traveller}, I will look for flights from {home_city}."
            ),
            Rule(
                user=r"fl(y|ight) to (?P<destination>\w+) on (?P<date>[\d-]+)",
                call="search_flights",
                args={"destination": "{destination}", "date": "{date}"},
            ),
            Rule(
                after="search_flights",
                say="{flight} flies from {origin} to {destination} on {date} at {departs} for {price} euros.",
            ),
            Rule(
                user=r"do in (?P<place>\w+)",
                call="city_guide",
                args={"request": "One tip for {place}, please."},
            ),
            Rule(after="city_guide", say="Our guide says: {result}"),
            Rule(user="book", call="transfer_to_agent", args={"agent_name": "bookings"}),
        ]
    ),
)
