"""Python source that a job runs without an image of its own."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from training_platform.config.reading.conflicts import Conflict, Consistent
from training_platform.config.reading.section import Name
from training_platform.config.reading.texts import Image
from training_platform.jobs.spec.values import InFolder, Module


class PythonSource(Consistent):
    """One file, or a package; it goes to the team's bucket as an sdist when the job is submitted."""

    file: InFolder | None = Field(
        default=None, description="One Python file, from the repository's folder.", examples=["src/train.py"]
    )
    package: InFolder | None = Field(
        default=None,
        description="Folder with pyproject.toml or setup.py, from the repository's.",
        examples=["src"],
    )
    module: Module | None = Field(default=None, description="package: the module to run.", examples=["finetune.train"])
    requirements: tuple[str, ...] = Field(
        default=(), description="file: what pip installs beside it; a package says that itself."
    )
    image: Image | None = Field(
        default=None,
        description="Image with Python; default: Vertex AI's prebuilt one for the accelerator.",
    )
    bucket: Name | None = Field(default=None, description="The team's bucket for it; default: that of output.")

    def conflicts(self) -> Iterator[Conflict]:
        """Yield the fields that do not go together; of none and of both kinds of source that alone."""
        if (self.file is None) == (self.package is None):
            said = "neither file nor package is given" if self.file is None else "file and package are both given"
            yield Conflict((), said, "file or package")
            return
        if self.package and not self.module:
            yield Conflict(("package",), "does not say which module runs", "module beside it")
        if self.file and self.module:
            yield Conflict(("module",), "is for a package: the file itself runs", "none")
        if self.package and self.requirements:
            yield Conflict(("requirements",), "is for a file: a package names its own", "none")
