"""The certificates of one cluster, made with `cryptography` (no openssl on the machine is assumed).

Everything lies in `<cluster>/pki/`, is made once and reused, so a restarted control plane keeps its identity.
Refuses nothing; the files are readable by their owner only.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from simulator.files import write_atomically

_VALIDITY = datetime.timedelta(days=365)


class CertificateFolder:
    """Authorities and the certificates that they signed, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def certificate(self, name: str) -> Path:
        """The PEM certificate `name`."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """The PEM private key `name`."""
        return self.folder / f"{name}.key"

    def _write_key(self, name: str, key: ec.EllipticCurvePrivateKey) -> None:
        write_atomically(
            self.key(name),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ),
        )

    def _authority(self, name: str, common_name: str) -> None:
        if self.certificate(name).exists():
            return
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        certificate = (
            self._builder(subject, subject, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self._write_key(name, key)
        write_atomically(self.certificate(name), certificate.public_bytes(serialization.Encoding.PEM))

    def _leaf(
        self,
        name: str,
        authority: str,
        common_name: str,
        *,
        organization: str | None = None,
        names: Sequence[str] = (),
        server: bool = False,
    ) -> None:
        if self.certificate(name).exists():
            return
        issuer = x509.load_pem_x509_certificate(self.certificate(authority).read_bytes())
        issuer_key = serialization.load_pem_private_key(self.key(authority).read_bytes(), password=None)
        assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
        if organization is not None:
            attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if server:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = self._builder(x509.Name(attributes), issuer.subject, key).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general_name(each) for each in names]), critical=False
            )
        self._write_key(name, key)
        write_atomically(
            self.certificate(name),
            builder.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        )

    @staticmethod
    def _builder(
        subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + _VALIDITY)
        )


class Pki(CertificateFolder):
    """The certificate folder of one cluster; `api_server_ip` is the Service IP of the API server."""

    def __init__(self, folder: Path, api_server_ip: str) -> None:
        super().__init__(folder)
        server_names = [
            "127.0.0.1",
            api_server_ip,
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ]
        self._authority("ca", "tpu-slices simulated cluster CA")
        self._authority("front-proxy-ca", "tpu-slices simulated front proxy CA")
        self._authority("etcd-ca", "tpu-slices simulated etcd CA")
        self._leaf("apiserver", "ca", "kube-apiserver", names=server_names, server=True)
        self._leaf("kubelet", "ca", "kubelet", names=["127.0.0.1"], server=True)
        self._leaf("admin", "ca", "region-admin", organization="system:masters")
        self._leaf("apiserver-kubelet", "ca", "kube-apiserver-kubelet", organization="system:masters")
        self._leaf("controller-manager", "ca", "system:kube-controller-manager")
        self._leaf("scheduler", "ca", "system:kube-scheduler")
        self._leaf("front-proxy-client", "front-proxy-ca", "front-proxy-client")
        self._leaf("etcd-server", "etcd-ca", "etcd", names=["127.0.0.1"], server=True)
        self._leaf("etcd-client", "etcd-ca", "kube-apiserver-etcd-client")
        if not self.service_account_public_key.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            self._write_key("service-account", key)
            write_atomically(
                self.service_account_public_key,
                key.public_key().public_bytes(
                    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
                ),
            )

    @property
    def service_account_public_key(self) -> Path:
        """What verifies the tokens of service accounts."""
        return self.folder / "service-account.pub"


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
