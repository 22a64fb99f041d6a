"""A job of jobflow that runs Quasi on the machine of the worker.

    from jobflow import Flow, run_locally
    from quasi.workflows.jobflow import quasi_job

    relaxed = quasi_job("thermal", "/data/silicon", ngrid=[16, 16, 16], T=[200, 300, 400])
    run_locally(Flow([relaxed]))

Not tested against jobflow, which Debian 12 does not package.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quasi import decks
from quasi.result import ResultError
from quasi.workflows import outputs_of

try:
    from jobflow import job
except ImportError:
    job = None


def run_quasi(kind: str, deck: str, folder: str = "out", **settings: Any) -> dict[str, Any]:
    """Runs a deck in ``folder`` and returns what a workflow stores: ``folder``, ``summary``, …

    Raises ``ResultError`` with the engine's message where the deck is refused.
    """
    decks.run(kind, deck, directory=folder, **settings)
    return {"folder": str(Path(folder).resolve()), **outputs_of(folder)}


def quasi_job(kind: str, deck: str, folder: str = "out", **settings: Any) -> Any:
    """A ``jobflow.Job`` whose output is that of ``run_quasi``.

    Raises ``ResultError`` that says how to install jobflow where it is missing.
    """
    if job is None:
        raise ResultError("jobflow is not installed; install it: pip install jobflow")
    made = job(run_quasi)(kind, deck, folder, **settings)
    made.name = f"quasi {kind}"
    return made
