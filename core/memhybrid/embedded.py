"""What was embedded where it is not the stored text itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from memhybrid.records import StoredRecord

_FIELD = re.compile(r"\{(\w+)\}")
NODE_CONTENT = "_node_content"
"""Where LlamaIndex keeps a node as JSON. It embeds a node's text together with its metadata, and stores the text alone."""


def embedded_text(record: StoredRecord) -> str:
    """The text that a record's vector was made of: its text, after its metadata where LlamaIndex wrote it."""
    content = record.metadata.get(NODE_CONTENT)
    if not isinstance(content, str):
        return record.text
    try:
        return _of_node(json.loads(content), record.text)
    except (ValueError, TypeError, AttributeError, LookupError):
        return record.text


def _of_node(node: Mapping[str, Any], text: str) -> str:
    """LlamaIndex's `get_content(MetadataMode.EMBED)`, by the node's own templates."""
    excluded = set(node.get("excluded_embed_metadata_keys") or ())
    template = node.get("metadata_template") or "{key}: {value}"
    separator = node.get("metadata_separator") or node.get("metadata_seperator") or "\n"
    shown = {key: value for key, value in (node.get("metadata") or {}).items() if key not in excluded}
    head = separator.join(_filled(template, key=key, value=str(value)) for key, value in shown.items()).strip()
    if not head:
        return text
    return _filled(node.get("text_template") or "{metadata_str}\n\n{content}", content=text, metadata_str=head).strip()


def _filled(template: str, **values: str) -> str:
    """The template with its fields put in. Not `str.format`: what is stored must not reach attributes or widths."""
    return _FIELD.sub(lambda field: values.get(field[1], field[0]), template)
