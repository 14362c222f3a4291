#!/usr/bin/env python3
"""Plants one violation of each kind in a small clean tree; tools/check-layers must find just that."""

import os
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../tools/check-layers")

CLEAN = {
    "runtime/include/nccl.h": "// C\n#ifndef NCCL_H_\n#define NCCL_H_\n#include <stddef.h>\n#endif\n",
    "runtime/include/tutti/tutti.h": '// Two\n// lines.\n#pragma once\n#include "nccl.h"\n',
    "runtime/core/types.h": '#pragma once\n#include "nccl.h"\n',
    "runtime/process.h": '#pragma once\n#include "transports/segment.h"\n',
    "runtime/wiring.cc": '#include "transports/shm/shm.h"\n',
    "runtime/communicator.cc": '#include "kernels/host/executor.h"\n',
    "collectives/ring.h": '#pragma once\n#include "runtime/core/types.h"\n',
    "transports/segment.h": '#pragma once\n#include "runtime/core/types.h"\n',
    "transports/shm/shm.h": '#pragma once\n#include "transports/segment.h"\n',
    "kernels/host/executor.h": '#pragma once\n#include "collectives/ring.h"\n',
    "bench/perf.cc": '#include "bench/perf.h"\n#include "tutti/tutti.h"\n',
    "bench/perf.h": "#pragma once\n",
    "bench/micro/combine.cc": '#include "kernels/host/executor.h"\n',
    "tests/all.cc": '#include <vector>\n#include "runtime/process.h"\n#include "bench/perf.h"\n',
    "tools/run/main.cc": '#include "tutti/tutti.h"\n',
    ".gitignore": "/build/\n",
    "build/generated.cc": '#include "../anything.h"\n',
}

# (name, planted file, its content, what the tool prints)
PLANTED = [
    ("core to runtime", "runtime/core/bad.h", '#pragma once\n#include "runtime/process.h"\n',
     "runtime/core/bad.h:2: runtime/core must not include runtime: runtime/process.h"),
    ("public to core", "runtime/include/tutti/bad.h", '#pragma once\n#include "runtime/core/types.h"\n',
     "runtime/include/tutti/bad.h:2: runtime/include must not include runtime/core: runtime/core/types.h"),
    ("collectives to transports", "collectives/bad.cc", '\n#include "transports/segment.h"\n',
     "collectives/bad.cc:2: collectives must not include transports: transports/segment.h"),
    ("transports to collectives", "transports/bad.cc", '#include "collectives/ring.h"\n',
     "transports/bad.cc:1: transports must not include collectives: collectives/ring.h"),
    ("transports to kernels", "transports/bad.cc", '#include "kernels/host/executor.h"\n',
     "transports/bad.cc:1: transports must not include kernels: kernels/host/executor.h"),
    ("kernels to runtime", "kernels/bad.cc", '#include "runtime/process.h"\n',
     "kernels/bad.cc:1: kernels must not include runtime: runtime/process.h"),
    ("angle brackets hide nothing", "kernels/bad.cc", "#include <runtime/process.h>\n",
     "kernels/bad.cc:1: kernels must not include runtime: runtime/process.h"),
    ("bench to inside", "bench/bad.cc", '#include "runtime/process.h"\n',
     "bench/bad.cc:1: bench must not include runtime: runtime/process.h"),
    ("tools to tests", "tools/bad.cc", '#include "bench/perf.h"\n',
     "tools/bad.cc:1: tools must not include bench: bench/perf.h"),
    ("a second composition root, medium", "runtime/bad.cc", '#include "transports/shm/shm.h"\n',
     "runtime/bad.cc:1: in runtime, only runtime/wiring.cc includes what is inside transports: "
     "transports/shm/shm.h"),
    ("a second composition root, executor", "runtime/bad.cc", '#include "kernels/host/executor.h"\n',
     "runtime/bad.cc:1: in runtime, only runtime/communicator.cc includes what is inside kernels: "
     "kernels/host/executor.h"),
    ("path with ..", "tests/bad.cc", '#include "../bench/perf.h"\n',
     "tests/bad.cc:1: no such file from the repository's root: ../bench/perf.h"),
    ("bare sibling", "bench/bad.cc", '#include "perf.h"\n',
     "bench/bad.cc:1: no such file from the repository's root: perf.h"),
    ("no guard", "bench/bad.h", "// Says something.\nint x;\n#pragma once\n",
     "bench/bad.h:1: a header opens with #pragma once"),
    ("include guard in a C++ header", "bench/bad.h", "#ifndef BAD_H_\n#define BAD_H_\n#endif\n",
     "bench/bad.h:1: a header opens with #pragma once"),
    ("guard that guards nothing", "runtime/include/bad.h", "#ifndef BAD_H_\n#define OTHER_H_\n#endif\n",
     "runtime/include/bad.h:1: a header opens with #pragma once"),
    ("cycle", "transports/segment.h", '#pragma once\n#include "transports/shm/shm.h"\n',
     "transports/shm/shm.h:2: include cycle: transports/segment.h > transports/shm/shm.h > "
     "transports/segment.h"),
    ("self", "bench/perf.h", '#pragma once\n#include "bench/perf.h"\n',
     "bench/perf.h:2: include cycle: bench/perf.h > bench/perf.h"),
    ("no layer", "misc/bad.cc", "", "misc/bad.cc:1: belongs to no layer; see ALLOWED in tools/check-layers"),
]


def check(files):
    """Exit status and printed violations of the tool over these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, content in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(content)
        subprocess.run(["git", "init", "-q", root], check=True)
        result = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True, check=False)
    return result.returncode, result.stdout.splitlines()[:-1], result.stderr


class CheckLayersTest(unittest.TestCase):
    maxDiff = None

    def testCleanTreePasses(self):
        self.assertEqual(check(CLEAN), (0, [], ""))

    def testEachPlantedViolationIsFound(self):
        for name, path, content, expected in PLANTED:
            with self.subTest(name):
                self.assertEqual(check({**CLEAN, path: content}), (1, [expected], ""))

    def testEmptyTreeIsAnError(self):
        self.assertEqual(check({})[0], 1)


if __name__ == "__main__":
    unittest.main()
