"""Sphinx's settings for the documentation site; tools/site.py puts the pages together and calls it."""

project = "squall"
author = "the squall project"
extensions = ["myst_parser"]
root_doc = "docs/index"
myst_heading_anchors = 4
smartquotes = False
html_theme = "furo"
html_title = "squall"
html_static_path = ["docs/site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
