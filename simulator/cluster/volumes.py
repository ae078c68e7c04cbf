"""The volumes of a pod that runs as a local process, laid out on disk as the kubelet lays them out.

A Secret or ConfigMap becomes a folder whose files are links through `..data`, swapped in one step when the
object changes, so that a program never reads half a certificate (a half-written one made JobSet exit).
A `subPath` mount is a copy taken at start, as in life. Kinds that no pod of ours uses are refused by name.
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.files import write_atomically

SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


class VolumeNotReady(Exception):
    """A volume's object is not there yet; the text is what the kubelet would say."""


@dataclass(frozen=True)
class Mount:
    """One bind mount of the sandbox."""

    source: Path
    target: str
    is_read_only: bool


@dataclass(frozen=True)
class Sources:
    """What volumes are filled from: objects by (namespace, name), and the pod's token and cluster CA."""

    secrets: Mapping[tuple[str, str], dict[str, Any]]
    config_maps: Mapping[tuple[str, str], dict[str, Any]]
    token: str
    cluster_ca: str


def fill(pod: dict[str, Any], folder: Path, sources: Sources) -> None:
    """Write or refresh every volume of `pod` below `folder`. Raises VolumeNotReady."""
    for volume in pod["spec"].get("volumes") or []:
        files = _files(volume, pod, sources)
        target = folder / volume["name"]
        if files is None:
            target.mkdir(parents=True, exist_ok=True)
        else:
            swap_folder(target, files)


def versions(pod: dict[str, Any], sources: Sources) -> list[str]:
    """What the volumes are made of, by version: equal as long as `fill` would write the same."""
    namespace = pod["metadata"]["namespace"]
    found = [sources.token]
    for volume in pod["spec"].get("volumes") or []:
        for source in (volume, *(volume.get("projected") or {}).get("sources", [])):
            secret, config_map = source.get("secret") or {}, source.get("configMap") or {}
            for objects, name in (
                (sources.secrets, secret.get("secretName") or secret.get("name")),
                (sources.config_maps, config_map.get("name")),
            ):
                item = objects.get((namespace, name)) if name else None
                found.append(item["metadata"]["resourceVersion"] if item is not None else "")
    return found


def mounts(pod: dict[str, Any], container: dict[str, Any], folder: Path) -> list[Mount]:
    """The bind mounts of one container; call after `fill`."""
    found = []
    for mount in container.get("volumeMounts") or []:
        source = folder / mount["name"]
        if sub_path := mount.get("subPath"):
            copy = folder / "subpaths" / container["name"] / mount["name"] / sub_path
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile((source / sub_path).resolve(), copy)
            source = copy
        found.append(Mount(source, mount["mountPath"], bool(mount.get("readOnly"))))
    return found


def swap_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Make `target` hold exactly `files`, visible all at once through the link `..data`."""
    target.mkdir(parents=True, exist_ok=True)
    current = target / "..data"
    before = _content(current)
    if before is not None and before == dict(files):
        return
    generation = 0
    while (fresh := target / f"..{generation}").exists():
        generation += 1
    for name, content in files.items():
        write_atomically(fresh / name, content, 0o644)
    fresh.mkdir(exist_ok=True)
    link = target / "..data_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    old = current.readlink() if current.is_symlink() else None
    link.replace(current)
    tops = {name.split("/")[0] for name in files}
    for name in tops:
        if not (target / name).is_symlink():
            (target / name).symlink_to(f"..data/{name}")
    for stale in target.iterdir():
        if not stale.name.startswith("..") and stale.name not in tops:
            stale.unlink()
    if old is not None:
        shutil.rmtree(target / old, ignore_errors=True)


def _content(folder: Path) -> dict[str, bytes] | None:
    if not folder.exists():
        return None
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _files(volume: dict[str, Any], pod: dict[str, Any], sources: Sources) -> dict[str, bytes] | None:
    """The files of a volume, or None for an empty writable folder."""
    namespace = pod["metadata"]["namespace"]
    if "secret" in volume:
        return _secret(volume["secret"], volume["secret"]["secretName"], namespace, sources)
    if "configMap" in volume:
        return _config_map(volume["configMap"], namespace, sources)
    if "emptyDir" in volume:
        return None
    if "projected" in volume:
        found: dict[str, bytes] = {}
        for source in volume["projected"]["sources"]:
            found |= _projected(source, pod, sources)
        return found
    kind = next(key for key in volume if key != "name")
    raise VolumeNotReady(
        f'volume "{volume["name"]}" is of kind {kind}, which a pod that runs as a local process does not have'
    )


def _projected(source: dict[str, Any], pod: dict[str, Any], sources: Sources) -> dict[str, bytes]:
    namespace = pod["metadata"]["namespace"]
    if token := source.get("serviceAccountToken"):
        return {token["path"]: sources.token.encode()}
    if config_map := source.get("configMap"):
        if config_map["name"] == "kube-root-ca.crt":
            return {"ca.crt": sources.cluster_ca.encode()}
        return _config_map(config_map, namespace, sources)
    if secret := source.get("secret"):
        return _secret(secret, secret["name"], namespace, sources)
    if downward := source.get("downwardAPI"):
        return {
            item["path"]: str(field(pod, item["fieldRef"]["fieldPath"])).encode()
            for item in downward["items"]
        }
    raise VolumeNotReady(f"a projected source of kind {', '.join(source)} is not known")


def _secret(spec: dict[str, Any], name: str, namespace: str, sources: Sources) -> dict[str, bytes]:
    secret = sources.secrets.get((namespace, name))
    if secret is None:
        if spec.get("optional"):
            return {}
        raise VolumeNotReady(f'secret "{name}" not found')
    content = {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}
    return _select(spec, content, f'secret "{name}"')


def _config_map(spec: dict[str, Any], namespace: str, sources: Sources) -> dict[str, bytes]:
    config_map = sources.config_maps.get((namespace, spec["name"]))
    if config_map is None:
        if spec.get("optional"):
            return {}
        raise VolumeNotReady(f'configmap "{spec["name"]}" not found')
    content = {key: value.encode() for key, value in (config_map.get("data") or {}).items()}
    content |= {key: base64.b64decode(value) for key, value in (config_map.get("binaryData") or {}).items()}
    return _select(spec, content, f'configmap "{spec["name"]}"')


def _select(spec: dict[str, Any], content: dict[str, bytes], what: str) -> dict[str, bytes]:
    if "items" not in spec:
        return content
    missing = [item["key"] for item in spec["items"] if item["key"] not in content]
    if missing and not spec.get("optional"):
        raise VolumeNotReady(f"{what} has no key {missing[0]!r}")
    return {item["path"]: content[item["key"]] for item in spec["items"] if item["key"] in content}


def field(pod: dict[str, Any], path: str) -> Any:
    """The value of a downward API field path such as `metadata.namespace` or `metadata.labels['x']`."""
    if path.endswith("']"):
        parent, _, key = path[:-2].partition("['")
        return (field(pod, parent) or {}).get(key, "")
    value: Any = pod
    for part in path.split("."):
        value = (value or {}).get(part)
    return "" if value is None else value
