"""Values on Pulumi's wire (protobuf Structs) as plain Python: unknown as ``UNKNOWN``, secrets as what they hold."""

from __future__ import annotations

from typing import Any

from google.protobuf import struct_pb2
from pulumi.runtime import rpc

from training_platform.resources.planned import UNKNOWN

_SIGNATURE = "4dabf18193072939515e22adb298388d"  # the key under which Pulumi marks a value as more than an object
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 # a published constant of the protocol
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


def plain_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """Return an object of the wire as a dict, whole numbers as ``int``."""
    return {key: plain(value) for key, value in struct.fields.items()}


def plain(value: struct_pb2.Value) -> Any:
    """Return a value of the wire as plain Python; a reference to a resource becomes its id."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return UNKNOWN if value.string_value == rpc.UNKNOWN else value.string_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    if kind == "list_value":
        return [plain(item) for item in value.list_value.values]
    if kind == "struct_value":
        return _object(value.struct_value)
    return None


def _object(struct: struct_pb2.Struct) -> Any:
    if _SIGNATURE not in struct.fields:
        return plain_struct(struct)
    signature = struct.fields[_SIGNATURE].string_value
    if signature in (_SECRET, _OUTPUT):
        return plain(struct.fields["value"]) if "value" in struct.fields else UNKNOWN
    if signature == _RESOURCE:
        return plain(struct.fields["id"]) if struct.fields["id"].string_value else UNKNOWN
    return plain_struct(struct)


def holds_unknown(value: Any) -> bool:
    """Return whether a plain value is unknown, or unknown somewhere inside."""
    if isinstance(value, dict):
        return any(holds_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(holds_unknown(item) for item in value)
    return value is UNKNOWN


def wire_struct(values: dict[str, Any]) -> struct_pb2.Struct:
    """Return a dict as an object of the wire, ``UNKNOWN`` as the engine's mark for it."""
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
