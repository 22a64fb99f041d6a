"""Jobs on a server: submit, wait, fetch, cancel.

    client = quasi.Client()                      # the context that the command line uses
    job = client.submit("thermal", "silicon/", T="100 200 300", ngrid="12 12 12")
    result = job.wait().result()
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc

from quasi import access, config, sweeps, transfer
from quasi.result import Result, open_result

try:
    from quasi.v1 import blob_service_pb2, blob_service_pb2_grpc
    from quasi.v1 import job_pb2, job_service_pb2, job_service_pb2_grpc, sweep_pb2
except ImportError as error:  # pragma: no cover - an installation without its stubs
    raise ImportError(
        "the gRPC stubs of quasi are missing; install python3-quasi, or run "
        "client/python/make_stubs in a checkout"
    ) from error

ENDED = {
    job_pb2.JOB_STATE_SUCCEEDED,
    job_pb2.JOB_STATE_FAILED,
    job_pb2.JOB_STATE_CANCELLED,
}


class JobError(Exception):
    """A job that failed or was cancelled, or a server that refused a call."""


def _state_name(state: int) -> str:
    return str(job_pb2.JobState.Name(state)).removeprefix("JOB_STATE_").lower()


class Job:
    """A job on a server."""

    def __init__(self, client: "Client", job_id: str) -> None:
        self.client = client
        self.id = job_id

    def __repr__(self) -> str:
        return f"<Job {self.id}>"

    def refresh(self) -> Any:
        """Gets the job's present state from the server as a ``quasi.v1.Job`` message."""
        request = job_service_pb2.GetJobRequest(job_id=self.id)
        return self.client.call(self.client.jobs.GetJob, request).job

    @property
    def state(self) -> str:
        """State in lower case, e.g. ``running`` or ``succeeded``."""
        return _state_name(self.refresh().state)

    def wait(self, timeout_s: float | None = None, poll_s: float = 0.5) -> "Job":
        """Waits until the job has succeeded and returns it.

        Raises ``JobError`` where it failed or was cancelled, ``TimeoutError`` after ``timeout_s``.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            job = self.refresh()
            if job.state in ENDED:
                break
            if end is not None and time.monotonic() > end:
                raise TimeoutError(f"{self.id} is {_state_name(job.state)} after {timeout_s} s")
            time.sleep(poll_s)
        if job.state != job_pb2.JOB_STATE_SUCCEEDED:
            reason = job.failure.message or "no reason was recorded"
            raise JobError(f"{self.id} {_state_name(job.state)}: {reason}")
        return self

    async def wait_async(self, timeout_s: float | None = None) -> "Job":
        """Does the work of ``wait`` in asynchronous programs."""
        return await asyncio.to_thread(self.wait, timeout_s)

    def cancel(self, reason: str = "") -> str:
        """Asks the server to cancel the job and returns its state after the call."""
        request = job_service_pb2.CancelJobsRequest(job_ids=[self.id], reason=reason)
        return _state_name(self.client.call(self.client.jobs.CancelJobs, request).results[0].state)

    def fetch(self, directory: Any) -> list[Path]:
        """Downloads every result file below ``directory``, each verified by its digest."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        return [self._fetch_one(artifact, folder) for artifact in self.refresh().artifacts]

    def _fetch_one(self, artifact: Any, folder: Path) -> Path:
        target = transfer.safe_target(folder, artifact.name)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(target.name + ".part")
        request = blob_service_pb2.ReadBlobRequest(digest=artifact.digest)
        with part.open("wb") as file:
            for answer in self.client.stream(self.client.blobs.ReadBlob, request):
                file.write(answer.data)
        if transfer.digest_of(part) != artifact.digest:
            part.unlink()
            raise transfer.TransferError(f"'{artifact.name}' arrived damaged; fetch it again")
        part.replace(target)
        return target

    def result(self, directory: Any = None) -> Result:
        """Fetches the results (into a new temporary folder, if none is given) and opens them."""
        folder = Path(directory) if directory else Path(tempfile.mkdtemp(prefix="quasi-"))
        self.fetch(folder)
        return open_result(folder)


