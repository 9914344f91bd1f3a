from tests.places import ORGANISATION
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import machines_cost
from training_platform.checks.cost import stack_cost
from training_platform.checks.reports.wording import price, price_note
from training_platform.config.workspace import read_workspace


def test_the_environment_s_reserved_and_standing_machines_are_its_least_cost() -> None:
    section = read_workspace(ORGANISATION).stacks["prod"].section
    assert section is not None

    cost = stack_cost(section)

    assert 0 < cost.least < cost.most


def test_every_sum_is_a_least_one_and_says_what_it_leaves_out() -> None:
    cost = machines_cost(MACHINE_TYPES["ct5lp-hightpu-4t"], "on-demand", "us-west4", 1, 1)

    assert price(cost).startswith("at least $")
    assert "without disks, Filestore, network, control planes" in price_note(cost)
