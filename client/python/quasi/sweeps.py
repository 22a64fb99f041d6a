"""The jobs of a sweep as one set, and their results as a table.

    axes = {"T": [200, 300], "ngrid": ["4,4,4", "6,6,6"]}
    jobs = client.submit_sweep("thermal", "silicon/", axes)
    rows = jobs.wait().table()                   # pandas.DataFrame(rows) is a table of them
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Axes = Mapping[Any, Sequence[Any]]

# Numbers of quasi.v1.StopRule.Comparison.
SIGNS = {"<": 1, "<=": 2, ">": 3, ">=": 4}
RULE = re.compile(r"(?P<figure>[^<>]+)(?P<sign>[<>]=?)\s*(?P<value>[-+0-9.eE]+)\s*"
                  r"(?::\s*(?P<jobs>[1-9][0-9]*)\s*)?")
ENDED = ("succeeded", "failed", "cancelled")
ASIDE = ("checks", "warnings", "seconds", "deck_sha256")


def text_of(value: Any) -> str:
    """The text of a setting: lists become words between commas."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def add_axes(axes: Axes, sweep: Any) -> None:
    """Adds axes to a ``quasi.v1.Sweep``. A tuple of keys has a tuple of values at each point."""
    for keys, values in axes.items():
        together = isinstance(keys, tuple)
        axis = sweep.axes.add(keys=list(keys) if together else [keys])
        for value in values:
            axis.points.add(values=[text_of(each) for each in (value if together else (value,))])


def add_stop_rules(conditions: Sequence[str], sweep: Any) -> None:
    """Adds stop rules to a ``quasi.v1.Sweep``: ``FIGURE<VALUE`` or ``FIGURE<VALUE:JOBS``."""
    for text in conditions:
        found = RULE.fullmatch(text)
        if found is None:
            raise ValueError(f"stop_when: '{text}' is no condition; write it like "
                             "'kappa_w_per_mk.xx<50', or '...<50:3' for three jobs")
        sweep.stop_rules.add(figure=found["figure"].strip(), comparison=SIGNS[found["sign"]],
                             value=float(found["value"]), jobs=int(found["jobs"] or 1))


def figures_of(document: Any) -> dict[str, Any]:
    """The single values of a summary by their names, as ``quasi table`` prints them."""
    figures: dict[str, Any] = {}
    summary = document.get("summary", document) if isinstance(document, dict) else {}
    _collect("", summary, figures)
    return figures


def _collect(name: str, value: Any, figures: dict[str, Any]) -> None:
    if isinstance(value, list):
        if len(value) == 3 and all(isinstance(row, list) and len(row) == 3 for row in value):
            for i, axis in enumerate(("xx", "yy", "zz")):
                figures[f"{name}.{axis}"] = value[i][i]
        elif len(value) == 1:
            _collect(name, value[0], figures)
    elif isinstance(value, dict):
        for key, part in value.items():
            if key not in ASIDE:
                _collect(f"{name}.{key}" if name else key, part, figures)
    elif value is not None:
        figures[name] = value


class JobSet:
    """The jobs of a sweep on a server."""

    def __init__(self, client: Any, set_id: str) -> None:
        self.client = client
        self.id = set_id

    def __repr__(self) -> str:
        return f"<JobSet {self.id}>"

    def refresh(self) -> Any:
        """Gets the set from the server as a ``quasi.v1.JobSet`` message."""
        from quasi.v1 import job_service_pb2

        request = job_service_pb2.GetJobSetRequest(job_set_id=self.id)
        return self.client.call(self.client.jobs.GetJobSet, request).job_set

    def counts(self) -> dict[str, int]:
        """The number of its jobs in each state, e.g. ``{"running": 2, "succeeded": 5}``."""
        from quasi.client import _state_name

        return {_state_name(count.state): count.jobs for count in self.refresh().counts}

    def messages(self) -> Iterator[Any]:
        """The jobs in the order of the sweep, as ``quasi.v1.Job`` without their results."""
        from quasi.v1 import job_service_pb2

        request = job_service_pb2.ListJobsRequest(
            page_size=1000, order=job_service_pb2.ListJobsRequest.ORDER_CREATED_ASCENDING)
        request.filter.job_set_id = self.id
        while True:
            page = self.client.call(self.client.jobs.ListJobs, request)
            yield from page.jobs
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def jobs(self) -> list[Any]:
        """The jobs in the order of the sweep."""
        return [self.client.job(job.id) for job in self.messages()]

    def wait(self, timeout_s: float | None = None, poll_s: float = 0.5) -> "JobSet":
        """Waits until all jobs have ended, in whatever state, and returns the set."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while set(counts := self.counts()) - set(ENDED):
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"{self.id} is {counts} after {timeout_s} s")
            time.sleep(poll_s)
        return self

    def cancel(self, reason: str = "") -> int:
        """Cancels the jobs that have not ended and returns their number."""
        from quasi.v1 import job_service_pb2

        request = job_service_pb2.CancelJobsRequest(job_set_id=self.id, reason=reason)
        return len(self.client.call(self.client.jobs.CancelJobs, request).results)

    def table(self) -> list[dict[str, Any]]:
        """One row for each job: id, name, the values of the axes, state, and its figures."""
        from quasi.client import _state_name

        keys = [key for axis in self.refresh().axes for key in axis.keys]
        rows = []
        for job in self.messages():
            settings = getattr(job.spec, job.kind).settings
            values = {setting.key: setting.value for setting in settings}
            row: dict[str, Any] = {"job": job.id, "name": job.spec.name}
            row.update({key: values.get(key, "") for key in keys})
            row["state"] = _state_name(job.state)
            if row["state"] == "succeeded":
                summary = self.client.job(job.id).refresh().summary_json
                row.update(figures_of(json.loads(summary or "{}")))
            rows.append(row)
        return rows
