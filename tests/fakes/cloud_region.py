"""A simulated cloud in a temporary folder, with a cluster side that makes at once whatever the files ask for."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import math
import shutil
from pathlib import Path
from typing import Self

import yaml

from simulator.cloud import region_file
from simulator.cloud.cloud import Cloud
from simulator.cloud.errors import Refusal
from simulator.cloud.lifecycle import HalfMade
from simulator.cloud.provider import Provider, Session, token_of
from simulator.cloud.wire import Properties
from simulator.files import read_json, write_json

LOCAL_REGION = Path(__file__).parents[2] / "simulator" / "regions" / "local.yaml"
ZONE = "us-central1-ai1a"
BLOCK = "projects/sim-project/reservations/tpu7-reservation/reservationBlocks/block-0"

TOKENS = {
    "Service": "gcp:projects/service:Service",
    "PreviewFeature": "gcp:compute/previewFeature:PreviewFeature",
    "Network": "gcp:compute/network:Network",
    "Subnetwork": "gcp:compute/subnetwork:Subnetwork",
    "Firewall": "gcp:compute/firewall:Firewall",
    "Router": "gcp:compute/router:Router",
    "RouterNat": "gcp:compute/routerNat:RouterNat",
    "ResourcePolicy": "gcp:compute/resourcePolicy:ResourcePolicy",
    "Cluster": "gcp:container/cluster:Cluster",
    "NodePool": "gcp:container/nodePool:NodePool",
    "Account": "gcp:serviceaccount/account:Account",
    "ProjectIAMMember": "gcp:projects/iAMMember:IAMMember",
    "AccountIAMMember": "gcp:serviceaccount/iAMMember:IAMMember",
    "Bucket": "gcp:storage/bucket:Bucket",
    "BucketIAMMember": "gcp:storage/bucketIAMMember:BucketIAMMember",
}


def document() -> dict:
    """The local region's file, to be changed by a test."""
    return yaml.safe_load(LOCAL_REGION.read_text())


class FakeClusterSide:
    """Answers the files of the contract; `slices` are active on a pool as long as a test says so."""

    def __init__(self, root: Path, pause_seconds: float = 0.005) -> None:
        self.root = root
        self.pause_seconds = pause_seconds
        self.slices: dict[str, list[str]] = {}
        self.is_stuck = False

    async def run(self) -> None:
        while True:
            if not self.is_stuck:
                for folder in self.root.glob("*/"):
                    self._answer(folder)
            await asyncio.sleep(self.pause_seconds)

    def _answer(self, folder: Path) -> None:
        wanted = read_json(folder / "cluster.json")
        if wanted is None:
            return
        if wanted.get("deleting"):
            shutil.rmtree(folder)
            return
        status = {"state": "RUNNING", "endpoint": "127.0.0.1:6443", "dnsEndpoint": "localhost:6443"}
        write_json(folder / "status.json", {**status, "caCertificate": "Q0E="})
        pools = folder / "pools"
        names = {
            path.name.removesuffix(".json") for path in pools.glob("*.json") if ".status" not in path.name
        }
        for name in list(names):
            pool = read_json(pools / f"{name}.json")
            if pool is None:  # removed since
                names.discard(name)
                continue
            count = len(pool["hosts"])
            answer = {"hostCount": count, "readyHostCount": count, "activeSlices": self.slices.get(name, [])}
            write_json(pools / f"{name}.status.json", answer)
        for path in pools.glob("*.status.json"):
            if path.name.removesuffix(".status.json") not in names:
                path.unlink()


class CloudRegion:
    """What a test does to a region, in few words."""

    def __init__(self, folder: Path, region: dict | None = None, time_scale: float = math.inf) -> None:
        self.folder = folder
        parsed = region_file.parse(region or document())
        self.cloud = Cloud.open(folder, parsed, time_scale)
        self.cloud.clusters.deadline_seconds = 2.0
        self.provider = Provider(self.cloud)
        self.cluster_side = FakeClusterSide(folder / "clusters")
        self.session = Session()
        self.provider.configure(
            self.session, {"project": "sim-project", "region": "us-central1", "zone": ZONE}
        )

    async def __aenter__(self) -> Self:
        self._answering = asyncio.create_task(self.cluster_side.run())
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._answering.cancel()
        await asyncio.gather(self._answering, return_exceptions=True)

    def check(self, kind: str, inputs: dict, name: str = "it") -> list[str]:
        _inputs, problems = self.provider.check(self.session, urn(kind, name), {}, inputs, b"seed")
        return [problem.path for problem in problems]

    async def create(self, kind: str, inputs: dict, name: str = "it", *, preview: bool = False):
        checked, problems = self.provider.check(self.session, urn(kind, name), {}, inputs, b"seed")
        assert problems == [], problems
        given = Properties(copy.deepcopy(checked))
        return await self.provider.create(self.session, urn(kind, name), given, is_preview=preview)

    async def update(self, kind: str, answer, inputs: dict, name: str = "it", *, preview: bool = False):
        return await self.provider.update(
            self.session, urn(kind, name), answer.id, answer.outputs, Properties(inputs), is_preview=preview
        )

    async def read(self, kind: str, resource_id: str, inputs: dict | None = None):
        return await self.provider.read(self.session, urn(kind, "it"), resource_id, inputs or {}, frozenset())

    async def delete(self, kind: str, answer) -> None:
        await self.provider.delete(self.session, urn(kind, "it"), answer.id)

    def diff(
        self, kind: str, old: dict, new: dict, state: dict | None = None, ignored: list[str] | None = None
    ):
        return self.provider.diff(urn(kind, "it"), old, state or old, new, ignored or [])

    def pool_file(self, pool: str) -> dict:
        return read_json(self.folder / "clusters" / "tpu-serving-cluster" / "pools" / f"{pool}.json")

    # --- The stack of the codelab, step by step -----------------------------------------------------------------

    async def apis(self) -> None:
        for api in ("compute", "container", "iam", "cloudresourcemanager"):
            await self.create("Service", {"service": f"{api}.googleapis.com"}, api)
        inputs = {"name": "ai-zones-visibility", "activationStatus": "ENABLED"}
        await self.create("PreviewFeature", inputs)

    async def network(self) -> None:
        self.vpc = await self.create("Network", NETWORK)
        self.subnet = await self.create("Subnetwork", SUBNET)

    async def cluster(self, **changes):
        await self.apis()
        await self.network()
        return await self.create("Cluster", {**CLUSTER, **changes})

    async def cubes(self) -> None:
        """Cluster and workload policy: everything that a tpu7x pool needs."""
        self.made_cluster = await self.cluster()
        self.policy = await self.create("ResourcePolicy", POLICY)


