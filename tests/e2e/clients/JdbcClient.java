import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs the cases of clients_test.go with MySQL Connector/J. Input lines are "kind TAB sql TAB param...", kind being
 * query, prepared, multi, or what is asked of the driver's metadata, such as tables or keys. Output is one line per case:
 * "rows", "error" or "errno" and cells, with tabs between cells and \u0001 between rows.
 */
public class JdbcClient {
  public static void main(String[] args) throws Exception {
    String url = "jdbc:mysql://" + args[0] + ":" + args[1]
        + "/?sslMode=REQUIRED&allowMultiQueries=true&useServerPrepStmts=true&connectionTimeZone=UTC&databaseTerm=CATALOG";
    String input = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
    StringBuilder out = new StringBuilder();
    try (Connection connection = DriverManager.getConnection(url, args[2], args[3])) {
      for (String line : input.split("\n")) {
        String[] part = line.split("\t", -1);
        try {
          String rows = String.join("\u0001", run(connection, part));
          out.append("rows\u0001").append(rows);
        } catch (SQLException e) {
          out.append("error\u0001").append(e.getErrorCode()).append("\t").append(flat(e.getMessage()));
        }
        out.append("\n");
      }
    }
    System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
    System.out.flush();
  }

  private static List<String> run(Connection connection, String[] part) throws SQLException {
    List<String> rows = new ArrayList<>();
    switch (part[0]) {
      case "tables":
        try (ResultSet r = connection.getMetaData().getTables(part[1], null, "%", null)) {
          while (r.next()) {
            rows.add(r.getString("TABLE_CAT") + "\t" + r.getString("TABLE_NAME"));
          }
        }
        return rows;
      case "columns":
        try (ResultSet r = connection.getMetaData().getColumns(part[1], null, part[2], "%")) {
          while (r.next()) {
            rows.add(r.getString("COLUMN_NAME") + "\t" + r.getString("TYPE_NAME"));
          }
        }
        return rows;
      case "catalogs":
        return cells(connection.getMetaData().getCatalogs(), "TABLE_CAT");
      case "keys":
        return cells(connection.getMetaData().getPrimaryKeys(part[1], null, part[2]), "COLUMN_NAME", "KEY_SEQ", "PK_NAME");
      case "indexes":
        return cells(connection.getMetaData().getIndexInfo(part[1], null, part[2], false, true),
            "INDEX_NAME", "NON_UNIQUE", "ORDINAL_POSITION", "COLUMN_NAME");
      case "imported":
        return cells(connection.getMetaData().getImportedKeys(part[1], null, part[2]), "FKCOLUMN_NAME");
      case "privileges":
        return cells(connection.getMetaData().getTablePrivileges(part[1], null, part[2]), "TABLE_NAME", "PRIVILEGE");
      case "column privileges":
        return cells(connection.getMetaData().getColumnPrivileges(part[1], null, part[2], "%"), "COLUMN_NAME", "PRIVILEGE");
      case "types":
        return cells(connection.getMetaData().getTypeInfo(), "TYPE_NAME");
      case "prepared":
        try (PreparedStatement s = connection.prepareStatement(part[1])) {
          for (int i = 2; i < part.length; i++) {
            s.setString(i - 1, part[i]);
          }
          // Twice: the second run reuses the statement of the server.
          s.executeQuery().close();
          try (ResultSet r = s.executeQuery()) {
            collect(r, rows);
          }
        }
        return rows;
      default:
        try (Statement s = connection.createStatement()) {
          boolean more = s.execute(part[1]);
          while (more || s.getUpdateCount() != -1) {
            if (more) {
              collect(s.getResultSet(), rows);
            }
            more = s.getMoreResults();
          }
        }
        return rows;
    }
  }

  private static List<String> cells(ResultSet answer, String... columns) throws SQLException {
    List<String> rows = new ArrayList<>();
    try (ResultSet r = answer) {
      while (r.next()) {
        StringBuilder row = new StringBuilder();
        for (String c : columns) {
          String v = r.getString(c);
          row.append(row.length() > 0 ? "\t" : "").append(v == null ? "\u2400" : flat(v));
        }
        rows.add(row.toString());
      }
    }
    return rows;
  }

  private static void collect(ResultSet r, List<String> rows) throws SQLException {
    int n = r.getMetaData().getColumnCount();
    while (r.next()) {
      StringBuilder row = new StringBuilder();
      for (int i = 1; i <= n; i++) {
        String v = r.getString(i);
        // Tools take objects, and believe what the driver says of their class.
        Object o = r.getObject(i);
        String name = r.getMetaData().getColumnClassName(i);
        if (o != null && !isA(name, o)) {
          throw new SQLException("column " + i + " is said to be " + name + " and gives " + o.getClass().getName());
        }
        row.append(i > 1 ? "\t" : "").append(v == null ? "\u2400" : flat(v));
      }
      rows.add(row.toString());
    }
  }

  private static boolean isA(String name, Object o) throws SQLException {
    try {
      return Class.forName(name).isInstance(o);
    } catch (ClassNotFoundException e) {
      throw new SQLException("there is no class " + name, e);
    }
  }

  private static String flat(String s) {
    return s.replace('\t', ' ').replace('\n', ' ').replace('\r', ' ').replace('\u0001', ' ');
  }
}
