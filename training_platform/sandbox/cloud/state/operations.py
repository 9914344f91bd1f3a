"""Operations: what a change is while it is under way.

An operation is a resource too, and so survives a restart: ``meta`` holds when it is due and what then happens, as
data. Every request first settles what is due. A fault may hold an operation back, or let it fail; that is undone once
the fault is over, be it before the operation's end or after.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, Final

from training_platform.sandbox.cloud.state.clock import Clock, stamp
from training_platform.sandbox.cloud.state.operation_bodies import begun, end, path_of
from training_platform.sandbox.cloud.state.store import Record, Store
from training_platform.sandbox.cloud.state.work import Interference, Started, Work

Json = dict[str, Any]
# How many operations of a project that are done are kept, and for how long each is kept at least, in seconds. Google
# keeps its own for days; a client asks for one until it has seen it done, and the gcp provider every 10 s at most.
KEPT: Final = 500
KEPT_SECONDS: Final = 60.0
MOST: Final = 5_000  # beyond which none is kept for its age


class Operations:
    """Starts operations and ends them when they are due."""

    def __init__(self, store: Store, clock: Clock, faults: Interference) -> None:
        self._store = store
        self._clock = clock
        self._faults = faults
        self.reload()

    def reload(self) -> None:
        """Read from the store which operations there are, as after a start."""
        known = [each for each in self._store.all() if "/operations/" in each.name]
        self._pending = {each.name for each in known if "due" in each.meta}
        self._recovering = {each.name for each in known if "recovers" in each.meta} - self._pending
        self._done: dict[str, deque[str]] = defaultdict(deque)  # by project, those that ended first at the left
        for each in known:
            if each.name not in self._pending | self._recovering:
                self._done[each.project].append(each.name)

    def start(self, work: Work) -> Json:
        """Start an operation and return its body; one of no length is done at once."""
        record = self._record(work)
        self._store.put(record)
        self._pending.add(record.name)
        self.settle()
        return (self._store.get(record.name) or record).body

    def settle(self) -> None:
        """End every operation that is due, in order, and let recover what waited for a fault to be over."""
        now = self._clock.now()
        self._pending = {name for name in self._pending if name in self._store}
        for record in self._under_way():
            self._relieve(record, now)
        due = [each for each in self._under_way() if each.meta["due"] <= now and not self._held(each, now)]
        for record in sorted(due, key=lambda each: (each.meta["due"], each.meta["serial"])):
            self._end(record)
        for name in [*self._recovering]:
            self._recover(name)

    def pending(self, target: str) -> Record | None:
        """Return an operation that is under way on a resource."""
        return next((found for found in self._under_way() if found.meta["target"] == target), None)

    def _under_way(self) -> list[Record]:
        return [found for name in self._pending if (found := self._store.get(name))]

    def _record(self, work: Work) -> Record:
        serial, now = self._store.serial(), self._clock.now()
        path = path_of(work, serial, now)
        body = begun(work, path, serial, stamp(now))
        meta = {
            "due": now + work.seconds,
            "serial": serial,
            "style": work.style,
            "target": work.target,
            "changes": [[each.target, each.fields, each.delete] for each in work.changes],
            "response": work.response,
            "schema": work.schema,
        }
        self._faults.strike(self._started(work), meta, now)
        return Record(name=f"{work.service}/{path}", project=work.project, body=body, meta=meta)

    def _started(self, work: Work) -> Started:
        service, _, rest = work.target.partition("/")
        return Started(
            kind=f"{service}.{rest.split('/')[-2]}",
            work=work,
            record=self._store.get(work.target),
            children=self._store.children(f"{work.target}/nodePools"),
        )

    def _held(self, record: Record, now: float) -> bool:
        """Whether a fault holds an operation back; one that did, and is over, lets it end now."""
        fault = record.meta.get("held_by")
        if fault is None:
            return False
        if not self._faults.over(fault, now):
            return True
        record.meta["due"] = now
        return False

    def _relieve(self, record: Record, now: float) -> None:
        """Let an operation under way end well after all, where the fault by which it would fail is over before that."""
        meta = record.meta
        if "recovers" not in meta or not self._faults.over(meta["recovers"]["after"], min(now, meta["due"])):
            return
        well = meta.pop("recovers")
        del meta["error"]
        meta |= {"due": max(now, well["due"]), "changes": well["changes"]}
        self._store.put(record)

    def _recover(self, name: str) -> None:
        """Let a resource be as if its operation had not failed, where that was for a fault that is over."""
        record = self._store.get(name)
        if record is not None and not self._faults.over(record.meta["recovers"]["after"], self._clock.now()):
            return
        self._recovering.discard(name)
        if record is None:
            return
        for target, fields, _ in record.meta.pop("recovers")["changes"]:
            found = self._store.get(target)
            if found is not None and found.meta.get("recovers_by") == name:
                self._change(target, fields, delete=False)
        self._store.put(record)
        self._forget(record)

    def _change(self, target: str, fields: Json, *, delete: bool) -> None:
        found = self._store.get(target)
        if delete:
            self._store.delete(target)
        elif found is not None:
            found.body.pop("statusMessage", None)  # what was wrong before is not any more
            found.meta.pop("recovers_by", None)
            found.body.update(fields)
            self._store.put(found)

    def _forget(self, record: Record) -> None:
        """Keep the newest operations that are done, and drop what is older; their resources are what counts."""
        done = self._done[record.project]
        done.append(record.name)
        while len(done) > KEPT:
            oldest = self._store.get(done[0])
            young = oldest is not None and oldest.meta["ended"] > self._clock.now() - KEPT_SECONDS
            if young and len(done) <= MOST:
                return
            self._store.delete(done.popleft())

    def _end(self, record: Record) -> None:
        self._pending.discard(record.name)
        for target, fields, delete in record.meta["changes"]:
            self._change(target, fields, delete=delete)
        meta, body = record.meta, record.body
        target = self._store.get(meta["target"])
        end(body, meta, target.body if target else {})
        meta["ended"] = meta["due"]
        for key in ("due", "changes", "response", "held_by"):
            meta.pop(key, None)
        self._store.put(record)
        if "recovers" in meta and target is not None:
            target.meta["recovers_by"] = record.name
            self._store.put(target)
            self._recovering.add(record.name)
        else:
            self._forget(record)
