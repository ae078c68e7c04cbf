"""Volumes of a pod that runs as a process: laid out as the kubelet does, swapped in one step, refused by name."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from simulator.cluster import volumes


def pod_with(*items: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ns", "name": "p", "labels": {"a": "b"}},
        "spec": {"volumes": list(items)},
    }


def secret(version: str, **content: str) -> dict[str, Any]:
    data = {
        key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in content.items()
    }
    return {"metadata": {"resourceVersion": version}, "data": data}


def sources(**secrets: dict[str, Any]) -> volumes.Sources:
    config_maps = {
        ("ns", "settings"): {"metadata": {"resourceVersion": "1"}, "data": {"file.yaml": "x: 1\n"}}
    }
    return volumes.Sources(
        {("ns", name): item for name, item in secrets.items()}, config_maps, "the-token", "CA"
    )


CERT = {"name": "cert", "secret": {"secretName": "cert"}}


def test_a_secret_lies_at_its_keys(tmp_path: Path) -> None:
    volumes.fill(pod_with(CERT), tmp_path, sources(cert=secret("1", tls_crt="certificate")))
    assert (tmp_path / "cert" / "tls.crt").read_text() == "certificate"


def test_a_changed_secret_is_seen_whole_and_its_lost_keys_go(tmp_path: Path) -> None:
    volumes.fill(pod_with(CERT), tmp_path, sources(cert=secret("1", tls_crt="old", ca_crt="ca")))
    seen = (tmp_path / "cert" / "..data").resolve()
    volumes.fill(pod_with(CERT), tmp_path, sources(cert=secret("2", tls_crt="new")))
    assert (tmp_path / "cert" / "tls.crt").read_text() == "new"
    assert not (tmp_path / "cert" / "ca.crt").exists()
    assert (tmp_path / "cert" / "..data").resolve() != seen, "swapped, not written over"


def test_versions_differ_when_a_secret_does(tmp_path: Path) -> None:
    pod = pod_with(CERT)
    before = volumes.versions(pod, sources(cert=secret("1", tls_crt="old")))
    assert before == volumes.versions(pod, sources(cert=secret("1", tls_crt="old")))
    assert before != volumes.versions(pod, sources(cert=secret("2", tls_crt="new")))


def test_a_missing_secret_waits_with_the_kubelets_words(tmp_path: Path) -> None:
    with pytest.raises(volumes.VolumeNotReady, match='secret "cert" not found'):
        volumes.fill(pod_with(CERT), tmp_path, sources())


def test_an_optional_secret_may_be_missing(tmp_path: Path) -> None:
    optional = {"name": "cert", "secret": {"secretName": "cert", "optional": True}}
    volumes.fill(pod_with(optional), tmp_path, sources())
    assert (tmp_path / "cert").is_dir()


def test_a_service_account_volume_holds_token_ca_and_namespace(tmp_path: Path) -> None:
    projected = {
        "name": "api",
        "projected": {
            "sources": [
                {"serviceAccountToken": {"path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {
                    "downwardAPI": {
                        "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
                    }
                },
            ]
        },
    }
    volumes.fill(pod_with(projected), tmp_path, sources())
    found = {name: (tmp_path / "api" / name).read_text() for name in ("token", "ca.crt", "namespace")}
    assert found == {"token": "the-token", "ca.crt": "CA", "namespace": "ns"}


def test_a_sub_path_is_a_copy_that_does_not_follow_the_config_map(tmp_path: Path) -> None:
    pod = pod_with({"name": "config", "configMap": {"name": "settings"}})
    volumes.fill(pod, tmp_path, sources())
    container = {
        "name": "manager",
        "volumeMounts": [{"name": "config", "mountPath": "/settings.yaml", "subPath": "file.yaml"}],
    }
    mount = volumes.mounts(pod, container, tmp_path)[0]
    assert mount.target == "/settings.yaml"
    assert mount.source.read_text() == "x: 1\n"
    assert not mount.source.is_symlink()


def test_a_volume_of_a_kind_that_no_process_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(volumes.VolumeNotReady, match="of kind persistentVolumeClaim"):
        volumes.fill(
            pod_with({"name": "d", "persistentVolumeClaim": {"claimName": "x"}}), tmp_path, sources()
        )


def test_a_field_of_the_downward_api_reads_labels_by_key() -> None:
    assert volumes.field(pod_with(), "metadata.labels['a']") == "b"
