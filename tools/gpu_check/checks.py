"""The correctness part: GoogleTest programs on the GPUs that are here, compute-sanitizer, a training run."""

import os
import re
import shutil
import time

from gpu_check import steps

# Program, what of it runs on emulated GPUs, where all of it would take too long, and seconds for the program on a GPU.
TESTS = [
    ("kernels_cuda_test", "Cuda*:*CudaStop*:*/float:*/bfloat16", 240),
    ("gpu_ranks_test", "*", 150),
    ("gpu_communicators_test", "Gpus.*:*GpuPlans*:*/2on1*", 200),
    ("cuda_perf_test", "-*Full*", 150),
    ("cuda_train_test", "*", 100),
]
SILENCE_S = 100  # a test that takes longer hangs

SANITIZED = [("combine alone", "tutti-gpu-bench", ["combine", "--bytes", "64K", "--blocks", "2", "--rounds", "1",
                                                   "--sample-us", "1"]),
             ("programs of several ranks", "kernels_cuda_test",
              ["--gtest_filter=CudaTransfers*:CudaGraphs*:All/CudaCollectives.*/float"])]
SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards?)")
ENDED = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (\S+?),? ")
BEGUN = re.compile(r"^\[ RUN +\] (\S+)")


class TestLog:
    """What a GoogleTest program has said, also one that did not get to its end."""

    def __init__(self, lines):
        self.results, self.reasons, self.running = {}, {}, None
        wants_reason = False
        for line in lines:
            begun, ended = BEGUN.match(line), ENDED.match(line + " ")
            if begun:
                self.running = begun.group(1)
            elif ended and ended.group(2) == self.running:
                self.results[self.running], self.running = ended.group(1), None
            elif wants_reason:
                self.reasons[self.running] = line.strip()
            wants_reason = line.endswith(": Skipped")

    def named(self, result):
        return [name for name, what in self.results.items() if what == result]


def runTests(places, setting, program, limit_s):
    """All tests of a program. One that hangs, or takes the program with it, fails; those after it still run."""
    step = steps.Step(f"tests: {program}")
    base = next(row[1] for row in TESTS if row[0] == program) if setting.emulated else "-*Full*"
    done, began = [], time.monotonic()
    while True:
        without = (":" if "-" in base else ":-" if done else "") + ":".join(done) if done else ""
        command = [places.test(program), f"--gtest_filter={base}{without}"]
        left = limit_s - (time.monotonic() - began)
        outcome = steps.run(command, setting.environment, left, SILENCE_S)
        log = TestLog(outcome.lines)
        step.command = step.command or steps.commandLine(command, setting.environment)
        step.tests += len(log.named("OK"))
        step.skipped_tests += [{"name": f"{program}: {name}", "reason": log.reasons.get(name, "")}
                               for name in log.named("SKIPPED")]
        failed, stuck = log.named("FAILED"), log.running
        if failed:
            step.fail("failed: " + ", ".join(failed), "\n".join(outcome.lines[-60:]) + outcome.errors)
        if stuck:
            step.fail(f"{stuck}: {outcome.words}", "\n".join(outcome.lines[-30:]) + outcome.errors)
        elif outcome.status != 0 and not failed:
            step.fail(outcome.words, "\n".join(outcome.lines[-30:]) + outcome.errors)
        done += [*log.results, *([stuck] if stuck else [])]
        if not stuck or time.monotonic() - began > limit_s - 10:
            break
    if step.status == steps.PASSED and step.tests == 0:
        step.fail("no test ran")
    step.seconds = time.monotonic() - began
    return step


def findSanitizer():
    beside = [os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), *parts, "compute-sanitizer")
              for parts in (("bin",), ("compute-sanitizer",))]
    return shutil.which("compute-sanitizer") or next((path for path in beside if os.access(path, os.X_OK)), None)


def sanitize(places, setting):
    """memcheck and racecheck. Only their verdict counts: where the tool lets one kernel run at a time, programs of
    several ranks cannot get on under it."""
    tool = findSanitizer()
    for check in ("memcheck", "racecheck"):
        for what, program, arguments in SANITIZED:
            step = steps.Step(f"compute-sanitizer {check}: {what}")
            if setting.emulated or tool is None:
                step.status = steps.SKIPPED
                step.reason = "GPUs are emulated" if setting.emulated else "compute-sanitizer is not here"
            else:
                path = places.test(program) if program.endswith("_test") else places.program(program)
                command = [tool, "--tool", check, path, *arguments]
                step.command = steps.commandLine(command, setting.environment)
                outcome = steps.run(command, setting.environment, 60)
                judgeSanitizer(step, outcome)
            yield step


def judgeSanitizer(step, outcome):
    step.seconds = outcome.seconds
    text = "\n".join(outcome.lines) + outcome.errors
    found = SUMMARY.findall(text)
    if any(int(number or 0) for pair in found for number in pair):
        step.fail("see the output", text)
    elif outcome.late or outcome.status != 0 or not found:
        step.status = steps.SKIPPED
        step.reason = f"no verdict: {outcome.words}, with nothing reported"


def train(places, setting):
    ranks = max(2, min(setting.gpus, 8))
    step = steps.Step(f"training: {ranks} ranks")
    if setting.emulated:
        size, least_batch = ["--steps", "10", "--hidden", "24", "--embedding", "6", "--context", "4"], 16
    else:
        size, least_batch = ["--steps", "100"], 64
    batch = -(-least_batch // ranks) * ranks  # each rank takes an equal slice
    command = [places.program("tutti-run"), "--no-prefix", "-n", str(ranks), "tutti-train", "--device", "cuda", "--data",
               places.text, "--verify", *size, "--batch", str(batch)]
    outcome = steps.run(command, setting.environment, 90)
    step.command, step.seconds = steps.commandLine(command, setting.environment), outcome.seconds
    if outcome.status != 0 or outcome.late:
        step.fail(outcome.words, "\n".join(outcome.lines[-30:]) + outcome.errors)
    step.output = step.output or "\n".join(line for line in outcome.lines if "verify:" in line or "identical" in line)
    return step
