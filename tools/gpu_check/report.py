"""The report: JSON with everything, Markdown for people."""

import dataclasses
import datetime
import json
import os
import sys
import time

NAMES = ["report.json", "report.md"]
RUNNING = "steps were still to come when this was written: gpu-check was running, or was killed"
GOALS = {"combine": "Goal: 0.90 of the copy's bandwidth, in bytes moved, with no more blocks than NCCL uses by default.",
         "alone": "One rank, out of place, against cudaMemcpyAsync. Goal: 0.95 of it.",
         "ring": "Ranks that share one GPU. Goal: 0.95 of the yardstick, a ring written by hand for this case (`bench/gpu/ring_yardstick.cu`).",
         "one GPU": "Ranks that share one GPU and one context. This is no speed between GPUs.",
         "latency": "Ranks that share one GPU. Each call is waited for; *call*: until it returns to the program.",
         "graph": "Ranks that share one GPU. Calls captured once, 8 to a graph, and replayed; the time of one.",
         "several GPUs": "A rank per GPU. busbw = 2(n-1)/n × size / time."}


def size(count):
    for factor, suffix in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= factor and count % factor == 0:
            return f"{count // factor} {suffix}"
    return f"{count} B"


def counted(number, word):
    """1 test, 2 tests."""
    return f"{number} {word}{'s' * (number != 1)}"


def figure(value):
    """Four digits that count, as people write them."""
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def timing(line, name="times"):
    """Median, and in brackets the least and the greatest."""
    return "{} [{}, {}]".format(*(figure(line[f"{name}_{what}_us"]) for what in ("median", "least", "greatest")))


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]


def combineTable(lines):
    copies = {line["bytes"]: line["moved_bytes"] / line["times_median_us"] for line in lines
              if line["case"] == "cudaMemcpyAsync"}
    rows = []
    for line in lines:
        rate = line["moved_bytes"] / line["times_median_us"]
        rows.append([line["case"], size(line["bytes"]), line["blocks"] or "", timing(line), f"{rate / 1e3:.1f}",
                     f"{rate / copies[line['bytes']]:.3f}"])
    return table(["case", "operand", "blocks", "µs: median [least, greatest]", "GB/s moved", "of the copy"], rows)


def raceTable(lines):
    """All-reduces. Contenders beside Tutti were measured in turn with it: their ratio is that of medians."""
    beside = any(line["contender"] != "tutti" for line in lines)
    between = any(line["gpus"] > 1 for line in lines)
    calls = any("call_us" in line for line in lines)
    head = ["ranks", "lanes", "mode", "size", "by", "µs: median [least, greatest]", "GB/s"] + ["busbw GB/s"] * between
    head += ["call µs"] * calls + ["Tutti is, times as fast"] * beside
    tutti = {keyOf(line): line["times_median_us"] for line in lines if line["contender"] == "tutti"}
    rows = []
    for line in lines:
        rate = line["bytes"] / line["times_median_us"] / 1e3
        row = [line["ranks"], line["lanes"], line["mode"], size(line["bytes"]), line["contender"], timing(line), f"{rate:.2f}"]
        if between:
            row.append(f"{rate * 2 * (line['ranks'] - 1) / line['ranks']:.2f}")
        if calls:
            row.append(timing(line, "call") if "call_us" in line else "")
        if beside:
            other = line["contender"] != "tutti" and keyOf(line) in tutti
            row.append(f"{line['times_median_us'] / tutti[keyOf(line)]:.3f}" if other else "")
        rows.append(row)
    return table(head, rows)


def keyOf(line):
    return line["ranks"], line["lanes"], line["mode"], line["bytes"]


def proofs(results):
    seen = {}
    for line in results:
        if line["measure"] == "co_residency":
            seen[line["kernel"], line["ranks_on_a_gpu"], line["blocks_of_a_rank"]] = line
    return [f"- {line['kernel']}: {counted(line['ranks_on_a_gpu'], 'rank')} × "
            f"{counted(line['blocks_of_a_rank'], 'block')} ≤ {counted(line['blocks_per_multiprocessor'], 'block')} per multiprocessor × "
            f"{counted(line['multiprocessors'], 'multiprocessor')} = "
            f"{line['capacity']}: {'yes' if line['fits'] else 'NO, so it was not run'}" for line in seen.values()]


def reached(gpus):
    if not gpus:
        return "reaches no other GPU"
    return f"reaches GPU{'s' * (len(gpus) > 1)} " + ", ".join(str(gpu) for gpu in gpus)


