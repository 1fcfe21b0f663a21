"""Ways in to agents behind a network: ADK's api_server, A2A."""
