#!/usr/bin/env python3
"""Tests of tools/gpu_check: refusals, deadlines, interruptions, what test programs say, the report. No GPU, no build."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

sys.dont_write_bytecode = True
TOOLS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools")
PROGRAM = os.path.join(TOOLS, "gpu-check")
sys.path.insert(0, TOOLS)
from gpu_check import checks, measures, report, steps  # noqa: E402


def writeProgram(path, script):
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + script + "\n")
    os.chmod(path, 0o755)


def shell(script, **limits):
    return steps.run(["/bin/sh", "-c", script], {}, **{"limit_s": 20, **limits})


# For what is to be stopped soon, though not before it has begun: where the machine is busy, more.
SOON_S = (1, 5, 25)


def gpuCheck(*arguments):
    """Status, and what it said of what is wrong."""
    outcome = steps.run([sys.executable, PROGRAM, *arguments], {}, 30)
    return outcome.status, outcome.errors


class Refusals(unittest.TestCase):
    """Before anything runs, so also where there is neither a build nor a GPU."""

    def testFoldersThatCannotBeWrittenTo(self):
        with tempfile.TemporaryDirectory() as folder:
            file, taken = os.path.join(folder, "file"), os.path.join(folder, "taken")
            writeProgram(file, "")
            os.makedirs(os.path.join(taken, "report.md"))
            for out, words in (("", "empty"), (file, "a file"), (os.path.join(file, "x"), "a file"),
                               ("/proc", "nothing can be written"), ("/proc/x", "cannot be made"),
                               (taken, "report.md is a folder")):
                status, said = gpuCheck("--out", out, "--from", folder)
                self.assertEqual((status, said.count("\n")), (2, 0), said)
                self.assertRegex(said, f"^gpu-check: --out: .*{words}")
            for bundle, words in (("", "empty"), (file, "a file"), ("/proc", "not empty")):
                status, said = gpuCheck("--bundle", bundle)
                self.assertEqual((status, said.count("\n")), (2, 0), said)
                self.assertRegex(said, f"^gpu-check: --bundle: .*{words}")

    def testFoldersWithoutPrograms(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "bin"))  # an installation has programs, but no tests
            out = os.path.join(folder, "out")
            for name in ("tutti-run", "tutti-train", "tutti-gpu-bench"):
                writeProgram(os.path.join(folder, "bin", name), "exit 0")
            for prefix, what in ((folder, "tests/kernels_cuda_test"), (out, "bin/tutti-gpu-bench")):
                status, said = gpuCheck("--from", prefix, "--out", out)
                self.assertEqual((status, said.count("\n")), (2, 0), said)
                self.assertIn(f"no programs there (no {what} and ", said)
                self.assertIn("cmake --build DIR --target gpu_check_programs", said)

    def testOptionsThatExcludeEachOther(self):
        for options in (["--bundle", "b", "--emulate"], ["--bundle", "b", "--out", "o"], ["--bundle", "b", "--from", "f"],
                        ["--bundle", "b", "--only", "tests"], ["--bundle", "b", "--nccl", PROGRAM],
                        ["--nccl", PROGRAM, "--emulate"]):
            status, said = gpuCheck(*options)
            self.assertEqual(status, 2, said)
            self.assertRegex(said, f"^gpu-check: {options[0]} with {options[2]}: .*leave one of them out$")
        for options in (["--emulate", "x"], ["--emulate", "0"], ["--emulate", "65"], ["--only", "x"], ["--only", ""],
                        ["--from", ""], ["--nccl", "/"], ["--nccl", PROGRAM, "--only", "tests"]):
            status, said = gpuCheck(*options)
            self.assertEqual((status, said.count("\n")), (2, 0), said)
            self.assertRegex(said, f"^gpu-check: {options[0]}")


class Interruptions(unittest.TestCase):
    """A folder of programs of which one passes, and the next hangs; gpu-check is ended while it does."""

    GPU = {"measure": "devices", "cuda_driver": 13000, "cuda_runtime": 13000, "gpus": [
        {"name": "G", "compute_capability": "9.0", "multiprocessors": 1, "memory_bytes": 1 << 30, "reaches": []}]}

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder, self.out = holder.name, os.path.join(holder.name, "out")
        self.hangs = os.path.join(self.folder, "hangs")
        for name in ("bin", "tests"):
            os.mkdir(os.path.join(self.folder, name))
        writeProgram(os.path.join(self.folder, "bin", "tutti-gpu-bench"), f"echo '{json.dumps(self.GPU)}'")
        for name, *_ in checks.TESTS[1:]:
            writeProgram(os.path.join(self.folder, "tests", name),
                         f"echo $$ > {self.hangs}.new; mv {self.hangs}.new {self.hangs}; exec sleep 60")
        writeProgram(os.path.join(self.folder, "tests", checks.TESTS[0][0]),
                     "echo '[ RUN      ] A.a'; echo '[       OK ] A.a (1 ms)'")

    def waitUntil(self, condition):
        for _ in range(600):
            if condition():
                return
            time.sleep(0.05)
        self.fail("30 s have passed")

    def endedBy(self, number, closed=False):
        """Status, what it said of what is wrong, and the report."""
        command = [sys.executable, PROGRAM, "--from", self.folder, "--out", self.out, "--only", "tests"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        self.addCleanup(process.kill)
        if closed:
            process.stdout.close()
        self.waitUntil(lambda: os.path.exists(self.hangs))
        process.send_signal(number)
        if not closed:
            process.stdout.read()
            process.stdout.close()
        said = process.stderr.read()
        process.stderr.close()
        return process.wait(timeout=30), said, self.written()

    def written(self):
        with open(os.path.join(self.out, "report.md"), encoding="utf-8") as file:
            self.assertIn("**NOT FINISHED: ", file.read())
        with open(os.path.join(self.out, "report.json"), encoding="utf-8") as file:
            document = json.load(file)
        self.assertEqual([(step["name"], step["status"], step["tests"]) for step in document["steps"]],
                         [("tests: kernels_cuda_test", "passed", 1)])
        return document

    def hangingProgram(self):
        """Its state; none once it is gone."""
        with open(self.hangs, encoding="utf-8") as file:
            number = int(file.read())
        try:
            with open(f"/proc/{number}/stat", encoding="utf-8") as file:
                return file.read().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return None

    def testWhatHasFinishedIsReported(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                status, said, document = self.endedBy(number)
                self.assertEqual((status, said.count("\n")), (128 + number, 1), said)
                self.assertEqual(document["unfinished"], f"ended by {number.name}")
                self.waitUntil(lambda: self.hangingProgram() in (None, "Z"))
                os.remove(self.hangs)

    def testNobodyReadsWhatItSays(self):
        self.assertEqual(self.endedBy(signal.SIGHUP, closed=True)[0], 128 + signal.SIGHUP)

    def testKilled(self):
        status, _, document = self.endedBy(signal.SIGKILL)
        self.assertEqual((status, document["unfinished"]), (-signal.SIGKILL, report.RUNNING))
        with open(self.hangs, encoding="utf-8") as file:
            os.killpg(int(file.read()), signal.SIGKILL)


class Steps(unittest.TestCase):
    def testWhatItSaidAndItsStatus(self):
        outcome = shell("echo one; echo two; echo three >&2; exit 7")
        self.assertEqual((outcome.lines, outcome.errors, outcome.status, outcome.late), (["one", "two"], "three", 7, ""))

    def testOneThatHangsIsEnded(self):
        for limit in ("limit_s", "silence_s"):
            for soon in SOON_S:
                outcome = shell("echo begun; sleep 1000", **{"limit_s": 300, limit: soon})
                if outcome.lines:
                    break
            self.assertEqual(outcome.lines, ["begun"])
            self.assertIn(f" {soon} s", outcome.late)
            self.assertLess(outcome.seconds, 300)

    def testChildrenThatHoldThePipeDoNotHoldUs(self):
        self.assertLess(shell("sleep 1000 & echo begun", limit_s=2).seconds, 300)

    def testASignalIsToldInWords(self):
        self.assertEqual(shell("kill -SEGV $$").words, "ended by signal 11")


    def testTheCommandLineDoesTheSameAgain(self):
        script, environment = 'echo "$TUTTI_A/$NCCL_B/$1"', {"TUTTI_A": "one two"}
        with unittest.mock.patch.dict(os.environ, {"NCCL_B": "$3"}):
            line = steps.commandLine(["/bin/sh", "-c", script, "sh", "a'b"], environment)
        self.assertEqual(shell(line).lines, ["one two/$3/a'b"])


class TestLogs(unittest.TestCase):
    def testResultsReasonsAndTheOneThatHangs(self):
        log = checks.TestLog(["[ RUN      ] A.good", "[       OK ] A.good (1 ms)", "[ RUN      ] A.bad", "x.cc:1: Failure",
                              "[  FAILED  ] A.bad, where GetParam() = 3 (1 ms)", "[ RUN      ] A.skipped",
                              "x.cc:2: Skipped", "too few", "", "[  SKIPPED ] A.skipped (0 ms)", "[ RUN      ] A.hangs"])
        self.assertEqual(log.results, {"A.good": "OK", "A.bad": "FAILED", "A.skipped": "SKIPPED"})
        self.assertEqual(log.reasons, {"A.skipped": "too few"})
        self.assertEqual(log.running, "A.hangs")

    def testTheRestRunsWhenOneHangs(self):
        """A program of three tests, of which the second hangs unless the filter leaves it out."""
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "some_test")
            writeProgram(program, """
