"""Runs the cases of clients_test.go with mysql-connector-python.

Statements with parameters go through server-side prepared statements."""

import mysql.connector
from cases import main


def connect(host, port, user, password):
    return mysql.connector.connect(
        host=host, port=port, user=user, password=password,
        ssl_verify_cert=False, ssl_verify_identity=False, autocommit=True,
    )


def run(connection, sql, params):
    with connection.cursor(prepared=bool(params)) as cursor:
        cursor.execute(sql, tuple(params or ()))
        columns = [d[0] for d in cursor.description or []]
        return columns, cursor.fetchall() if cursor.with_rows else []


def multi(connection, sql):
    rows = []
    with connection.cursor() as cursor:
        cursor.execute(sql)
        while True:
            if cursor.with_rows:
                rows += cursor.fetchall()
            if not cursor.nextset():
                return [], rows


main(connect, run, multi, mysql.connector.Error, lambda sql: sql)
