#!/usr/bin/env python3
"""Counts the instructions in the loops of combine that move 16 bytes at once.

  nvcc -std=c++20 -arch=sm_90 -fmad=false --expt-relaxed-constexpr -I. -Iruntime/include -cubin -o k.cubin FILE.cu
  nvdisasm -c k.cubin | tests/kernels_cuda/loop_counts.py

nvdisasm comes with NVIDIA's toolkit, or by itself (pip install nvidia-cuda-nvdisasm).
"""

import re
import sys

LABEL = re.compile(r"^(\.L_x_\d+|[\w$]+):$")
BACK = re.compile(r"BRA `\((\.L_x_\d+)\)")
COLUMNS = {"loads": r"\bLDG?\.E\.128", "stores": r"\bSTG?\.E\.128", "narrow": r"\b(LD|ST)G?\.E(\.U8)?\b(?!\.128)",
           "shared": r"\bLDS", "float": r"\bF(ADD|MUL|MNMX|SEL|SETP)", "integer": r"\b(U?IADD3?|IMAD|U?LEA|SHF|VIADD|LOP3|PRMT)"}


def loopsOf(lines):
    """(function, instructions) of each loop, inner ones too."""
    function, labels, instructions = "", {}, []
    for line in lines:
        label = LABEL.match(line.strip())
        if label and label.group(1).startswith(".L"):
            labels[label.group(1)] = len(instructions)
        elif label:
            function, labels, instructions = label.group(1), {}, []
        elif "/*" in line and ";" in line:
            instructions.append(line)
            back = BACK.search(line)
            if back and back.group(1) in labels:
                yield function, instructions[labels[back.group(1)]:]


def main():
    print(f"{'loop':32} {'all':>5}" + "".join(f"{name:>9}" for name in COLUMNS))
    for function, body in loopsOf(sys.stdin):
        counts = [sum(1 for line in body if re.search(pattern, line)) for pattern in COLUMNS.values()]
        name = re.search(r"copyPiecesI5uint4|reduceAll.*ReductionE(\d)", function)
        if name and counts[0]:
            title = f"sum, kind {name.group(1)}" if name.group(1) else "copy"
            print(f"{title:32} {len(body):5}" + "".join(f"{count:9}" for count in counts))


if __name__ == "__main__":
    main()
