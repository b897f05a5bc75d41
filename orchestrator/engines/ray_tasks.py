"""A `concurrent.futures.Executor` whose calls are tasks of a Ray cluster: simulations, blocks of a bootstrap.

For calls that cost no money and give the same result wherever they run: one whose process ends is called again. (Calls
to judges are asked by actors, which repeat nothing: `ray_actors`.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from venire.arena.errors import InputError, VenireError
from venire.orchestrator.engines.ray_cluster import EngineChoice, cluster

if TYPE_CHECKING:
    import ray

P = ParamSpec("P")
T = TypeVar("T")

_RETRIES = 3
"""How often a call whose process ended is called again."""
_GRACE_SECONDS = 10.0
"""For which a cancelled call may take to tidy up; then its process is ended."""


@dataclass(frozen=True, slots=True, eq=False)
class _TaskCall:
    """A call that was asked for, and the future of its result."""

    future: Future[Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _TaskEnd:
    """A call has ended; `result` is done."""

    call: _TaskCall
    result: Future[Any]


@dataclass(frozen=True, slots=True)
class _Shutdown:
    """No further call comes. `cancel`: those that are there are given up."""

    cancel: bool


class RayExecutor(Executor):
    """Runs calls as tasks of a Ray cluster, at most `workers` at once. Made by `ray_executor`.

    A function is shipped once for all calls of it in a row, with what is bound to it (`functools.partial`), and its
    arguments with each call; they are pickled. An exception of the function is that of the future. A future whose
    process ended again and again, or whose cluster is gone, has a VenireError.

    One thread of its own speaks to Ray and settles futures; other threads hand it events.
    """

    def __init__(self, ray: Any, workers: int | None = None) -> None:
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        """How many calls run at once; by default one for each processor of the cluster."""
        self._ray = ray
        self._events: SimpleQueue[_TaskCall | _TaskEnd | _Shutdown] = SimpleQueue()
        self._closed = False
        self._thread = Thread(target=self._serve, name="venire-ray-tasks", daemon=True)
        self._thread.start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """The future of a call; it runs when fewer than `workers` do. Raises RuntimeError after `shutdown`."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()
        self._events.put(_TaskCall(future, fn, args, kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no further calls, and wait for those that are there.

        With `cancel_futures` calls that run are cancelled as well, unlike in other executors: the function has a
        KeyboardInterrupt, and some seconds to tidy up. Their futures have a CancelledError.
        """
        self._closed = True
        self._events.put(_Shutdown(cancel_futures))
        if wait:
            self._thread.join()

    def _serve(self) -> None:
        """Start calls and settle their futures, until there is a shutdown and nothing is left."""
        remote = self._ray.remote(num_cpus=1, max_retries=_RETRIES)(_call)
        waiting: deque[_TaskCall] = deque()
        running: dict[_TaskCall, ray.ObjectRef[Any]] = {}
        shipped: tuple[Any, Any] = (None, None)
        closing = cancelling = False
        while not closing or waiting or running:
            try:
                event = self._events.get(timeout=_GRACE_SECONDS if cancelling else None)
            except Empty:  # the grace of a cancelled call is over
                self._cancel(running, force=True)
                continue
            match event:
                case _TaskCall():
                    waiting.append(event)
                case _TaskEnd(call, result):
                    del running[call]
                    self._settle(call.future, result)
                case _Shutdown(cancel):
                    closing, cancelling = True, cancelling or cancel
            if cancelling:
                while waiting:
                    waiting.popleft().future.cancel()
                if isinstance(event, _Shutdown):
                    self._cancel(running, force=False)
            while waiting and len(running) < self.workers:
                call = waiting.popleft()
                if not call.future.set_running_or_notify_cancel():
                    continue
                try:
                    if shipped[0] is not call.function:
                        shipped = (call.function, self._ray.put(call.function))
                    running[call] = remote.remote(version("venire"), shipped[1], call.args, call.kwargs)
                except Exception as error:  # whatever it is, such as what cannot be pickled: the future's caller has it
                    call.future.set_exception(self._explained(error))
                else:
                    running[call].future().add_done_callback(partial(self._report_end, call))

    def _report_end(self, call: _TaskCall, result: Future[Any]) -> None:
        self._events.put(_TaskEnd(call, result))

    def _cancel(self, running: dict[_TaskCall, ray.ObjectRef[Any]], *, force: bool) -> None:
        for reference in running.values():
            with suppress(self._ray.exceptions.RayError):  # the cluster is gone, and the call with it
                self._ray.cancel(reference, force=force)

    def _settle(self, future: Future[Any], result: Future[Any]) -> None:
        error = result.exception()
        if error is None:
            future.set_result(result.result())
        else:
            future.set_exception(self._explained(error))

    def _explained(self, error: BaseException) -> BaseException:
        """What a caller is to know of an exception that Ray gives: the function's own, or a sentence."""
        kinds = self._ray.exceptions
        if isinstance(error, kinds.TaskCancelledError):
            return CancelledError()
        if isinstance(error, kinds.RayTaskError):
            cause = error.cause
            return cause if isinstance(cause, Exception) else VenireError(str(error))
        if isinstance(error, kinds.WorkerCrashedError | kinds.NodeDiedError | kinds.OutOfMemoryError):
            return VenireError(
                f"a process of the Ray cluster ended before its time {_RETRIES + 1} times, perhaps for want of memory: "
                "try fewer --workers"
            )
        if isinstance(error, kinds.RayError):
            first = str(error).strip().partition("\n")[0]
            return VenireError(f"the Ray cluster failed: {first}")
        return error


def _call(sender: str, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    """Call a function in a process of the cluster. Raises InputError where that has another version of Venire."""
    if sender != version("venire"):
        raise InputError(
            f"a machine of the Ray cluster has Venire {version('venire')}, and this one {sender}: install one version "
            "on all"
        )
    return function(*args, **kwargs)


@contextmanager
def ray_executor(choice: EngineChoice, workers: int | None = None) -> Iterator[RayExecutor]:
    """An executor on a cluster, while the context lasts; an exception in it cancels all calls. Raises as `cluster`.

    Example:
        with ray_executor(EngineChoice("ray")) as pool:
            print(list(pool.map(abs, [-1, 2])))
    """
    with cluster(choice) as ray:
        pool = RayExecutor(ray, workers)
        try:
            yield pool
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        pool.shutdown()
