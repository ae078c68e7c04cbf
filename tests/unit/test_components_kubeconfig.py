"""The kubeconfig opens nothing by itself, and leads to the endpoint that the stack chose."""

import pytest
import yaml

from components.kubeconfig import kubeconfig
from ops import provider_outputs, recording
from tests.unit import plans


def of(access):
    cluster = plans.config_of("local")["tpu-slices:cluster"] | {"controlPlaneAccess": access}
    config = plans.config_of("local") | {"tpu-slices:cluster": cluster}
    texts, _ = plans.stackfile.engine_config(config)
    seen = []
    original = kubeconfig

    def spy(*arguments):
        seen.append(arguments)
        return original(*arguments)

    import components.slice_cluster as module

    module.kubeconfig = spy
    try:
        recording.record(stack_name="test", config=texts, preview=False, outputs=provider_outputs.google)
    finally:
        module.kubeconfig = original
    return yaml.safe_load(original(*seen[0]))["clusters"][0]["cluster"]


def test_it_holds_no_credential():
    user = yaml.safe_load(kubeconfig("c", "10.0.0.1", "Q0E="))["users"][0]["user"]
    assert set(user) == {"exec"}
    assert user["exec"]["command"] == "gke-gcloud-auth-plugin"


def test_it_is_one_cluster_one_context_one_user():
    document = yaml.safe_load(kubeconfig("c", "10.0.0.1", "Q0E="))
    assert document["current-context"] == document["contexts"][0]["name"] == "c"
    assert document["contexts"][0]["context"] == {"cluster": "c", "user": "c"}


@pytest.mark.parametrize(
    ("access", "server"),
    [
        ("dns", provider_outputs.DNS_ENDPOINT),
        ("public", provider_outputs.PUBLIC_ENDPOINT),
        (["203.0.113.0/24"], provider_outputs.PUBLIC_ENDPOINT),
        (["10.0.0.0/8"], provider_outputs.PRIVATE_ENDPOINT),
    ],
)
def test_it_leads_to_the_endpoint_that_the_stack_chose(access, server):
    assert of(access)["server"] == f"https://{server}"


def test_by_name_googles_public_certificate_is_trusted_and_by_address_the_clusters_own():
    assert "certificate-authority-data" not in of("dns")
    assert of("public")["certificate-authority-data"] == provider_outputs.CERTIFICATE_AUTHORITY


@pytest.mark.parametrize("stack", plans.STACKS)
def test_the_exported_kubeconfig_is_a_secret(stack):
    assert plans.deployed(stack).stack_outputs["kubeconfig"] == recording.SECRET
