"""The resources of the local cloud, keyed by full name and stored in one file.

A name consists of the service and the path without its version: ``container/projects/p/locations/l/clusters/c``. It
contains the project id, so names of different projects never collide. ``flush`` rewrites the file. A killed server
loses unflushed changes, so the app flushes before it responds.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from local_google_cloud.files import BrokenFile, read_json, write_whole
from training_platform.catalog.types import Json

_FORMAT = 1


@dataclass(kw_only=True)
class Record:
    """A resource: ``body`` as in the API, and ``meta`` with the server's own data (policy, charges, operation)."""

    name: str
    project: str
    body: Json
    meta: Json = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The last part of the resource's name."""
        return self.name.rpartition("/")[2]

    @property
    def path(self) -> str:
        """The resource's name without the service."""
        return self.name.partition("/")[2]

    @property
    def kind(self) -> str:
        """The resource's service and collection, such as ``container.nodePools``."""
        parts = self.name.split("/")
        return f"{parts[0]}.{parts[-2]}"


class Store:
    """All resources. If ``path`` is None, they are only in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._records: dict[str, Record] = {}
        self._serial = 0
        self._changed = False
        if path is not None and path.exists():
            self._load(path)

    def get(self, name: str) -> Record | None:
        """Return a copy of a resource. Call ``put`` to store changes to it."""
        return copy.deepcopy(self._records.get(name))

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def put(self, record: Record) -> None:
        """Store a new or changed resource."""
        self._records[record.name] = record
        self._changed = True

    def delete(self, name: str) -> None:
        """Delete a resource and everything below it, if it exists."""
        for key in [name, *(record.name for record in self.below(name))]:
            self._changed = self._records.pop(key, None) is not None or self._changed

    def below(self, name: str) -> Iterator[Record]:
        """Yield all resources below a name in the order of creation.

        As in all methods that return several resources, these are not copies.
        """
        prefix = f"{name}/"
        yield from [record for key, record in self._records.items() if key.startswith(prefix)]

    def children(self, collection: str) -> list[Record]:
        """Return the direct members of a collection, ordered by name. ``-`` in its name matches any segment."""
        if "/-/" in f"{collection}/":
            form = re.compile("/".join("[^/]+" if part == "-" else re.escape(part) for part in collection.split("/")))
            records = [record for record in self._records.values() if form.fullmatch(record.name.rpartition("/")[0])]
        else:
            records = [record for record in self.below(collection) if "/" not in record.name[len(collection) + 1 :]]
        return sorted(records, key=lambda record: record.name)

    def all(self, project: str | None = None) -> list[Record]:
        """Return all resources, or those of one project, in the order of creation. Thread-safe."""
        return [record for record in list(self._records.values()) if project in (None, record.project)]

    def serial(self) -> int:
        """Return the next serial number. It is used in ids, etags and fingerprints."""
        self._serial += 1
        self._changed = True
        return self._serial

    @contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Undo all changes made in the ``with`` block if it raises, or if they cannot be written at its end."""
        records = self._records.copy()
        changed = self._changed
        try:
            yield
            self.flush()
        except BaseException:
            self._records = records
            self._changed = changed
            raise

    def flush(self) -> None:
        """Write the file if a resource has changed since the last flush. Raises OSError."""
        if self._changed and self.path is not None:
            content = {"format": _FORMAT, "serial": self._serial, "records": [asdict(record) for record in self.all()]}
            write_whole(self.path, json.dumps(content, separators=(",", ":")))
        self._changed = False

    def _load(self, path: Path) -> None:
        try:
            content = read_json(path)
            if content["format"] != _FORMAT:
                raise BrokenFile(path, "it was written by another version of the local cloud")
            self._serial = int(content["serial"])
            self._records = {fields["name"]: Record(**fields) for fields in content["records"]}
        except (TypeError, KeyError, ValueError) as error:
            raise BrokenFile(path, "it is not in the format of the local cloud") from error
