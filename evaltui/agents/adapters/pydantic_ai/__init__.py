"""The way in for agents of Pydantic AI."""
