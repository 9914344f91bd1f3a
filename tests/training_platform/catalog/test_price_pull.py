"""``prices pull`` against a server on this machine that answers as the Cloud Billing Catalog API documents it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from click.testing import CliRunner, Result
from google.auth import exceptions

from tests.places import ORGANISATION, ROOT
from training_platform.catalog import MACHINE_TYPES
from training_platform.catalog.prices import HOURS_OF_MONTH, machines_cost, service_cost
from training_platform.cli.main import app
from training_platform.config.own_prices import LISTED_FILE, read_own_prices

COMPUTE = "6F81-5844-456A"
TPU = "E000-3F24-B8AA"
REGION = "us-central1"


def sku(
    description: str,
    *tiers: Any,
    unit: str = "h",
    usage: str = "OnDemand",
    group: str = "CPU",
    regions: Any = (REGION,),
) -> dict[str, Any]:
    """Return a SKU as the API lists it; tiers are amounts of money, each from 100 units more."""
    rates = [{"startUsageAmount": 100 * tier, "unitPrice": money} for tier, money in enumerate(tiers)]
    return {
        "skuId": "0000-0000-0000",
        "description": description,
        "category": {"resourceFamily": "Compute", "resourceGroup": group, "usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [
            {"pricingExpression": {"usageUnit": "s", "tieredRates": []}},  # an older price: the last is the newest
            {"pricingExpression": {"usageUnit": unit, "tieredRates": rates}},
        ],
    }


def usd(units: int, nanos: int) -> dict[str, Any]:
    """Return an amount of money; JSON leaves zeros out, and has units as a string."""
    return {"currencyCode": "USD"} | ({"units": str(units)} if units else {}) | ({"nanos": nanos} if nanos else {})


H100 = [
    sku("A3 Instance Core running in Americas", usd(0, 29_300_000)),
    sku("A3 Instance Ram running in Americas", usd(0, 2_500_000), unit="GiBy.h", group="RAM"),
    sku("Nvidia H100 80GB GPU running in Americas", usd(9, 796_000_000), group="GPU"),
    sku("SSD backed Local Storage", usd(0, 80_000_000), unit="GiBy.mo", group="LocalSSD"),
]
H100_USD = 208 * 0.0293 + 1872 * 0.0025 + 8 * 9.796 + 16 * 375 * 0.08 / 730
SPOT = [
    sku("Spot Preemptible A3 Instance Core running in Iowa", usd(0, 10_000_000), usage="Preemptible"),
    sku("Spot Preemptible A3 Instance Ram running in Iowa", usd(0, 1_000_000), unit="GiBy.h", usage="Preemptible"),
    sku("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Iowa", usd(2, 0), usage="Preemptible"),
    sku(
        "SSD backed Local Storage attached to Spot Preemptible VMs", usd(0, 30_000_000), unit="GiBy.mo",
        usage="Preemptible",
    ),
]  # fmt: skip


class Server(HTTPServer):
    """Answers with what a test gives it: by service, pages of SKUs, or a status and a body for everything."""

    pages: dict[str, list[list[Any]]]
    refusal: tuple[int, Any] | None = None
    requests: list[tuple[str, str, dict[str, list[str]]]]


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        self.server.requests.append((parts.path, self.headers.get("Authorization", ""), query))
        status, body = self.server.refusal or (200, None)
        if body is None:
            pages = self.server.pages.get(parts.path.split("/")[3], [[]])
            number = int(query.get("pageToken", ["0"])[0])
            body = {"skus": pages[number], "nextPageToken": str(number + 1) if number + 1 < len(pages) else ""}
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def billing() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), _Handler)
    server.pages = {COMPUTE: [H100]}
    server.requests = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(ORGANISATION / "stacks", tmp_path / "stacks")
    shutil.copytree(ORGANISATION / "jobs", tmp_path / "jobs")
    shutil.copy(ROOT / "Pulumi.yaml", tmp_path)
    return tmp_path


def pull(root: Path, billing: Server, *arguments: str) -> Result:
    endpoint = f"http://127.0.0.1:{billing.server_port}/"
    return CliRunner().invoke(app, ["prices", "pull", "--endpoint", endpoint, "--root", str(root), *arguments])


def written(root: Path) -> Any:
    return yaml.safe_load((root / LISTED_FILE).read_text())


def test_a_machine_costs_the_sum_of_its_parts_on_demand_and_spot(root: Path, billing: Server) -> None:
    billing.pages = {COMPUTE: [H100, SPOT]}

    done = pull(root, billing, "--region", REGION, "--today", "2026-11-23")

    assert done.exit_code == 0, done.output
    machine = written(root)["machines"]["a3-highgpu-8g"]
    assert machine["on-demand"][REGION] == pytest.approx(H100_USD, abs=1e-6)
    assert machine["spot"][REGION] == pytest.approx(208 * 0.01 + 1872 * 0.001 + 8 * 2 + 6000 * 0.03 / 730, abs=1e-6)
    assert written(root)["services"] == {"local-ssd": {REGION: 0.08}, "local-ssd-spot": {REGION: 0.03}}
    assert written(root)["read"] == "2026-11-23"


def test_every_page_of_both_services_is_read_without_credentials(root: Path, billing: Server) -> None:
    v6e = sku("TpuV6e chips in Iowa", usd(2, 700_000_000), group="TPU")
    v4 = sku("Tpu-v4 Pod in Oklahoma", usd(3, 220_000_000), group="TPU", regions=("us-central2",))
    billing.pages = {COMPUTE: [H100[:2], H100[2:], [v6e]], TPU: [[], [v4]]}

    done = pull(root, billing, "--region", REGION, "--region", "us-central2")

    assert done.exit_code == 0, done.output
    machines = written(root)["machines"]
    assert machines["ct6e-standard-4t"]["on-demand"] == {REGION: pytest.approx(4 * 2.7)}
    assert machines["ct4p-hightpu-4t"]["on-demand"] == {"us-central2": pytest.approx(4 * 3.22)}
    assert [(path.split("/")[3], query.get("pageToken")) for path, _, query in billing.requests] == [
        (COMPUTE, None), (COMPUTE, ["1"]), (COMPUTE, ["2"]), (TPU, None), (TPU, ["1"]),
    ]  # fmt: skip
    assert {authorization for _, authorization, _ in billing.requests} == {""}


def test_the_first_rate_that_is_not_free_counts(root: Path, billing: Server) -> None:
    disk = sku(
        "Balanced PD Capacity in Iowa", usd(0, 0), usd(0, 100_000_000), usd(0, 50_000_000), unit="GiBy.mo", group="SSD"
    )
    billing.pages = {COMPUTE: [[disk]]}

    pull(root, billing, "--region", REGION)

    assert written(root)["services"]["pd-balanced"] == {REGION: 0.1}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (sku("A2 Instance Core", usd(1, 0), unit="d"), "A2 Instance Core: is priced by d"),
        (sku("A2 Instance Core", usd(1, 0) | {"currencyCode": "JPY"}), "A2 Instance Core: is priced in JPY"),
        (sku("A2 Instance Core"), "A2 Instance Core: has no price"),
        ({**sku("A2 Instance Core"), "pricingInfo": []}, "A2 Instance Core: has no price"),
        (sku("A3 Instance Core in Iowa", usd(7, 0)), "a3 instance core (on-demand) in us-central1: has 2 prices"),
    ],
)  # fmt: skip
def test_a_sku_that_cannot_be_read_is_named_and_counted(root: Path, billing: Server, row: Any, message: str) -> None:
    billing.pages = {COMPUTE: [H100, [row]]}

    done = pull(root, billing, "--region", REGION)

    assert done.exit_code == 0, done.output
    assert f"  SKUs that could not be read: 1: {message}\n" in done.stdout


def test_an_unknown_sku_of_a_machine_is_named_and_counted_and_others_are_not(root: Path, billing: Server) -> None:
    billing.pages = {
        COMPUTE: [
            H100,
            [
                sku("X9 Instance Core running in Iowa", usd(1, 0)),
                sku("X9 Instance Core running in Tulsa", usd(1, 0)),
                sku("Network Egress", usd(1, 0), group="PremiumInternetEgress"),
                sku("A3 Reserved Instance Core", usd(1, 0)),
                sku("Commitment v1: A3 Cpu", usd(1, 0), usage="Commit1Yr"),
                sku("X9 Instance Core elsewhere", usd(1, 0), regions=("europe-west4",)),
            ],
        ]
    }

    done = pull(root, billing, "--region", REGION)

    assert "  SKUs of machines that the catalogue does not know: 1: X9 Instance Core (2)\n" in done.stdout


def test_a_machine_with_a_part_without_a_price_has_none_and_is_named(root: Path, billing: Server) -> None:
    billing.pages = {COMPUTE: [H100[:-1]]}

    done = pull(root, billing, "--region", REGION, "--verbose")

    assert "a3-highgpu-8g" not in written(root)["machines"]
    (line,) = [line for line in done.stdout.splitlines() if "without a list price" in line]
    assert {"a3-highgpu-8g on-demand in us-central1", "pd-ssd in us-central1"} <= set(
        line.split(": ", 2)[2].split(", ")
    )
    assert "--verbose" not in done.stdout
    assert "more (--verbose)" in pull(root, billing, "--region", REGION).stdout


def test_regions_are_those_of_all_stacks(root: Path, billing: Server) -> None:
    billing.pages = {COMPUTE: [[{**row, "serviceRegions": [REGION, "us-west4", "asia-east1"]} for row in H100]]}

    done = pull(root, billing)

    assert set(written(root)["machines"]["a3-highgpu-8g"]["on-demand"]) == {REGION, "us-west4"}
    assert done.stdout.startswith("stacks/list-prices.yaml: written; ")


def test_pulled_prices_come_before_the_catalogue_s_and_after_a_contract_s(root: Path, billing: Server) -> None:
    pull(root, billing, "--region", REGION, "--today", "2026-11-23")
    machine = MACHINE_TYPES["a3-highgpu-8g"]
    book, findings = read_own_prices(root)
    assert findings == []

    for way in ("on-demand", "reservation", "flex-start"):
        cost = machines_cost(machine, way, REGION, 1, 1, book=book)
        assert cost.most == pytest.approx(H100_USD, abs=1e-6)
        assert (str(cost.read), cost.shipped) == ("2026-11-23", None)
    assert machines_cost(machine, "spot", REGION, 1, 1, book=book).shipped is not None  # not pulled
    assert service_cost("local-ssd", REGION, 730, 730, book).most == pytest.approx(0.08 * 730 / HOURS_OF_MONTH)

    (root / "stacks" / "prices.yaml").write_text(
        "read: 2026-11-01\ndiscounts: {machines: 0.5, services: 0.1}\n"
        "machines: {a3-highgpu-8g: {spot: {us-central1: 7}}}\n"
    )
    book, _ = read_own_prices(root)
    assert machines_cost(machine, "on-demand", REGION, 1, 1, book=book).most == pytest.approx(H100_USD / 2, abs=1e-6)
    assert machines_cost(machine, "spot", REGION, 1, 1, book=book).most == 7
    assert service_cost("local-ssd", REGION, 730, 730, book).most == pytest.approx(0.9 * 0.08)


def test_job_cost_and_check_have_the_pulled_prices_and_their_day(root: Path, billing: Server) -> None:
    pull(root, billing, "--today", "2026-11-23")
    job = str(root / "jobs" / "vision" / "finetune.yaml")

    cost = CliRunner().invoke(
        app, ["job", "cost", job, "--root", str(root), "--target", "gke", "--today", "2026-11-23"]
    )

    assert f" ${2 * H100_USD:,.2f}" in cost.stdout
    assert "The oldest price, of spot, is of 2025-03-06." in cost.stdout  # it is the catalogue's
    billing.pages = {COMPUTE: [H100, SPOT]}
    pull(root, billing, "--today", "2026-11-23")
    cost = CliRunner().invoke(
        app, ["job", "cost", job, "--root", str(root), "--target", "gke", "--today", "2026-11-23"]
    )
    assert "The prices are of 2026-11-23." in cost.stdout
    assert "examples" not in cost.stdout


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        (
            (403, {"error": {"message": "Off.", "details": [{"reason": "SERVICE_DISABLED"}]}}),
            "gcloud services enable cloudbilling.googleapis.com",
        ),
        ((403, {"error": {"message": "No."}}), "Cloud Billing does not let you in its price catalogue: No."),
        ((401, {"error": {"message": "Who?"}}), "Log in with gcloud auth application-default login."),
        ((404, b"<html>"), "Cloud Billing refuses (404) in its price catalogue: <html>"),
        ((200, b"[]"), "answers with something other than a JSON object"),
        ((200, {"skus": ["x"]}), "with pages that cannot be read"),
        ((200, {}), "Cloud Billing lists no SKU of Compute Engine, so no price is known; nothing was written."),
        ((200, {"skus": [sku("Network Egress", usd(1, 0), group="Egress")]}), "(2 SKUs read); nothing was written."),
    ],
)  # fmt: skip
def test_a_catalogue_that_cannot_be_read_is_one_sentence(
    root: Path, billing: Server, refusal: Any, message: str
) -> None:
    billing.refusal = refusal

    done = pull(root, billing, "--region", REGION)

    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (root / LISTED_FILE).exists()


def test_missing_credentials_say_how_to_log_in(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(**_: object) -> None:
        raise exceptions.DefaultCredentialsError("none here")

    monkeypatch.setattr("google.auth.default", none)

    done = CliRunner().invoke(app, ["prices", "pull", "--root", str(root)])

    assert (done.exit_code, done.stdout) == (2, "")
    assert "no credentials: none here. Log in with gcloud auth" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--region", "us-centrl1"), "--region 'us-centrl1' is not a region. Nearest: us-central1."),
        (("--endpoint", "http://prices.example.com/"), "write https://HOST/, or http://127.0.0.1:PORT/"),
        (("--endpoint", "http://127.0.0.1:1/"), "Cloud Billing in its price catalogue cannot be reached: "),
    ],
)
def test_bad_input_is_one_sentence(root: Path, arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["prices", "pull", "--root", str(root), *arguments])

    assert done.exit_code == 2
    assert message in done.stderr


def test_a_dry_run_writes_nothing(root: Path, billing: Server) -> None:
    assert "stacks/list-prices.yaml: not written; " in pull(root, billing, "--region", REGION, "--dry-run").stdout
    assert not (root / LISTED_FILE).exists()
