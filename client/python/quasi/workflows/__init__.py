"""Adapters for workflow programs. Begin with ``jobflow`` or ``aiida``; each needs its program.

Both are tested without their programs, which Debian 12 does not package: what they run, what they
read back, and their message where the program is missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from quasi.result import ResultError


def command_words(kind: str, deck: str, settings: dict[str, Any]) -> list[str]:
    """Arguments of ``quasi`` for one job: the deck's name, and ``--set`` for each setting.

    >>> command_words("thermal", "deck", {"ngrid": [8, 8, 8], "mesh__nx": 65})
    ['run', 'thermal', 'deck', '-d', 'out', '--set', 'ngrid=8,8,8', '--set', 'mesh.nx=65']
    """
    words = ["run", kind, deck, "-d", "out"]
    for key, value in settings.items():
        text = ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        words += ["--set", f"{key.replace('__', '.')}={text}"]
    return words


def outputs_of(folder: Any) -> dict[str, Any]:
    """Summary of a finished job, for the store of a workflow: kind, numbers and warnings.

    Raises ``ResultError`` where the folder holds no summary.
    """
    file = Path(folder) / "summary.json"
    if not file.exists():
        raise ResultError(f"'{file}' does not exist: the job did not end with a result")
    document = json.loads(file.read_text())
    summary = document.get("summary", {})
    return {"kind": document.get("kind", ""), "summary": summary,
            "warnings": summary.get("warnings", [])}
