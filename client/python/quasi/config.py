"""Contexts: the addresses of servers, from the files that the command line reads too."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ConfigError(Exception):
    """A configuration that cannot be read, or that names no such context."""


def files() -> list[Path]:
    """Configuration files in the order in which they are read; later ones win."""
    if only := os.environ.get("QUASI_CONFIG"):
        return [Path(only)]
    base = os.environ.get("XDG_CONFIG_HOME")
    own = Path(base) if base else Path.home() / ".config"
    return [p for p in (Path("/etc/quasi/client.toml"), own / "quasi" / "client.toml")
            if p.exists()]


def _contexts() -> tuple[dict[str, dict[str, Any]], str | None]:
    found: dict[str, dict[str, Any]] = {}
    used: str | None = None
    for file in files():
        try:
            table = tomllib.loads(file.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"cannot read {file}: {error}") from error
        for name, entry in table.get("context", {}).items():
            if name == "use" and isinstance(entry, str):
                used = entry
            elif isinstance(entry, dict):
                found[name] = entry
    return found, used


@dataclass(frozen=True)
class Place:
    """A server and the files that open it."""

    address: str
    token_file: str = ""  # with the caller's token; "": none, or the one of a Unix socket
    ca: str = ""          # with the CA of the server's certificate; "": plain text


def default_address() -> str:
    """Unix socket at which the programs of one user meet if no address is named."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return f"unix:{runtime}/quasi.sock" if runtime else "unix:/run/quasi/server.sock"


def _entry(context: str | None, is_needed: bool) -> dict[str, Any]:
    """Table of the context that is named or in use; empty if there is none."""
    known, used = _contexts()
    name = context or os.environ.get("QUASI_CONTEXT") or used
    if name is None:
        return {}
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ConfigError(f"no context '{name}'; known contexts: {listed}")
    if is_needed and "address" not in known[name]:
        raise ConfigError(f"[context.{name}] has no 'address'")
    return known[name]


def place_of(context: str | None = None, server: str | None = None) -> Place:
    """Server with its files: ``server``, QUASI_SERVER, the context, or the default address.

    QUASI_TOKEN_FILE and QUASI_CA override the files of the context. Raises ``ConfigError`` where
    the named context does not exist.
    """
    named = server or os.environ.get("QUASI_SERVER")
    entry = _entry(context, is_needed=not named)
    return Place(
        address=named or str(entry.get("address") or default_address()),
        token_file=os.environ.get("QUASI_TOKEN_FILE") or str(entry.get("token_file", "")),
        ca=os.environ.get("QUASI_CA") or str(entry.get("ca", "")),
    )


def address_of(context: str | None = None, server: str | None = None) -> str:
    """Address of the server, as ``place_of`` finds it."""
    return place_of(context, server).address
