"""What `make install` put into the program's virtual environment, and what others did. Run by its Python.

usage: program.py before|after|strangers
  before, after   around the installation: notes the distributions that it brought
  strangers       prints what isn't of these or of the environment's own, one path a line
May import: the standard library only. Owns: the file .qd in the environment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

PREFIX = Path(sys.prefix)
NOTE = PREFIX / ".qd"
OWN = {"pip", "setuptools"}
"""What an environment is made with."""

VENVS = {".qd", "pyvenv.cfg", ".gitignore"}
"""Files of an environment itself, besides its own programs."""


def names() -> set[str]:
    """The distributions that there are."""
    return {one.metadata["Name"] for one in distributions(path=[*map(str, packages())])}


def packages() -> list[Path]:
    """The folders that hold distributions, also of a Python that was here before."""
    return sorted(PREFIX.glob("lib/python*/site-packages"))


def note() -> dict[str, list[str]]:
    """What was noted: `brought`, and `before`, which was there when the last installation began."""
    return dict(json.loads(NOTE.read_text())) if NOTE.exists() else {"brought": []}


def write(brought: set[str], before: set[str]) -> None:
    """Notes both."""
    NOTE.write_text(json.dumps({"brought": sorted(brought), "before": sorted(before)}) + "\n")


def files(of: Distribution) -> Iterator[Path]:
    """What a distribution has put here."""
    for file in of.files or ():
        yield Path(str(of.locate_file(file))).resolve()


def strangers() -> Iterator[Path]:
    """Files that are nobody's or another's, such as a package of handlers."""
    ours = set(note()["brought"]) | OWN
    found = distributions(path=[*map(str, packages())])
    known = {file for one in found if one.metadata["Name"] in ours for file in files(one)}
    for path in sorted(PREFIX.rglob("*")):
        where = path.relative_to(PREFIX)
        made_here = str(where) in VENVS or where.match("bin/python*") or where.match("bin/[Aa]ctivate*")
        if path.is_file() and not made_here and "__pycache__" not in where.parts and path.resolve() not in known:
            yield path


def main(act: str) -> None:
    """One of the three."""
    if act == "before":
        write(set(note()["brought"]), names())
    elif act == "after":
        noted = note()
        write(set(noted["brought"]) | (names() - set(noted["before"])) | {"qd"}, names())
    else:
        print(*strangers(), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1])
