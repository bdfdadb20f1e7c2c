"""The demo's walk and hash: every regular file of a tree, by whatever name."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qd.demo import ledger, plan, tree

ODD_NAMES = (
    b"plain.txt", b"not \xff utf-8", b"new\nline", b"ends with newline\n", b'"file": "x', b"$(true) `true` $HOME",
    b"-n", b"back\\slash", "\N{SNOWMAN}".encode(), b" ", b"[red]",
)  # fmt: skip


@pytest.fixture
def odd_tree(tmp_path: Path) -> bytes:
    folder = os.fsencode(tmp_path / "tree")
    os.mkdir(folder)
    for name in ODD_NAMES:
        with open(os.path.join(folder, name), "wb") as file:
            file.write(name * 3)
    return folder


def test_finds_every_regular_file_whatever_its_name(odd_tree: bytes) -> None:
    files, closed = tree.walk(odd_tree)
    assert sorted(files) == sorted(os.path.join(odd_tree, name) for name in ODD_NAMES)
    assert closed == []


def test_follows_no_links_and_leaves_its_own_folder_and_what_is_no_file_out(odd_tree: bytes) -> None:
    own = os.path.join(odd_tree, b"own")
    os.mkdir(own)
    Path(os.fsdecode(own), "inside").touch()
    os.symlink(odd_tree, os.path.join(odd_tree, b"loop"))
    os.symlink(b"plain.txt", os.path.join(odd_tree, b"link"))
    os.mkfifo(os.path.join(odd_tree, b"pipe"))
    files, _ = tree.walk(odd_tree, leave_out=[own])
    assert len(files) == len(ODD_NAMES)


def test_digest_is_the_sha256_and_size_of_what_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(os.urandom(3_000_001))
    found = tree.digest(os.fsencode(path))
    assert found == tree.Digest(hashlib.sha256(path.read_bytes()).hexdigest(), 3_000_001)


@pytest.mark.parametrize("kind", ["gone", "link", "pipe", "folder"])
def test_digest_refuses_what_is_no_regular_file_any_more(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "link":
        path.symlink_to(__file__)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    with pytest.raises(OSError):
        tree.digest(os.fsencode(path))


@given(st.binary(min_size=1))
def test_any_path_survives_as_text_and_its_readable_form_is_printable(path: bytes) -> None:
    assert tree.from_text(tree.to_text(path)) == path
    json.dumps(tree.readable(path)).encode("ascii")
    assert tree.readable(path).isprintable()


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_program_hashes_as_python_does_whatever_the_name(odd_tree: bytes, tmp_path: Path, name: bytes) -> None:
    path = os.path.join(odd_tree, name)
    done, lines = run_program(tmp_path, path)
    assert done.returncode == 0, done.stderr
    found = tree.digest(path)
    assert [(tree.from_text(line.file or ""), line.sha256, line.size) for line in lines] == [
        (path, found.sha256, found.size)
    ]
    assert (lines[0].type, lines[0].job, lines[0].attempt) == ("hash_file_by_program", 7, 1)


def test_the_program_sends_what_it_cannot_read_to_the_dead_letter_at_once(tmp_path: Path) -> None:
    done, lines = run_program(tmp_path, os.fsencode(tmp_path / "gone"))
    assert (done.returncode, lines) == (65, [])
    assert b"can't be read" in done.stderr


def run_program(folder: Path, path: bytes) -> tuple[subprocess.CompletedProcess[bytes], list[ledger.Line]]:
    plan.write_config(folder, {"driver": "sqlite", "path": "x"}, "127.0.0.1:1")
    payload = json.dumps({"file": tree.to_text(path), "name": tree.readable(path)})
    env = {"PATH": os.environ["PATH"], "QD_JOB_TYPE": "hash_file_by_program", "QD_JOB_ID": "7", "QD_ATTEMPT": "1"}
    command = ["sh", str(folder / "hash_file.sh"), str(folder / "ledger.jsonl")]
    done = subprocess.run(command, input=payload.encode(), env=env, capture_output=True)
    return done, ledger.read(folder / "ledger.jsonl")
