"""Lets the guide be searched from a disk and without a network.

The theme's plugin `offline` asks the network for a script that stands in for workers; the guide has its own.
"""

from typing import Any

from mkdocs.utils import get_relative_url

_THEIRS = "https://unpkg.com/iframe-worker/shim"
_OURS = "javascripts/offline-worker.js"


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Name the script of the guide in a page."""
    return output.replace(_THEIRS, get_relative_url(_OURS, page.url))


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """Name it in a page of the theme, such as that of a missing page."""
    return output_content.replace(_THEIRS, get_relative_url(_OURS, template_name))
