"""The policy pack; `pulumi preview --policy-pack policies` runs it."""

from pathlib import Path

from policies.pack import policies
from policies.serving import serve

serve(policies(Path(__file__).resolve().parents[1]))
