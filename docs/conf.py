"""How Sphinx makes the site of these pages; `make docs` calls it."""

import logging
import os
import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # nothing is computed here
logging.getLogger("arviz").setLevel(logging.WARNING)  # it tells which plotting libraries it has found

project = "foveate"
author = "the authors of foveate"
version = release = installed("foveate")

extensions = ["myst_parser", "sphinx.ext.autodoc", "prose", "shapes", "mathml", "commands"]
exclude_patterns = ["_ext", "_static"]
highlight_language = "none"  # of blocks that name none: shell sessions

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# Types stand with each argument in the signature; a docstring does not repeat them.
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["pysaliency", "tqdm"]  # foveate.pysaliency is documented without them
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"foveate {release}"
html_math_renderer = "mathml"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
