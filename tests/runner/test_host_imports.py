"""What a host loads before it knows which agent it gets."""

import subprocess
import sys


def test_an_agent_that_is_a_function_does_not_wait_for_models():
    code = (
        "import evaltui.runner.child.host, evaltui.runner.child.adapters.function, sys; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pydantic", "google.genai", "google.adk", "rouge_score"} & {*done.stdout.split()}
