"""Raw access to one API server: JSON calls (`Api`) and live collections (`Informer`).

Owns: connections, and a read cache that outlives restarts of the API server (over kubernetes' SharedInformer).
Objects are plain dictionaries, so that no field is lost between reading and writing.

Refuses: typed models, and writing anything that its caller did not ask for.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import socket
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer

__all__ = ["Api", "ApiException", "Informer", "Object", "key_of"]

Object = dict[str, Any]
"""A Kubernetes object as the API server sent it. Those from an informer are shared: never change them in place."""

log = logging.getLogger(__name__)
# What SharedInformer would log (a stack trace a lost connection) is said here, once, with the resource's path.
logging.getLogger("kubernetes.informer").setLevel(logging.CRITICAL)

_CALL_TIMEOUT = (5, 30)
# A watch with bookmarks says something each minute: silence for longer means that the connection is dead.
_WATCH_TIMEOUT = (5, 90)
_WATCH_SECONDS = 600
_TOMBSTONES = 4096


def key_of(obj: Object) -> str:
    """The key of an object in informers and queues: `namespace/name`, or `name` when it has no namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _version(obj: Object) -> int:
    return int(obj["metadata"].get("resourceVersion") or 0)


class Api:
    """Raw JSON calls to one API server. A refusal raises `ApiException` (`.status`, `.body`)."""

    def __init__(self, api_client: client.ApiClient) -> None:
        self._client = api_client

    @classmethod
    def from_kubeconfig(cls, path: str | Path) -> Api:
        configuration = client.Configuration()
        config.load_kube_config(config_file=str(path), client_configuration=configuration)
        return cls._of(configuration)

    @classmethod
    def in_cluster(cls) -> Api:
        """As a pod: the mounted service account and KUBERNETES_SERVICE_HOST."""
        configuration = client.Configuration()
        config.load_incluster_config(client_configuration=configuration)
        return cls._of(configuration)

    @classmethod
    def _of(cls, configuration: client.Configuration) -> Api:
        configuration.connection_pool_maxsize = 64
        configuration.proxy = None
        return cls(client.ApiClient(configuration))

    def get(self, path: str, **query: str) -> Object:
        return self._call("GET", path, query)

    def create(self, path: str, obj: Object, **query: str) -> Object:
        return self._call("POST", path, query, obj)

    def replace(self, path: str, obj: Object, **query: str) -> Object:
        return self._call("PUT", path, query, obj)

    def merge_patch(self, path: str, body: Object, **query: str) -> Object:
        return self._call("PATCH", path, query, body, "application/merge-patch+json")

    def json_patch(self, path: str, body: list[Object], **query: str) -> Object:
        return self._call("PATCH", path, query, body, "application/json-patch+json")

    def apply(self, path: str, obj: Object, *, field_manager: str) -> Object:
        """Server-side apply: creates the object or takes over the fields given."""
        query = {"fieldManager": field_manager, "force": "true"}
        return self._call("PATCH", path, query, obj, "application/apply-patch+yaml")

    def delete(self, path: str, body: Object | None = None, **query: str) -> Object:
        return self._call("DELETE", path, query, body)

    def open(self, path: str, query: Mapping[str, str]) -> urllib3.HTTPResponse:
        """A streamed GET (a watch, a log); the caller reads and closes it."""
        return self._send("GET", path, query, None, "application/json", _WATCH_TIMEOUT)

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any = None,
        kind: str = "application/json",
    ) -> Object:
        response = self._send(method, path, query, body, kind, _CALL_TIMEOUT)
        text = response.data.decode()
        response.release_conn()
        if not 200 <= response.status <= 299:
            raise _refusal(response, text)
        try:
            result: Object = json.loads(text)
        except ValueError:  # /readyz and its like answer in plain words
            return {"text": text}
        return result

    def _send(
        self, method: str, path: str, query: Mapping[str, str], body: Any, kind: str, timeout: tuple[int, int]
    ) -> urllib3.HTTPResponse:
        headers = {"Accept": "application/json", "Content-Type": kind}
        request = self._client.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params=headers,
            auth_settings=["BearerToken"],
        )
        return self._client.call_api(
            request[0], request[1], request[2], body, request[4], _request_timeout=timeout
        ).response


def _refusal(response: urllib3.HTTPResponse, text: str) -> ApiException:
    error = ApiException(status=response.status, reason=response.reason)
    error.body = text
    return error


