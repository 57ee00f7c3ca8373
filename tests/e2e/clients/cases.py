"""Reads cases from standard input, runs them and writes the answers, as JSON.

A case is {"sql", "params", "multi"}, an answer {"columns", "rows", "errno",
"error"}. Values are written as text; NULL is null."""

import datetime
import json
import sys


def text(value):
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return "0x" + value.hex()
    if isinstance(value, datetime.timedelta):
        total = value.seconds + value.days * 86400
        micro = f".{value.microseconds:06d}" if value.microseconds else ""
        return f"{total // 3600:02d}:{total // 60 % 60:02d}:{total % 60:02d}{micro}"
    return str(value)


def main(connect, run, multi, error, spelling):
    host, port, user, password = sys.argv[1:5]
    connection = connect(host, int(port), user, password)
    answers = []
    for case in json.load(sys.stdin):
        try:
            if case.get("multi"):
                columns, rows = multi(connection, case["sql"])
            else:
                sql = spelling(case["sql"]) if case.get("params") else case["sql"]
                columns, rows = run(connection, sql, case.get("params"))
            answers.append({"columns": columns, "rows": [[text(v) for v in row] for row in rows]})
        except error as e:
            answers.append({"errno": e.args[0] if isinstance(e.args[0], int) else e.errno, "error": str(e)})
    connection.close()
    json.dump(answers, sys.stdout)
