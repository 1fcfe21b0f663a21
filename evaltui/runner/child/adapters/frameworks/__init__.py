"""What the adapters of agent frameworks share: results as JSON, requests and calls through the recorder."""
