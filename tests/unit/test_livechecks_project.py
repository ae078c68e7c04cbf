"""Live checks of the project: credentials, number, billing, rights, zone, version, quota."""

import pytest

from livechecks import permissions
from livechecks import provider_questions as questions
from livechecks.findings import Verdict, notes_of, refusal_of
from tests.fakes import google_answers as fake
from tests.fakes.google_answers import google_of


@pytest.mark.parametrize("stack", ["dev", "local", "pathways", "prod"])
def test_a_google_that_agrees_with_everything_refuses_nothing(stack):
    found = google_of(stack).findings()
    assert refusal_of(found) is None
    assert [finding.text for finding in found if finding.verdict is Verdict.CAUTION] == []
    assert sum(finding.verdict is Verdict.PASSED for finding in found) >= 6


def test_without_credentials_only_that_is_said():
    def change(google):
        for token in google.functions:
            google.functions[token] = fake.NO_CREDENTIALS
        google.reservation = fake.NO_CREDENTIALS

    found = google_of("prod", change).findings()
    assert len(found) == 1
    assert "must be deployed with credentials that Google takes" in found[0].text
    assert "gcloud auth application-default login" in found[0].text
    assert "nothing was changed" in refusal_of(found)


def test_an_expired_login_is_a_matter_of_credentials():
    def change(google):
        google.functions[questions.PROJECT] = Exception('oauth2: "invalid_grant" "reauth related error"')

    assert "credentials that Google takes" in google_of("dev", change).refused()[0]


@pytest.mark.parametrize("problem", [fake.FORBIDDEN, fake.API_OFF, fake.NOT_FOUND])
def test_a_project_that_may_not_be_looked_at_is_for_a_person(problem):
    google = google_of("dev", lambda made: made.functions.update({questions.PROJECT: problem}))
    assert google.refused() == []
    assert "not checked: project example-dev" in google.said(Verdict.MANUAL)


def test_another_project_number_is_refused():
    (text,) = google_of("dev", projectNumber="100000000009").refused()
    assert text.startswith("`tpu-slices:projectNumber` must be 100000000001 (got 100000000009)")


def test_a_project_without_billing_is_refused():
    (text,) = google_of("dev", lambda made: made.rest.update(billingInfo=(200, {"name": "x"}))).refused()
    assert "`gcp:project` must have billing enabled (got example-dev)" in text


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (fake.error(403, "The caller does not have permission"), "not permitted"),
        (
            fake.error(403, "Cloud Billing API has not been used in project 1", "SERVICE_DISABLED"),
            "API is not",
        ),
        (fake.error(500, "Internal error"), "Internal error"),
        ((502, b"<html>bad gateway</html>"), "bad gateway"),
        ((200, b"no json"), "no JSON object"),
    ],
)
def test_billing_that_may_not_be_seen_is_for_a_person(answer, reason):
    google = google_of("dev", lambda made: made.rest.update(billingInfo=answer))
    assert google.refused() == []
    text = google.said(Verdict.MANUAL)
    assert "not checked: billing" in text
    assert reason in text


def test_a_linked_account_is_enough_where_rest_is_silent():
    def change(google):
        google.rest["billingInfo"] = fake.error(403, "no")
        google.functions[questions.PROJECT]["billingAccount"] = "000000-000000-000000"

    assert "billing" not in google_of("dev", change).said(Verdict.MANUAL)


def test_every_missing_permission_is_refused():
    def change(google):
        held = [name for name in permissions.needed(google.stack) if ".create" not in name]
        google.rest[":testIamPermissions"] = (200, {"permissions": held})

    texts = google_of("dev", change).refused()
    assert len(texts) == sum(".create" in name for name in permissions.needed(fake.settings_of("dev")))
    assert "`gcp:project` must grant container.clusters.create to the deployer (got example-dev)" in texts[0]


def test_a_deployer_with_no_permission_gets_an_answer_without_the_field():
    google = google_of("dev", lambda made: made.rest.update({":testIamPermissions": (200, {})}))
    assert len(google.refused()) == len(permissions.needed(google.stack))


def test_beside_a_running_cluster_a_missing_permission_is_a_caution():
    def change(google):
        google.rest[":testIamPermissions"] = (200, {})
        google.functions[questions.CLUSTER] = fake.cluster_with()

    google = google_of("dev", change)
    assert google.refused() == []
    assert "the deployer lacks serviceusage.services.enable" in google.said(Verdict.CAUTION)


def test_a_deployer_who_may_not_ask_for_his_permissions_is_not_refused():
    answer = fake.error(400, "Permission x is not valid for this resource")
    google = google_of("dev", lambda made: made.rest.update({":testIamPermissions": answer}))
    assert google.refused() == []
    assert "the deployer's permissions" in google.said(Verdict.MANUAL)


def test_permissions_follow_from_the_sections():
    existing = {"existing": {"network": "theirs", "subnet": "theirs-tpu"}}
    assert not [
        name for name in permissions.needed(fake.settings_of("dev", network=existing)) if "network" in name
    ]
    assert "compute.resourcePolicies.create" not in permissions.needed(fake.settings_of("pathways"))
    assert "compute.resourcePolicies.create" in permissions.needed(fake.settings_of("dev"))


