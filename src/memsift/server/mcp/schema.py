"""The part of JSON Schema that the tools use: builders, and a check that says what is wrong.

Schemas are flat and closed. The core checks values again: a schema is what a client is told, not what protects.
"""

from __future__ import annotations

import math
import re
from typing import Any

from memsift.errors import InvalidType, InvalidValue
from memsift.server.wording import echo

Schema = dict[str, Any]
LARGEST_ID = 2**53 - 1  # what JSON numbers carry everywhere


def integer(low: int, high: int, words: str, **more: Any) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high, "description": words, **more}


def number(low: float, high: float, words: str, **more: Any) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high, "description": words, **more}


def text(longest: int, words: str, **more: Any) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": words, **more}


def flag(words: str, **more: Any) -> Schema:
    return {"type": "boolean", "description": words, **more}


def many(item: Schema, most: int, words: str, least: int = 1) -> Schema:
    return {
        "type": "array", "items": item, "minItems": least, "maxItems": most, "description": words,
    }  # fmt: skip


def record(properties: dict[str, Schema], required: list[str], words: str = "") -> Schema:
    """An object with these properties and no others."""
    about = {"description": words} if words else {}
    return {
        "type": "object", **about, "properties": properties, "required": required,
        "additionalProperties": False,
    }  # fmt: skip


def listing(item: Schema, words: str) -> Schema:
    """A list in a reply."""
    return {"type": "array", "items": item, "description": words}


def plain(kind: str | list[str], words: str) -> Schema:
    """A value in a reply."""
    return {"type": kind, "description": words}


KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}


def check(value: Any, schema: Schema, name: str) -> None:
    """Raise `InvalidType` or `InvalidValue` naming what of `value` is not as the schema says."""
    kinds = schema.get("type", list(KINDS))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(_is(value, kind) for kind in kinds):
        raise InvalidType(f"{name} must be {' or '.join(kinds)}; got {_shown(value)}")
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(map(str, schema["enum"]))
        raise InvalidValue(f"{name} must be one of {allowed}; got {_shown(value)}")
    if isinstance(value, str):
        _check_text(value, schema, name)
    elif isinstance(value, dict):
        _check_object(value, schema, name)
    elif isinstance(value, list):
        _check_size(len(value), schema, "Items", name, "items")
        for place, item in enumerate(value):
            check(item, schema.get("items", {}), f"{name}[{place}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        if not (math.isfinite(value) if isinstance(value, float) else True) or not (
            low <= value <= high
        ):
            raise InvalidValue(f"{name} must be from {low} to {high}; got {_shown(value)}")


def _check_text(value: str, schema: Schema, name: str) -> None:
    _check_size(len(value), schema, "Length", name, "characters")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        raise InvalidValue(f"{name} must match {schema['pattern']}; got {_shown(value)}")


def _check_object(value: dict[str, Any], schema: Schema, name: str) -> None:
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    _check_size(len(value), schema, "Properties", name, "keys")
    for key in schema.get("required", []):
        if key not in value:
            raise InvalidValue(f"{name} needs {key}")
    for key, item in value.items():
        if key in properties:
            check(item, properties[key], key if name == "arguments" else f"{name}.{key}")
        elif rest is False:
            known = ", ".join(properties) or "nothing"
            raise InvalidValue(f"{name} may hold {known}; got {echo(key)!r}")
        else:
            if "propertyNames" in schema:
                check(key, schema["propertyNames"], f"a key of {name}")
            if isinstance(rest, dict):
                check(item, rest, f"{name}[{echo(key)!r}]")


def _check_size(size: int, schema: Schema, kind: str, name: str, unit: str) -> None:
    least, most = schema.get(f"min{kind}", 0), schema.get(f"max{kind}", math.inf)
    if not least <= size <= most:
        raise InvalidValue(f"{name} must have {least} to {most} {unit}; got {size}")


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, KINDS[kind])


def _shown(value: Any) -> str:
    """A short picture of what came: at most 64 safe characters of it."""
    if isinstance(value, str):
        return repr(echo(value))
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (bool, int, float, type(None))):
        return repr(value)
    return "an object" if isinstance(value, dict) else "a list"
