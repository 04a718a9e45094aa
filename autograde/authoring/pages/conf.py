"""Sphinx's settings for the site of a course's lessons; `autograde site` runs it.

MyST-NB, the heart of Jupyter Book 1, reads the notebooks. It needs Python alone. Jupyter Book 2 and
mystmd need Node, and fetch their theme from the network at each build.
"""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

language = "en"
extensions = ["myst_nb"]

# The outputs are those of solutions/; nothing is run.
nb_execution_mode = "off"
highlight_language = "none"  # a block that names no language is a sketch, not Python
# As in JupyterLab: $x$ is a formula.
myst_enable_extensions = ["dollarmath", "amsmath"]
html_math_renderer = "mathml"

# Furo fits a phone and loads nothing from elsewhere. The colours of code are chosen for contrast.
html_theme = "furo"
# Folds are the theme's admonitions, and there are many of them: grey, not purple.
html_theme_options = {
    "light_css_variables": {
        "color-admonition-title": "#767676",
        "color-admonition-title-background": "#f0f0f0",
    },
    "dark_css_variables": {
        "color-admonition-title": "#9a9a9a",
        "color-admonition-title-background": "#2b2b2b",
        # a lesson's own boxes ask for JupyterLab's colours
        "jp-border-color1": "var(--color-foreground-border)",
        "jp-content-font-color1": "var(--color-foreground-primary)",
        "jp-layout-color1": "var(--color-background-primary)",
    },
}
html_static_path = ["static"]
html_css_files = ["figures.css"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses for files


def _formula(translator: nodes.NodeVisitor, node: nodes.Element) -> None:
    """A formula as MathML, which browsers draw themselves: no script, no fonts to fetch."""
    try:
        block = isinstance(node, nodes.math_block)
        translator.body.append(tex2mathml(node.astext(), as_block=block))
    except MathError as error:
        logging.getLogger(__name__).warning("formula: %s", error, location=node)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
