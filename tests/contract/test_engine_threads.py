"""The engine's threads on every store: one that ends by itself is a fault, one that can't be started is tried again."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import pytest

from qd.daemon.engine import Engine
from qd.daemon.engines import Engines, Setup
from qd.daemon.watchdog import Proof
from qd.events import Events
from qd.pulse import Pulse
from tests.contract.engine_shop import Shop
from tests.support.waiting import wait_for


class Scarcity:
    """Threads of these names can't be started, as where the system has no room for more."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def start(self, thread: threading.Thread) -> None:
        if any(thread.name.startswith(name) for name in self.names):
            raise RuntimeError("can't start new thread")
        self.real(thread)

    real = staticmethod(threading.Thread.start)


@pytest.fixture
def scarce(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scarcity]:
    scarcity = Scarcity()
    monkeypatch.setattr(threading.Thread, "start", lambda thread: scarcity.start(thread))
    yield scarcity
    scarcity.names.clear()


def end(name: str) -> None:
    """Ends the thread of this name, as no service should."""
    (thread,) = (thread for thread in threading.enumerate() if thread.name == f"qd {name}")
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
    thread.join(20)
    assert not thread.is_alive()


def pulses(engine: Engine) -> set[str]:
    return {pulse.name for pulse in engine.pulses()}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("service", ["poller", "maintenance", "opener", "timekeeper"])
def test_a_service_whose_thread_has_ended_breaks_its_promise_at_once(shop: Shop, service: str) -> None:
    engine = shop.start()
    wait_for(lambda: service in pulses(engine), 10, "it to be watched")
    proof = Proof(engine.pulses)
    assert proof.worst() is None
    end(service)
    worst = wait_for(proof.worst, 10, "its end to be noticed")
    assert worst.loop == service


def test_a_service_that_was_told_to_end_is_watched_no_more(shop: Shop) -> None:
    engine = shop.start()
    engine.retire()
    wait_for(engine.drained, 20, "its threads to end")
    assert engine.pulses() == list[Pulse]()


@pytest.mark.parametrize("name", ["qd timekeeper", "qd poller", "qd default-"])
def test_an_engine_that_could_not_start_a_thread_ends_and_the_one_before_works_on(
    shop: Shop, scarce: Scarcity, name: str
) -> None:
    old, new = shop.make(), shop.make()
    made = iter([old, new])
    engines = Engines(Events(), lambda *parts: next(made))
    for engine in (old, new):
        if engine is new:
            scarce.names.add(name)
            with pytest.raises(RuntimeError):
                engines.start(Setup(engine.config, shop.registry, engine._database))
        else:
            engines.start(Setup(engine.config, shop.registry, engine._database))
    scarce.names.clear()
    wait_for(lambda: not (engines.prune(), engines.draining())[1], 20, "what had been started of it to end")
    assert engines.current() is old and engines.ready() is None
    shop.bench.add(5)
    shop.until_empty()


@pytest.mark.parametrize("name", ["qd maintenance", "qd poller", "qd default-", "qd sampler"])
def test_work_begins_whole_as_soon_as_its_threads_can_be_started(shop: Shop, scarce: Scarcity, name: str) -> None:
    engine = shop.make(checked=False, threads=3)
    engine._database.up = lambda: False  # type: ignore[method-assign]  # so that the opener begins the work
    scarce.names.add(name)
    engine.start()
    del engine._database.up
    wait_for(lambda: "can't start new thread" in (engine.ready() or ""), 20, "the reason to be known")
    scarce.names.clear()
    wait_for(lambda: engine.ready() is None, 20, "it to be ready")
    assert engine.queue_workers() == {"default": 3}
    assert pulses(engine) >= {"poller", "maintenance", "sampler"}
    shop.bench.add(5)
    shop.until_empty()


def test_a_thread_that_ended_and_could_not_be_replaced_is_once_it_can_be(shop: Shop, scarce: Scarcity) -> None:
    engine = shop.start(threads=2)
    (pool,) = engine._pools
    gone = pool.all()[0]
    scarce.names.add("qd default-")
    gone.thread = threading.Thread()
    with pytest.raises(RuntimeError):
        pool.tend()
    assert engine.queue_workers() == {"default": 1}
    scarce.names.clear()
    pool.tend()
    assert engine.queue_workers() == {"default": 2}


@pytest.mark.parametrize("how", ["at work", "draining"])
def test_pools_are_tended_whatever_the_database_does_and_until_the_last_job_has_ended(shop: Shop, how: str) -> None:
    engine = shop.start(threads=1)
    if how == "draining":
        (job,) = shop.bench.add(type="hold")
        wait_for(lambda: shop.ran, 10, "it to run")
        engine.retire()
        assert job
    (pool,) = engine._pools
    tended = threading.Event()
    pool.tend = tended.set  # type: ignore[method-assign]
    (keeper,) = (loop for loop in engine._serving if loop.service.name == "maintenance")
    asks = threading.Event()
    keeper.service.run_once = lambda: float(asks.wait(60))  # type: ignore[method-assign]  # as where a table is locked
    keeper.hurry()
    assert tended.wait(20)
    assert "tender" in pulses(engine)
    asks.set()
