"""Long-running operations, which end when they are due.

An operation is stored as a resource, so it survives a restart. Its ``meta`` contains the time when it is due, and the
changes to make then. Each request first ends the operations that are due. A fault can make an operation fail. When a
stock-out is over, the failures that it caused are undone.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Final, cast

from local_google_cloud.state.clock import Clock, stamp
from local_google_cloud.state.interference import Interference, StartingOperation
from local_google_cloud.state.operation import OperationMeta, Work, body_at_start, path_of, write_end
from local_google_cloud.state.store import Record, Store
from training_platform.catalog.types import Json

# Finished operations that are kept for each project, and the seconds for which each is kept at least. Google keeps
# them for days; clients poll an operation until they see its end, the gcp provider at most every 10 s.
KEPT_OPERATIONS: Final = 500
KEPT_SECONDS: Final = 60.0
MOST_OPERATIONS: Final = 5_000  # however young they are


class Operations:
    """Starts operations, and ends them when they are due."""

    def __init__(self, store: Store, clock: Clock, faults: Interference) -> None:
        self._store = store
        self._clock = clock
        self._faults = faults
        self.reload()

    def reload(self) -> None:
        """Read the operations from the store, for example after a restart."""
        records = [record for record in self._store.all() if "/operations/" in record.name]
        self._pending = {record.name for record in records if "due" in record.meta}
        self._recovering = {record.name for record in records if "recovers" in record.meta} - self._pending
        self._done: dict[str, deque[str]] = defaultdict(deque)  # by project, the oldest at the left
        for record in records:
            if record.name not in self._pending | self._recovering:
                self._done[record.project].append(record.name)

    def pending(self, target: str) -> Record | None:
        """Return the operation in progress on a resource, if any."""
        return next((record for record in self._in_progress() if _meta(record)["target"] == target), None)

    def start(self, work: Work) -> Json:
        """Start an operation and return its body. An operation with a duration of 0 ends immediately."""
        serial = self._store.serial()
        now = self._clock.now()
        path = path_of(work, serial, now)
        meta: OperationMeta = {
            "due": now + work.seconds,
            "serial": serial,
            "style": work.style,
            "target": work.target,
            "changes": [[change.target, change.fields, change.delete] for change in work.changes],
            "response": work.response,
            "schema": work.schema,
        }
        service, _, resource_path = work.target.partition("/")
        starting = StartingOperation(
            kind=f"{service}.{resource_path.split('/')[-2]}",
            work=work,
            record=self._store.get(work.target),
            children=self._store.children(f"{work.target}/nodePools"),
        )
        self._faults.strike(starting, meta, now)
        body = body_at_start(work, path, serial, stamp(now))
        record = Record(name=f"{work.service}/{path}", project=work.project, body=body, meta=cast(Json, meta))
        self._store.put(record)
        self._pending.add(record.name)
        self.settle()
        return (self._store.get(record.name) or record).body

    def settle(self) -> None:
        """End the operations that are due, in order, and undo the failures of stock-outs that are over."""
        now = self._clock.now()
        self._pending = {name for name in self._pending if name in self._store}
        due = [record for record in self._in_progress() if _meta(record)["due"] <= now]
        for record in sorted(due, key=lambda record: (_meta(record)["due"], _meta(record)["serial"])):
            self._end(record)
        for name in [*self._recovering]:
            self._recover(name)

    def _in_progress(self) -> list[Record]:
        records = [self._store.get(name) for name in self._pending]
        return [record for record in records if record is not None]

    def _end(self, record: Record) -> None:
        self._pending.discard(record.name)
        meta = _meta(record)
        for target, fields, delete in meta["changes"]:
            self._change(target, fields, delete=delete)
        target = self._store.get(meta["target"])
        write_end(record.body, meta, target.body if target else {})
        meta["ended"] = meta["due"]
        meta.pop("due", None)
        meta.pop("changes", None)
        meta.pop("response", None)
        self._store.put(record)
        if "recovers" in meta and target is not None:
            target.meta["recovers_by"] = record.name
            self._store.put(target)
            self._recovering.add(record.name)
        else:
            self._forget_old(record)

    def _recover(self, name: str) -> None:
        """Apply the changes of a failed operation as if it had succeeded, once the fault is over."""
        record = self._store.get(name)
        if record is not None and not self._faults.over(_meta(record)["recovers"]["after"]):
            return
        self._recovering.discard(name)
        if record is None:
            return
        for target, fields, _ in _meta(record).pop("recovers")["changes"]:
            resource = self._store.get(target)
            if resource is not None and resource.meta.get("recovers_by") == name:
                self._change(target, fields, delete=False)
        self._store.put(record)
        self._forget_old(record)

    def _change(self, target: str, fields: Json, *, delete: bool) -> None:
        record = self._store.get(target)
        if delete:
            self._store.delete(target)
        elif record is not None:
            record.body.pop("statusMessage", None)  # of an earlier failure
            record.meta.pop("recovers_by", None)
            record.body.update(fields)
            self._store.put(record)

    def _forget_old(self, record: Record) -> None:
        """Record a project's finished operation, and delete the oldest ones if there are too many."""
        done = self._done[record.project]
        done.append(record.name)
        while len(done) > KEPT_OPERATIONS:
            oldest = self._store.get(done[0])
            young = oldest is not None and _meta(oldest)["ended"] > self._clock.now() - KEPT_SECONDS
            if young and len(done) <= MOST_OPERATIONS:
                return
            self._store.delete(done.popleft())


def _meta(record: Record) -> OperationMeta:
    return cast(OperationMeta, record.meta)
