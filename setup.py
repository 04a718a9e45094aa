"""Puts the lessons into the installed package, so that it works without a clone of the course."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithLessons(build_py):
    """The rest is in pyproject.toml."""

    def run(self) -> None:
        super().run()
        package = Path(self.build_lib, "autograde")
        for file in sorted(Path("notebooks").glob("[!.]*/[!.]*.*")):
            place = package / "lessons" / file.parent.name
            self.mkpath(str(place))
            self.copy_file(str(file), str(place))
        if Path("due.toml").is_file():
            self.copy_file("due.toml", str(package))


setup(cmdclass={"build_py": WithLessons})
