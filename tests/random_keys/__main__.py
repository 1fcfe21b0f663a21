"""Random input on copies of the sample agents: `python -m tests.random_keys --seconds 1200 --seed 7`.

A round that fails is told with its seed, which decides all that was done in it:
`--seed 7.12 --sample calculator --once` does that again.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(Path(__file__).parent), str(_TESTS / "e2e"), str(_TESTS)]

from playing import ACTIONS, SAMPLES, Round, RoundFailed, play  # noqa: E402
from typing_in import play_in_terminal  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--sample", choices=SAMPLES)
    parser.add_argument("--actions", type=int, default=ACTIONS, help="in each round")
    parser.add_argument("--terminal", action="store_true", help="the program in a real pseudo terminal")
    parser.add_argument("--once", action="store_true", help="one round with exactly this seed")
    parser.add_argument("--go-on", action="store_true", help="after a round that failed")
    given = parser.parse_args()
    samples = [given.sample] if given.sample else SAMPLES
    end, failed = time.monotonic() + given.seconds, 0
    with tempfile.TemporaryDirectory() as settings:
        os.environ |= {"XDG_CONFIG_HOME": settings, "EDITOR": "true"}
        for number in count():
            if number and (given.once or time.monotonic() > end):
                break
            seed = given.seed if given.once else f"{given.seed}.{number}"
            played = Round(seed, samples[number % len(samples)])
            began = time.monotonic()
            try:
                if given.terminal:
                    play_in_terminal(played, given.actions)
                else:
                    asyncio.run(play(played, given.actions))
            except RoundFailed as error:
                failed += 1
                print(f"FAILED seed {seed} {played.sample}\n{error}\n", flush=True)
                if not given.go_on:
                    return 1
            else:
                print(f"ok {seed} {played.sample} {time.monotonic() - began:.1f} s", flush=True)
    print(f"{number} rounds, {failed} failed, seed {given.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
