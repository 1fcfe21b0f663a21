"""The adapter for graphs of LangGraph."""
