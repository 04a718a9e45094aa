"""Puts the lessons' practice data into the installed package, so that a notebook works alone."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithPracticeData(build_py):
    """The rest is in pyproject.toml."""

    def run(self) -> None:
        super().run()
        place = Path(self.build_lib, "autograde", "notebook", "practice_data")
        for file in sorted(Path("notebooks").glob("*/practice.safetensors.gz")):
            self.mkpath(str(place))
            self.copy_file(str(file), str(place / f"{file.parent.name}.safetensors.gz"))


setup(cmdclass={"build_py": WithPracticeData})
