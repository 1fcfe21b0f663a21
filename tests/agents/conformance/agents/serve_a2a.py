"""The desk of google-adk behind A2A: `python serve_a2a.py FOLDER PORT` with the package `desk` in FOLDER."""

import sys

sys.path.insert(0, sys.argv[1])

import uvicorn
from desk.agent import root_agent
from google.adk.a2a.utils.agent_to_a2a import to_a2a

PORT = int(sys.argv[2])
uvicorn.run(to_a2a(root_agent, host="127.0.0.1", port=PORT), port=PORT, log_level="warning")
