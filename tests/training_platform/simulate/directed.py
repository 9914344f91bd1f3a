"""Scenarios that are made for one branch of the algorithm each."""

from __future__ import annotations

from typing import Any

DIRECTED: list[dict[str, Any]] = []
