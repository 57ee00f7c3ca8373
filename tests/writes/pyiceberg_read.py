#!/usr/bin/env python3
"""Reads Iceberg tables with PyIceberg and says what they hold.

    pyiceberg_read.py CATALOG_DB NAME TABLE...

prints, as JSON by table name, the rows as lists of text sorted by the column id, and
under "lost" the rows that a filter on each of their values does not find: filters go
through the partitions and bounds that the writer put into manifests.
"""
import datetime as dt
import decimal
import json
import sys
import uuid

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, IsNull

NESTED = ("StructType", "ListType", "MapType")


def text(v):
    if v is None:
        return None
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, (bytes, bytearray)):
        return bytes(v).hex()
    if isinstance(v, dt.datetime) and v.tzinfo:
        return str(v.astimezone(dt.timezone.utc).replace(tzinfo=None))
    if isinstance(v, dict):
        return "{" + ",".join(f"{k}:{text(x)}" for k, x in v.items()) + "}"
    if isinstance(v, (list, tuple)):
        return "[" + ",".join(str(text(x)) for x in v) + "]"
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    return str(v)


def literal(v, field_type):
    """The value as filters take it."""
    if isinstance(v, dt.datetime):
        return v.isoformat()
    if type(field_type).__name__ == "FixedType":
        return bytes(v)
    return v


def main():
    catalog = SqlCatalog(sys.argv[2], uri="sqlite:///" + sys.argv[1])
    out = {}
    for name in sys.argv[3:]:
        table = catalog.load_table(name)
        data = table.scan().to_arrow().to_pylist()
        data.sort(key=lambda r: (r["id"] is None, r["id"]))
        lost = []
        for row in data:
            for field in table.schema().fields:
                if type(field.field_type).__name__ in NESTED:
                    continue
                v = row[field.name]
                same = IsNull(field.name) if v is None else EqualTo(field.name, literal(v, field.field_type))
                found = table.scan(row_filter=And(EqualTo("id", row["id"]), same)).to_arrow()
                if found.num_rows != 1:
                    lost.append(f"{field.name} of {row['id']}")
        out[name] = {"rows": [[text(v) for v in r.values()] for r in data], "lost": lost}
    json.dump(out, sys.stdout)


main()
