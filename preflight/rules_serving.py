"""Rules of queues and serving: homes, shapes, buckets and names.

Owns what joins serving with the pools it runs on and the queues it goes through. Refuses to look into a bucket:
whether weights lie there is a live check.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from facts import names, pathways, tpu
from facts.refusal import Refusal
from facts.text import counted

if TYPE_CHECKING:
    from settings import Settings

Found = Iterator[tuple[str, Refusal]]


def queues_are_distinct_and_ours(settings: "Settings", _now: datetime) -> Found:
    """One queue of a name in a namespace, none in a system namespace, and some priority class."""
    seen: set[tuple[str, str]] = set()
    for index, queue in enumerate(settings.queues.local_queues):
        path = f"queues.localQueues[{index}]"
        if queue.namespace in names.SYSTEM_NAMESPACES:
            yield (
                f"{path}.namespace",
                Refusal(
                    "must not be a system namespace",
                    got=queue.namespace,
                    reason="Kueue would hold back the pods that the cluster and its controllers live on",
                    way_out="Use a namespace for workloads; the program makes it.",
                ),
            )
        if (queue.namespace, queue.name) in seen:
            yield (
                path,
                Refusal(
                    "must be listed once",
                    got=f"{queue.name} in {queue.namespace}",
                    reason="a namespace has one queue of a name",
                    way_out="Remove one of them.",
                ),
            )
        seen.add((queue.namespace, queue.name))
    if not settings.queues.priority_classes:
        yield (
            "queues.priorityClasses",
            Refusal(
                "must not be empty",
                reason="workloads name their priority class, and Kueue refuses one that does not exist",
                way_out="Remove the key, and the three defaults are made.",
            ),
        )


def prefill_and_decode_have_a_home(settings: "Settings", _now: datetime) -> Found:
    """Serving has cubes to run on, a queue in its namespace and priorities that exist."""
    serving = settings.pd_serving
    if serving is None:
        return
    if not settings.slice_pools:
        yield (
            "pdServing",
            Refusal(
                "must not be set without `slicePools`",
                reason="prefill and decode run on tpu7x slices",
                way_out="Add the cubes, or remove `pdServing`.",
            ),
        )
    homes = [queue.namespace for queue in settings.queues.local_queues]
    if serving.namespace not in homes:
        yield (
            "pdServing.namespace",
            Refusal(
                "must have a queue",
                got=serving.namespace,
                reason=f"Kueue manages only {', '.join(homes)}, and no Slice is made outside its queues",
                way_out="Add it to `queues.localQueues`, or use one of those.",
            ),
        )
    known = settings.queues.priority_classes
    for role in ("prefill", "decode"):
        priority = getattr(serving, role).priority
        if priority not in known:
            yield (
                f"pdServing.{role}.priority",
                Refusal(
                    f"must be one of {', '.join(known)}",
                    got=priority,
                    reason="Kueue knows no other priority class",
                    way_out="Use one of those, or add it to `queues.priorityClasses`.",
                ),
            )


def prefill_and_decode_match(settings: "Settings", _now: datetime) -> Found:
    """Tensor parallelism fills the slice, and both roles split the model the same way."""
    serving = settings.pd_serving
    if serving is None:
        return
    for role in ("prefill", "decode"):
        part = getattr(serving, role)
        devices = part.shape.device_count
        if part.tensor_parallel != devices:
            more = part.tensor_parallel > devices
            yield (
                f"pdServing.{role}.tensorParallelSize",
                Refusal(
                    f"must be {devices} for a {part.topology} slice",
                    got=part.tensor_parallel,
                    reason=f"{part.topology} is {part.shape.chip_count} chips of 2 devices"
                    + (", not more" if more else ", and the others would idle"),
                    way_out="Leave it out, and it follows from the shape.",
                ),
            )
    if serving.prefill.topology != serving.decode.topology:
        yield (
            "pdServing.decode.topology",
            Refusal(
                "must equal `pdServing.prefill.topology`",
                got=f"{serving.decode.topology} beside {serving.prefill.topology}",
                reason="the KV cache moves device by device, so both roles split the model the same way",
                way_out="Use one shape for both, and `replicas` for the balance between them.",
            ),
        )


def prefill_and_decode_fit_the_cubes(settings: "Settings", _now: datetime) -> Found:
    """All groups have a slice at the same time."""
    serving = settings.pd_serving
    if serving is None or not settings.slice_pools:
        return
    blocks: dict[str, int] = {}
    for pool in settings.slice_pools:
        reservation = pool.reservation
        key = f"{reservation.project}/{reservation.name}/{reservation.block}"
        blocks[key] = blocks.get(key, 0) + pool.cubes
    for role in ("prefill", "decode"):
        part = getattr(serving, role)
        shape = part.shape
        room = sum(
            cubes * shape.slices_per_cube if shape.slices_per_cube else cubes // shape.cube_count
            for cubes in blocks.values()
        )
        if room < part.replicas:
            yield (
                f"pdServing.{role}",
                Refusal(
                    f"must find room for {counted(part.replicas, 'slice')} of {part.topology}",
                    got=f"room for {room}",
                    reason=f"the largest block here has {counted(max(blocks.values()), 'cube')}, and a slice lies in "
                    "one block",
                    way_out="Lower `replicas`, use a smaller `topology`, or add cubes.",
                ),
            )
            return
    wanted = (
        serving.prefill.replicas * serving.prefill.shape.chip_count
        + serving.decode.replicas * serving.decode.shape.chip_count
    )
    if wanted > settings.chip_count:
        missing = -(-(wanted - settings.chip_count) // tpu.CHIPS_PER_CUBE)
        yield (
            "pdServing",
            Refusal(
                f"must fit the {settings.chip_count} chips of `slicePools`",
                got=f"{wanted} chips for prefill and decode together",
                reason="one role would wait for ever while the other answers alone",
                way_out=f"Lower `replicas`, or add {counted(missing, 'cube')}.",
            ),
        )


def pathways_fills_its_pools(settings: "Settings", _now: datetime) -> Found:
    """Every variant has exactly the pools that its model was laid out for, and shares none."""
    topology_of = {pool.name: pool.topology for pool in settings.multihost_pools}
    taken: dict[str, str] = {}
    for index, serving in enumerate(settings.pathways_serving):
        layout = pathways.LAYOUTS[serving.mode]
        path = f"pathwaysServing[{index}].pools"
        if len(serving.pools) != layout.slice_count:
            yield (
                path,
                Refusal(
                    f"must name {counted(layout.slice_count, 'pool')} in mode {serving.mode}",
                    got=serving.pools,
                    reason=f"{layout.model} runs on {layout.slice_count} x {layout.topology}",
                    way_out="Name as many entries of `multihostPools`.",
                ),
            )
        for name in serving.pools:
            if name not in topology_of:
                known = ", ".join(topology_of)
                yield (
                    path,
                    Refusal(
                        "must name entries of `multihostPools`",
                        got=name,
                        reason=f"the entries are {known}" if topology_of else "there is none",
                        way_out="Add the pool, or use its name as written there.",
                    ),
                )
            elif topology_of[name] != layout.topology:
                yield (
                    path,
                    Refusal(
                        f"must name pools of topology {layout.topology} in mode {serving.mode}",
                        got=f"{name}, {topology_of[name]}",
                        reason=f"{layout.model} is laid out for {layout.topology} slices",
                        way_out=f"Give that pool topology {layout.topology}, or use another one.",
                    ),
                )
            if name in taken:
                yield (
                    path,
                    Refusal(
                        "must not name a pool twice",
                        got=name,
                        reason=f"{taken[name]} fills it already",
                        way_out="Use another pool.",
                    ),
                )
            taken[name] = serving.name


def pathways_variants_are_distinct(settings: "Settings", _now: datetime) -> Found:
    """Variants share neither name nor scratch bucket, and read no placeholder of the seed's."""
    variants = settings.pathways_serving
    for key in ("name", "bucket"):
        for value, count in Counter(getattr(serving, key) for serving in variants).items():
            if count > 1:
                index = max(i for i, serving in enumerate(variants) if getattr(serving, key) == value)
                yield (
                    f"pathwaysServing[{index}].{key}",
                    Refusal(
                        "must be unique among the variants",
                        got=value,
                        reason="LeaderWorkerSet, Service and selectors carry the name"
                        if key == "name"
                        else "each variant makes and removes its own scratch bucket",
                        way_out="Choose another one.",
                    ),
                )


