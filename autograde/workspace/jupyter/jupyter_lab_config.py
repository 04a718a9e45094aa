"""JupyterLab with what lessons need; a hub's servers read this, too."""

from pathlib import Path

c = get_config()  # noqa: F821 (JupyterLab defines it)

c.LabApp.extra_labextensions_path = [str(Path(__file__).parent / "labextensions")]
