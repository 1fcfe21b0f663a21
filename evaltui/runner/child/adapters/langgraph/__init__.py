"""The way in for graphs of LangGraph."""
