"""What a CREATE TABLE says, ours and each server's, in one form, so that the two can be compared.

Servers spell the same table in many ways (widths of integers, brackets, charsets of texts, NOT REGEXP): all of that
is taken out. Pure; imports nothing of qd.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

WIDER = (
    ("tinyint", "smallint", "mediumint", "int", "bigint"),
    ("tinytext", "text", "mediumtext", "longtext"),
)
"""Types of which each holds all that those before it do."""

_WORD = re.compile(r"'(?:''|\\.|[^'\\])*'|\w+|[<>=!]+|[^\s\w'`\"()]")
_PIECE = re.compile(r"'(?:''|\\.|[^'\\])*'|`[^`]*`|\"[^\"]*\"|[(),]|[^'`\"(),]+")
_NAMED = r"[`\"]?(\w+)[`\"]?"


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        size: of a text in characters, of a moment the digits of its second; 0: the type says it.
        null: may be NULL.
        made: the expression that the server makes it of; None: it is written.
        counted: AUTO_INCREMENT.
        default: as text; None: none, or NULL.
        touched: an UPDATE of another column changes it.
        charset, binary: of a text, and whether it is compared byte by byte.
    """

    type: str
    size: int
    unsigned: bool
    null: bool
    made: str | None
    counted: bool
    default: str | None
    touched: bool
    charset: str
    binary: bool

    @property
    def spelled(self) -> str:
        """Its type as SQL has it."""
        return f"{self.type}{f'({self.size})' if self.size else ''}{' unsigned' if self.unsigned else ''}"


@dataclass(frozen=True)
class Key:
    """One index; `used`: the server may take it (not INVISIBLE, not IGNORED)."""

    columns: tuple[str, ...]
    unique: bool
    used: bool


@dataclass(frozen=True)
class Check:
    """One constraint; a column's own has that column's name."""

    name: str
    clause: str
    enforced: bool


@dataclass(frozen=True)
class Table:
    """One table; its primary key is named PRIMARY."""

    engine: str
    columns: dict[str, Column] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)


def read(statement: str) -> Table:
    """The table of a CREATE TABLE, comments of ours left out."""
    text = re.sub(r"/\*M?!\d*(.*?)\*/", r"\1", statement, flags=re.DOTALL)  # what only some servers read
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    parts, options = _parts(text)
    engine, charset, collation = (_option(options, name) for name in ("ENGINE", "CHARSET", "COLLATE"))
    table = Table(engine or "InnoDB")
    for part in parts:
        bare = re.sub(r"\sCOMMENT '(?:''|\\.|[^'\\])*'", "", " ".join(part.split()))
        _take(table, bare, (charset or "", collation or ""))
    return table


def words(text: str) -> str:
    """An expression without what servers spell differently: case, brackets, quotes of names, charsets of texts."""
    found = [word if word.startswith("'") else word.lower() for word in _WORD.findall(text)]
    kept = [word for word, then in zip(found, [*found[1:], ""], strict=True)
            if not (word.startswith("_") and then.startswith("'"))]  # fmt: skip
    said = re.sub(r"\b(?:timestamp|date) (?=')", "", " ".join(kept))
    said = re.sub(r"(?:not|!) regexp_like (\w+) , ", r"\1 not regexp ", said)
    return re.sub(r"(?:not|!) (\w+) regexp ", r"\1 not regexp ", said)


def _parts(text: str) -> tuple[list[str], str]:
    """What stands between the outer brackets, by commas, and what stands behind them."""
    parts, depth, at = [""], 0, 0
    for piece in _PIECE.finditer(text):
        word = piece[0]
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == ")":
            at = piece.end()
            break
        if depth == 1 and word == ",":
            parts.append("")
        elif depth > 1 or (depth == 1 and word != "("):
            parts[-1] += word
    return parts, text[at:]


def _option(options: str, name: str) -> str | None:
    found = re.search(rf"\b{name}\s*=\s*(\w+)", options, re.IGNORECASE)
    return found[1] if found else None


def _take(table: Table, part: str, texts: tuple[str, str]) -> None:
    """One definition into the table."""
    if key := re.match(rf"(?:(PRIMARY) |(UNIQUE) )?KEY(?: {_NAMED})? ?\(((?:[^()]|\(\d+\))*)\)", part, re.IGNORECASE):
        columns = tuple(re.sub(r"[`\"\s]", "", column) for column in key[4].split(","))
        used = not re.search(r"\b(INVISIBLE|IGNORED)\b", part[key.end() :].replace("NOT IGNORED", ""))
        table.keys[key[3] or "PRIMARY"] = Key(columns, bool(key[1] or key[2]), used)
    elif check := re.match(rf"CONSTRAINT {_NAMED} CHECK ?(\(.*\))(.*)", part, re.IGNORECASE):
        table.checks.append(Check(check[1], words(check[2]), "NOT ENFORCED" not in check[3].upper()))
    elif column := re.match(rf"(?!(?:CONSTRAINT|FULLTEXT|SPATIAL|FOREIGN|PERIOD) ){_NAMED} (.*)", part, re.IGNORECASE):
        own = list(_own_checks(column[1], column[2]))
        table.checks.extend(own)
        rest = re.sub(r" CHECK ?\(.*", "", column[2], flags=re.IGNORECASE) if own else column[2]
        table.columns[column[1].lower()] = _column(rest, *texts)


def _own_checks(name: str, rest: str) -> Iterator[Check]:
    found = re.search(r" CHECK ?(\(.*\))", rest, re.IGNORECASE)
    if found:
        yield Check(name, words(found[1]), True)


def _column(rest: str, charset: str, collation: str) -> Column:
    made = re.search(r" AS (\(.*\))", rest, re.IGNORECASE)
    told = rest.replace(made[1], "") if made else rest
    kind = re.match(r"(\w+)(?: ?\((\d+)\))?", told)
    assert kind is not None  # a column has a type
    name = kind[1].lower()
    own_charset, own_collation = (_said(told, rf"{word} (\w+)") for word in ("CHARACTER SET", "COLLATE"))
    text = "char" in name or "text" in name
    compared = own_collation or ("" if own_charset else collation)
    return Column(
        type=name,
        size=0 if name in WIDER[0] else int(kind[2] or 0),
        unsigned=" unsigned" in told.lower(),
        null="NOT NULL" not in told.upper(),
        made=words(made[1]) if made else None,
        counted="AUTO_INCREMENT" in told.upper(),
        default=_default(told),
        touched=" ON UPDATE " in told.upper(),
        charset=(own_charset or (own_collation or charset).split("_")[0]).lower() if text else "",
        binary=not text or compared.lower().endswith("bin"),
    )


def _said(text: str, pattern: str) -> str | None:
    found = re.search(rf"\b{pattern}", text, re.IGNORECASE)
    return found[1] if found else None


def _default(told: str) -> str | None:
    said = _said(told, r"DEFAULT (\([^)]*\)|'(?:''|\\.|[^'\\])*'|[\w.-]+(?:\(\d*\))?)")
    spelled = words(said or "NULL")
    return None if spelled == "null" else spelled.replace("'", "")