def machineLines(report):
    machine = report["machine"]
    if machine["emulated"]:
        yield "**EMULATED: no GPU was used. Figures mean nothing about a GPU; what is checked are results.**"
        yield ""
    yield f"- machine: {machine['host']}, {machine['system']}, {machine['processor']}"
    for key in ("driver", "nvml", "nvidia_smi"):
        if machine.get(key):
            yield f"- {key}: " + (machine[key] if isinstance(machine[key], str) else "; ".join(machine[key]))
    for line in report["results"]:
        if line["measure"] == "devices":
            yield f"- CUDA: driver {line['cuda_driver']}, runtime {line['cuda_runtime']}"
            for number, gpu in enumerate(line["gpus"]):
                yield (f"- GPU {number}: {gpu['name']}, compute capability {gpu['compute_capability']}, "
                       f"{counted(gpu['multiprocessors'], 'multiprocessor')}, {gpu['memory_bytes'] / (1 << 30):.1f} GiB, "
                       f"{reached(gpu['reaches'])}")
    for number, device in enumerate(machine.get("devices", [])):
        yield f"- GPU {number}, NVML: " + ", ".join(f"{key} {value}" for key, value in device.items() if value is not None)
    if report["clocks"]:
        yield "- clocks of GPU 0 while measuring (least / median / greatest): " + "; ".join(
            f"{name} {figure(value['least'])} / {figure(value['median'])} / {figure(value['greatest'])}"
            for name, value in report["clocks"].items())
    else:
        yield "- clocks while measuring: not known" + (", GPUs are emulated" if machine["emulated"] else "")


def skipped(report):
    for step in report["steps"]:
        if step["status"] == "skipped":
            yield step["name"], step["reason"]
        for test in step["skipped_tests"]:
            yield test["name"], test["reason"]
    yield from report["notes"]


def markdown(report):
    lines = ["# Tutti on GPUs: gpu-check", "", *machineLines(report), ""]
    failed = [step for step in report["steps"] if step["status"] == "failed"]
    if report["unfinished"]:
        lines += [f"**NOT FINISHED: {report['unfinished']}.** Of what ran until then:", ""]
    lines += [f"**{'FAILED: ' + ', '.join(step['name'] for step in failed) if failed else 'All that ran is correct.'}** "
              f"{counted(sum(step['tests'] for step in report['steps']), 'test')} passed, {report['seconds']:.0f} s.", ""]
    rows = [[step["name"], step["status"], step["tests"] or "", f"{step['seconds']:.1f}", step["reason"]]
            for step in report["steps"]]
    lines += ["## Steps", "", *table(["step", "result", "tests", "s", "reason"], rows), ""]
    for step in failed:
        lines += [f"### Output of {step['name']}", "", f"`{step['command']}`", "", "```", step["output"], "```", ""]
    if any(skipped(report)):
        lines += ["## Skipped", "", *table(["what", "why"], skipped(report)), ""]
    if proofs(report["results"]):
        lines += ["## Blocks that run at once", "", "Ranks that share a GPU wait for each other in kernels, so all their "
                  "blocks must fit (`cudaOccupancyMaxActiveBlocksPerMultiprocessor`, 256 threads a block, 512 the "
                  "yardstick).", "", *proofs(report["results"]), ""]
    for about, goal in GOALS.items():
        found = [line for line in report["results"] if line["about"] == about and "times_us" in line]
        if found:
            lines += [f"## Measured: {about}", "", goal, "", *(combineTable if about == "combine" else raceTable)(found), ""]
    return "\n".join(lines)


class Report:
    """Written again after each step, so that one who kills the program loses little."""

    def __init__(self, folder, machine, results):
        self.folder, self.machine, self.results = folder, machine, results
        self.began, self.when = time.monotonic(), datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        self.steps, self.notes, self.clocks = [], [], lambda: None
        self.write(RUNNING)

    def add(self, step):
        self.steps.append(step)
        self.write(RUNNING)

    def write(self, unfinished=""):
        """`unfinished`: why steps are missing. A file is replaced as a whole: at any time there is one to read."""
        document = {"schema": "tutti-gpu-check/1", "when": self.when, "unfinished": unfinished, "machine": self.machine,
                    "clocks": self.clocks(), "notes": self.notes, "seconds": time.monotonic() - self.began,
                    "results": self.results, "steps": [dataclasses.asdict(step) for step in self.steps]}
        for name, text in zip(NAMES, (json.dumps(document, indent=1), markdown(document))):
            path = os.path.join(self.folder, name)
            try:
                with open(f"{path}.new", "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(f"{path}.new", path)
            except OSError as error:
                sys.exit(f"gpu-check: {path} cannot be written: {error.strerror}; --out names another folder")