class _Source:
    """The list function that SharedInformer calls: it lists and watches one path and never gives up.

    SharedInformer itself retries a lost connection at once and for ever, waits five seconds after a failed list,
    cannot read the dictionaries of custom resources and may hang in stop(): so all of that is done here.
    """

    def __init__(self, api: Api, path: str, selectors: Mapping[str, str]) -> None:
        self.synced = threading.Event()
        self._api = api
        self._path = path
        self._selectors = selectors
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._open: urllib3.HTTPResponse | None = None
        self._complaint = ""

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            if self._open is not None:
                _shut(self._open)

    def fetch(
        self, *, watch: bool = False, resource_version: str | None = None, _preload_content: bool = True
    ) -> Any:
        """List the path, or open a watch on it.

        :rtype: object
        """
        if watch:
            self.synced.set()  # SharedInformer opens its watch only after it has filled its cache
            return self._watch(resource_version or "0")
        listing = self._persist(lambda: self._api.get(self._path, **self._selectors))
        version = listing["metadata"].get("resourceVersion")
        return SimpleNamespace(
            items=listing.get("items") or [], metadata=SimpleNamespace(resource_version=version)
        )

    def _watch(self, version: str) -> Any:
        query = {
            **self._selectors,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        response = self._persist(lambda: self._api.open(self._path, query))
        if response.status != 200:
            response.close()
            self._closed.wait(0.2)
            raise ApiException(
                status=410, reason=f"{self._path}: watch refused with {response.status}: list again"
            )
        with self._lock:
            if self._closed.is_set():
                _shut(response)
            self._open = response
        return _Stream(response)

    def _persist(self, call: Callable[[], Any]) -> Any:
        for attempt in itertools.count():
            if self._closed.is_set():
                raise ApiException(status=410, reason=f"{self._path}: closed")
            try:
                result = call()
            except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
                status = getattr(error, "status", None)
                complaint = f"HTTP {status}" if status else "no connection"
                if complaint != self._complaint:
                    log.warning("%s: %s, trying until it answers", self._path, complaint)
                self._complaint = complaint
                self._closed.wait(min(0.1 * 1.5**attempt, 2.0))
                continue
            if self._complaint:
                log.info("%s: answers again", self._path)
            self._complaint = ""
            return result
        raise AssertionError("unreachable")


def _shut(response: urllib3.HTTPResponse) -> None:
    """Wake whoever is blocked in reading the response; they close it."""
    sock = getattr(response.connection, "sock", None)
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


class _Stream:
    """A watch's response whose lost connection reads as its end: the watch is then resumed where it stopped."""

    def __init__(self, response: urllib3.HTTPResponse) -> None:
        self._response = response
        self.status = response.status
        self.connection = response.connection

    def stream(self, amt: int | None = None, decode_content: bool = False) -> Iterator[bytes]:
        try:
            yield from self._response.stream(amt=amt, decode_content=decode_content)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError) as error:
            log.debug("watch cut: %s", error)

    def close(self) -> None:
        self._response.close()

    def release_conn(self) -> None:
        self._response.release_conn()


Handler = Callable[[Object | None, Object | None], None]
Index = Callable[[Object], Iterable[str]]


class Informer:
    """A live, read-only copy of one collection, by key; it survives restarts of the API server.

    `path` is the collection's (`/api/v1/nodes`). Reading your own writes: hand the API's answer to `wrote`, and the
    older events that are still under way no longer take it back.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, Index] | None = None,
    ) -> None:
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self.path = path
        self._source = _Source(api, path, {name: value for name, value in selectors.items() if value})
        self._informer = SharedInformer(self._source.fetch, key_func=key_of)
        for event in (ADDED, MODIFIED):
            self._informer.add_event_handler(event, self._seen)
        self._informer.add_event_handler(DELETED, self._gone)
        self._lock = threading.RLock()
        self._objects: dict[str, Object] = {}
        self._tombstones: OrderedDict[str, int] = OrderedDict()
        self._indexes = dict(indexes or {})
        self._indexed: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._handlers: list[Handler] = []

    def subscribe(self, handler: Handler) -> None:
        """Call `handler(old, new)` on each change; `None` stands for absent. Subscribe before start()."""
        self._handlers.append(handler)

    def start(self) -> None:
        self._informer.start()

    def stop(self) -> None:
        self._source.close()
        self._informer.stop()

    def wait_synced(self, timeout_seconds: float | None = None) -> bool:
        """Whether the first full list has arrived (and all its events were handled) in time."""
        return self._source.synced.wait(timeout_seconds)

    def get(self, key: str) -> Object | None:
        with self._lock:
            return self._objects.get(key)

    def by(self, index: str, value: str) -> list[Object]:
        """The objects for which the named index function yields `value`."""
        if index not in self._indexes:
            raise ValueError(f"{self.path} has no index {index!r}; it has {sorted(self._indexes)}")
        with self._lock:
            return [self._objects[key] for key in sorted(self._indexed.get((index, value), ()))]

    def list(self) -> list[Object]:
        with self._lock:
            return list(self._objects.values())

    def wrote(self, obj: Object) -> None:
        """Take the API server's answer to a write of ours as seen."""
        self._seen(obj)

    def _seen(self, obj: Object) -> None:
        key, version = key_of(obj), _version(obj)
        with self._lock:
            old = self._objects.get(key)
            if version <= max(_version(old) if old else 0, self._tombstones.get(key, 0)):
                return
            self._put(key, old, obj)
        self._tell(old, obj)

    def _gone(self, obj: Object) -> None:
        key = key_of(obj)
        with self._lock:
            old = self._objects.get(key)
            self._tombstones[key] = max(_version(obj), _version(old) if old else 0)
            self._tombstones.move_to_end(key)
            while len(self._tombstones) > _TOMBSTONES:
                self._tombstones.popitem(last=False)
            self._put(key, old, None)
        self._tell(old or obj, None)

    def _put(self, key: str, old: Object | None, new: Object | None) -> None:
        for index, function in self._indexes.items():
            for value in function(old) if old else ():
                self._indexed[index, value].discard(key)
            for value in function(new) if new else ():
                self._indexed[index, value].add(key)
        if new is None:
            self._objects.pop(key, None)
        else:
            self._objects[key] = new

    def _tell(self, old: Object | None, new: Object | None) -> None:
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:
                log.exception("%s: a handler failed on %s", self.path, key_of(new or old or {}))
