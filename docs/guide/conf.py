"""The guide, built by Sphinx: chapters are MyST notebooks that run when it is built. `make docs` builds both
languages."""

from __future__ import annotations

import os
import sys
from importlib.resources import files
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
os.environ["MATPLOTLIBRC"] = str(Path(__file__).parent / "matplotlibrc")

from kept import kept

project = "headway"
author = "the headway authors"
copyright = author
language = "en"
exclude_patterns = ["_build"]
templates_path = ["_templates"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "docstrings", "figures", "live", "manuals", "mathml"]
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "model_config"}  # pydantic's
autodoc_typehints_format = "short"
maximum_signature_line_length = 90
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3

nb_execution_mode = "cache"
nb_execution_cache_path = str(kept("outputs"))
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

locale_dirs = ["locale"]
gettext_compact = False
gettext_uuid = False
gettext_location = False

html_theme = "furo"
html_math_renderer = "mathml"
html_title = "headway: the guide"
# Formulas need a font that is made for them. This one (SIL Open Font License) comes with ziamath.
html_static_path = ["_static", str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf")]
html_css_files = ["guide.css"]
html_js_files = ["guide.js"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/languages.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
