import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Serves an empty catalog in a folder on a free port of the loopback address, which it prints. It
 * ends when its standard input does.
 */
public class Catalog {
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    var catalog =
        CatalogUtil.buildIcebergCatalog(
            "test",
            Map.of(
                "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
                "uri", "jdbc:sqlite:" + folder.resolve("catalog.db"),
                "warehouse", folder.resolve("warehouse").toUri().toString(),
                "jdbc.schema-version", "V1"),
            new Configuration());
    var context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(
        new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    var server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(context);
    server.start();
    System.out.println(((ServerConnector) server.getConnectors()[0]).getLocalPort());
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
