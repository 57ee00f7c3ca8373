"""Logs in with MySQL's method for tokens and prints who it is, or the error.

usage: tokens.py pure|c PORT USER TOKEN_FILE [plain]"""

import sys

import mysql.connector

kind, port, user, token_file = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
options = {"ssl_disabled": True} if sys.argv[5:] == ["plain"] else {"ssl_verify_cert": False}
if kind == "c" and not mysql.connector.HAVE_CEXT:
    sys.exit("there is no C extension")
try:
    connection = mysql.connector.connect(
        host="127.0.0.1", port=port, user=user, use_pure=kind == "pure",
        auth_plugin="authentication_openid_connect_client", openid_token_file=token_file, **options,
    )
    cursor = connection.cursor()
    cursor.execute("SELECT CURRENT_USER()")
    print("as", cursor.fetchone()[0])
    connection.cmd_reset_connection()
    cursor = connection.cursor()
    cursor.execute("SELECT CURRENT_USER()")
    print("as", cursor.fetchone()[0])
except mysql.connector.Error as error:
    print("error", error.errno, error.msg)