def test_an_ordinary_zone_that_the_project_does_not_see_is_refused():
    google = google_of("pathways", lambda made: made.functions[questions.ZONES].update(names=["us-east1-b"]))
    (text,) = google.refused()
    assert text.startswith("`tpu-slices:zone` must be a zone that the project sees (got us-east1-d)")
    assert "us-east1-b" in text


def hide_zone(google):
    google.functions[questions.ZONES]["names"] = ["us-central1-a"]
    google.reservation = google.block = fake.NOT_FOUND
    google.rest["previewFeatures"] = (200, {"activationStatus": "DISABLED"})


def test_an_ai_zone_that_is_hidden_yet_is_no_reason_to_refuse():
    google = google_of("dev", hide_zone)
    assert google.refused() == []
    assert "switches on preview feature ai-zones-visibility" in google.said(Verdict.CAUTION)
    assert "not checked: reservation tpu7x-dev" in google.said(Verdict.MANUAL)


def test_a_feature_that_is_on_for_a_zone_that_is_not_there_is_said():
    def change(google):
        hide_zone(google)
        google.rest["previewFeatures"] = (200, {"activationStatus": "ENABLED"})

    assert "may still be spreading, or the zone is spelt otherwise" in google_of("dev", change).said(
        Verdict.CAUTION
    )


def test_zones_that_may_not_be_listed_are_for_a_person():
    google = google_of("pathways", lambda made: made.functions.update({questions.ZONES: fake.API_OFF}))
    assert google.refused() == []
    assert "not checked: zone us-east1-d (its API is not enabled" in google.said(Verdict.MANUAL)


def test_a_version_that_the_channel_does_not_offer_is_refused():
    channels = {"channels": [{"channel": "RAPID", "validVersions": ["1.37.0-gke.1"]}]}
    (text,) = google_of("dev", lambda made: made.rest.update(serverConfig=(200, channels))).refused()
    assert text.startswith(
        "`tpu-slices:cluster.version` must be one that GKE offers in us-central1, channel RAPID"
    )
    assert "1.37.0-gke.1" in text


def test_a_version_that_the_cluster_runs_already_need_not_be_offered():
    def change(google):
        google.rest["serverConfig"] = (200, {"channels": [{"channel": "RAPID", "validVersions": []}]})
        google.functions[questions.CLUSTER] = fake.cluster_with(version=google.stack.cluster.version)

    assert google_of("dev", change).refused() == []


def no_token(google):
    google.functions[questions.CLIENT_CONFIG] = {"accessToken": ""}


def test_without_rest_a_version_newer_than_all_is_refused_and_one_that_is_not_listed_is_not():
    def newer(google):
        no_token(google)
        google.functions[questions.ENGINE_VERSIONS] = {
            "validMasterVersions": [],
            "releaseChannelLatestVersion": {"RAPID": "1.35.2-gke.1842000"},
        }

    assert "must be one that GKE offers" in google_of("dev", newer).refused()[0]

    def older(google):
        newer(google)
        google.functions[questions.ENGINE_VERSIONS]["releaseChannelLatestVersion"] = {"RAPID": "1.37.0-gke.1"}

    google = google_of("dev", older)
    assert google.refused() == []
    assert "not checked: that GKE offers 1.36.0-gke.3712000" in google.said(Verdict.MANUAL)


def test_too_little_v6e_quota_is_refused():
    google = google_of(
        "pathways", lambda made: made.rest.update({"%2Ftpus_per_tpu_family": (200, fake.quota(16))})
    )
    (text,) = google.refused()
    assert text.startswith("`tpu-slices:multihostPools` must ask for at most 16 v6e chips on demand (got 32)")


def test_a_quota_without_end_is_enough():
    assert (
        google_of(
            "pathways", lambda made: made.rest.update({"%2Ftpus_per_tpu_family": (200, fake.quota(-1))})
        ).refused()
        == []
    )


@pytest.mark.parametrize(
    "answer",
    [fake.error(403, "Permission 'serviceusage.quotas.get' denied"), (200, {"consumerQuotaLimits": []})],
)
def test_a_quota_that_is_not_shown_is_for_a_person(answer):
    google = google_of("pathways", lambda made: made.rest.update({"%2Ftpus_per_tpu_family": answer}))
    assert google.refused() == []
    assert "not checked: v6e quota for 32 chips" in google.said(Verdict.MANUAL)


def test_spot_hosts_beyond_both_quotas_are_a_caution():
    pools = [{"name": "spot-np", "machineType": "ct6e-standard-4t", "topology": "4x4", "spot": True}]

    def change(google):
        for part in ("%2Ftpus_per_tpu_family", "%2Fpreemptible_tpus_per_tpu_family"):
            google.rest[part] = (200, fake.quota(8))

    google = google_of("pathways", change, multihostPools=pools)
    assert google.refused() == []
    assert "16 v6e chips on spot" in google.said(Verdict.CAUTION)


def test_what_no_api_shows_is_listed_for_a_person():
    (note,) = notes_of(google_of("pathways").findings())
    assert note.startswith("live checks leave 1 item to a person:")
    assert "No API shows whether us-east1-d has v6e hosts to spare now" in note
