"""Limits for snapshots of tests."""

from __future__ import annotations

UNLIMITED = """
    compute.googleapis.com:
      INSTANCES-per-project-region: [{limit: -1}]
      IN-USE-ADDRESSES-per-project-region: [{limit: -1}]
      CPUS-per-project-region: [{limit: -1}]
      CPUS-ALL-REGIONS-per-project: [{limit: -1}]
      NETWORKS-per-project: [{limit: -1}]
      SUBNETWORKS-per-project: [{limit: -1}]
      ROUTERS-per-project: [{limit: -1}]
      FIREWALLS-per-project: [{limit: -1}]
"""
"""The limits beside those on accelerators and disks, none of them a limit; more of Compute Engine may follow."""
