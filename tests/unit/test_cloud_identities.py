"""Service accounts, IAM members and buckets."""

from tests.fakes.cloud_region import in_region, refusal_of

EMAIL = "cluster-nodes@sim-project.iam.gserviceaccount.com"
WORKLOAD = (
    "principal://iam.googleapis.com/projects/100000000001/locations/global/workloadIdentityPools/"
    "sim-project.svc.id.goog/subject/ns/llm-d/sa/gcs-fuse-ksa"
)
BUCKET = {"name": "pathways-scratch", "location": "us-central1"}


@in_region()
async def test_an_account_has_an_address_and_is_a_member_by_it(region):
    await region.apis()
    account = await region.create("Account", {"accountId": "cluster-nodes"})
    assert account.outputs["email"] == EMAIL
    assert account.outputs["member"] == f"serviceAccount:{EMAIL}"
    assert account.id == account.outputs["name"] == f"projects/sim-project/serviceAccounts/{EMAIL}"
    assert "already exists within project" in await refusal_of(
        region.create("Account", {"accountId": "cluster-nodes"}, "second")
    )


@in_region()
async def test_a_role_is_not_given_to_an_account_that_does_not_exist(region):
    await region.apis()
    member = {"project": "sim-project", "role": "roles/x.y", "member": f"serviceAccount:{EMAIL}"}
    assert f"Service account {EMAIL} does not exist." in await refusal_of(
        region.create("ProjectIAMMember", member)
    )
    await region.create("Account", {"accountId": "cluster-nodes"})
    given = await region.create("ProjectIAMMember", member)
    assert given.id == f"sim-project/roles/x.y/serviceAccount:{EMAIL}"


@in_region()
async def test_roles_and_members_have_forms(region):
    def paths(**changes):
        return region.check(
            "ProjectIAMMember", {"project": "p", "role": "roles/a.b", "member": WORKLOAD, **changes}
        )

    assert paths() == []
    assert paths(role="storage.objectUser") == ["role"]
    assert paths(member="cluster-nodes") == ["member"]
    assert paths(member="serviceAccount:sim-project.svc.id.goog[default/default]") == []
    assert region.check("Account", {"accountId": "ab"}) == ["accountId"]


@in_region()
async def test_a_workload_may_act_as_an_account(region):
    await region.apis()
    account = await region.create("Account", {"accountId": "cluster-nodes"})
    given = {"serviceAccountId": account.id, "role": "roles/iam.workloadIdentityUser", "member": WORKLOAD}
    await region.create("AccountIAMMember", given)
    missing = {**given, "serviceAccountId": account.id.replace("nodes", "other")}
    assert "Unknown service account" in await refusal_of(region.create("AccountIAMMember", missing))


@in_region()
async def test_the_bucket_with_the_weights_is_there_and_nobody_can_make_it_again(region):
    member = {"bucket": "model-weights", "role": "roles/storage.objectUser", "member": WORKLOAD}
    given = await region.create("BucketIAMMember", member)
    assert given.id == f"b/model-weights/roles/storage.objectUser/{WORKLOAD}"
    said = await refusal_of(region.create("Bucket", {**BUCKET, "name": "model-weights"}))
    assert "you already own it" in said
    nowhere = {**member, "bucket": "nowhere"}
    assert "The specified bucket does not exist." in await refusal_of(
        region.create("BucketIAMMember", nowhere)
    )


def foreign_bucket(document):
    document["projects"].append({"id": "other-project", "number": "100000000002"})
    document["buckets"].append({"name": "pathways-scratch", "project": "other-project", "location": "EU"})


@in_region(foreign_bucket)
async def test_bucket_names_are_unique_in_the_world(region):
    assert "The bucket namespace is shared by all users" in await refusal_of(region.create("Bucket", BUCKET))


@in_region()
async def test_a_bucket_goes_with_its_bindings(region):
    bucket = await region.create("Bucket", BUCKET)
    assert bucket.outputs["url"] == "gs://pathways-scratch"
    assert bucket.outputs["location"] == "US-CENTRAL1"
    await region.create(
        "BucketIAMMember",
        {"bucket": "pathways-scratch", "role": "roles/storage.objectUser", "member": WORKLOAD},
    )
    await region.delete("Bucket", bucket)
    assert region.cloud.inventory.resources == {}


@in_region()
async def test_the_spelling_of_a_location_is_no_change(region):
    old = {**BUCKET, "location": "US-CENTRAL1"}
    assert region.diff("Bucket", old, BUCKET).differences == []
