#!/usr/bin/env python3
"""The libraries export exactly the functions of runtime/nccl_functions.txt, each with its profiling alias.

    nccl_functions_test.py LIST LIBTUTTI LIBNCCL HEADER...

Compares the list with both libraries, with what the headers declare, and with NVIDIA's libnccl.so.2 where this
machine has one: every function that one exports has to be in the list, and the list must not give an older version
for one that it lacks.
"""

import functools
import glob
import os
import re
import struct
import sys

# Exported by NVIDIA's library for another library of NVIDIA's; in no header.
INTERNAL = {"ncclResetDebugInitInternal"}
NVIDIA = ["/usr/local/cuda*/lib*/libnccl.so.2", "/usr/lib/*/libnccl.so.2", "/usr/lib*/libnccl.so.2"]


def listed(path):
    """The functions of the list, each with its version as numbers."""
    functions = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#") or not line.strip():
                continue
            version, name = line.split()
            assert name not in functions, f"{name} is listed twice"
            functions[name] = tuple(int(part) for part in version.split("."))
    return functions


class Elf:
    """Sections of a 64-bit little-endian ELF file, read where they are asked for: NVIDIA's library has 200 MB."""

    DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM

    def __init__(self, path):
        self.file = open(path, "rb")
        header = self.read(0, 64)
        assert header[:6] == b"\x7fELF\x02\x01", f"{path} is no 64-bit little-endian ELF file"
        offset, = struct.unpack_from("<Q", header, 0x28)
        size, count, names = struct.unpack_from("<HHH", header, 0x3A)
        table = self.read(offset, size * count)
        # name, type, flags, address, offset, size, link, info, alignment, entry size
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", table, size * i) for i in range(count)]
        self.names = self.content(self.sections[names])

    def read(self, offset, size):
        self.file.seek(offset)
        content = self.file.read(size)
        assert len(content) == size, f"{self.file.name} is cut short"
        return content

    def content(self, section):
        return self.read(section[4], section[5])

    def named(self, name):
        return next((s for s in self.sections if text(self.names, s[0]) == name), None)

    def exported(self):
        """The names of the symbols that it defines for others."""
        section = next(s for s in self.sections if s[1] == self.DYNAMIC_SYMBOLS)
        strings = self.content(self.sections[section[6]])
        symbols = struct.iter_unpack("<IBBHQQ", self.content(section))
        return {text(strings, name) for name, info, _, at, _, _ in symbols if at != 0 and info >> 4 in (1, 2)}


def text(strings, at):
    return strings[at:strings.index(b"\0", at)].decode()


@functools.cache
def exported(library):
    return Elf(library).exported()


def difference(what, expected, got):
    """Words for what is too much or missing."""
    words = [f"{what}: {name} is missing" for name in sorted(expected - got)]
    return words + [f"{what}: {name} is too much" for name in sorted(got - expected)]


def check_libraries(functions, libtutti, libnccl):
    both = set(functions) | {"p" + name for name in functions}
    tutti = exported(libtutti)
    words = difference(libnccl, both, exported(libnccl))
    own = {name for name in tutti if re.match("tutti[A-Z]", name)}
    words += difference(libtutti, both, tutti - own)
    return words


def check_headers(functions, headers):
    declared = set()
    for header in headers:
        with open(header, encoding="utf-8") as file:
            declared |= set(re.findall(r"\bp?nccl[A-Z]\w*(?=\()", file.read()))
    return difference("the headers", set(functions) | {"p" + name for name in functions}, declared)


def version_of(library):
    """What ncclGetVersion says, without loading a library that needs a driver: its own version string."""
    elf = Elf(library)
    constants = elf.named(".rodata")
    found = constants and re.search(rb"NCCL version (\d+)\.(\d+)\.(\d+)", elf.content(constants))
    return tuple(int(part) for part in found.groups()) if found else None


def check_nvidia(functions, libnccl):
    words = []
    for library in sorted({os.path.realpath(path) for pattern in NVIDIA for path in glob.glob(pattern)}):
        theirs = {name for name in exported(library) if re.match("nccl[A-Z]", name)} - INTERNAL
        if "tuttiCommStatistics" in exported(library) or library == os.path.realpath(libnccl) or len(theirs) < 15:
            continue
        version = version_of(library)
        print(f"compared with {library}, version {version}: {len(theirs)} functions")
        words += [f"{library} has {name}, which is not listed" for name in sorted(theirs - set(functions))]
        if version is None:
            continue
        for name in sorted(set(functions) - theirs):
            if functions[name] <= version[: len(functions[name])]:
                words.append(f"{name} is listed for {functions[name]}, but {library} has it not")
    return words


def main():
    functions_path, libtutti, libnccl, *headers = sys.argv[1:]
    functions = listed(functions_path)
    words = check_libraries(functions, libtutti, libnccl)
    words += check_headers(functions, headers)
    words += check_nvidia(functions, libnccl)
    print("\n".join(words) or f"{len(functions)} functions")
    return 1 if words or len(functions) < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
