#!/usr/bin/env python3
"""Checks what nvcc made of the kernels, and prints a table of it. Exits 1 when a kernel

- spills registers, or has local memory or a stack: arrays of each thread that belong in registers;
- reads memory through the non-coherent path, which peers write to while it runs;
- has a loop of combine that does not move 16 bytes at once, known to be global.

  check_kernels.py OBJECT...    objects with their OBJECT.ptxas beside them (cmake/keep-ptxas-report)
"""

import ctypes
import re
import struct
import sys

CONTAINER = struct.Struct("<IHHQ")  # magic, version, header's size, payload's size
MAGIC = 0xBA55ED50
PTX = 1


def decompress(data, size):
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    text = ctypes.create_string_buffer(size)
    if zstd.ZSTD_decompress(text, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data))) != size:
        raise ValueError("PTX that cannot be decompressed")
    return text.raw


def ptxOf(image):
    """The PTX texts in an object."""
    at = 0
    while (at := image.find(struct.pack("<I", MAGIC), at)) >= 0:
        _, _, header, payload = CONTAINER.unpack_from(image, at)
        entry, end = at + header, at + header + payload
        while entry < end:
            kind, _, entry_header, padded = struct.unpack_from("<HHIQ", image, entry)
            compressed, = struct.unpack_from("<I", image, entry + 0x10)
            size, = struct.unpack_from("<Q", image, entry + 0x38)
            body = image[entry + entry_header:entry + entry_header + padded]
            if kind == PTX:
                text = decompress(body[:compressed], size) if compressed else body
                yield text.decode(errors="replace").rstrip("\0")
            entry += entry_header + padded
        at = end


def functionsOf(text, name):
    """The bodies of functions whose name holds `name`. A line that is } alone ends one; calls have braces, too."""
    return re.findall(rf"^\.func[^\n]*{name}[^;{{]*\n\)?\s*\{{\n(.*?)^\}}$", text, re.DOTALL | re.MULTILINE)


def narrowLoops(text):
    """What of combine's loops is missing or narrow, in kernels that have them."""
    if "CombineJob" not in text:
        return
    for name in ("reduceAll", "copyPiecesI5uint4"):
        bodies = functionsOf(text, name)
        if name == "copyPiecesI5uint4" and not bodies:
            yield f"no {name}"
        for body in bodies:
            moves = re.findall(r"\b(ld|st)\.global\.v4\.u32", body)
            if "ld" not in moves or "st" not in moves or re.search(r"\b(ld|st)\.v4", body):
                yield f"{name} does not move 16 bytes at once"


def check(path):
    """Prints a kernel's row; yields what is wrong with it."""
    with open(path, "rb") as file:
        image = file.read()
    with open(path + ".ptxas", encoding="utf-8") as file:
        report = file.read()
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", report)]
    if not registers:
        return
    memory = [int(n) for numbers in re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", report) for n in numbers]
    texts = list(ptxOf(image))
    lines = sum(sum(1 for line in text.split("\n") if line.strip()) for text in texts)
    shared = max((int(n) for n in re.findall(r"(\d+) bytes smem", report)), default=0)
    name = re.sub(r"\.cu.*", "", path.split("/")[-1])
    print(f"{name:24} {max(registers):9} {max(memory, default=0):15} {shared:7} {lines:9} {len(image) // 1024:10}")
    if not texts:
        yield f"{name}: no PTX found"
    if any(memory):
        yield f"{name}: stack or spills of {max(memory)} bytes"
    for text in texts:
        yield from (f"{name}: {fault}" for fault in narrowLoops(text))
        for line in text.split("\n"):
            if ".nc." in line or ".local" in line:
                yield f"{name}: {line.strip()}"


def main():
    print(f"{'kernel':24} {'registers':>9} {'stack or spills':>15} {'shared':>7} {'PTX lines':>9} {'object KiB':>10}")
    wrong = [fault for path in sys.argv[1:] for fault in check(path)]
    print("\n".join(wrong) if wrong else "no stack, no spills, no local memory, no non-coherent loads; loops move 16 bytes at once")
    return 1 if wrong or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
