"""Contexts: the addresses of servers, from the files that the command line reads too."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

DEFAULT_ADDRESS = "127.0.0.1:7460"


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


def address_of(context: str | None = None, server: str | None = None) -> str:
    """Address of the server: ``server``, QUASI_SERVER, the context, or the default address.

    Raises ``ConfigError`` where the named context does not exist.
    """
    if server or os.environ.get("QUASI_SERVER"):
        return server or os.environ["QUASI_SERVER"]
    known, used = _contexts()
    name = context or os.environ.get("QUASI_CONTEXT") or used
    if name is None:
        return DEFAULT_ADDRESS
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ConfigError(f"no context '{name}'; known contexts: {listed}")
    if "address" not in known[name]:
        raise ConfigError(f"[context.{name}] has no 'address'")
    return str(known[name]["address"])
