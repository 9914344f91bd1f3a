"""The values that a command takes from flags or defaults, and the first files that it writes from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from training_platform.cli.shared import fail, say, say_folded

if TYPE_CHECKING:
    from training_platform.catalog.types import MachineType
    from training_platform.config.first_files import FirstPool
    from training_platform.config.workspace import Workspace

_Value = TypeVar("_Value")


class Answers:
    """Values from flags or defaults. ``wrong`` has a sentence for each missing or wrong value; ``end`` prints them."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def of(
        self,
        flag: str | None,
        option: str,
        description: str,
        parse: Callable[[str], _Value],
        *,
        default: str | None = None,
        example: str | None = None,
    ) -> _Value:
        """Return a value. If it is missing or wrong, continue with the default or example, to find further mistakes."""
        if flag is not None:
            try:
                return parse(flag)
            except ValueError as error:
                self.wrong.append(f"{option} {error}")
        elif default is None:
            self.wrong.append(f"{option} is missing: {description}.")
        if default is None and example is None:
            self.end()
        return parse(default or example or "")

    def of_all(
        self,
        flags: Sequence[str],
        option: str,
        description: str,
        parse: Callable[[str], _Value],
        *,
        example: str | None = None,
    ) -> list[_Value]:
        """Return the values of a repeatable flag. At least one is required."""
        if not flags:
            return [self.of(None, option, description, parse, example=example)]
        return [self.of(flag, option, description, parse, example=example) for flag in flags]

    def one_of(
        self, flag: str | None, option: str, description: str, allowed: Sequence[str], *, announced: bool = False
    ) -> str:
        """Return one of ``allowed``, by default the first. If ``announced``, print a default that has alternatives."""
        if announced and flag is None and len(allowed) > 1:
            say_folded(f"# {option} {allowed[0]}, the first of {', '.join(allowed)}", err=True)
        return self.of(flag, option, description, among(allowed), default=allowed[0])

    def production(self, flag: bool | None) -> bool:
        """Return whether an environment is for production."""
        if flag is None:
            self.wrong.append("--production or --no-production is missing.")
        return bool(flag)

    def pools(
        self,
        machines: Sequence[str],
        zones: Sequence[str],
        capacities: Sequence[str],
        reservations: Sequence[str],
        near: Sequence[str] = (),
    ) -> list[FirstPool]:
        """Return a pool for each machine type. A zone or capacity is given for each pool, or once for all pools."""
        from training_platform.catalog import MACHINE_TYPES, ZONES
        from training_platform.catalog.locations import region_of
        from training_platform.config.first_files import FirstPool, first_capacity, first_zone, offered_zones
        from training_platform.config.model.capacity import ReservationRef

        for option, values in (("--zone", zones), ("--capacity", capacities)):
            if len(values) not in {0, 1, len(machines)}:
                self.wrong.append(
                    f"{option} is given {len(values)} times. Give it once for all pools, or "
                    f"once for each of {len(machines)}."
                )
        pools: list[FirstPool] = []
        named = iter(reservations)
        for number, machine in enumerate(machines):
            of_pool = f" of {machine}" if len(machines) > 1 else ""
            regions = [*near, *(region_of(pool.zone) for pool in pools)]
            zone = self.of(
                zones[min(number, len(zones) - 1)] if zones else None,
                "--zone",
                f"zone{of_pool}",
                among(ZONES, offered_zones(machine)),
                default=first_zone(machine, regions),
            )
            ways: list[str] = list(MACHINE_TYPES[machine].capacities)
            ways += ["queued-provisioning"] * ("flex-start" in ways and MACHINE_TYPES[machine].kind == "gpu")
            capacity = self.of(
                capacities[min(number, len(capacities) - 1)] if capacities else None,
                "--capacity",
                f"provisioning model{of_pool} ({', '.join(ways)})",
                among(ways),
                default="reservation" if reservations else first_capacity(machine),
            )
            reservation = None
            if capacity == "reservation":
                name = next(named, None)
                description = f"name of the reservation{of_pool}, or any"
                reservation = self.of(name, "--reservation", description, fits(ReservationRef), example="any")
            pools.append(FirstPool(machine_type=machine, zone=zone, capacity=capacity, reservation=reservation))
        for name in named:
            self.wrong.append(f"--reservation {name!r} matches no pool with capacity reservation.")
        return pools

    def sized(
        self, pools: Sequence[FirstPool], max_nodes: Sequence[int], topologies: Sequence[str], slices: Sequence[int]
    ) -> list[FirstPool]:
        """Return the pools with their sizes: numbers of VMs for GPU pools, topologies and slices for TPU pools.

        Each flag is given once for all pools of that kind, or once for each of them.
        """
        from dataclasses import replace

        from training_platform.catalog import MACHINE_TYPES

        sized_pools = list(pools)
        for option, field, values, kind in (
            ("--max-nodes", "max_nodes", max_nodes, "gpu"),
            ("--topology", "topology", topologies, "tpu"),
            ("--slices", "slices", slices, "tpu"),
        ):
            if not values:
                continue
            places = [place for place, pool in enumerate(pools) if MACHINE_TYPES[pool.machine_type].kind == kind]
            if not places:
                self.wrong.append(f"{option} needs a pool with {kind.upper()}s.")
            elif len(values) not in {1, len(places)}:
                self.wrong.append(
                    f"{option} is given {len(values)} times. Give it once for all pools, or "
                    f"once for each of {len(places)}."
                )
                continue
            for number, place in enumerate(places):
                pool = sized_pools[place]
                value = str(values[min(number, len(values) - 1)])
                if field == "topology":
                    machine = MACHINE_TYPES[pool.machine_type]
                    self.of(value, option, "", legal_topology(machine), example=machine.single_host)
                sized_pools[place] = replace(pool, more={**pool.more, field: value})
        return sized_pools

    def end(self) -> None:
        """Exit and print a line for each missing or wrong flag, if there are any."""
        if self.wrong:
            for sentence in dict.fromkeys(self.wrong):
                say_folded(sentence, err=True)
            fail("nothing was written.")


