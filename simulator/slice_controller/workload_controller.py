"""The loop that keeps Slices in step with Workloads.

Reads from informers, decides with the pure modules and writes: Slices; on a Workload the finalizer
`accelerator.gke.io/slice`, its own entry of `status.admissionChecks` and the condition TPUSliceFailure; events.
A write that meets a newer Workload is refused by the API server and done again on what is there then.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from facts import labels
from simulator.reconcile import Api, ApiException, Controller, Informer, Object, key_of
from simulator.slice_controller import slices, states, workloads
from simulator.slice_controller.events import Recorder
from simulator.slice_controller.states import Failure, Grouped, Policy, Verdict
from simulator.slice_controller.timing import Timing

log = logging.getLogger(__name__)

API_VERSION = "kueue.x-k8s.io/v1beta2"
COLLECTION = f"/apis/{API_VERSION}/workloads"
FINALIZER = labels.WORKLOAD_FINALIZER
STATUS_MANAGER = labels.ADMISSION_CHECK_CONTROLLER
"""Field manager of what it applies to status, as the real controller's."""
UPDATE_MANAGER = "manager"
"""Field manager of the finalizer, as the real controller's: the name of its program."""

_CONFLICT_RETRY_SECONDS = 0.05
_WORKERS_WITH_RETRY = 4


