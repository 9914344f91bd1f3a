"""Converts between the values of Pulumi's wire format (protobuf Structs) and plain Python.

An unknown is a string with a reserved value. A secret is an object with a signature. Source: pulumi/pulumi v3.259
pkg/resource/plugin/rpc.go, read 2026-11-21.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2
from pulumi.runtime import rpc

from training_platform.config.reading.secrets import OUTPUT, SECRET, SIGNATURE
from training_platform.config.reading.unknown import UNKNOWN

_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
UNKNOWNS = frozenset(
    {
        rpc.UNKNOWN,  # string, and values to which an SDK gives no type
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)


def plain_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return a Struct as a dict, with integers as ``int``, unknowns as ``UNKNOWN``, and secrets unwrapped."""
    return {key: readable(as_sent(value)) for key, value in struct.fields.items()}


def as_sent(value: struct_pb2.Value) -> Any:
    """Return a wire value with its signatures. Whole numbers become ``int``, since the wire format has only floats."""
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return {key: as_sent(item) for key, item in value.struct_value.fields.items()}
    if kind == "list_value":
        return [as_sent(item) for item in value.list_value.values]
    if kind == "number_value":
        return int(value.number_value) if value.number_value.is_integer() else value.number_value
    return getattr(value, kind) if kind in ("string_value", "bool_value") else None


def readable(value: Any) -> Any:
    """Copy a value without signatures. Unknowns and non-JSON values become ``UNKNOWN``, resources become their ids."""
    if isinstance(value, str):
        return UNKNOWN if value in UNKNOWNS else value
    if isinstance(value, dict):
        signature = value.get(SIGNATURE)
        if signature in (SECRET, OUTPUT):
            return readable(value.get("value", UNKNOWN))
        if signature == _RESOURCE:
            return readable(value.get("id") or UNKNOWN)
        return {name: readable(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [readable(item) for item in value]
    if isinstance(value, Mapping):
        return readable(dict(value))
    return value if value is None or isinstance(value, bool | int | float) else UNKNOWN


def wire_struct(values: dict[str, Any]) -> struct_pb2.Struct:
    """Return a dict as a Struct in which ``UNKNOWN`` is replaced by the engine's string for unknowns."""
    return struct_pb2.Struct(fields={key: _wire(value) for key, value in values.items()})


def _wire(value: Any) -> struct_pb2.Value:
    if value is UNKNOWN:
        return struct_pb2.Value(string_value=rpc.UNKNOWN)
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, (int, float)):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, dict):
        return struct_pb2.Value(struct_value=wire_struct(value))
    return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_wire(item) for item in value]))
