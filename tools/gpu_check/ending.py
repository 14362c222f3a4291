"""Ends from outside: signals, and a terminal that is gone. What has finished by then is still reported."""

import os
import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """One of SIGNALS came. Not an Exception: whoever handles errors lets it pass."""

    def __init__(self, number):
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.exit_status = 128 + number  # as a shell says it


def interrupt(number, _):
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)  # the report is written in peace
    raise Interrupted(number)


def catchSignals():
    """Raises Interrupted where the program is. What the caller has it ignore, as nohup does, stays ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


def say(text, stream=None):
    """Prints it. Where nobody reads any more, the program goes on: it is the report that counts."""
    stream = stream or sys.stdout
    try:
        print(text, file=stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
