"""Kueue's objects follow from the cubes, and are spelt as Kueue spells them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from components import queue_objects
from facts import hosts, tpu
from tests.unit import plans

CUBES = st.integers(min_value=1, max_value=tpu.CUBES_PER_BLOCK)


def quotas(cube_count):
    (group,) = queue_objects.cluster_queue("cq", cube_count, ["a"])["spec"]["resourceGroups"]
    (flavor,) = group["flavors"]
    assert group["coveredResources"] == [resource["name"] for resource in flavor["resources"]]
    return {resource["name"]: resource["nominalQuota"] for resource in flavor["resources"]}


@given(CUBES)
def test_the_chip_quota_is_what_the_cubes_have(cube_count):
    assert parse_quantity(quotas(cube_count)["google.com/tpu"]) == cube_count * 64


@given(CUBES)
def test_cpu_and_memory_quotas_never_exceed_the_hosts_and_miss_less_than_one_unit(cube_count):
    host_count = cube_count * 16
    cpu = parse_quantity(quotas(cube_count)["cpu"])
    memory = parse_quantity(quotas(cube_count)["memory"])
    assert 0 <= Decimal(host_count * hosts.TPU7X_STANDARD_4T.cpu_millis) / 1000 - cpu < 1
    assert 0 <= host_count * hosts.TPU7X_STANDARD_4T.memory_kib * 1024 - memory < 1024**3


@given(st.integers(min_value=1, max_value=10**15), st.sampled_from([1000, 1024]))
def test_a_quantity_means_the_number_and_takes_the_largest_unit_that_divides_it(value, base):
    spelt = queue_objects.quantity(value, base=base)
    assert parse_quantity(spelt) == value * (1 if base == 1000 else 1024)
    digits = spelt.rstrip("kKMGTPEi")
    assert int(digits) % base != 0


@pytest.mark.parametrize(
    ("value", "base", "spelt"), [(128, 1000, "128"), (8000, 1000, "8k"), (1024, 1024, "1Mi"), (0, 1000, "0")]
)
def test_quantities_are_spelt_as_the_kubernetes_api_writes_them(value, base, spelt):
    # Canonical form: resource.Quantity, "no fractional digits, the exponent as large as possible".
    assert queue_objects.quantity(value, base=base) == spelt


def test_the_topology_lists_the_seeds_seven_levels_in_order():
    # The codelab's step 5.
    assert [level["nodeLabel"] for level in queue_objects.topology()["spec"]["levels"]] == [
        "cloud.google.com/gce-topology-block",
        "cloud.google.com/gke-tpu-partition-4x4x4-id",
        "cloud.google.com/gke-tpu-partition-2x4x4-id",
        "cloud.google.com/gke-tpu-partition-2x2x4-id",
        "cloud.google.com/gke-tpu-partition-2x2x2-id",
        "cloud.google.com/gke-tpu-partition-2x2x1-id",
        "kubernetes.io/hostname",
    ]


def test_the_queue_lets_in_only_the_named_namespaces():
    selector = queue_objects.cluster_queue("cq", 1, ["b", "a", "b"])["spec"]["namespaceSelector"]
    assert selector == {
        "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a", "b"]}]
    }


def test_every_kueue_object_of_a_stack_is_v1beta2():
    versions = {
        found.inputs["apiVersion"]
        for found in plans.planned("prod").registrations.values()
        if found.inputs.get("apiVersion", "").startswith("kueue.")
    }
    assert versions == {"kueue.x-k8s.io/v1beta2"}
