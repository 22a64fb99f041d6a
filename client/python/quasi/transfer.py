"""Moving the files of decks and results: content-addressed, verified, in pieces."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tomllib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 20
INPUTS_MAX = 64
NAME_MAX = 1024  #: a longer text is not a file name


class TransferError(Exception):
    """A file that cannot be sent, or that arrived damaged."""


@dataclass(frozen=True)
class LocalInput:
    """One file of a deck: its name for the job, where it is, and its SHA-256."""

    slot: str
    path: Path
    digest: str
    size_bytes: int


def digest_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _engine_names(kind: str, deck: Path) -> list[str] | None:
    """Names of the files that quasi-engine reads for a deck; None without an engine."""
    engine = os.environ.get("QUASI_ENGINE") or shutil.which("quasi-engine")
    if engine is None:
        return None
    answer = subprocess.run([engine, "files", kind, str(deck)], capture_output=True, text=True,
                            check=False)
    if answer.returncode != 0:
        return None
    return [entry["path"] for entry in json.loads(answer.stdout)["files"]]


def _texts(node: Any) -> Iterator[str]:
    """Every text of a TOML tree."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, list):
        for value in node:
            yield from _texts(value)


def _named_in(deck: Path) -> list[str]:
    """Existing files that a TOML deck names, and the files of the folders that it names. A TOML
    file in such a folder is another deck for the same files."""
    try:
        table = tomllib.loads(deck.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TransferError(f"'{deck}' is no TOML file: {error}") from error
    names: list[str] = []
    for text in _texts(table):
        if not text or "\n" in text or len(text) > NAME_MAX:
            continue
        place = deck.parent / text
        if place.is_file():
            names.append(os.path.normpath(text))
        elif place.is_dir():
            names += [os.path.normpath(Path(text, file.name)) for file in sorted(place.iterdir())
                      if file.is_file() and file.suffix != ".toml" and file.name[0] != "."]
    return names


def _inputs_of_toml(kind: str, deck: Path) -> list[LocalInput]:
    """The deck and the files that it names, all below its folder."""
    names = _engine_names(kind, deck)
    if names is None:
        names = _named_in(deck)
    for name in names:
        if os.path.isabs(name) or name.split("/")[0] == "..":
            raise TransferError(f"{deck} names '{name}', which lies outside the deck's folder; "
                                "put the file beside the deck and name it there")
    return [_input(f"deck/{name}", deck.parent / name)
            for name in dict.fromkeys([deck.name, *names])]


def _input(slot: str, path: Path) -> LocalInput:
    return LocalInput(slot, path, digest_of(path), path.stat().st_size)


def collect(kind: str, deck: Path) -> tuple[str, list[LocalInput]]:
    """Slot of a deck and the files that are sent with it.

    Raises ``TransferError`` where there is none, or too many for one job.
    """
    if deck.is_file():
        return f"deck/{deck.name}", _inputs_of_toml(kind, deck)
    if not deck.is_dir():
        raise TransferError(f"'{deck}' does not exist; a deck is a folder or a TOML file")
    names = _engine_names(kind, deck)
    if names is None:
        names = sorted(p.name for p in deck.iterdir()
                       if p.is_file() and not p.name.startswith("."))
    if not names:
        raise TransferError(f"'{deck}' holds no files")
    if len(names) > INPUTS_MAX:
        raise TransferError(f"'{deck}' holds {len(names)} files; the limit is {INPUTS_MAX}; "
                            "keep the deck in a folder of its own")
    return "deck", [_input(f"deck/{name}", deck / name) for name in names]


def requests_of(item: LocalInput, messages: Any) -> Iterator[Any]:
    """Messages that upload one file: a header, then its bytes."""
    header = messages.WriteBlobRequest.Header(
        digest=item.digest, size_bytes=item.size_bytes, upload_id=str(uuid.uuid4())
    )
    yield messages.WriteBlobRequest(header=header)
    offset = 0
    with item.path.open("rb") as file:
        while data := file.read(CHUNK_BYTES):
            part = messages.WriteBlobRequest.Data(offset=offset, data=data)
            yield messages.WriteBlobRequest(data=part)
            offset += len(data)


def safe_target(directory: Path, name: str) -> Path:
    """Path of an artefact below ``directory``.

    Raises ``TransferError`` for names that lead elsewhere: a server's answer is not trusted.
    """
    parts = name.split("/")
    if not name or any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        raise TransferError(f"the server names a result '{name}', which is no file name")
    target = directory.joinpath(*parts)
    if not target.resolve().is_relative_to(directory.resolve()):
        raise TransferError(f"the server names a result '{name}', which leads elsewhere")
    return target
