"""Generated names stay within what each system takes, whatever they are made from."""

import re
from hashlib import sha1

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import labels, names
from facts.refusal import Refusal

gce_names = st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
label_names = st.from_regex(r"[a-z]([-a-z0-9]{0,30}[a-z0-9])?", fullmatch=True)


@given(gce_names, st.sampled_from(["nodes", "picker", "gcs-fuse"]))
def test_a_service_account_id_is_one_that_iam_takes(base: str, role: str) -> None:
    account = names.service_account_id(base, role)
    assert re.fullmatch(r"[a-z][-a-z0-9]{4,28}[a-z0-9]", account), account


@given(gce_names, gce_names)
def test_two_long_clusters_do_not_share_a_service_account(first: str, second: str) -> None:
    same = names.service_account_id(first, "nodes") == names.service_account_id(second, "nodes")
    assert same == (first == second)


@given(label_names, label_names, label_names, st.integers(0, 999))
def test_a_slice_name_fits_what_gke_adds_to_it(
    namespace: str, workload: str, podset: str, index: int
) -> None:
    name = names.slice_name(namespace, workload, podset, index)
    assert len(name) + len("-12345678") <= 63
    assert re.fullmatch(names.SLICE_NAME, name)


def test_a_short_slice_name_is_its_parts_joined() -> None:
    assert names.slice_name("work", "jobset-a-12345", "job-jax", 3) == "work-jobset-a-12345-job-jax-3"


@given(st.integers(1, 1000))
def test_the_longest_group_name_gives_a_workload_name_that_fits_a_label(replicas: int) -> None:
    lws = "a" * names.lws_name_length(replicas)
    # Kueue 0.18.2 names a group's Workload so; its name is copied into a label of every pod.
    workload = f"leaderworkerset-{lws}-{replicas - 1}-{sha1(lws.encode()).hexdigest()[:5]}"
    assert len(workload) == 63


def test_the_documented_limit_of_a_group_name_is_that_of_ten_replicas() -> None:
    assert names.lws_name_length(10) == names.LWS_NAME_LENGTH


def test_every_network_name_fits_when_its_prefix_does() -> None:
    prefix = "a" * names.NETWORK_PREFIX_LENGTH
    made = names.network_names(prefix).values()
    assert max(map(len, made)) == names.GCE_NAME_LENGTH
    assert len(set(made)) == len(names.NETWORK_SUFFIXES)


def test_slice_pools_are_numbered_from_one_and_only_appended() -> None:
    assert names.slice_pool_names("tpu7-pool", 2) == ["tpu7-pool-1", "tpu7-pool-2"]
    assert names.slice_pool_names("p", 5)[:3] == names.slice_pool_names("p", 3)


@pytest.mark.parametrize("bucket", ["model-weights", "a.b_c-1", "123"])
def test_a_bucket_name_is_taken(bucket: str) -> None:
    assert names.check_bucket(bucket) == bucket


@pytest.mark.parametrize(
    "bucket", ["gs://a", "ab", "My-bucket", "a..b", "my-google-bucket", "goog-1", "-a-b"]
)
def test_what_is_no_bucket_name_is_refused(bucket: str) -> None:
    with pytest.raises(Refusal):
        names.check_bucket(bucket)


def test_a_bucket_with_scheme_is_told_its_bare_name() -> None:
    with pytest.raises(Refusal, match=r"Write model-weights\."):
        names.check_bucket("gs://model-weights/path")


@pytest.mark.parametrize("project", ["example-project", "example.com:project-1"])
def test_a_project_id_is_taken(project: str) -> None:
    assert names.check_project_id(project) == project


def test_every_label_key_is_a_qualified_name() -> None:
    keys = [
        value
        for name, value in vars(labels).items()
        if name.isupper() and isinstance(value, str) and "/" in value
    ]
    keys += [labels.partition_id("2x2x2"), labels.partition_state("4x4x4")]
    assert len(keys) > 30
    for key in keys:
        prefix, _, name = key.partition("/")
        assert re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])", prefix), key
        assert re.fullmatch(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?", name), key
