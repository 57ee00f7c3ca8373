"""Runs the cases of clients_test.go with PyMySQL."""

import pymysql
from cases import main
from pymysql.constants import CLIENT


def connect(host, port, user, password):
    return pymysql.connect(
        host=host, port=port, user=user, password=password,
        ssl={"check_hostname": False, "verify_mode": "none"},
        client_flag=CLIENT.MULTI_STATEMENTS, autocommit=True,
    )


def run(connection, sql, params):
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return [d[0] for d in cursor.description or []], cursor.fetchall()


def multi(connection, sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        rows = list(cursor.fetchall())
        while cursor.nextset():
            rows += cursor.fetchall()
        return [], rows


main(connect, run, multi, pymysql.err.MySQLError, lambda sql: sql.replace("%", "%%").replace("?", "%s"))
