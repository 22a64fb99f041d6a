"""Tests the Kubernetes manifests: their fields by schemas, and what they say about each other."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

jsonschema = pytest.importorskip("jsonschema", reason="install python3-jsonschema")
yaml = pytest.importorskip("yaml", reason="install python3-yaml")

from schemas import KINDS  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "kubernetes"
FILES = sorted(FOLDER.rglob("*.yaml"))


def objects(file: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(file.read_text()) if each]


ALL = [each for file in FILES for each in objects(file)]


def of(kind: str, name: str) -> dict[str, Any]:
    found = [each for each in ALL if each["kind"] == kind and each["metadata"]["name"] == name]
    assert len(found) == 1, (kind, name)
    return found[0]


PODS = {"quasi-server": of("StatefulSet", "quasi-server"),
        "quasi-worker": of("Deployment", "quasi-worker")}


def environment(name: str) -> dict[str, str]:
    containers = PODS[name]["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in containers[0]["env"]}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(FOLDER)))
def test_each_object_has_its_fields_and_no_others(file: Path) -> None:
    for each in objects(file):
        jsonschema.validate(each, KINDS[each["kind"]])


# A schema that accepts everything tests nothing: each of these mistakes is refused.
@pytest.mark.parametrize("mistake", [
    lambda pod: pod["spec"]["template"]["spec"].update(terminationGracePeriod=60),
    lambda pod: pod["spec"]["template"]["spec"]["containers"][0].update(volumes=[]),
    lambda pod: pod["spec"]["template"]["spec"]["containers"][0]["env"][0].update(value=7),
    lambda pod: pod["spec"]["template"]["spec"]["securityContext"].update(runAsNonRoot=False),
    lambda pod: pod["spec"]["template"]["spec"]["containers"][0]["securityContext"].update(
        privileged=True),
    lambda pod: pod["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"].update(
        memory="16 GB"),
    lambda pod: pod["spec"].pop("selector"),
    lambda pod: pod.update(apiVersion="apps/v1beta1"),
])
def test_mistakes_are_refused(mistake: Any) -> None:
    for pod in PODS.values():
        spoilt = copy.deepcopy(pod)
        mistake(spoilt)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoilt, KINDS[spoilt["kind"]])


@pytest.mark.parametrize("name", PODS)
def test_selectors_volumes_and_accounts_exist(name: str) -> None:
    spec = PODS[name]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    pod = spec["template"]["spec"]
    of("ServiceAccount", pod["serviceAccountName"])
    volumes = {each["name"] for each in pod.get("volumes", [])}
    volumes |= {each["metadata"]["name"] for each in spec.get("volumeClaimTemplates", [])}
    mounted = set()
    for container in pod["initContainers"] + pod["containers"]:
        for mount in container["volumeMounts"]:
            assert mount["name"] in volumes
            mounted.add(mount["name"])
    assert mounted == volumes
    of("NetworkPolicy", name)


# One server on one volume, which nobody takes away, and which no second one opens.
def test_the_server_is_alone() -> None:
    server = PODS["quasi-server"]["spec"]
    assert server["replicas"] == 1
    assert server["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert of("PodDisruptionBudget", "quasi-server")["spec"]["maxUnavailable"] == 0


# SIGTERM is the drain of a worker. The pod is killed only after all of its times are over.
def test_the_drain_fits_the_grace_period() -> None:
    worker = environment("quasi-worker")
    times = [float(worker[f"QUASI_WORKER_{key}_S"]) for key in
             ("DRAIN_TIMEOUT", "CANCEL_GRACE", "TERMINATE_GRACE", "KILL_GRACE")]
    reports_s = 30.0  # checkpoints and reports go to the server
    grace_s = PODS["quasi-worker"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert sum(times) + reports_s <= grace_s
    server = environment("quasi-server")
    assert float(server["QUASI_SERVER_SHUTDOWN_TIME"]) + 10.0 <= \
        PODS["quasi-server"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]


# Each variable is a key of its program, so a renamed key is found.
def test_variables_are_keys_of_the_programs() -> None:
    worker = set(re.findall(r'^ *\{"([a-z_]+)",', (
        ROOT / "workers/daemon/worker_config.cpp").read_text(), re.MULTILINE))
    server_text = (ROOT / "server/options_table.cpp").read_text()
    for variable in environment("quasi-worker"):
        assert variable.removeprefix("QUASI_WORKER_").lower() in worker, variable
    for variable in environment("quasi-server"):
        assert f'"{variable.removeprefix("QUASI_SERVER_").lower()}"' in server_text, variable


def test_ports_agree() -> None:
    listen = environment("quasi-server")["QUASI_SERVER_LISTEN"]
    port = int(listen.rpartition(":")[2])
    assert f":{port}" in environment("quasi-worker")["QUASI_WORKER_SERVER"]
    assert of("Service", "quasi-server")["spec"]["ports"][0]["port"] == port
    assert PODS["quasi-server"]["spec"]["template"]["spec"]["containers"][0]["ports"][0][
        "containerPort"] == port
    server = of("NetworkPolicy", "quasi-server")["spec"]
    assert server["ingress"] == [{"ports": [{"protocol": "TCP", "port": port}]}]
    assert server["egress"] == [], "the server calls nobody"
    worker = of("NetworkPolicy", "quasi-worker")["spec"]
    assert worker["ingress"] == [], "nobody calls a worker"
    assert worker["egress"][0]["ports"] == [{"protocol": "TCP", "port": port}]


def test_images_are_targets_of_the_dockerfile() -> None:
    text = (ROOT / "Dockerfile").read_text()
    for pod in PODS.values():
        for container in pod["spec"]["template"]["spec"]["containers"]:
            assert f"-t {container['image']} " in text, container["image"]


# The patch of the overlay counts environment variables, so it must still mean the same one.
def test_the_overlay_changes_what_it_says() -> None:
    overlay = objects(FOLDER / "overlays/cpu/kustomization.yaml")[0]
    worker = PODS["quasi-worker"]["spec"]["template"]["spec"]["containers"][0]
    for step in yaml.safe_load(overlay["patches"][0]["patch"]):
        value: Any = PODS["quasi-worker"]
        for part in step["path"].strip("/").split("/"):
            part = part.replace("~1", "/")
            value = value[int(part)] if isinstance(value, list) else value[part]
        assert value in ("1", "nvml"), step
    assert worker["env"][4]["name"] == "QUASI_WORKER_DEVICES"
    for file in FILES:
        for each in objects(file):
            for resource in each.get("resources", []) if each["kind"] == "Kustomization" else []:
                assert (file.parent / resource).exists()
