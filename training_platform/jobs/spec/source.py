"""Python source that a job runs without an image of its own."""

from __future__ import annotations

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from training_platform.config.reading.conflicts import Conflict, refuse_conflicts
from training_platform.config.reading.section import Name, Section
from training_platform.config.reading.texts import Image
from training_platform.jobs.spec.values import InFolder, Module


class PythonSource(Section):
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

    @model_validator(mode="after")
    def _file_or_package(self) -> PythonSource:
        if (self.file is None) == (self.package is None):
            said = "neither file nor package is given" if self.file is None else "file and package are both given"
            raise PydanticCustomError("one_source", said, {"allowed": "file or package", "nearest": None})
        conflicts = []
        if self.package and not self.module:
            conflicts.append(Conflict(("package",), "does not say which module runs", "module beside it"))
        if self.file and self.module:
            conflicts.append(Conflict(("module",), "is for a package: the file itself runs", "none"))
        if self.package and self.requirements:
            conflicts.append(Conflict(("requirements",), "is for a file: a package names its own", "none"))
        refuse_conflicts(conflicts)
        return self
