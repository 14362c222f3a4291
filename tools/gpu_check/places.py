"""Where the programs are: in a bundle, in a build folder, or in one that is built now. And how a bundle is made."""

import os
import shutil
import subprocess
import sys

from gpu_check.ending import say
from gpu_check.refusal import makeFolder, refuse
from gpu_check.steps import killGroup

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
LIMIT_BYTES = 60 << 20
COMPONENTS = ["Unspecified", "gpu-check"]
TARGET = "gpu_check_programs"


class Places:
    """Folders of a bundle or a build: programs, tests and libraries lie in the same relation in both."""

    def __init__(self, prefix):
        self.prefix = prefix = os.path.abspath(prefix)
        self.programs = os.path.join(prefix, "bin")
        self.tests = os.path.join(prefix, "tests")
        self.library = os.path.join(prefix, "lib", "libtutti.so")
        found = [os.path.join(prefix, "lib", *parts) for parts in (("tutti", "cuda_emulator"), ("cuda_emulator",))]
        self.emulator = next((place for place in found if os.path.isdir(place)), found[0])
        carried = os.path.join(prefix, "share", "tutti", "text")
        self.text = carried if os.path.exists(carried) else os.path.join(ROOT, "LICENSE")

    def check(self, programs, emulated):
        """Refuses a folder without these."""
        missing = list(dict.fromkeys(path for path in programs if not os.path.isfile(os.path.join(self.prefix, path))))
        if emulated and not os.path.isdir(self.emulator):
            missing.append("lib/cuda_emulator")
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            refuse(f"{self.prefix}: no programs there (no {missing[0]}{more}). It has to be a bundle, or a build folder with "
                   f"all that is checked: cmake --build DIR --target {TARGET}")

    def program(self, name):
        return os.path.join(self.programs, name)

    def test(self, name):
        return os.path.join(self.tests, name)


def isBundle():
    return not os.path.exists(os.path.join(ROOT, "CMakeLists.txt"))


def build():
    """Configures and builds what is needed, in build/ of the source tree, quietly unless it fails."""
    if not any(os.path.exists(os.path.join(ROOT, "build", name)) for name in ("build.ninja", "Makefile")):  # written last
        execute(["cmake", "--preset", "release"])
    execute(["cmake", "--build", "build", "--parallel", os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2"),
             "--target", TARGET])


def execute(command):
    say("gpu-check: " + " ".join(command))
    try:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)
    except FileNotFoundError:
        sys.exit(f"gpu-check: {command[0]} is not here. Carry a bundle to this machine: tools/gpu-check --bundle DIR, "
                 "where CMake and nvcc are")
    try:
        said, _ = process.communicate()
    except BaseException:
        killGroup(process)
        raise
    if process.returncode != 0:
        sys.exit(f"{said[-6000:]}\ngpu-check: {' '.join(command)}: exit status {process.returncode}")


def find():
    """The places; builds them in a source tree."""
    if isBundle():
        return Places(ROOT)
    build()
    return Places(os.path.join(ROOT, "build"))


def sizeOf(folder):
    return sum(os.lstat(os.path.join(path, name)).st_size for path, _, names in os.walk(folder) for name in names)


def makeBundle(folder):
    if isBundle():
        refuse("--bundle: this is a bundle already; copy it")
    if os.path.isdir(folder) and os.listdir(folder):
        refuse(f"--bundle: {folder} is not empty; name a new folder")
    makeFolder("--bundle", folder)
    build()
    for component in COMPONENTS:
        execute(["cmake", "--install", "build", "--prefix", os.path.abspath(folder), "--strip", "--component", component])
    shutil.rmtree(os.path.join(folder, "include"), ignore_errors=True)
    size = sizeOf(folder)
    say(f"gpu-check: {folder}: {size / (1 << 20):.1f} MiB. Copy it to a machine with a GPU and run "
        f"{os.path.basename(os.path.abspath(folder))}/tools/gpu-check there")
    if size > LIMIT_BYTES:
        sys.exit(f"gpu-check: the bundle is larger than {LIMIT_BYTES >> 20} MiB")
