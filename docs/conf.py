"""How Sphinx makes the documentation: make docs."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))  # where gallery_look is

project = "Neural Greedy Pursuit"
author = "the ngp authors"
release = version = version_of("neural-greedy-pursuit")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "developer/reproduction", "**/*.template.md", "tests"]
templates_path = ["_templates"]

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it
autodoc_member_order = "bysource"
numpydoc_class_members_toctree = False
# All else that these have is scikit-learn's, and refers to pages of its documentation.
numpydoc_show_inherited_class_members = {"ngp.SSFNRegressor": False, "ngp.SSFNClassifier": False}

# make docs runs every example; one that fails is an error.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_look.place",
    "reset_modules": ("gallery_look.reset",),
    "abort_on_example_error": True,
    "run_stale_examples": True,  # the library may have changed where an example has not
    "capture_repr": (),  # what an example has to say it prints
    "image_srcset": ["2x"],
    "thumbnail_size": (720, 400),
    "notebook_extensions": set(),
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["ngp.css"]
html_math_renderer = "mathml"
html_title = "ngp"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"]},
}
html_show_sphinx = False
project_copyright = author

# Pages are read on their own, too, with links that lead through the repository.
LINKS = {
    r"\]\(((\.\./)*)benchmarks/README\.md": "](/developer/benchmarks.md",
    r"\]\((\.\./)*docs/": "](/",
    r"\[([^]]*)\]\((\.\./)*benchmarks/results\)": r"`\1`",
    r"\[([^]]*)\]\((LICENSE|CONTRIBUTING\.md|examples)\)": r"`\1`",
}


def lead_to_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """Make links lead to pages of the documentation."""
    for link, instead in LINKS.items():
        source[0] = re.sub(link, instead, source[0])


def show_math(writer: nodes.NodeVisitor, node: nodes.Element) -> None:
    """Write a formula as MathML, which browsers show without help from elsewhere."""
    is_block = isinstance(node, nodes.math_block)
    writer.body.append(tex2mathml(node.astext(), as_block=is_block))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Say what is done with pages and formulas."""
    app.add_html_math_renderer("mathml", (show_math, None), (show_math, None))
    app.connect("source-read", lead_to_pages)
    app.connect("include-read", lambda app, file, page, source: lead_to_pages(app, page, source))
