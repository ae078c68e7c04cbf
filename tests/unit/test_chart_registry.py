"""The region's chart registry and its public names, asked over TLS as Helm asks them."""

import gzip
import hashlib
import http.client
import io
import json
import ssl
import tarfile
import threading
from contextlib import contextmanager

import pytest
from cryptography import x509

from facts import versions
from simulator import chart_registry
from simulator.public_names import DNS_ENDPOINT, REGISTRY_HOSTS, PublicNames

REPOSITORY = versions.LWS_CHART.removeprefix("oci://")
HOST, _, PATH = REPOSITORY.partition("/")


@pytest.fixture
def charts(tmp_path):
    folder = tmp_path / "charts" / "lws"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: lws\nversion: 0.1.0\nappVersion: v1\n")
    (folder / "templates" / "service.yaml").write_text("kind: Service\n")
    return tmp_path / "charts"


@contextmanager
def serving(charts, tmp_path):
    names = PublicNames(tmp_path / "names")
    names.write_bundle(tmp_path / "bundle.pem")
    server = chart_registry.server_of(0, chart_registry.artifacts(charts), names)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def ask(port, tmp_path, path, host=HOST):
    trust = ssl.create_default_context(cafile=str(tmp_path / "bundle.pem"))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trust, timeout=10)
    connection.set_tunnel(host, 443)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_a_chart_is_pulled_by_tag_and_then_by_the_digests_that_the_manifest_names(charts, tmp_path):
    with serving(charts, tmp_path) as port:
        status, content = ask(port, tmp_path, f"/v2/{PATH}/manifests/{versions.LWS}")
        assert status == 200
        layer = json.loads(content)["layers"][0]
        status, packed = ask(port, tmp_path, f"/v2/{PATH}/blobs/{layer['digest']}")
    assert (status, len(packed)) == (200, layer["size"])
    assert layer["digest"] == f"sha256:{hashlib.sha256(packed).hexdigest()}"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
        assert archive.getnames() == ["lws/Chart.yaml", "lws/templates/service.yaml"]


def test_a_published_chart_has_the_version_of_its_release(charts, tmp_path):
    blob = next(
        blob
        for blob in chart_registry.artifacts(charts).values()
        if blob.media_type == chart_registry.LAYER_TYPE
    )
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(blob.content))) as archive:
        chart = archive.extractfile("lws/Chart.yaml").read().decode()
    assert f"version: {versions.LWS}\n" in chart
    assert "appVersion: v1\n" in chart


def test_digests_are_the_same_at_every_start(charts):
    assert chart_registry.artifacts(charts) == chart_registry.artifacts(charts)


def test_another_version_is_not_there_and_the_answer_says_what_is(charts, tmp_path):
    with serving(charts, tmp_path) as port:
        status, content = ask(port, tmp_path, f"/v2/{PATH}/manifests/9.9.9")
    assert status == 404
    assert f"{REPOSITORY}:{versions.LWS}" in json.loads(content)["errors"][0]["message"]


def test_a_host_of_the_outside_world_is_refused(charts, tmp_path):
    with serving(charts, tmp_path) as port, pytest.raises(OSError, match="403"):
        ask(port, tmp_path, "/v2/", host="registry.example.com")


def test_one_certificate_answers_for_the_dns_endpoint_and_the_registries(tmp_path):
    names = PublicNames(tmp_path)
    certificate = x509.load_pem_x509_certificate(names.server_certificate.read_bytes())
    alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(alternatives.get_values_for_type(x509.DNSName)) == {DNS_ENDPOINT, *REGISTRY_HOSTS}


def test_the_bundle_holds_the_persons_own_roots_and_never_itself(tmp_path, monkeypatch):
    own = tmp_path / "own.pem"
    own.write_text("# a person's own root\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    names, bundle = PublicNames(tmp_path / "names"), tmp_path / "bundle.pem"
    names.write_bundle(bundle)
    assert bundle.read_text().startswith("# a person's own root")
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    names.write_bundle(bundle)
    assert bundle.read_text().count(names.certificate("authority").read_text()) == 1
