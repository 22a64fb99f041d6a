"""Results, plots and jobs of Quasi.

Open a result and look at it:

    import quasi
    result = quasi.open("out")          # a folder with result.h5, or the file itself
    print(result.kappa)                 # an array with its units
    result.plot("kappa.svg")

Submit a job to a server:

    job = quasi.Client().submit("thermal", "silicon/", T="300")
    result = job.wait().result()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quasi import decks
from quasi.quantity import Quantity
from quasi.result import Result, ResultError, open_result

if TYPE_CHECKING:
    from quasi.client import Client, Job

__version__ = "0.1.0"
__all__ = ["Client", "Job", "Quantity", "Result", "ResultError", "decks", "open"]


def open(path: Any) -> Result:  # noqa: A001 - the name that people expect
    """Opens a result and returns it as the type of its kind.

    ``path`` is a ``result.h5`` or the folder that holds one.

    Raises ``ResultError`` where there is no result, or where it is of an unknown kind.
    """
    return open_result(path)


def __getattr__(name: str) -> Any:
    # Only programs that talk to a server import gRPC.
    if name in ("Client", "Job"):
        from quasi import client

        return getattr(client, name)
    raise AttributeError(f"module 'quasi' has no attribute '{name}'")
