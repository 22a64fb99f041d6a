"""What the server has for a pool: waiting jobs, and workers that are online."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from quasi.client import Client
from quasi.v1 import job_pb2, job_service_pb2, pool_pb2

MOST_JOBS = 10_000


@dataclass(frozen=True)
class Waiting:
    """A job that waits for a worker."""

    job_id: str
    gpus: int
    max_runtime_s: float       # 0: the server's default
    checkpoint_s: float        # interval of its checkpoints; 0: it promises none


class Server(Protocol):
    """What the controller asks of the server."""

    def store(self) -> str:
        """Id of the store."""

    def waiting(self, pool: str) -> list[Waiting]:
        """Queued jobs of the pool that may start now."""

    def workers(self, pool: str) -> dict[str, bool]:
        """Names of the workers of the pool that are online; True: it takes jobs."""


def seconds(duration: Any) -> float:
    return float(duration.seconds) + float(duration.nanos) * 1e-9


class QuasiServer:
    """A server through the client of this package. It needs the role of an operator."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def store(self) -> str:
        request = job_service_pb2.GetCapabilitiesRequest()
        return str(self._client.call(self._client.jobs.GetCapabilities, request).store_id)

    def waiting(self, pool: str) -> list[Waiting]:
        found: list[Waiting] = []
        request = job_service_pb2.ListJobsRequest(
            filter=job_service_pb2.JobFilter(states=[job_pb2.JOB_STATE_QUEUED]), page_size=1_000)
        for _ in range(MOST_JOBS // 1_000):
            answer = self._client.call(self._client.jobs.ListJobs, request)
            for job in answer.jobs:
                if (job.spec.resources.pool or "default") != pool:
                    continue
                if job.HasField("not_before") and job.not_before.seconds > time.time():
                    continue
                resumes = not job.spec.retry.HasField("resume") or job.spec.retry.resume
                found.append(Waiting(
                    job.id, job.spec.resources.gpus, seconds(job.spec.max_runtime),
                    seconds(job.spec.checkpoint.interval) if resumes else 0.0))
            request.page_token = answer.next_page_token
            if not answer.next_page_token:
                break
        return found

    def workers(self, pool: str) -> dict[str, bool]:
        answer = self._client.call(self._client.jobs.ListPools, job_service_pb2.ListPoolsRequest())
        found: dict[str, bool] = {}
        for each in answer.pools:
            if each.name != pool:
                continue
            for worker in each.workers:
                if worker.state != pool_pb2.WORKER_STATE_LOST:
                    found[worker.name] = worker.state == pool_pb2.WORKER_STATE_ONLINE
        return found
