"""Opens an SQL catalog with PyIceberg and counts the rows of tables.

usage: pyiceberg_client.py NAME CATALOG.DB TABLE...; prints "TABLE ROWS" lines."""

import sys

from pyiceberg.catalog import load_catalog

name, path, *tables = sys.argv[1:]
catalog = load_catalog(name, type="sql", uri=f"sqlite:///{path}")
for table in tables:
    print(table, len(catalog.load_table(table).scan().to_arrow()))
