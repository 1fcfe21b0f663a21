"""What the travel desk can do. Flights and weather are made up, and the same every day."""

from __future__ import annotations

from google.adk.tools.tool_context import ToolContext

FLIGHTS = {
    "OSLO": {"flight": "NA101", "departs": "08:05", "price": 129},
    "PARIS": {"flight": "NA202", "departs": "11:40", "price": 89},
}
WEATHER = {"OSLO": "rain, 12 degrees", "PARIS": "sun, 24 degrees"}


def remember_traveller(name: str, home_city: str, tool_context: ToolContext) -> dict:
    """Keeps who is travelling, and from where, for the rest of the conversation."""
    tool_context.state["traveller"] = name
    tool_context.state["home_city"] = home_city
    return {"traveller": name, "home_city": home_city}


def search_flights(destination: str, date: str, tool_context: ToolContext) -> dict:
    """Finds the cheapest flight from the traveller's home city on a day (YYYY-MM-DD)."""
    origin = tool_context.state.get("home_city", "Berlin")
    found = {"origin": origin, "destination": destination, "date": date, **FLIGHTS[destination.upper()]}
    tool_context.state["last_flight"] = found
    return found


def book_flight(seats: int, tool_context: ToolContext) -> dict:
    """Books the flight that was found last."""
    flight = tool_context.state.get("last_flight")
    if flight is None:
        return {"error": "no flight was searched for yet"}
    reference = f"{flight['flight']}-{seats}"
    tool_context.state["bookings"] = [*tool_context.state.get("bookings", []), reference]
    return {"reference": reference, "total": seats * flight["price"]}


def weather_forecast(city: str) -> dict:
    """Tells the usual weather of a city."""
    return {"city": city, "weather": WEATHER[city.upper()]}
