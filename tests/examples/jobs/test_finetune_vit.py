from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.examples.jobs.conftest import EXAMPLES, Program, Start, last

pytestmark = [pytest.mark.examples, pytest.mark.timeout(400)]

SIZE = 32
MAKE = f"""\
import json, sys
from pathlib import Path
from PIL import Image
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

root = Path(sys.argv[1])
colours = {{"apple_pie": (200, 60, 40), "baby_back_ribs": (60, 40, 200)}}
(root / "food-101" / "meta").mkdir(parents=True)
split = {{"train": {{}}, "test": {{}}}}
for name, colour in colours.items():
    (root / "food-101" / "images" / name).mkdir(parents=True)
    for index in range(12):
        shade = tuple(min(255, value + 3 * index) for value in colour)
        Image.new("RGB", (48, 40), shade).save(root / "food-101" / "images" / name / f"{{index}}.jpg")
        split["train" if index < 8 else "test"].setdefault(name, []).append(f"{{name}}/{{index}}")
for part, images in split.items():
    (root / "food-101" / "meta" / f"{{part}}.json").write_text(json.dumps(images))
(root / "food-101" / "meta" / "classes.txt").write_text("".join(f"{{name}}\\n" for name in colours))
(root / "food-101" / "meta" / "labels.txt").write_text("Apple pie\\nBaby back ribs\\n")
config = ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                   image_size={SIZE}, patch_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
ViTForImageClassification(config).save_pretrained(root / "model")
ViTImageProcessor(size={{"height": {SIZE}, "width": {SIZE}}}).save_pretrained(root / "model")
"""


@pytest.fixture
def data(tmp_path: Path, python: str) -> Path:
    """Two dishes of twelve pictures, as food-101 lays them out, and a small vision transformer."""
    subprocess.run([python, "-c", MAKE, str(tmp_path)], check=True, capture_output=True)
    return tmp_path


def tuning(start: Start, data: Path, checkpoints: Path) -> Program:
    where = ["--data", data, "--model", data / "model", "--checkpoints", checkpoints]
    options = ["--steps=16", "--checkpoint-every=100", "--batch=8", "--workers=1", "--learning-rate=1e-3"]
    return start(EXAMPLES / "finetune_vit" / "finetune.py", *where, *options)


def test_a_vm_that_goes_leaves_a_checkpoint_and_the_next_goes_on(start: Start, data: Path) -> None:
    whole = tuning(start, data, data / "whole").ends_well()

    first = tuning(start, data, data / "stopped")
    first.until("step 3 loss .*")
    first.terminate()
    assert first.ended() == 128 + signal.SIGTERM, first.lines[-30:]
    done = last(first.lines, "checkpoint").split()[1]
    assert last(first.lines, "step").split()[1] == done
    assert 3 <= int(done) < 16
    resumed = tuning(start, data, data / "stopped").ends_well()

    assert f"from step {done}" in resumed
    assert next(line for line in resumed if line.startswith("step ")).split()[1] == str(int(done) + 1)
    assert last(resumed, "step") == last(whole, "step")
    assert last(resumed, "accuracy") == last(whole, "accuracy")


def test_the_dishes_are_told_apart_and_the_tuned_model_is_written(start: Start, data: Path) -> None:
    lines = tuning(start, data, data / "run").ends_well()

    assert float(last(lines, "accuracy").split()[1]) == 1.0
    config = json.loads((data / "run" / "model" / "config.json").read_text())
    assert config["architectures"] == ["ViTForImageClassification"]
