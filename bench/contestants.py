"""Runs contestants: processes of their own that answer JSON requests (the other side: serve.py)."""

import json
import os
import statistics
import subprocess
import tempfile
import time


class Contestant:
    """A running process. `environment` comes on top of ours."""

    def __init__(self, command, environment=None):
        self.command = [str(part) for part in command]
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115  (closed by __exit__)
        self.process = subprocess.Popen(
            self.command,
            env=os.environ | (environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self._read()  # the process says that it is ready

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._read()

    def _read(self):
        answer = self.process.stdout.readline()
        if answer:
            return json.loads(answer)
        self.process.wait()
        self.errors.seek(0)
        last = self.errors.read()[-2000:].decode(errors="replace")
        raise RuntimeError(f"{' '.join(self.command)} ended:\n{last}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()


FEWEST_ROUNDS, SECONDS = 3, 6.0


def interleave(running, request, rounds):
    """Asks all in turn, A B A B; gives the median of each one's answers.

    The first round warms up and does not count. On a slow machine there are fewer rounds, so that
    the whole keeps its limit of 10 minutes.
    """
    taken = {name: [] for name in running}
    start = time.monotonic()
    for number in range(rounds + 1):
        if number > FEWEST_ROUNDS and time.monotonic() > start + SECONDS:
            break
        for name, contestant in running.items():
            taken[name].append(contestant.ask(request))
    return {name: statistics.median(answers[1:]) for name, answers in taken.items()}
