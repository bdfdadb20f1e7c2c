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

REQUIRED = re.compile(r"[A-Za-z0-9._-]+(?!.*\bextra *==)")
"""The name in a requirement that isn't an extra's."""

STASHED = r"~[-~.=%0-9]*"
"""What pip writes over the beginning of a folder's name, or before it, when it replaces the folder."""

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
    """What was noted: `brought`; of a run that hasn't ended what it had `found`, and what the first such one had.

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
    first = noted.get("first", noted.get("found"))
    forget_stashed(brought | {"qd"})
    if first is not None:
        forget_half_unpacked(brought | {"qd"}, set(first))
    found = names()
    write(brought=brought, found=found, first=found if first is None else set(first))


def end() -> None:
    """It is over. Of what came between one that was cut off and this, ours is what qd can't be without."""
    noted, there = note(), names()
    found = set(noted.get("found", there))
    between = found - set(noted.get("first", found))
    write(brought=set(noted.get("brought", ())) | (there - found) | (between & needed("qd")) | {"qd"})


def needed(name: str) -> set[str]:
    """What a distribution requires of what there is, and what that requires."""
    there = {plain(name_of(one)): one for one in distributions(path=[*map(str, packages())]) if name_of(one)}
    found, ahead = set(), [name]
    while ahead:
        one = there.pop(plain(ahead.pop()), None)
        if one is not None:
            found.add(name_of(one))
            ahead += [each.group() for text in one.requires or () if (each := REQUIRED.match(text))]
    return found


def forget_half_unpacked(ours: set[str], found: set[str]) -> None:
    """What pip was unpacking when it was cut off: pip would neither replace nor remove what has no RECORD."""
    kept = {plain(name) for name in found} - {plain(name) for name in ours}
    for folder in packages():
        for info in folder.glob("*.dist-info"):
            if not (info / "RECORD").exists() and plain(info.name.partition("-")[0]) not in kept:
                shutil.rmtree(info)


def forget_stashed(ours: set[str]) -> None:
    """What pip had put aside of ours when it was killed: no pip looks at it again."""
    heads = {plain(name) for name in ours}
    for folder in packages():
        infos = [PathDistribution(info) for info in folder.glob("*.dist-info")]
        mine = [info for info in infos if plain(name_of(info)) in heads]
        tops = {"qd"} | {file.parts[0] for info in mine for file in info.files or ()}
        for stash in folder.glob("~*"):
            is_info = stash.suffix == ".dist-info"
            head = plain(stash.name.partition("-")[0]) if is_info else stash.name
            if stash.is_dir() and any(is_stashed(head, name) for name in (heads if is_info else tops)):
                shutil.rmtree(stash)


def is_stashed(stash: str, name: str) -> bool:
    """Whether that is the name under which pip puts this folder aside."""
    same_length = len(stash) == len(name) and any(
        re.fullmatch(STASHED + re.escape(name[at:]), stash) for at in range(1, len(name))
    )
    return same_length or re.fullmatch(STASHED + re.escape(name), stash) is not None


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
    """Whether it has all its files as long as they were; what Python makes anew and programs are none of it."""
    return bool(name_of(one) and one.files) and all(
        os.path.isfile(file.locate()) and file.size in (None, os.path.getsize(file.locate()))
        for file in one.files or ()
        if "__pycache__" not in file.parts and ".." not in file.parts
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
