"""What is refused before anything runs: a line that says why, and exit status 2."""

import os
import sys
import tempfile

BAD_USAGE = 2


def refuse(text):
    print(f"gpu-check: {text}", file=sys.stderr)
    sys.exit(BAD_USAGE)


def makeFolder(option, path, names=()):
    """Makes it, unless it is there, and proves that files, and those `names`, can be written in it."""
    if not path:
        refuse(f"{option}: the name is empty; name a folder")
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        refuse(f"{option}: {path} is, or lies below, a file; name a folder")
    except OSError as error:
        refuse(f"{option}: {path} cannot be made: {error.strerror}; name a folder that can be")
    try:
        with tempfile.NamedTemporaryFile(dir=path):
            pass
    except OSError as error:
        refuse(f"{option}: nothing can be written into {path}: {error.strerror}; name another folder")
    for name in names:
        if os.path.isdir(os.path.join(path, name)):
            refuse(f"{option}: {path}/{name} is a folder; name another folder")
