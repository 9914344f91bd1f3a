"""The policy pack; `pulumi preview --policy-pack policies` runs it."""

from pathlib import Path

from training_platform.policy.pack import policies
from training_platform.policy.serving import serve

serve(policies(Path(__file__).resolve().parents[1]))
