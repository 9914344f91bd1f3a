"""Small data sets in the shape of those that the examples read."""

from __future__ import annotations

SIZE = 32
MAKE_IMAGES = f"""\
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
MAKE_TENSORS = """\
import sys, torch
torch.manual_seed(1)
inputs = torch.randn(512, 64)
torch.save({"inputs": inputs, "labels": inputs[:, :10].argmax(1)}, sys.argv[1])
"""
MAKE_ARRAYS = """\
import sys, numpy as np
random = np.random.default_rng(0)
inputs = random.standard_normal((300, 8)).astype("float32")
labels = inputs[:, :3].argmax(1)
np.savez(sys.argv[1], inputs=inputs[:200], labels=labels[:200], test_inputs=inputs[200:], test_labels=labels[200:])
"""
