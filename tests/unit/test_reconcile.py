"""The keyed queue, the controller's retries and the informer's order of events, without an API server."""

import threading
import time

import pytest

from simulator.kube_api import Api, Informer
from simulator.reconcile import Controller, WorkQueue


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def until(condition, deadline_seconds: float = 5.0) -> None:
    deadline = time.monotonic() + deadline_seconds
    while not condition():
        assert time.monotonic() < deadline, "not true in time"
        time.sleep(0.005)


def obj(name: str, version: int, **spec: str) -> dict:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "spec": spec}


def informer(**options) -> Informer:
    return Informer(Api(None), "/api/v1/things", **options)


def test_a_key_added_twice_is_worked_on_once():
    queue = WorkQueue()
    queue.add("a")
    queue.add("a")
    assert queue.take(0) == "a"
    assert queue.take(0) is None


def test_a_key_added_while_it_is_worked_on_comes_again_but_never_on_two_threads_at_once():
    queue = WorkQueue()
    queue.add("a")
    assert queue.take(0) == "a"
    queue.add("a")
    assert queue.take(0) is None
    queue.done("a")
    assert queue.take(0) == "a"


def test_a_delayed_key_is_due_at_the_earliest_of_its_times():
    clock = Clock()
    queue = WorkQueue(clock=clock)
    queue.add_after("a", 9)
    queue.add_after("a", 3)
    queue.add_after("a", 5)
    assert queue.take(0) is None
    clock.now += 3
    assert queue.take(0) == "a"
    queue.done("a")
    clock.now += 60
    assert queue.take(0) is None


def test_a_failing_key_backs_off_twice_as_long_each_time_up_to_a_cap_and_starts_anew_when_forgotten():
    queue = WorkQueue(base_seconds=1, cap_seconds=5)
    assert [queue.add_failed("a") for _ in range(5)] == [1, 2, 4, 5, 5]
    assert queue.add_failed("b") == 1
    queue.forget("a")
    assert queue.add_failed("a") == 1


def test_closing_the_queue_wakes_a_waiting_worker():
    queue = WorkQueue()
    taken: list[object] = []
    worker = threading.Thread(target=lambda: taken.append(queue.take()))
    worker.start()
    queue.close()
    worker.join(5)
    assert taken == [None]


def test_a_reconcile_that_raises_is_logged_with_its_key_and_tried_again(caplog):
    calls: list[str] = []

    def reconcile(key: str) -> None:
        calls.append(key)
        if len(calls) < 3:
            raise ValueError("not yet")

    controller = Controller("test", reconcile, queue=WorkQueue(base_seconds=0.001))
    controller.start()
    controller.queue.add("ns/x")
    until(lambda: len(calls) == 3)
    assert controller.stop()
    assert "test ns/x: failed" in caplog.text


def test_a_reconcile_may_ask_to_look_again_later():
    calls: list[float] = []

    def reconcile(_key: str) -> float | None:
        calls.append(time.monotonic())
        return 0.02 if len(calls) == 1 else None

    controller = Controller("test", reconcile)
    controller.start()
    controller.queue.add("x")
    until(lambda: len(calls) == 2)
    assert calls[1] - calls[0] >= 0.02
    assert controller.stop()


def test_stop_says_when_a_worker_is_still_busy_at_the_deadline():
    entered, release = threading.Event(), threading.Event()

    def reconcile(_key: str) -> None:
        entered.set()
        release.wait(10)

    controller = Controller("test", reconcile)
    controller.start()
    controller.queue.add("x")
    assert entered.wait(5)
    assert controller.stop(deadline_seconds=0.05) is False
    release.set()


def test_an_older_event_does_not_take_back_what_we_wrote():
    things = informer()
    things._seen(obj("a", 5, state="old"))
    things.wrote(obj("a", 9, state="ours"))
    things._seen(obj("a", 7, state="stale"))
    assert things.get("a")["spec"] == {"state": "ours"}


def test_an_answer_that_arrives_after_the_deletion_does_not_bring_the_object_back():
    things = informer()
    things._seen(obj("a", 5))
    things._gone(obj("a", 9))
    things.wrote(obj("a", 8))
    assert things.get("a") is None
    things._seen(obj("a", 10))
    assert things.get("a") is not None


def test_handlers_see_the_old_and_the_new_object_and_a_repeated_version_is_no_change():
    seen: list[tuple] = []
    things = informer()
    things.subscribe(lambda old, new: seen.append((old and old["spec"], new and new["spec"])))
    things._seen(obj("a", 1, n="1"))
    things._seen(obj("a", 1, n="1"))
    things._seen(obj("a", 2, n="2"))
    things._gone(obj("a", 3, n="2"))
    assert seen == [(None, {"n": "1"}), ({"n": "1"}, {"n": "2"}), ({"n": "2"}, None)]


def test_an_index_follows_its_objects():
    things = informer(indexes={"state": lambda o: [o["spec"]["state"]]})
    things._seen(obj("a", 1, state="x"))
    things._seen(obj("b", 2, state="x"))
    things._seen(obj("a", 3, state="y"))
    assert [o["metadata"]["name"] for o in things.by("state", "x")] == ["b"]
    assert [o["metadata"]["name"] for o in things.by("state", "y")] == ["a"]
    things._gone(obj("b", 4, state="x"))
    assert things.by("state", "x") == []
    with pytest.raises(ValueError, match="no index 'colour'"):
        things.by("colour", "red")
