"""Tells Kueue that somebody answers the admission checks named after this controller.

A ClusterQueue refuses work ("references inactive AdmissionCheck(s)") until the condition Active is True.
"""

from __future__ import annotations

from datetime import UTC, datetime

from facts import labels
from simulator.reconcile import Api, ApiException, Controller, Informer
from simulator.slice_controller import workloads

API_VERSION = "kueue.x-k8s.io/v1beta2"
COLLECTION = f"/apis/{API_VERSION}/admissionchecks"


class CheckController:
    """Sets Active on each AdmissionCheck whose spec.controllerName is ours, once."""

    def __init__(self, api: Api, checks: Informer) -> None:
        self._api, self._checks = api, checks
        self._controller = Controller("admissioncheck", self.reconcile)
        self._controller.watch(checks)

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> bool:
        return self._controller.stop()

    def reconcile(self, name: str) -> None:
        """Apply the condition where it is missing or not True."""
        check = self._checks.get(name)
        if check is None or check["spec"].get("controllerName") != labels.ADMISSION_CHECK_CONTROLLER:
            return
        if workloads.is_true(check, "Active"):
            return
        condition = {
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "The admission check is active",
            "observedGeneration": check["metadata"]["generation"],
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        body = {
            "apiVersion": API_VERSION,
            "kind": "AdmissionCheck",
            "metadata": {"name": name, "uid": check["metadata"]["uid"]},
            "status": {"conditions": [condition]},
        }
        try:
            answer = self._api.apply(
                f"{COLLECTION}/{name}/status", body, field_manager=labels.ADMISSION_CHECK_CONTROLLER
            )
        except ApiException as error:
            if error.status != 404:
                raise
            return
        self._checks.wrote(answer)
