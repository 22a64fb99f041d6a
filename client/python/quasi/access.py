"""Proof of who makes a call: a token from a file, or the one that a Unix socket gives its user."""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import time
from pathlib import Path

import grpc

from quasi.config import Place

SESSION_S = 300.0


class AccessError(Exception):
    """A token or a CA that cannot be used, or an address that needs one."""


def is_local(address: str) -> bool:
    """True for a Unix socket and for a loopback address, which are reached without TLS."""
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0]
    if host in ("localhost", "[::1]"):
        return True
    try:
        number = ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return number.is_loopback


#: Calls of jobs carry a request id or change nothing, so that they may be repeated. A server that
#: limits the rate of calls names the time to wait, which gRPC keeps.
OPTIONS = (("grpc.service_config", json.dumps({
    "methodConfig": [{
        "name": [{"service": "quasi.v1.JobService"}],
        "retryPolicy": {
            "maxAttempts": 4, "initialBackoff": "0.2s", "maxBackoff": "5s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"],
        },
    }],
    "retryThrottling": {"maxTokens": 100, "tokenRatio": 1},
})),)


def open_channel(place: Place) -> grpc.Channel:
    """Channel to a server, with TLS where a CA is named.

    Raises ``AccessError`` for plain text beyond this machine and for a CA that cannot be read.
    """
    if place.address.startswith("unix:") or not place.ca:
        if not is_local(place.address):
            raise AccessError(f"plain text to {place.address}, which is beyond this machine; "
                              "run: quasi login CODE, or name its CA by ca in the context")
        return grpc.insecure_channel(place.address, OPTIONS)
    try:
        ca = Path(place.ca).read_bytes()
    except OSError as error:
        raise AccessError(f"the file of certificates {place.ca} cannot be read: {error}") from error
    return grpc.secure_channel(place.address, grpc.ssl_channel_credentials(ca), OPTIONS)


class Tokens:
    """Source of the caller's token. A file is read at every call, a session is kept for 5 min."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._session = ""
        self._fetched = -SESSION_S

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata of one call: the token, or nothing if there is none."""
        token = self._token()
        return (("authorization", f"Bearer {token}"),) if token else ()

    def _token(self) -> str:
        if self._place.token_file:
            return _token_in(Path(self._place.token_file))
        if not self._place.address.startswith("unix:"):
            return ""
        if time.monotonic() - self._fetched > SESSION_S:
            self._session = _session_at(self._place.address.removeprefix("unix:") + ".identity")
            self._fetched = time.monotonic()
        return self._session


def _token_in(file: Path) -> str:
    """Token of a file that its owner alone can read."""
    try:
        with file.open() as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise AccessError(f"the token file {file} can be read by others; "
                                  f"run: chmod 600 {file}")
            token = opened.readline().strip()
    except OSError as error:
        raise AccessError(f"the token file {file} cannot be read: {error}") from error
    if not token.startswith("qsi_"):
        raise AccessError(f"the token file {file} holds no token: "
                          "its only line must begin with qsi_")
    return token


def _session_at(path: str) -> str:
    """Token that the server gives to the user of this process; "" if it asks for none."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
            peer.settimeout(2.0)
            peer.connect(path)
            with peer.makefile() as answer:
                line = answer.readline().strip()
    except OSError:
        return ""
    return line if line.startswith("qsu_") else ""