def urn(kind: str, name: str) -> str:
    made = f"urn:pulumi:local::tpu-slices::tpu-slices:index:Some${TOKENS[kind]}::{name}"
    assert token_of(made) == TOKENS[kind]
    return made


@contextlib.asynccontextmanager
async def region(folder: Path, **options):
    async with CloudRegion(folder, **options) as made:
        yield made


NETWORK = {"name": "qwen-serving-main", "autoCreateSubnetworks": False, "mtu": 8896}
SUBNET = {
    "name": "qwen-serving-tpu",
    "network": "projects/sim-project/global/networks/qwen-serving-main",
    "ipCidrRange": "10.10.0.0/18",
    "secondaryIpRanges": [
        {"rangeName": "pods", "ipCidrRange": "10.64.0.0/14"},
        {"rangeName": "services", "ipCidrRange": "10.96.0.0/20"},
    ],
}
CLUSTER = {
    "name": "tpu-serving-cluster",
    "location": "us-central1",
    "network": "qwen-serving-main",
    "subnetwork": "qwen-serving-tpu",
    "ipAllocationPolicy": {"clusterSecondaryRangeName": "pods", "servicesSecondaryRangeName": "services"},
    "releaseChannel": {"channel": "RAPID"},
    "minMasterVersion": "1.36.0-gke.3712000",
    "initialNodeCount": 1,
    "removeDefaultNodePool": True,
    "addonsConfig": {"sliceControllerConfig": {"enabled": True}},
    "deletionProtection": False,
}
POLICY = {
    "name": "superslice-policy",
    "workloadPolicy": {
        "type": "HIGH_THROUGHPUT",
        "acceleratorTopology": "4x4x4",
        "acceleratorTopologyMode": "PROVISION_ONLY",
    },
}


def tpu_pool(number: int = 1, value: str = BLOCK, **changes) -> dict:
    """A cube as the program makes it."""
    return {
        "name": f"tpu7-pool-{number}",
        "cluster": "tpu-serving-cluster",
        "location": "us-central1",
        "nodeLocations": [ZONE],
        "nodeCount": 16,
        "placementPolicy": {"type": "", "policyName": "superslice-policy"},
        "upgradeSettings": {"maxSurge": 0, "maxUnavailable": 16},
        "nodeConfig": {
            "machineType": "tpu7x-standard-4t",
            "reservationAffinity": {
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": [value],
            },
        },
        **changes,
    }


def v6e_pool(name: str = "multihost-np", topology: str = "4x4", count: int = 4, **changes) -> dict:
    """A static slice as the program makes it."""
    return {
        "name": name,
        "cluster": "tpu-serving-cluster",
        "location": "us-central1",
        "nodeLocations": ["us-central1-b"],
        "nodeCount": count,
        "placementPolicy": {"type": "COMPACT", "tpuTopology": topology},
        "nodeConfig": {"machineType": "ct6e-standard-4t"},
        **changes,
    }


def system_pool(**changes) -> dict:
    """CPU nodes for the controllers."""
    return {
        "name": "system",
        "cluster": "tpu-serving-cluster",
        "location": "us-central1",
        "nodeCount": 1,
        "nodeLocations": ["us-central1-a", "us-central1-b", "us-central1-c"],
        "nodeConfig": {"machineType": "n2-standard-32"},
        **changes,
    }


def in_region(change=None, **options):
    """A test that gets a running region; `change(document)` alters its file first."""

    def decorate(test):
        def run(tmp_path):
            async def whole() -> None:
                changed = document()
                if change is not None:
                    change(changed)
                async with region(tmp_path, region=changed, **options) as made:
                    await test(made)

            asyncio.run(whole())

        run.__name__ = run.__qualname__ = test.__name__
        run.__module__ = test.__module__
        return run

    return decorate


async def refusal_of(operation) -> str:
    """The words with which an operation is refused."""
    try:
        await operation
    except (Refusal, HalfMade) as refused:
        return refused.reason if isinstance(refused, HalfMade) else str(refused)
    raise AssertionError("it was not refused")
