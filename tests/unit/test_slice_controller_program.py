"""Flags, time, certificates, servers and leadership of the slice controller stand-in, and its manifest."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from simulator.kube_api import Api, ApiException
from simulator.slice_controller import certificates, flags, server, timing, webhooks
from simulator.slice_controller.leadership import LEASE, Leadership
from simulator.slice_controller.timing import Timing

NOW = datetime.now(UTC)


def manifest(repository: Path, name: str):
    return yaml.safe_load((repository / "manifests" / "slice-controller" / f"{name}.yaml").read_text())


# --- flags ---


def test_defaults_are_the_real_controllers():
    given = flags.parse([])
    assert given.activation_timeout_seconds == 180
    assert given.retry_delay_seconds == 10
    assert given.healthy_values == ("HEALTHY", "DEGRADED")
    assert not given.leader_elect
    assert given.gates == {
        "UseRetryMechanismForSliceCreation": False,
        "FailOnUntoleratedDegradedSlice": False,
        "TopologyFromNodeSelectorOrAffinity": True,
    }


def test_flags_are_read_as_go_reads_them():
    given = flags.parse(
        [
            "-leader-elect",
            "--activation-timeout",
            "1h2m3.5s",
            "--feature-gates=FailOnUntoleratedDegradedSlice=true,TopologyFromNodeSelectorOrAffinity=false",
            "--default-slice-health-node-affinity=HEALTHY",
            "--zap-log-level=3",
        ]
    )
    assert given.leader_elect
    assert given.activation_timeout_seconds == 3723.5
    assert given.healthy_values == ("HEALTHY",)
    assert given.gates["FailOnUntoleratedDegradedSlice"]
    assert not given.gates["TopologyFromNodeSelectorOrAffinity"]
    assert given.verbosity == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--unknown=1"], "flag provided but not defined: -unknown"),
        (["serve"], "unexpected argument 'serve'"),
        (["--activation-timeout"], "flag needs an argument: -activation-timeout"),
        (["--activation-timeout=6"], "invalid value for flag -activation-timeout: must be a Go duration"),
        (["--feature-gates=Nope=true"], "unrecognized feature gate: Nope"),
        (["--default-slice-health-node-affinity=SICK"], "must be HEALTHY or HEALTHY_AND_DEGRADED"),
        (["--leader-elect=maybe"], "must be true or false"),
        (["--reuse-slices=true"], "is not modelled by the stand-in"),
    ],
)
def test_wrong_flags_are_refused_with_the_flag_and_the_reason(arguments, text):
    with pytest.raises(ValueError, match=text.replace("(", r"\(")):
        flags.parse(arguments)


# --- time ---


def test_real_time_keeps_the_contracts_timers():
    real = Timing.of(activation_timeout=360, retry_delay=10)
    assert (real.cleanup_retry, real.initialization_retry, real.slice_event_batch) == (5.0, 5.0, 1.0)
    assert (real.activation_timeout, real.retry_delay) == (360, 10)
    assert (real.lease_duration, real.lease_renew_deadline, real.lease_retry) == (15, 10, 2)


def test_the_fastest_region_still_gives_a_slice_time_to_form():
    fast = Timing.of(activation_timeout=360, retry_delay=10, scale=float("inf"))
    assert fast.activation_timeout == 20
    assert fast.retry_delay == 1
    assert fast.cleanup_retry < 1
    assert Timing.of(activation_timeout=3, retry_delay=0, scale=100).activation_timeout == 3
    assert Timing.of(activation_timeout=3, retry_delay=0, scale=100).retry_delay == 0


@pytest.mark.parametrize(("text", "scale"), [("", 1.0), ("20", 20.0), ("inf", float("inf"))])
def test_the_scale_comes_from_the_environment(text, scale):
    assert timing.time_scale({timing.TIME_SCALE_VARIABLE: text}) == scale


@pytest.mark.parametrize("text", ["0", "-1", "fast", "nan"])
def test_a_scale_that_no_wait_can_be_divided_by_is_refused(text):
    with pytest.raises(ValueError, match=r"TPU_SLICES_TIME_SCALE must be a positive number"):
        timing.time_scale({timing.TIME_SCALE_VARIABLE: text})


# --- certificates ---


@pytest.fixture(scope="module")
def pems():
    found = certificates.renewed({}, NOW)
    assert found is not None
    return found


def test_good_certificates_are_left_alone(pems):
    assert certificates.renewed(pems, NOW) is None
    assert certificates.renewed(pems, NOW + timedelta(days=200)) is None


def test_a_server_certificate_is_renewed_in_time_under_the_same_authority(pems):
    renewed = certificates.renewed(pems, NOW + timedelta(days=280))
    assert renewed is not None
    assert renewed["ca.crt"] == pems["ca.crt"]
    assert renewed["tls.crt"] != pems["tls.crt"]


@pytest.mark.parametrize("broken", ["ca.crt", "ca.key"])
def test_a_lost_authority_is_replaced_with_all_that_it_signed(pems, broken):
    renewed = certificates.renewed(pems | {broken: b"garbage"}, NOW)
    assert renewed is not None
    assert renewed["ca.crt"] != pems["ca.crt"]
    assert renewed["tls.crt"] != pems["tls.crt"]


def test_the_certificate_names_the_service_and_its_key_is_in_the_form_that_go_reads(pems):
    certificate = x509.load_pem_x509_certificate(pems["tls.crt"])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [
        "slice-controller-webhook-service.slice-controller-system.svc"
    ]
    assert pems["tls.key"].startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    assert pems["ca.key"].startswith(b"-----BEGIN RSA PRIVATE KEY-----")


# --- servers ---


def test_the_webhook_server_answers_over_tls_and_takes_a_new_certificate_while_it_runs(pems):
    rules = webhooks.Rules(healthy_values=("HEALTHY",), topology_from_selectors=True)
    running = server.WebhookServer(rules, port=0)
    assert not running.is_serving
    authorities = (pems, certificates.renewed({}, NOW))
    try:
        for given in authorities:
            assert given is not None
            running.use(given["tls.crt"], given["tls.key"])
            context = ssl.create_default_context(cadata=given["ca.crt"].decode())
            context.check_hostname = False
            request = {"request": {"uid": "u", "operation": "CREATE", "object": {"metadata": {}}}}
            with urllib.request.urlopen(
                urllib.request.Request(
                    f"https://127.0.0.1:{running.port}/mutate-batch-v1-job?timeout=10s",
                    data=json.dumps(request).encode(),
                ),
                context=context,
            ) as answer:
                assert json.load(answer)["response"] == {"uid": "u", "allowed": True}
    finally:
        running.stop()


def test_ready_is_said_only_when_it_is_true():
    is_ready = False
    running = server.HealthServer("127.0.0.1:0", lambda: is_ready)
    running.start()
    try:
        base = f"http://127.0.0.1:{running._server.server_port}"
        assert urllib.request.urlopen(f"{base}/healthz").read() == b"ok"
        with pytest.raises(urllib.error.HTTPError, match="500"):
            urllib.request.urlopen(f"{base}/readyz")
        is_ready = True
        assert urllib.request.urlopen(f"{base}/readyz").status == 200
    finally:
        running.stop()


# --- leadership ---


class LeaseApi(Api):
    """One lease, with the server's refusal of stale writes."""

    def __init__(self):
        self.lease = None

    def get(self, path, **query):
        if self.lease is None:
            raise ApiException(status=404, reason="none")
        return self.lease

    def create(self, path, obj, **query):
        self.lease = obj | {"metadata": obj["metadata"] | {"resourceVersion": "1"}}
        return self.lease

    def replace(self, path, obj, **query):
        if obj["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise ApiException(status=409, reason="stale")
        version = str(int(obj["metadata"]["resourceVersion"]) + 1)
        self.lease = obj | {"metadata": obj["metadata"] | {"resourceVersion": version}}
        return self.lease


def candidate(api, identity, clock):
    return Leadership(
        api,
        namespace="ns",
        identity=identity,
        timing=Timing(),
        lead=lambda: None,
        lost=lambda: None,
        clock=clock,
    )


def test_a_lease_is_held_by_one_and_passes_on_when_its_holder_falls_silent():
    now = 0.0
    api = LeaseApi()
    first, second = (candidate(api, name, lambda: now) for name in ("first", "second"))
    assert first.acquire_or_renew()
    assert api.lease["metadata"]["name"] == LEASE
    assert not second.acquire_or_renew()
    now = 14.9
    assert not second.acquire_or_renew()
    now = 15.0
    assert second.acquire_or_renew()
    assert api.lease["spec"]["holderIdentity"] == "second"
    assert api.lease["spec"]["leaseTransitions"] == 1
    assert not first.acquire_or_renew()


def test_a_renewed_lease_is_believed_for_its_whole_duration_again():
    now = 0.0
    api = LeaseApi()
    first, second = (candidate(api, name, lambda: now) for name in ("first", "second"))
    first.acquire_or_renew()
    second.acquire_or_renew()
    now = 14.0
    assert first.acquire_or_renew()
    now = 28.0
    assert not second.acquire_or_renew()


def test_a_lease_that_was_given_back_is_free_at_once():
    api = LeaseApi()
    candidate(api, "first", lambda: 0.0).acquire_or_renew()
    api.lease["spec"]["holderIdentity"] = ""
    assert candidate(api, "second", lambda: 0.0).acquire_or_renew()


# --- the manifest ---


def test_the_manifests_flags_are_flags_of_the_controller(repository):
    deployment = manifest(repository, "deployment")
    given = flags.parse(deployment["spec"]["template"]["spec"]["containers"][0]["args"])
    assert given.leader_elect
    assert given.gates["UseRetryMechanismForSliceCreation"]
    assert given.health_probe_bind_address == ":8081"


def test_the_webhooks_of_the_manifest_are_the_ones_that_are_served_and_only_for_create(repository):
    configuration = manifest(repository, "mutating-webhook-configuration")
    assert configuration["metadata"]["name"] == certificates.WEBHOOKS
    paths = [hook["clientConfig"]["service"]["path"] for hook in configuration["webhooks"]]
    assert sorted(paths) == sorted(webhooks.MUTATIONS)
    for hook in configuration["webhooks"]:
        service = hook["clientConfig"]["service"]
        assert f"{service['name']}.{service['namespace']}.svc" == certificates.SERVER_NAME
        assert [rule["operations"] for rule in hook["rules"]] == [["CREATE"]]
        assert hook["objectSelector"]["matchExpressions"]
        assert hook["sideEffects"] == "None"


def test_names_of_the_manifest_are_the_ones_that_the_controller_has_built_in(repository):
    secret, service, role = (manifest(repository, name) for name in ("secret", "service", "role"))
    namespace = manifest(repository, "namespace")["metadata"]["name"]
    assert (secret["metadata"]["name"], secret["metadata"]["namespace"]) == (certificates.SECRET, namespace)
    assert (service["metadata"]["name"], namespace) == (certificates.SERVICE, certificates.NAMESPACE)
    assert service["spec"]["ports"][0]["targetPort"] == server.WEBHOOK_PORT
    named = {name for rule in role["rules"] for name in rule.get("resourceNames", [])}
    assert named == {certificates.SECRET, LEASE}
    assert "data" not in secret


def test_no_right_of_the_manifest_is_a_wildcard_or_reaches_other_secrets(repository):
    rules = manifest(repository, "cluster-role")["rules"]
    for rule in rules:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert not {"secrets", "configmaps", "pods/exec"} & set(rule["resources"])
    writes = {
        resource
        for rule in rules
        for resource in rule["resources"]
        if set(rule["verbs"]) - {"get", "list", "watch"}
    }
    assert writes == {
        "workloads",
        "workloads/status",
        "admissionchecks/status",
        "slices",
        "slices/status",
        "mutatingwebhookconfigurations",
        "events",
    }


def test_service_and_deployment_select_the_same_pods(repository):
    deployment, service = manifest(repository, "deployment"), manifest(repository, "service")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    mounts = deployment["spec"]["template"]["spec"]["volumes"]
    assert mounts[0]["secret"]["secretName"] == certificates.SECRET


def test_a_ca_bundle_is_base64_of_the_authority(pems):
    class Recorded(Api):
        def __init__(self):
            self.replaced = None

        def replace(self, path, obj, **query):
            self.replaced = obj
            return obj | {"metadata": obj["metadata"] | {"resourceVersion": "9"}}

    api = Recorded()
    announced = []
    controller = certificates.CertificateController(
        api, serve=lambda *_: None, announced=lambda: announced.append(True)
    )
    hooks = [{"name": "a", "clientConfig": {"service": {}}}, {"name": "b", "clientConfig": {"service": {}}}]
    controller._webhooks.wrote(
        {"metadata": {"name": certificates.WEBHOOKS, "resourceVersion": "1"}, "webhooks": hooks}
    )
    encoded = {name: base64.b64encode(pem).decode() for name, pem in pems.items()}
    metadata = {"name": certificates.SECRET, "namespace": certificates.NAMESPACE, "resourceVersion": "2"}
    controller._secret.wrote({"metadata": metadata, "data": encoded})
    controller._reconcile("")
    assert {hook["clientConfig"]["caBundle"] for hook in api.replaced["webhooks"]} == {encoded["ca.crt"]}
    assert announced
