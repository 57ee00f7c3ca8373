#!/usr/bin/env python3
"""Reads Iceberg tables with Spark, says what they hold, and deletes a row of some.

    spark_read.py FOLDER JARS NAME TABLE...

prints, as JSON by table name, the rows as lists of text sorted by the column id. Of
tables with a version in their name there are "row_ids" (of format version 3, else null)
beside them, as they are before the row with the id 3 is deleted.
"""
import glob
import json
import os
import re
import sys
import time

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ["TZ"] = "UTC"
time.tzset()

from pyspark.sql import Row, SparkSession  # noqa: E402

from texts import text  # noqa: E402

folder, jar_folder, name = sys.argv[1:4]
jars = ",".join(sorted(glob.glob(f"{jar_folder}/*.jar")))
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", jars)
    .config("spark.driver.extraClassPath", jars.replace(",", ":"))
    .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
    .config(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    .config(f"spark.sql.catalog.{name}.type", "jdbc")
    .config(f"spark.sql.catalog.{name}.jdbc.schema-version", "V1")
    .config(f"spark.sql.catalog.{name}.uri", f"jdbc:sqlite:{folder}/catalog.db")
    .config(f"spark.sql.catalog.{name}.warehouse", f"file://{folder}")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.host", "127.0.0.1")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def plain(v):
    """Rows are structs and dictionaries are maps."""
    if isinstance(v, Row):
        return {k: plain(x) for k, x in zip(v.__fields__, v)}
    if isinstance(v, dict):
        return [(k, plain(x)) for k, x in v.items()]
    if isinstance(v, list):
        return [plain(x) for x in v]
    return v


out = {}
for table in sys.argv[4:]:
    full = f"{name}.{table}"
    rows = sorted(spark.sql(f"SELECT * FROM {full}").collect(), key=lambda r: r["id"])
    ids = None
    if "_v3_" in table:
        ids = [[r[0], r[1]] for r in spark.sql(f"SELECT id, _row_id FROM {full} ORDER BY id").collect()]
    if re.search(r"_v\d_", table):
        spark.sql(f"DELETE FROM {full} WHERE id = 3")
    out[table] = {"rows": [[text(plain(v)) for v in r] for r in rows], "row_ids": ids}
json.dump(out, sys.stdout)
spark.stop()
