"""A live local copy of one kind of Kubernetes object, for the parts of the cluster process.

A thin loop over the kept client's Watch: list, watch, and list again when the API server goes away or has
forgotten the version. Objects are plain dictionaries as the API serves them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import aiohttp
from kubernetes.aio import client, watch

_LOG = logging.getLogger(__name__)
RETRY_SECONDS = 0.5
WATCH_SECONDS = 600

Object = dict[str, Any]


def key_of(item: Object) -> tuple[str, str]:
    """(namespace, name); the namespace of a cluster-wide object is empty."""
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Mirror:
    """Objects of one kind by (namespace, name); `on_change(key, object or None)` hears each change."""

    def __init__(
        self, list_function: Callable[..., Any], on_change: Callable[..., None] | None = None
    ) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.is_synced = asyncio.Event()
        self._list_function = list_function
        self._on_change = on_change or (lambda _key, _item: None)

    async def run(self) -> None:
        """Keep the copy until cancelled."""
        while True:
            try:
                await self._follow()
            except (client.ApiException, aiohttp.ClientError, OSError, TimeoutError) as error:
                _LOG.debug("watch of %s: %s", self._list_function.__name__, error)
            await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self) -> None:
        owner, name = self._list_function.__self__, self._list_function.__name__  # type: ignore[attr-defined]
        response = await getattr(owner, f"{name}_without_preload_content")()
        document = await response.json()
        if response.status != 200:
            raise client.ApiException(status=response.status, reason=document.get("message"))
        found = {key_of(item): item for item in document["items"]}
        for key in set(self.objects) - set(found):
            del self.objects[key]
            self._on_change(key, None)
        for key, item in found.items():
            before = self.objects.get(key)
            self.objects[key] = item
            if before is None or before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
                self._on_change(key, item)
        self.is_synced.set()
        async with watch.Watch(return_type="object") as watcher:
            version = document["metadata"]["resourceVersion"]
            async for event in watcher.stream(
                self._list_function, resource_version=version, timeout_seconds=WATCH_SECONDS
            ):
                item = event["raw_object"]
                key = key_of(item)
                if event["type"] == "DELETED":
                    self.objects.pop(key, None)
                    self._on_change(key, None)
                else:
                    self.objects[key] = item
                    self._on_change(key, item)
