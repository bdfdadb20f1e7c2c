"""What `make install` put into the program's virtual environment, and what others did. Run by its Python.

usage: program.py pip|before|after|strangers
  pip             ends with 0 where the environment's pip is whole; else takes away what there is of it, and ends with 1
  before, after   around the installation: notes the distributions that it brought
  strangers       prints what isn't of these or of the environment's own, one path a line
Each run may be cut off anywhere: the next one goes on from there.
May import: the standard library only. Owns: the file .qd in the environment.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PathDistribution, distributions
from pathlib import Path

PREFIX = Path(sys.prefix)
NOTE = PREFIX / ".qd"
OWN = {"pip", "setuptools"}
"""What an environment is made with."""

VENVS = {".qd", ".qd.new", "pyvenv.cfg", ".gitignore"}
"""Files of an environment itself, besides its own programs."""


def names() -> set[str]:
    """The distributions that there are."""
    return {name for one in distributions(path=[*map(str, packages())]) if (name := name_of(one))}


def name_of(one: Distribution) -> str:
    """Its name; nothing where it was cut off before it had one."""
    try:
        return one.metadata["Name"] or ""
    except Exception:  # later versions of Python raise what earlier ones don't have
        return ""


def packages() -> list[Path]:
    """The folders that hold distributions, also of a Python that was here before."""
    return sorted(PREFIX.glob("lib/python*/site-packages"))


# -------------------------------------------------------------------- the note


def note() -> dict[str, list[str]]:
    """What was noted: `brought`, and of a run that hasn't ended what it had `found`.

    An empty note is the mark of an environment that is only being made.
    """
    try:
        noted = json.loads(NOTE.read_bytes() or "{}")
        return {key: sorted(map(str, found)) for key, found in noted.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        print(f"qd: {NOTE} is broken and made anew: what it has told of now counts as yours", file=sys.stderr)
        return {}


def write(**lists: set[str]) -> None:
    """Notes these, all or nothing."""
    new = NOTE.with_name(".qd.new")
    with open(new, "w") as file:
        file.write(json.dumps({key: sorted(found) for key, found in lists.items()}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(NOTE)


def begin() -> None:
    """A run begins, or takes up one that was cut off."""
    noted = note()
    brought = set(noted.get("brought", ()))
    found = set(noted["found"]) if "found" in noted else names()
    if "found" in noted:
        forget_half_unpacked(brought | {"qd"}, found)
    write(brought=brought, found=found)


def end() -> None:
    """It is over."""
    noted, there = note(), names()
    write(brought=set(noted.get("brought", ())) | (there - set(noted.get("found", there))) | {"qd"})


def forget_half_unpacked(ours: set[str], found: set[str]) -> None:
    """What pip was unpacking when it was cut off: pip would neither replace nor remove what has no RECORD."""
    kept = {plain(name) for name in found} - {plain(name) for name in ours}
    for folder in packages():
        for info in folder.glob("*.dist-info"):
            if not (info / "RECORD").exists() and plain(info.name.partition("-")[0]) not in kept:
                shutil.rmtree(info)


def plain(name: str) -> str:
    """A distribution's name as its folder and its metadata both have it."""
    return re.sub(r"[-_.]+", "-", name).lower()


# -------------------------------------------------------------------- the files


def files(of: Distribution) -> Iterator[Path]:
    """What a distribution has put here."""
    for file in of.files or ():
        yield Path(str(of.locate_file(file))).resolve()


def strangers() -> Iterator[Path]:
    """Files that are nobody's or another's, such as a package of handlers."""
    ours = set(note().get("brought", ())) | OWN
    found = distributions(path=[*map(str, packages())])
    known = {file for one in found if name_of(one) in ours for file in files(one)}
    for path in sorted(PREFIX.rglob("*")):
        where = path.relative_to(PREFIX)
        made_here = str(where) in VENVS or where.match("bin/python*") or where.match("bin/[Aa]ctivate*")
        if path.is_file() and not made_here and "__pycache__" not in where.parts and path.resolve() not in known:
            yield path


def pip() -> int:
    """Whether pip is whole, as an exit status. ensurepip would leave a broken one as it is, for it sees its name."""
    here = PREFIX / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    parts = [*here.glob("pip"), *here.glob("pip-*.dist-info")]
    infos = [part for part in parts if part.suffix == ".dist-info"]
    if len(infos) == 1 and is_whole(PathDistribution(infos[0])):
        return 0
    for part in parts:
        shutil.rmtree(part)
    return 1


def is_whole(one: Distribution) -> bool:
    """Whether it has all its files, but for those that Python makes anew."""
    return bool(name_of(one) and one.files) and all(
        file.exists() for file in files(one) if "__pycache__" not in file.parts
    )


def main(act: str) -> int:
    """One of them; the exit status."""
    if act == "pip":
        return pip()
    if act == "before":
        begin()
    elif act == "after":
        end()
    else:
        print(*strangers(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
