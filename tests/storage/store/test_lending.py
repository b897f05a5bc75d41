"""A store that one thread has open is lent to others, and closed when they have done with it."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest

from tests.storage.conftest import House
from venire.storage.store import store as stores
from venire.storage.store.opening import open_store, reading


def test_a_store_is_closed_when_another_thread_has_done_with_it(filled: House) -> None:
    borrowed, done, closed = threading.Event(), threading.Event(), threading.Event()
    seen: list[int] = []

    def read() -> None:
        with reading(filled.store.path) as store:
            borrowed.set()
            done.wait(10)
            seen.append(len(store.rows("models")))
            assert not closed.is_set()

    def close() -> None:
        filled.store.close()
        closed.set()

    reader, closer = threading.Thread(target=read), threading.Thread(target=close)
    reader.start()
    assert borrowed.wait(10)
    closer.start()
    while filled.store.is_open:
        pass
    done.set()
    reader.join(10)
    closer.join(10)
    assert len(seen) == 1
    with reading(filled.store.path) as store:
        assert store.rows("models"), "opened anew: the lock was given up"


def test_who_opened_a_store_may_close_it_while_it_lends_itself(filled: House) -> None:
    with reading(filled.store.path) as store:
        store.close()
    assert not filled.store.is_open


def test_the_lock_is_given_up_whatever_fails(filled: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise duckdb.Error("busy")

    path: Path = filled.store.path
    with monkeypatch.context() as patch:
        patch.setattr(stores, "close", fails)
        with pytest.raises(duckdb.Error, match="busy"):
            filled.store.close()
    filled.store.connection.close()
    with open_store(path) as store:
        assert store.is_open
