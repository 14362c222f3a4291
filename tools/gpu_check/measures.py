"""The measuring part: what tutti-gpu-bench is run for, and what becomes of its lines."""

import ctypes.util
import dataclasses
import glob
import json
import os
import statistics
import sys

from gpu_check import steps

NOT_CO_RESIDENT = 3  # its exit status
SIZES = "1K,8K,64K,512K,4M,32M,256M"
SMALL = "16,1K,16K"


@dataclasses.dataclass
class Measure:
    """One run of tutti-gpu-bench. `about`: the section of the report."""
    about: str
    name: str
    arguments: list
    environment: dict = dataclasses.field(default_factory=dict)
    limit_s: float = 60
    why_not: str = ""


def allReduce(about, ranks, sizes, *more, gpus=1, mode="stream", environment=None):
    name = f"{about}: {ranks} rank{'s' * (ranks > 1)}" + (f", {mode}" if mode != about else "")
    return Measure(about, name, ["all-reduce", "--ranks", str(ranks), "--gpus", str(gpus), "--mode", mode, "--bytes",
                                 sizes, *more], environment or {})


def onOneGpu():
    ring = {"TUTTI_PLAN": "ring/slots"}
    most = ["--lanes", "16"]  # of 8 by default
    yield Measure("combine", "combine", ["combine", "--bytes", "1M,16M,256M", "--blocks", "8,16,32,64,132"])
    yield allReduce("alone", 1, SIZES, "--copy")
    for ranks in (1, 2, 4):
        yield allReduce("one GPU", ranks, SIZES)
        yield allReduce("latency", ranks, SMALL, mode="latency")
    yield allReduce("one GPU", 2, SIZES, *most)
    for ranks in (1, 2):
        yield allReduce("graph", ranks, SMALL + ",256K", mode="graph")
    for ranks in (2, 4):
        yield allReduce("ring", ranks, "64K,512K,4M,32M,256M", "--yardstick", environment=ring)


def onSeveralGpus(gpus, nccl):
    ranks = min(max(gpus, 2), 8)
    beside = ["--nccl", nccl] if nccl else []
    for mode, sizes, more in (("stream", SIZES, []), ("stream", SIZES, ["--lanes", "16"]), ("latency", SMALL, []),
                              ("graph", SMALL, [])):
        measure = allReduce("several GPUs", ranks, sizes, *beside, *more, gpus=ranks, mode=mode)
        measure.why_not = "" if gpus > 1 else "there is one GPU"
        yield measure


def tiny(arguments):
    """The same for emulated GPUs: whatever is quick. More lanes than by default stay more."""
    result = list(arguments)
    for option, value in (("--bytes", "64,16K"), ("--blocks", "2"), ("--lanes", "4")):
        if option in result:
            result[result.index(option) + 1] = value
    if result[0] == "all-reduce":
        result += ["--slot-bytes", "4096", *([] if "--lanes" in result else ["--lanes", "2"])]
    return [*result, "--rounds", "2", "--sample-us", "1"]


def isTuttis(path):
    with open(path, "rb") as file:
        return b"tutti" in file.read()


def findNccl(setting, given):
    """A libnccl.so.2 that is not Tutti's own; or why there is none."""
    if setting.emulated:
        return None, "it brings a CUDA runtime of its own, which cannot be emulated"
    if given:
        return (None, f"{given} is Tutti's own library") if isTuttis(given) else (given, "")
    named = [os.path.join(folder, "libnccl.so.2") for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    named += ["/usr/local/cuda/lib64/libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2", "/usr/lib64/libnccl.so.2"]
    for folder in sys.path:
        named += glob.glob(os.path.join(folder, "nvidia", "nccl", "lib", "libnccl.so.2"))
    for path in filter(os.path.exists, named):
        if not isTuttis(path):
            return path, ""
    by_name = ctypes.util.find_library("nccl")
    return by_name, "" if by_name else "no libnccl.so.2 was found; --nccl PATH names one"


def run(places, setting, measure, results):
    """Adds what it printed to `results`."""
    arguments = tiny(measure.arguments) if setting.emulated else measure.arguments
    lanes = f", {arguments[arguments.index('--lanes') + 1]} lanes" if "--lanes" in arguments else ""
    step = steps.Step(f"measured: {measure.name}{lanes}")
    if measure.why_not:
        step.status, step.reason = steps.SKIPPED, measure.why_not
        return step
    if arguments[0] == "all-reduce":
        arguments = [*arguments, "--tutti", places.library]
    command = [places.program("tutti-gpu-bench"), *arguments]
    environment = {**setting.environment, **measure.environment}
    outcome = steps.run(command, environment, measure.limit_s)
    step.command, step.seconds = steps.commandLine(command, environment), outcome.seconds
    for line in outcome.lines:
        if line.startswith("{"):
            results.append({"about": measure.about, **withStatistics(json.loads(line))})
    if outcome.status == NOT_CO_RESIDENT:
        step.status, step.reason = steps.SKIPPED, "the blocks of all ranks would not run at once on this GPU"
    elif outcome.status != 0 or outcome.late:
        step.fail(outcome.words, "\n".join(outcome.lines[-5:]) + outcome.errors)
    return step


def withStatistics(line):
    for name in ("times_us", "call_us"):
        if name in line:
            line[f"{name[:-3]}_median_us"] = statistics.median(line[name])
            line[f"{name[:-3]}_least_us"], line[f"{name[:-3]}_greatest_us"] = min(line[name]), max(line[name])
    return line
