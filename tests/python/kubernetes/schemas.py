"""Schemas of the Kubernetes objects of deploy/kubernetes, for the fields that these use.

The fields, their types and their values are those of the API reference of Kubernetes 1.30. A field
that is not listed here is refused, so a misspelt one is found.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string", "minLength": 1}
BOOLEAN: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
POSITIVE: Schema = {"type": "integer", "minimum": 1}
PORT: Schema = {"type": "integer", "minimum": 1, "maximum": 65535}
NAME: Schema = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
QUANTITY: Schema = {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)?(m|[kMGTPE]i?)?$"}
PATH: Schema = {"type": "string", "pattern": "^/"}
LABELS: Schema = {"type": "object", "minProperties": 1,
                  "additionalProperties": {"type": "string", "maxLength": 63}}


def fields(required: list[str], **properties: Schema) -> Schema:
    """An object with these fields and no others."""
    return {"type": "object", "properties": properties, "required": required,
            "additionalProperties": False}


def many(item: Schema, least: int = 1) -> Schema:
    return {"type": "array", "items": item, "minItems": least}


METADATA = fields(["name"], name=NAME, labels=LABELS)
SELECTOR = fields(["matchLabels"], matchLabels=LABELS)
PROBE = fields(["exec"], exec=fields(["command"], command=many(STRING)), periodSeconds=POSITIVE,
               timeoutSeconds=POSITIVE, failureThreshold=POSITIVE)
RESOURCES = fields([], requests={"type": "object", "additionalProperties": QUANTITY},
                   limits={"type": "object", "additionalProperties": QUANTITY})
CONTAINER = fields(
    ["name", "image", "securityContext"],
    name=NAME, image=STRING, command=many(STRING),
    env=many({"oneOf": [
        fields(["name", "value"], name=STRING, value=STRING),
        fields(["name", "valueFrom"], name=STRING, valueFrom=fields(
            ["fieldRef"], fieldRef=fields(["fieldPath"], fieldPath=STRING)))]}),
    ports=many(fields(["containerPort"], name=NAME, containerPort=PORT)),
    startupProbe=PROBE, readinessProbe=PROBE, livenessProbe=PROBE, resources=RESOURCES,
    securityContext=fields(
        ["allowPrivilegeEscalation", "readOnlyRootFilesystem", "capabilities"],
        allowPrivilegeEscalation={"const": False}, readOnlyRootFilesystem={"const": True},
        capabilities=fields(["drop"], drop={"const": ["ALL"]})),
    volumeMounts=many(fields(["name", "mountPath"], name=NAME, mountPath=PATH, readOnly=BOOLEAN)))
VOLUME = {"oneOf": [
    fields(["name", "secret"], name=NAME, secret=fields(["secretName"], secretName=NAME)),
    fields(["name", "configMap"], name=NAME, configMap=fields(["name"], name=NAME)),
    fields(["name", "emptyDir"], name=NAME,
           emptyDir=fields([], medium={"enum": ["Memory"]}, sizeLimit=QUANTITY))]}
POD = fields(
    ["metadata", "spec"],
    metadata=fields(["labels"], labels=LABELS),
    spec=fields(
        ["serviceAccountName", "automountServiceAccountToken", "terminationGracePeriodSeconds",
         "securityContext", "containers"],
        serviceAccountName=NAME, automountServiceAccountToken={"const": False},
        terminationGracePeriodSeconds=POSITIVE,
        securityContext=fields(
            ["runAsNonRoot", "runAsUser", "seccompProfile"], runAsNonRoot={"const": True},
            runAsUser=POSITIVE, runAsGroup=POSITIVE, fsGroup=POSITIVE,
            seccompProfile=fields(["type"], type={"const": "RuntimeDefault"})),
        initContainers=many(CONTAINER), containers=many(CONTAINER), volumes=many(VOLUME)))


def of_kind(version: str, kind: str, **properties: Schema) -> Schema:
    return fields(["apiVersion", "kind", "metadata", *properties], apiVersion={"const": version},
                  kind={"const": kind}, metadata=METADATA, **properties)


POLICY_PORT = fields(["protocol", "port"], protocol={"enum": ["TCP", "UDP"]}, port=PORT)
KINDS: dict[str, Schema] = {
    "ServiceAccount": of_kind("v1", "ServiceAccount",
                              automountServiceAccountToken={"const": False}),
    "Service": of_kind("v1", "Service", spec=fields(
        ["selector", "ports"], selector=LABELS,
        ports=many(fields(["port", "targetPort"], name=NAME, port=PORT, targetPort=STRING)))),
    "StatefulSet": of_kind("apps/v1", "StatefulSet", spec=fields(
        ["replicas", "serviceName", "selector", "template", "volumeClaimTemplates"],
        replicas=COUNT, serviceName=NAME, selector=SELECTOR, template=POD,
        volumeClaimTemplates=many(fields(
            ["metadata", "spec"], metadata=METADATA, spec=fields(
                ["accessModes", "resources"],
                accessModes=many({"enum": ["ReadWriteOnce", "ReadWriteOncePod"]}),
                resources=RESOURCES))))),
    "Deployment": of_kind("apps/v1", "Deployment", spec=fields(
        ["replicas", "selector", "template"], replicas=COUNT, selector=SELECTOR, template=POD,
        strategy=fields(["type"], type={"enum": ["RollingUpdate", "Recreate"]},
                        rollingUpdate=fields([], maxSurge=COUNT, maxUnavailable=COUNT)))),
    "PodDisruptionBudget": of_kind("policy/v1", "PodDisruptionBudget", spec=fields(
        ["selector"], maxUnavailable=COUNT, minAvailable=COUNT, selector=SELECTOR)),
    "NetworkPolicy": of_kind("networking.k8s.io/v1", "NetworkPolicy", spec=fields(
        ["podSelector", "policyTypes"], podSelector=SELECTOR,
        policyTypes=many({"enum": ["Ingress", "Egress"]}),
        ingress=many(fields([], ports=many(POLICY_PORT)), least=0),
        egress=many(fields([], to=many(fields(["podSelector"], podSelector=SELECTOR)),
                           ports=many(POLICY_PORT)), least=0))),
    "Kustomization": fields(
        ["apiVersion", "kind", "resources"],
        apiVersion={"const": "kustomize.config.k8s.io/v1beta1"}, kind={"const": "Kustomization"},
        namespace=NAME, resources=many(STRING),
        images=many(fields(["name"], name=NAME, newName=NAME, newTag=STRING)),
        patches=many(fields(["target", "patch"], patch=STRING, target=fields(
            ["kind", "name"], kind=STRING, name=NAME)))),
}
