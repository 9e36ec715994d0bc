"""`kant-opt schema`: the JSON Schema of the documents."""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    document: Annotated[str, typer.Argument(metavar="[request|placement|outcome]", help="Which document.")] = "request",
) -> None:
    """Print the JSON Schema of a document.

    Draft 2020-12, to stdout.

    \b
    Examples:
      kant-opt schema
      kant-opt schema outcome > outcome.schema.json
    """
    from json import dumps

    from kant_opt.cli.page import emit
    from kant_opt.errors import UnknownName
    from kant_opt.schema import DOCUMENTS, json_schema

    if document not in DOCUMENTS:
        raise UnknownName("document", document, DOCUMENTS)
    emit(dumps(json_schema(document), indent=2, ensure_ascii=False) + "\n")