class WorkloadController:
    """Keeps the Slices of all Workloads.

    One worker where it looks for used partitions itself: two Workloads must not race for one. With the retry gate GKE
    looks, and several Workloads are served side by side.
    """

    def __init__(
        self,
        api: Api,
        *,
        checks: Informer,
        policy: Policy,
        timing: Timing,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api, self._policy, self._timing, self._now = api, policy, timing, now
        self._recorder = Recorder(api)
        self._checks = checks
        self._workloads = Informer(api, COLLECTION)
        self._nodes = Informer(api, "/api/v1/nodes")
        self._slices = Informer(api, slices.COLLECTION, indexes={"owner": _owner_keys})
        workers = _WORKERS_WITH_RETRY if policy.retry_on_failure else 1
        self._controller = Controller("workload", self.reconcile, workers=workers)
        self._controller.watch(self._workloads)
        for informer in (self._checks, self._nodes, self._slices):
            self._controller.watch(informer, lambda _: ())
        self._slices.subscribe(self._slice_changed)

    def start(self) -> None:
        self._recorder.start()
        self._controller.start()

    def stop(self) -> bool:
        ended = self._controller.stop()
        self._recorder.stop()
        return ended

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        """Changes of one Workload's Slices are answered together; a new Slice says nothing yet."""
        owner = slices.owner_key(new or old or {"metadata": {}})
        if old is not None and owner is not None:
            self._controller.queue.add_after(owner, self._timing.slice_event_batch)

    def reconcile(self, key: str) -> float | None:
        """Bring one Workload a step further; the seconds after which to look again, if any."""
        workload = self._workloads.get(key)
        if workload is None:
            return None
        try:
            reason = workloads.reason_to_finalize(workload)
            if reason is not None:
                return self._finalize(workload, reason)
            return self._admit(workload)
        except ApiException as error:
            if error.status == 409:
                log.debug("%s: changed meanwhile, again", key)
                return _CONFLICT_RETRY_SECONDS
            if error.status == 404 and self._is_gone(key):
                return None
            raise

    def _is_gone(self, key: str) -> bool:
        namespace, name = key.split("/")
        try:
            self._api.get(_path(namespace, name))
        except ApiException as error:
            return bool(error.status == 404)
        return False

    def _admit(self, workload: Object) -> float | None:
        key = key_of(workload)
        gate = self._policy.topology_from_selectors
        nodes = {
            item["metadata"]["name"]: item["metadata"].get("labels") or {} for item in self._nodes.list()
        }
        if (skip := workloads.reason_to_skip(workload, nodes, from_selectors=gate)) is not None:
            log.debug("%s: skipped, %s", key, skip)
            return None
        check = workloads.check_state(workload, self._our_checks())
        if check is None:
            log.debug("%s: skipped, none of its admission checks is ours", key)
            return None
        if FINALIZER not in (workload["metadata"].get("finalizers") or []):
            self._set_finalizers(workload, [*(workload["metadata"].get("finalizers") or []), FINALIZER])
            return None  # the change just made brings the key back

        existing = self._slices.by("owner", key)
        grouped = self._group(existing)
        wanted = slices.wanted(workload, nodes, from_selectors=gate)
        desired_count = sum(want.count for want in wanted)
        if check["state"] == "Ready" and (grouped.deleted or len(existing) != desired_count):
            log.info("%s: a Slice has gone, evicting", key)
            self._write(
                workload, states.evicted(check, Failure.DELETION, "Slice has been deleted", self._policy)
            )
            self._delete(grouped.alive)
            return None
        if grouped.deleted:
            log.debug("%s: waiting for %d deleted Slices to go", key, len(grouped.deleted))
            return None

        if check["state"] not in {"Retry", "Rejected"}:
            synced = self._sync_slices(workload, check, existing, wanted)
            if synced is None:
                return self._timing.initialization_retry
            if synced != existing:
                existing = synced
                grouped = self._group(existing)

        check = self._sync_check(workload, check, grouped, desired_count)
        if check["state"] == "Retry":
            self._delete(grouped.alive)
            return None
        self._delete(grouped.broken)
        return self._timing.initialization_retry if grouped.initializing else None

    def _our_checks(self) -> set[str]:
        return {
            item["metadata"]["name"]
            for item in self._checks.list()
            if item["spec"].get("controllerName") == labels.ADMISSION_CHECK_CONTROLLER
        }

    def _group(self, found: Iterable[Object]) -> Grouped:
        return Grouped.of(found, self._now(), self._policy)

    def _sync_slices(
        self, workload: Object, check: Object, existing: list[Object], wanted: list[slices.Wanted]
    ) -> list[Object] | None:
        """Make what is missing and remove what lies elsewhere; the Slices that remain, or None once evicted."""
        by_name = {item["metadata"]["name"]: item for item in existing}
        created: list[Object] = []
        for want in wanted:
            plan = slices.plan(
                workload,
                want,
                by_name,
                retry_on_failure=self._policy.retry_on_failure,
                from_selectors=self._policy.topology_from_selectors,
            )
            for item in plan.delete:
                log.info("%s: has other partitions than before, deleting", item["metadata"]["name"])
                self._delete([item])
                by_name.pop(item["metadata"]["name"])
            refusal = slices.refusal(
                plan.create, self._slices.list(), retry_on_failure=self._policy.retry_on_failure
            )
            if refusal is not None:
                log.info("%s: evicting: %s", key_of(workload), refusal)
                self._write(workload, states.evicted(check, Failure.CONFIGURATION, refusal, self._policy))
                return None
            created.extend([self._create(workload, check, item) for item in plan.create])
        if created:
            self._recorder.normal(workload, "SlicesCreated", slices.created_message(created))
        return [*by_name.values(), *created]

    def _create(self, workload: Object, check: Object, item: Object) -> Object:
        name = item["metadata"]["name"]
        try:
            made = self._api.create(slices.COLLECTION, item, fieldManager=UPDATE_MANAGER)
        except ApiException as error:
            text = f'Error creating Slice "{name}": {_message(error)}'
            log.warning("%s: %s", key_of(workload), text)
            self._recorder.warning(workload, "FailedCreateSlice", text)
            pending = check | {"state": "Pending", "message": states.truncated(text, states.LONGEST_MESSAGE)}
            self._write(workload, Verdict(pending))
            raise CreationError(text) from error
        self._slices.wrote(made)
        log.info("%s: created with partitions %s", name, ", ".join(item["spec"]["partitionIds"]))
        return made

    def _sync_check(self, workload: Object, check: Object, grouped: Grouped, desired_count: int) -> Object:
        verdict = states.judge(workload, check, grouped, desired_count, self._policy)
        before, after = check["state"], verdict.check["state"]
        if before == after and check.get("message") == verdict.check.get("message"):
            return check
        self._write(workload, verdict)
        if before != after:
            text = f'Admission check "{check["name"]}" updated state from "{before}" to "{after}"'
            log.info("%s: %s: %s", key_of(workload), text, verdict.check["message"])
            self._recorder.normal(workload, "AdmissionCheckUpdated", text)
        return verdict.check

    def _write(self, workload: Object, verdict: Verdict) -> None:
        """Apply the check, with Kueue's own lastTransitionTime and retryCount left as they were, and the condition."""
        metadata = workload["metadata"]
        status: dict[str, Any] = {"admissionChecks": [verdict.check]}
        if (failure := self._failure_condition(workload, verdict)) is not None:
            status["conditions"] = [failure]
        path = f"{_path(metadata['namespace'], metadata['name'])}/status"
        body = {
            "apiVersion": API_VERSION,
            "kind": "Workload",
            "metadata": {name: metadata[name] for name in ("namespace", "name", "uid", "resourceVersion")},
            "status": status,
        }
        self._workloads.wrote(self._api.apply(path, body, field_manager=STATUS_MANAGER))

    def _failure_condition(self, workload: Object, verdict: Verdict) -> Object | None:
        now = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": states.FAILURE_CONDITION, "lastTransitionTime": now}
        if verdict.failure is not None:
            text = verdict.check["message"]
            return condition | {"status": "True", "reason": str(verdict.failure), "message": text}
        before = workloads.condition(workload, states.FAILURE_CONDITION)
        if verdict.check["state"] == "Retry" or before is None or before["status"] != "True":
            return None
        text = states.truncated(f"Previously: {before['message']}", states.LONGEST_MESSAGE)
        return condition | {"status": "False", "reason": before["reason"], "message": text}

    def _finalize(self, workload: Object, reason: str) -> float | None:
        finalizers = workload["metadata"].get("finalizers") or []
        if FINALIZER not in finalizers:
            return None
        grouped = self._group(self._slices.by("owner", key_of(workload)))
        if grouped.alive:
            if not self._pods_have_ended(workload):
                log.debug("%s: %s, but its pods still run", key_of(workload), reason)
                return self._timing.cleanup_retry
            log.info("%s: %s, deleting its Slices", key_of(workload), reason)
            self._delete(grouped.alive)
        try:
            self._set_finalizers(workload, [name for name in finalizers if name != FINALIZER])
        except ApiException as error:
            if error.status == 409:
                return self._timing.finalizer_conflict_retry
            if error.status != 404:
                raise
        return None

    def _pods_have_ended(self, workload: Object) -> bool:
        owner = workloads.owner(workload)
        if owner is None:
            return True
        namespace = workload["metadata"]["namespace"]
        try:
            self._api.get(f"{owner.collection.format(namespace=namespace)}/{owner.name}")
        except ApiException as error:
            if error.status == 404:
                return True
            raise
        pods = self._api.get(
            f"/api/v1/namespaces/{namespace}/pods",
            labelSelector=f"{owner.pod_label}={owner.name}",
            resourceVersion="0",
        )
        return all((pod.get("status") or {}).get("phase") in {"Failed", "Succeeded"} for pod in pods["items"])

    def _set_finalizers(self, workload: Object, finalizers: list[str]) -> None:
        metadata = workload["metadata"]
        changed = workload | {"metadata": metadata | {"finalizers": finalizers}}
        path = _path(metadata["namespace"], metadata["name"])
        answer = self._api.replace(path, changed, fieldManager=UPDATE_MANAGER)
        self._workloads.wrote(answer)

    def _delete(self, found: Iterable[Object]) -> None:
        for item in found:
            try:
                answer = self._api.delete(f"{slices.COLLECTION}/{item['metadata']['name']}")
            except ApiException as error:
                if error.status != 404:
                    raise
                continue
            if answer.get("kind") == "Slice":
                self._slices.wrote(answer)


class CreationError(RuntimeError):
    """A Slice could not be made; the Workload says why, and the key comes again after its backoff."""


def _owner_keys(item: Object) -> list[str]:
    owner = slices.owner_key(item)
    return [] if owner is None else [owner]


def _path(namespace: str, name: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/{namespace}/workloads/{name}"


def _message(error: ApiException) -> str:
    """What the API server said, as client-go prints it."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)
