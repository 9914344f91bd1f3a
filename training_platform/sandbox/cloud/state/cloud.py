"""What the local cloud holds and how time passes in it: projects, resources, operations, quota. It knows no service."""

from __future__ import annotations

from training_platform.sandbox.cloud.requests.errors import not_found
from training_platform.sandbox.cloud.state.clock import Clock, stamp
from training_platform.sandbox.cloud.state.operations import Operations
from training_platform.sandbox.cloud.state.projects import Projects
from training_platform.sandbox.cloud.state.quota import Ledger
from training_platform.sandbox.cloud.state.settings import Settings
from training_platform.sandbox.cloud.state.store import Record, Store
from training_platform.sandbox.cloud.state.work import Interference


class Cloud:
    """What services read and write. Not safe for threads: one request at a time."""

    def __init__(
        self, projects: Projects, store: Store, clock: Clock, settings: Settings, interference: Interference
    ) -> None:
        self.projects = projects
        self.store = store
        self.clock = clock
        self.settings = settings
        self.interference = interference
        self.operations = Operations(store, clock, interference)
        self.quota = Ledger(projects, store)

    def existing(self, name: str) -> Record:
        """Return a resource. Raises ApiError where there is none."""
        record = self.store.get(name)
        if record is None:
            raise not_found(name.partition("/")[2])
        return record

    def charge(self, service: str, record: Record) -> None:
        """Charge a resource that is made or changed. Raises ApiError where a limit is exceeded."""
        self.quota.charge(service, record, self.settings.node_quota)

    def number(self) -> str:
        """Return a numeric id of 19 digits, never used before."""
        return str(4_000_000_000_000_000_000 + self.store.serial() * 7_919)

    def time(self) -> str:
        """Return the time as APIs write it."""
        return stamp(self.clock.now())

    def has_identity_pool(self, project: str) -> bool:
        """Whether a project has its workload identity pool: the first cluster that names it makes it, for ever."""
        return self.store.get(f"iam/projects/{project}/identityPool") is not None
