"""What is read of a project that no stack made."""

from __future__ import annotations

import yaml

from tests.places import ROOT
from tests.training_platform.adopt.conftest import PROJECT, contents_of
from tests.training_platform.adopt.seeding import Seeded
from training_platform.clients.project_contents import ENABLED_APIS
from training_platform.resources.register import REGISTER, TENSORBOARD

LISTINGS = ROOT / "training_platform" / "clients" / "listings.yaml"


def test_every_list_is_of_a_type_of_the_register() -> None:
    table = yaml.safe_load(LISTINGS.read_text(encoding="utf-8"))
    listed = [kind for part in ("project", "zones", "regions") for kind in table[part]]

    assert listed
    assert {*listed} - {*REGISTER} == {ENABLED_APIS}


def test_vertex_ai_is_asked_in_the_region_of_a_zone_whose_name_ends_in_several_letters() -> None:
    seeded = Seeded(PROJECT)
    for api in ("aiplatform", "compute", "file"):
        seeded.ask("POST", f"serviceusage/v1/projects/{PROJECT}/services/{api}.googleapis.com:enable", {})
    seeded.ask("POST", f"compute/beta/projects/{PROJECT}/global/networks", {"name": "own"})
    instance = {
        "tier": "BASIC_HDD",
        "fileShares": [{"name": "share", "capacityGb": 1024}],
        "networks": [{"network": "own", "modes": ["MODE_IPV4"]}],
    }
    locations = f"projects/{PROJECT}/locations"
    seeded.ask("POST", f"file/v1beta1/{locations}/us-central1-ai1a/instances", instance, instanceId="homes")
    seeded.ask("POST", f"aiplatform/v1beta1/{locations}/us-central1/tensorboards", {"displayName": "runs"})

    (board,) = contents_of(seeded).of(TENSORBOARD).values()

    assert board["displayName"] == "runs"
