"""Opening a result: the part that all kinds share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from quasi.quantity import Quantity

if TYPE_CHECKING:
    import pandas


class ResultError(Exception):
    """A result that is missing, unreadable, or lacks the requested data."""


def as_text(value: Any) -> str:
    """Text of an HDF5 string, whatever its type."""
    if isinstance(value, np.ndarray):
        value = value.item()
    return value.decode() if isinstance(value, bytes) else str(value)


class Result:
    """One ``result.h5``, and the ``summary.json`` beside it where there is one.

    ``result[path]`` reads any dataset with its units; the subclasses name the usual ones.
    """

    kind = ""

    def __init__(self, file: Path) -> None:
        self.path = file
        self._summary: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.path}>"

    def __contains__(self, path: str) -> bool:
        with h5py.File(self.path) as file:
            return path in file

    def __getitem__(self, path: str) -> Quantity:
        """Reads one dataset.

        Raises ``ResultError`` that names the file where the dataset does not exist.
        """
        with h5py.File(self.path) as file:
            if path not in file or not isinstance(file[path], h5py.Dataset):
                raise ResultError(f"{self.path} has no dataset '{path}'")
            data = file[path]
            return Quantity(data[()], as_text(data.attrs.get("units", "1")))

    def describe(self, path: str) -> str:
        """What a dataset holds: its meaning, its axes and its units, in one line.

        Results before version 3 of the format have no descriptions; the line then has the units.
        """
        with h5py.File(self.path) as file:
            if path not in file:
                raise ResultError(f"{self.path} has no dataset '{path}'")
            data = file[path]
            words = [as_text(data.attrs.get("description", ""))]
            labels = [axis.label for axis in data.dims] if data.shape else []
            if any(labels):
                words.append("[" + "][".join(labels) + "]")
            words.append(as_text(data.attrs.get("units", "")))
        return ", ".join(word for word in words if word)

    def text(self, path: str) -> str:
        """Reads one string dataset."""
        with h5py.File(self.path) as file:
            if path not in file:
                raise ResultError(f"{self.path} has no text '{path}'")
            return as_text(file[path][()])

    def datasets(self) -> list[str]:
        """Paths of all datasets, in the order of the file."""
        found: list[str] = []
        with h5py.File(self.path) as file:
            file.visititems(
                lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None
            )
        return found

    def attributes(self) -> dict[str, str]:
        """Attributes of the root: format version, kind, program, digests."""
        with h5py.File(self.path) as file:
            return {name: as_text(value) for name, value in file.attrs.items()}

    @property
    def settings(self) -> list[str]:
        """Overrides of keys of the deck, ``KEY=VALUE``; empty for a result of an older version."""
        return self.text("input/settings").splitlines() if "input/settings" in self else []

    @property
    def deck(self) -> dict[str, str]:
        """Text of each short file of the deck, by its name."""
        found: dict[str, str] = {}
        with h5py.File(self.path) as file:
            files = file.get("input/files")
            if files is not None:
                files.visititems(
                    lambda name, item: found.update({name: as_text(item[()])})
                    if isinstance(item, h5py.Dataset) else None)
        return found

    @property
    def summary(self) -> dict[str, Any]:
        """The ``summary.json`` beside the file; empty where there is none."""
        if self._summary is None:
            beside = self.path.with_name("summary.json")
            self._summary = json.loads(beside.read_text()) if beside.exists() else {}
        return self._summary

    @property
    def warnings(self) -> list[str]:
        """Warnings that the calculation gave."""
        if "warnings" in self:
            return self.text("warnings").splitlines()
        inner = self.summary.get("summary", {})
        return [str(line) for line in inner.get("warnings", [])]

    def to_pandas(self) -> "pandas.DataFrame":
        """The main table of the result, one row a point of it; units are in the column names."""
        raise NotImplementedError(f"results of kind '{self.kind}' have no main table")

    def plots(self) -> list[str]:
        """Names of the figures that this result holds the data of."""
        from quasi import plot

        return plot.available(self)

    def plot(self, output: Any = None, what: str | None = None) -> Any:
        """Draws one figure and returns it; with ``output`` it is also written to that file."""
        from quasi import plot

        return plot.draw([self], what=what, output=output)


def _file_of(path: Any) -> Path:
    place = Path(path)
    if place.is_dir():
        place = place / "result.h5"
    if not place.exists():
        raise ResultError(
            f"'{place}' does not exist; name a folder that holds a result.h5, or the file itself"
        )
    return place


def kind_of(file: h5py.File) -> str:
    """Kind of a result, of this format or of an older one."""
    if "kind" in file.attrs:
        return as_text(file.attrs["kind"])
    if "provenance/kind" in file:
        return as_text(file["provenance/kind"][()])
    for group, kind in (("quasiparticles", "gw"), ("points", "mosfet"), ("kappa", "thermal")):
        if group in file:
            return kind
    return ""


def open_result(path: Any) -> Result:
    """Does the work of ``quasi.open``."""
    from quasi.gw import GwResult
    from quasi.mosfet import MosfetResult
    from quasi.thermal import ThermalResult

    place = _file_of(path)
    try:
        with h5py.File(place) as file:
            kind = kind_of(file)
    except OSError as error:
        raise ResultError(f"'{place}' is no HDF5 file, or is damaged: {error}") from error
    types: dict[str, type[Result]] = {
        result.kind: result for result in (ThermalResult, MosfetResult, GwResult)
    }
    if kind not in types:
        raise ResultError(
            f"'{place}' is of kind '{kind or 'unknown'}'; known kinds: {', '.join(types)}"
        )
    return types[kind](place)