class Client:
    """A connection to one server."""

    def __init__(
        self, context: str | None = None, server: str | None = None, timeout_s: float = 15.0
    ) -> None:
        place = config.place_of(context, server)
        self.address = place.address
        self.timeout_s = timeout_s
        self._has_ca = bool(place.ca)
        self._tokens = access.Tokens(place)
        self._channel = access.open_channel(place)
        self.jobs = job_service_pb2_grpc.JobServiceStub(self._channel)
        self.blobs = blob_service_pb2_grpc.BlobServiceStub(self._channel)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def _failure(self, error: Any) -> JobError:
        """The sentence about a call that failed."""
        is_unavailable = error.code() == grpc.StatusCode.UNAVAILABLE
        may_need_ca = not self._has_ca and not self.address.startswith("unix:")
        hint = "; if this server speaks TLS, run: quasi login CODE"
        sentence = f"{self.address}: {error.details() or error.code().name}"
        return JobError(sentence + (hint if is_unavailable and may_need_ca else ""))

    def call(self, method: Any, request: Any) -> Any:
        """Makes one unary call; a refusal raises ``JobError`` with the server's sentence."""
        try:
            return method(request, timeout=self.timeout_s, metadata=self._tokens.metadata())
        except grpc.RpcError as error:
            raise self._failure(error) from error

    def stream(self, method: Any, request: Any) -> Iterator[Any]:
        """Makes one streaming call without a time limit."""
        try:
            yield from method(request, metadata=self._tokens.metadata())
        except grpc.RpcError as error:
            raise self._failure(error) from error

    def submit(self, kind: str, deck: Any, name: str = "", device: str = "auto",
               **settings: Any) -> Job:
        """Submits one job and returns it.

        ``deck`` is a folder or a TOML file; ``settings`` are keys of the deck with their values,
        as ``--set`` of the command line. Lists become words: ``T=[200, 300]``.
        """
        spec = self._spec(kind, deck, name, device, settings)
        request = job_service_pb2.SubmitJobsRequest(request_id=str(uuid.uuid4()), jobs=[spec])
        return Job(self, self.call(self.jobs.SubmitJobs, request).job_ids[0])

    def submit_sweep(self, kind: str, deck: Any, axes: sweeps.Axes, name: str = "",
                     device: str = "auto", max_concurrent: int = 0, stop_after_failures: int = 0,
                     stop_when: Sequence[str] = (), **settings: Any) -> sweeps.JobSet:
        """Submits one job for each combination of the points of ``axes`` and returns their set.

        ``axes`` maps a key of the deck to its values, or a tuple of keys that vary together to
        tuples of values. The last axis varies fastest; at most 10,000 combinations.
        ``stop_when`` has conditions like ``"kappa_w_per_mk.xx<50"``, as ``--stop-when`` of the
        command line.
        """
        spec = self._spec(kind, deck, name or Path(deck).stem, device, settings)
        sweep = sweep_pb2.Sweep(job=spec, max_concurrent=max_concurrent,
                                stop_after_failures=stop_after_failures)
        sweeps.add_axes(axes, sweep)
        sweeps.add_stop_rules(stop_when, sweep)
        request = job_service_pb2.SubmitJobsRequest(request_id=str(uuid.uuid4()), sweep=sweep)
        return sweeps.JobSet(self, self.call(self.jobs.SubmitJobs, request).job_set_id)

    def job_set(self, set_id: str) -> sweeps.JobSet:
        """Returns the jobs of a sweep by the id of their set."""
        return sweeps.JobSet(self, set_id)

    def _spec(self, kind: str, deck: Any, name: str, device: str,
              settings: dict[str, Any]) -> Any:
        """Sends the files of a deck and makes its job."""
        slot, inputs = transfer.collect(kind, Path(deck))
        self._upload(inputs)
        spec = job_pb2.JobSpec(name=name)
        work = getattr(spec, kind, None)
        if not isinstance(work, job_pb2.DeckWork):
            raise JobError(f"no kind '{kind}'")
        work.SetInParent()
        work.deck = slot
        work.device = job_pb2.DevicePreference.Value(f"DEVICE_PREFERENCE_{device.upper()}")
        for key, value in settings.items():
            work.settings.add(key=key.replace("__", "."), value=sweeps.text_of(value))
        for item in inputs:
            spec.inputs.add(slot=item.slot, digest=item.digest, size_bytes=item.size_bytes)
        return spec

    async def submit_async(self, kind: str, deck: Any, **settings: Any) -> Job:
        """Does the work of ``submit`` in asynchronous programs."""
        return await asyncio.to_thread(lambda: self.submit(kind, deck, **settings))

    def _upload(self, inputs: list[transfer.LocalInput]) -> None:
        digests = sorted({item.digest for item in inputs})
        request = blob_service_pb2.FindMissingBlobsRequest(digests=digests)
        missing = set(self.call(self.blobs.FindMissingBlobs, request).missing)
        for item in inputs:
            if item.digest in missing:
                missing.discard(item.digest)
                messages = transfer.requests_of(item, blob_service_pb2)
                try:
                    self.blobs.WriteBlob(messages, metadata=self._tokens.metadata())
                except grpc.RpcError as error:
                    raise JobError(f"'{item.path}': {error.details()}") from error

    def job(self, job_id: str) -> Job:
        """Returns a job by its id."""
        return Job(self, job_id)

    def list(self, limit: int = 50) -> list[Job]:
        """Lists the newest jobs."""
        request = job_service_pb2.ListJobsRequest(page_size=limit)
        return [Job(self, job.id) for job in self.call(self.jobs.ListJobs, request).jobs]
