"""The controller's own certificates: made by itself, kept in its Secret, announced in its webhook configuration.

Same names, keys and encodings as the real controller's rotator (open-policy-agent/cert-controller 0.16), so that
either may take over what the other left. Refuses to create the Secret or the webhook configuration: both belong to
whoever deployed the controller, and it waits until they are there.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from simulator.reconcile import Api, Controller, Informer

log = logging.getLogger(__name__)

NAMESPACE = "slice-controller-system"
SECRET = "slice-controller-webhook-server-cert"  # noqa: S105 - the name of a Secret
SERVICE = "slice-controller-webhook-service"
WEBHOOKS = "slice-controller-mutating-webhook-configuration"
SERVER_NAME = f"{SERVICE}.{NAMESPACE}.svc"
AUTHORITY = "slice-controller-ca"
ORGANIZATION = "slice-controller"

CA_CERT, CA_KEY, SERVER_CERT, SERVER_KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"

_AUTHORITY_LIFE = timedelta(days=3650)
_SERVER_LIFE = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=90)
_CHECK_SECONDS = 12 * 3600.0

Pems = dict[str, bytes]


def renewed(pems: Mapping[str, bytes], now: datetime) -> Pems | None:
    """New contents for the Secret, keeping the authority while it is good; None when nothing is due."""
    if not _authority_is_good(pems, now):
        return _issue_server(_issue_authority(now), now)
    if not _server_is_good(pems, now):
        return _issue_server({CA_CERT: pems[CA_CERT], CA_KEY: pems[CA_KEY]}, now)
    return None


def _authority_is_good(pems: Mapping[str, bytes], now: datetime) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(pems[CA_CERT])
        key = serialization.load_pem_private_key(pems[CA_KEY], None)
    except (KeyError, ValueError, TypeError):
        return False
    return _lasts(certificate, now) and key.public_key() == certificate.public_key()


def _server_is_good(pems: Mapping[str, bytes], now: datetime) -> bool:
    try:
        authority = x509.load_pem_x509_certificate(pems[CA_CERT])
        certificate = x509.load_pem_x509_certificate(pems[SERVER_CERT])
        key = serialization.load_pem_private_key(pems[SERVER_KEY], None)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        certificate.verify_directly_issued_by(authority)
    except (KeyError, ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    named = SERVER_NAME in names.get_values_for_type(x509.DNSName)
    return named and _lasts(certificate, now) and key.public_key() == certificate.public_key()


def _lasts(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now and now + _RENEW_BEFORE < certificate.not_valid_after_utc


def _issue_authority(now: datetime) -> Pems:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY),
        ]
    )
    builder = _builder(name, name, key, AUTHORITY, now, _AUTHORITY_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_usage(sign=True), critical=True)
    return {CA_CERT: _pem(builder.sign(key, hashes.SHA256())), CA_KEY: _key_pem(key)}


def _issue_server(authority: Pems, now: datetime) -> Pems:
    issuer = x509.load_pem_x509_certificate(authority[CA_CERT])
    issuer_key = serialization.load_pem_private_key(authority[CA_KEY], None)
    assert isinstance(issuer_key, rsa.RSAPrivateKey)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
    builder = _builder(name, issuer.subject, key, SERVER_NAME, now, _SERVER_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(sign=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    certificate = builder.sign(issuer_key, hashes.SHA256(), rsa_padding=padding.PKCS1v15())
    return {**authority, SERVER_CERT: _pem(certificate), SERVER_KEY: _key_pem(key)}


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: rsa.RSAPrivateKey,
    dns_name: str,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + life)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(dns_name)]), critical=False)
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=sign,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: rsa.RSAPrivateKey) -> bytes:
    """PKCS 1, the only form that the real controller reads."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


class CertificateController:
    """Keeps the Secret filled, tells `serve` about each new pair and writes the authority into the webhooks.

    `announced` is called once the webhook configuration holds the authority: from then on the API server can call.
    """

    def __init__(
        self, api: Api, *, serve: Callable[[bytes, bytes], None], announced: Callable[[], None]
    ) -> None:
        self._api, self._serve, self._announced = api, serve, announced
        self._secret = Informer(
            api, f"/api/v1/namespaces/{NAMESPACE}/secrets", field_selector=f"metadata.name={SECRET}"
        )
        self._webhooks = Informer(
            api,
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            field_selector=f"metadata.name={WEBHOOKS}",
        )
        self._controller = Controller("certificates", self._reconcile)
        for informer in (self._secret, self._webhooks):
            self._controller.watch(informer, lambda _: (SECRET,))
        self._controller.queue.add(SECRET)
        self._served = (b"", b"")

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> bool:
        return self._controller.stop()

    def _reconcile(self, _key: str) -> float | None:
        secret = self._secret.get(f"{NAMESPACE}/{SECRET}")
        if secret is None:
            log.warning(
                "waiting for the Secret %s/%s: whoever deploys the controller makes it", NAMESPACE, SECRET
            )
            return None
        pems = {name: base64.b64decode(text) for name, text in (secret.get("data") or {}).items()}
        new = renewed(pems, datetime.now(UTC))
        if new is not None:
            log.info("renewing the certificates in Secret %s/%s", NAMESPACE, SECRET)
            pems |= new
            encoded = {name: base64.b64encode(pem).decode() for name, pem in pems.items()}
            path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"
            self._secret.wrote(self._api.replace(path, secret | {"data": encoded}))
        pair = (pems[SERVER_CERT], pems[SERVER_KEY])
        if pair != self._served:
            self._serve(*pair)
            self._served = pair
        self._announce(base64.b64encode(pems[CA_CERT]).decode())
        return _CHECK_SECONDS

    def _announce(self, authority: str) -> None:
        configuration = self._webhooks.get(WEBHOOKS)
        if configuration is None:
            log.warning(
                "waiting for the webhook configuration %s: whoever deploys the controller makes it", WEBHOOKS
            )
            return
        hooks: list[dict[str, Any]] = configuration.get("webhooks") or []
        changed = [hook | {"clientConfig": hook["clientConfig"] | {"caBundle": authority}} for hook in hooks]
        if changed != hooks:
            path = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{WEBHOOKS}"
            self._webhooks.wrote(self._api.replace(path, configuration | {"webhooks": changed}))
        self._announced()
