"""The policy pack; `pulumi preview --policy-pack policies` runs it."""

from pathlib import Path

from training_platform.policy.pack import Pack
from training_platform.policy.serving import serve

serve(Pack(Path(__file__).resolve().parents[1]))
