"""Conversations: events as turns and cases, cases as events, and calls that wait for a person."""
