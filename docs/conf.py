"""The documentation site: Markdown pages, and reference pages that are written from the code. See reference.py."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from jaxmeter.version import __version__

project = "jaxmeter"
project_copyright = "The jaxmeter authors"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference", "links"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks keep the outputs of the machine that ran them

html_theme = "sphinx_book_theme"
html_title = "jaxmeter"
html_theme_options = {"show_toc_level": 2, "use_download_button": False, "home_page_in_toc": True}

default_role = "code"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

nitpicky = False
linkcheck_anchors = True
