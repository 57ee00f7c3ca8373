import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.Properties;

/** Logs in with MySQL's method for tokens and prints who it is, or the error. Arguments: port, user, token file, ["plain"]. */
public class Tokens {
  public static void main(String[] args) {
    Properties p = new Properties();
    p.setProperty("user", args[1]);
    p.setProperty("idTokenFile", args[2]);
    p.setProperty("defaultAuthenticationPlugin", "authentication_openid_connect_client");
    p.setProperty("sslMode", args.length > 3 ? "DISABLED" : "REQUIRED");
    try (Connection c = DriverManager.getConnection("jdbc:mysql://127.0.0.1:" + args[0] + "/", p)) {
      System.out.println("as " + user(c));
      c.unwrap(com.mysql.cj.jdbc.JdbcConnection.class).resetServerState();
      System.out.println("as " + user(c));
    } catch (SQLException e) {
      System.out.println("error " + e.getErrorCode() + " " + e.getMessage());
    }
  }

  private static String user(Connection c) throws SQLException {
    try (ResultSet r = c.createStatement().executeQuery("SELECT CURRENT_USER()")) {
      r.next();
      return r.getString(1);
    }
  }
}