def fits(kind: Any) -> Callable[[str], str]:
    """Return a parser that checks values against the type of a field."""
    from training_platform.config.reading.section import refusal

    def parse(text: str) -> str:
        if why := refusal(kind, text):
            raise ValueError(why)
        return text

    return parse


def among(allowed: Collection[str], better: Collection[str] = ()) -> Callable[[str], str]:
    """Return a parser that accepts only the ``allowed`` names. If ``better`` is not empty, errors suggest its names."""
    from training_platform.catalog.nearest import find_nearest
    from training_platform.config.reading.section import listed

    def parse(text: str) -> str:
        if text not in allowed:
            names = better or allowed
            nearest = find_nearest(text, names)
            shown = listed(sorted(names) if better else list(names)) or "none is declared"
            raise ValueError(f"{text!r} is unknown. Allowed: {shown}.{f' Nearest: {nearest}.' if nearest else ''}")
        return text

    return parse


def given(flag: str | None) -> list[str]:
    """Return a list with the value of a flag, or an empty list if it was not given."""
    return [] if flag is None else [flag]


def whole(text: str) -> int:
    """Parse a decimal integer. Raises ValueError."""
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not an integer.")
    return int(text)


def environment_answer(answers: Answers, flag: str | None, workspace: Workspace, option: str = "--environment") -> str:
    """Return the environment of a team, job or pool. If the repository has only one environment, it is the default."""
    names = [stack.name for stack in workspace.stacks.values() if stack.team is None]
    if not names:
        fail("No environment is declared. To write one: training-platform init environment NAME.")
    default = names[0] if len(names) == 1 else None
    description = f"stack of the environment ({', '.join(names)})"
    home = answers.of(flag, option, description, among(names), default=default, example=names[0])
    answers.end()
    return home


def refuse_existing(folder: Path, file: str) -> None:
    """Exit if a file already exists."""
    if (folder / file).exists():
        fail(f"{file} already exists and was not changed.")


def refuse_wrong(workspace: Workspace, name: str, text: str) -> None:
    """Exit if the model rejects the text of a stack together with all other stacks."""
    from training_platform.config.first_files import findings_of

    if wrong := findings_of(workspace, name, text):
        for finding in wrong:
            say_folded(str(finding), err=True)
        fail("nothing was written.")


def write_stack(folder: Path, workspace: Workspace, name: str, text: str) -> None:
    """Write a stack file if the model accepts it together with all other stacks."""
    refuse_wrong(workspace, name, text)
    write_file(folder, f"stacks/Pulumi.{name}.yaml", text)


def write_file(folder: Path, file: str, text: str) -> None:
    """Write a file below a folder, and print its name."""
    from training_platform.checks.output import write_files

    write_files({folder / file: text}, folders=True)
    say(f"{file}: written")


def legal_topology(machine: MachineType) -> Callable[[str], str]:
    """Return a parser for the slice topologies of a machine type."""
    from training_platform.catalog.topologies import legal_for, nearest_topology, topologies_text

    def parse(text: str) -> str:
        if not legal_for(machine, text):
            nearest = nearest_topology(machine, text)
            hint = f" Nearest: {nearest}." if nearest else ""
            raise ValueError(
                f"{text!r} is not a topology of {machine.name}. Allowed: {topologies_text(machine)}.{hint}"
            )
        return text

    return parse