def scratch_buckets_hold_nothing_else(settings: "Settings", _now: datetime) -> Found:
    """A bucket that a destroy removes holds neither checkpoints nor weights."""
    kept = {serving.checkpoint.removeprefix("gs://").split("/")[0] for serving in settings.pathways_serving}
    if settings.pd_serving:
        kept.add(settings.pd_serving.model.bucket)
    for index, serving in enumerate(settings.pathways_serving):
        if serving.bucket == pathways.STAGING_BUCKET:
            yield (
                f"pathwaysServing[{index}].bucket",
                Refusal(
                    "must be a bucket of ours",
                    got=serving.bucket,
                    reason="that one is Google's, left over in the tutorial's manifest",
                    way_out="Name a bucket that does not exist yet; the program makes it.",
                ),
            )
        if serving.bucket in kept:
            yield (
                f"pathwaysServing[{index}].bucket",
                Refusal(
                    "must not hold checkpoints or weights",
                    got=serving.bucket,
                    reason="it is scratch space that goes with the stack, and a conversion takes 9 hours",
                    way_out="Name a bucket that does not exist yet.",
                ),
            )


def pathways_stays_out_of_kueue(settings: "Settings", _now: datetime) -> Found:
    """Its groups run on static slices, which Kueue does not hand out."""
    managed = {queue.namespace for queue in settings.queues.local_queues}
    for index, serving in enumerate(settings.pathways_serving):
        if serving.namespace in managed or serving.namespace in names.SYSTEM_NAMESPACES - {"default"}:
            yield (
                f"pathwaysServing[{index}].namespace",
                Refusal(
                    "must be a namespace of its own",
                    got=serving.namespace,
                    reason="Kueue or a controller of the cluster has charge of that one",
                    way_out="Use default, as the tutorial does, or another name.",
                ),
            )
