"""One step: a command with a deadline. A step that hangs is ended and reported; the rest goes on."""

import dataclasses
import os
import queue
import shlex
import signal
import subprocess
import threading
import time

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclasses.dataclass
class Step:
    """What became of it. `reason`: why it failed or was skipped."""
    name: str
    status: str = PASSED
    reason: str = ""
    seconds: float = 0.0
    command: str = ""
    output: str = ""  # the end of what it said, of steps that failed
    tests: int = 0  # that passed
    skipped_tests: list = dataclasses.field(default_factory=list)  # of {"name", "reason"}

    def fail(self, reason, output=""):
        self.status = FAILED
        self.reason = reason if not self.reason else f"{self.reason}; {reason}"
        self.output = output[-4000:] or self.output


@dataclasses.dataclass
class Outcome:
    status: int  # exit status, negative: the signal
    late: str  # which deadline has passed, or ""
    lines: list
    errors: str
    seconds: float

    @property
    def words(self):
        if self.late:
            return self.late
        return f"ended by signal {-self.status}" if self.status < 0 else f"exit status {self.status}"


def commandLine(command, environment):
    """It as a shell takes it, with the variables that the caller's environment adds to `environment`."""
    inherited = {name: value for name, value in os.environ.items() if name.startswith(("TUTTI_", "NCCL_", "CUDA_"))}
    variables = [f"{name}={value}" for name, value in {**inherited, **environment}.items()]
    return shlex.join([*(["env", *variables] if variables else []), *command])


def collect(stream, into):
    for line in stream:
        into(line.rstrip("\n"))
    into(None)


def killGroup(process):
    """The program, and what it has started or left behind."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, environment, limit_s, silence_s=None):
    """Runs it in a process group of its own, which is killed `limit_s` after the start, once the program has said
    nothing for `silence_s`, and when we are interrupted."""
    began = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                               start_new_session=True)
    try:
        return watch(process, began, limit_s, silence_s)
    except BaseException:
        killGroup(process)
        raise


def watch(process, began, limit_s, silence_s):
    said, errors = queue.Queue(), []
    readers = [threading.Thread(target=collect, args=(process.stdout, said.put), daemon=True),
               threading.Thread(target=collect, args=(process.stderr, errors.append), daemon=True)]
    for reader in readers:
        reader.start()
    lines, late = [], ""
    while True:
        left = began + limit_s - time.monotonic()
        patience = left if silence_s is None else min(left, silence_s)
        try:
            line = said.get(timeout=max(patience, 0.0))
        except queue.Empty:
            late = f"no end after {limit_s:.0f} s" if patience == left else f"said nothing for {silence_s:.0f} s"
            break
        if line is None:
            break
        lines.append(line)
    try:
        process.wait(timeout=0 if late else max(began + limit_s - time.monotonic(), 1.0))
    except subprocess.TimeoutExpired:
        late = late or f"no end after {limit_s:.0f} s"
    killGroup(process)
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        late += ", and it cannot be killed"  # in the driver; nothing more can be done from here
    for reader, pipe in zip(readers, (process.stdout, process.stderr)):
        reader.join(timeout=10)  # at once, unless something outside of the group holds the pipe
        if not reader.is_alive():
            pipe.close()
    return Outcome(process.returncode if process.returncode is not None else -signal.SIGKILL, late, lines,
                   "\n".join(text for text in errors if text), time.monotonic() - began)
