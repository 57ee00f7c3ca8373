#!/usr/bin/env python3
"""Reads Iceberg tables with PyIceberg and says what they hold.

    pyiceberg_read.py CATALOG_DB NAME TABLE...

prints, as JSON by table name, the rows as lists of text sorted by the column id, and
under "lost" the rows that a filter on each of their values does not find: filters go
through the partitions and bounds that the writer put into manifests. Of a table whose
name begins with sized there are no rows, but what is known of its files.
"""
import datetime as dt
import json
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, IsNull

from texts import text

NESTED = ("StructType", "ListType", "MapType")
FILTERED = 10  # rows of a table that are looked for by their values


def literal(v, field_type):
    """The value as filters take it."""
    if isinstance(v, dt.datetime):
        return v.isoformat()
    if type(field_type).__name__ == "FixedType":
        return bytes(v)
    return v


def contents(table):
    data = table.scan().to_arrow().to_pylist()
    data.sort(key=lambda r: (r["id"] is None, r["id"]))
    lost = []
    for row in data[:FILTERED]:
        for field in table.schema().fields:
            if type(field.field_type).__name__ in NESTED:
                continue
            v = row[field.name]
            same = IsNull(field.name) if v is None else EqualTo(field.name, literal(v, field.field_type))
            found = table.scan(row_filter=And(EqualTo("id", row["id"]), same)).to_arrow()
            if found.num_rows != 1:
                lost.append(f"{field.name} of {row['id']}")
    return {"rows": [[text(v) for v in r.values()] for r in data], "lost": lost}


def files(table):
    """Of each data file the size, the number of rows, whether the column n is in order,
    whether the table says by its bounds and the file by its statistics what n holds."""
    out = []
    for f in table.inspect.files().to_pylist():
        path = f["file_path"].removeprefix("file://")
        n = pq.read_table(path, columns=["n"])["n"].combine_chunks()
        ordered = pc.all(pc.less_equal(n[:-1], n[1:])).as_py()
        low, high = pc.min(n).as_py(), pc.max(n).as_py()
        metrics = f["readable_metrics"]["n"]
        meta = pq.ParquetFile(path).metadata
        at = meta.schema.to_arrow_schema().names.index("n")
        stats = [meta.row_group(g).column(at).statistics for g in range(meta.num_row_groups)]
        out.append(
            {
                "size": f["file_size_in_bytes"],
                "rows": f["record_count"],
                "ordered": ordered and f["sort_order_id"] == table.sort_order().order_id,
                "bounds": (metrics["lower_bound"], metrics["upper_bound"]) == (low, high)
                and (metrics["value_count"], metrics["null_value_count"]) == (len(n), 0)
                and min(s.min for s in stats) == low
                and max(s.max for s in stats) == high,
            }
        )
    return {"files": out}


def main():
    catalog = SqlCatalog(sys.argv[2], uri="sqlite:///" + sys.argv[1])
    out = {}
    for name in sys.argv[3:]:
        table = catalog.load_table(name)
        out[name] = files(table) if ".sized" in name else contents(table)
    json.dump(out, sys.stdout)


main()