for name in A.one A.two A.three; do
  case $1 in *-*$name*) continue ;; esac
  echo "[ RUN      ] $name"
  [ $name = A.two ] && sleep 1000
  echo "[       OK ] $name (1 ms)"
done
""")
            setting = types.SimpleNamespace(emulated=False, environment={})
            places = types.SimpleNamespace(test=lambda name: os.path.join(folder, name))
            for soon in SOON_S:
                with unittest.mock.patch.object(checks, "SILENCE_S", soon):
                    step = checks.runTests(places, setting, "some_test", 300)
                if step.tests == 2:
                    break
        self.assertEqual((step.status, step.tests), ("failed", 2))
        self.assertEqual(step.reason, f"A.two: said nothing for {soon} s")

    def testEveryRankTrainsAnEqualSlice(self):
        """A tutti-run that says its arguments, and fails so that they are kept."""
        with tempfile.TemporaryDirectory() as folder:
            writeProgram(os.path.join(folder, "tutti-run"), 'echo "$@"; exit 1')
            places = types.SimpleNamespace(program=lambda name: os.path.join(folder, name), text="text")
            for emulated in (False, True):
                for gpus in range(1, 17):
                    step = checks.train(places, types.SimpleNamespace(emulated=emulated, gpus=gpus, environment={}))
                    said = step.output.split()
                    ranks, batch = int(said[said.index("-n") + 1]), int(said[said.index("--batch") + 1])
                    self.assertEqual((ranks, batch % ranks), (min(max(gpus, 2), 8), 0), step.output)

    def testSanitizersVerdict(self):
        for said, status in (("ERROR SUMMARY: 0 errors", "passed"), ("ERROR SUMMARY: 2 errors", "failed"),
                             ("RACECHECK SUMMARY: 1 hazard displayed", "failed"), ("nothing", "skipped")):
            step = steps.Step("x")
            checks.judgeSanitizer(step, steps.Outcome(0, "", [said], "", 0.0))
            self.assertEqual(step.status, status, said)


class Measures(unittest.TestCase):
    def testNoTwoRunsHaveTheSameName(self):
        """Nor the same rows in the report, which are told apart by ranks, lanes and mode. The program says its lanes."""
        with tempfile.TemporaryDirectory() as folder:
            writeProgram(os.path.join(folder, "tutti-gpu-bench"), 'echo "$@"; exit 1')
            places = types.SimpleNamespace(program=lambda name: os.path.join(folder, name), library="library")
            for emulated in (False, True):
                setting, names = types.SimpleNamespace(emulated=emulated, environment={}), []
                for measure in [*measures.onOneGpu(), *measures.onSeveralGpus(2, None)]:
                    step = measures.run(places, setting, measure, [])
                    said = step.output.split()
                    if "--lanes" in said:
                        self.assertIn(f", {said[said.index('--lanes') + 1]} lanes", step.name)
                    names.append(step.name)
                self.assertEqual(len(names), len(set(names)), names)


class Reports(unittest.TestCase):
    def testFiguresReasonsAndFailures(self):
        race = {"about": "ring", "measure": "all_reduce", "mode": "stream", "ranks": 2, "gpus": 1, "lanes": 8, "bytes": 1 << 20}
        lines = [measures.withStatistics({**race, "contender": name, "times_us": times})
                 for name, times in (("tutti", [10.0, 8.0, 40.0]), ("yardstick", [21280.0, 5.0, 4.0]))]
        lines.append({"about": "ring", "measure": "co_residency", "kernel": "k", "ranks_on_a_gpu": 2, "blocks_of_a_rank": 8,
                      "blocks_per_multiprocessor": 1, "multiprocessors": 132, "capacity": 132, "fits": True})
        lines.append({"about": "machine", "measure": "devices", "cuda_driver": 1, "cuda_runtime": 1, "gpus": [
            {"name": "G", "compute_capability": "9.0", "multiprocessors": 132, "memory_bytes": 1 << 30, "reaches": reaches}
            for reaches in ([], [0], [0, 1])]})
        done = [steps.Step("one", tests=4), steps.Step("two", steps.SKIPPED, "not here"), steps.Step("three")]
        done[2].fail("exit status 9", "its words")
        with tempfile.TemporaryDirectory() as folder:
            document = report.Report(folder, {"emulated": True, "host": "h", "system": "s", "processor": "p"}, lines)
            for step in done:
                document.add(step)
            document.write()
            with open(f"{folder}/report.json", encoding="utf-8") as file:
                self.assertEqual(json.load(file)["results"][0]["times_us"], [10.0, 8.0, 40.0])
            with open(f"{folder}/report.md", encoding="utf-8") as file:
                text = file.read()
        for words in ("EMULATED", "| 10 [8, 40] |", "| 5 [4, 21280] |", "| 0.500 |", "FAILED: three", "its words", "not here",
                      "2 ranks × 8 blocks ≤ 1 block per multiprocessor × 132 multiprocessors = 132: yes",
                      "reaches no other GPU\n", "reaches GPU 0\n", "reaches GPUs 0, 1\n"):
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
