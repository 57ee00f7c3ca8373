package org.apache.iceberg.rest;

import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.jwk.source.JWKSourceBuilder;
import com.nimbusds.jose.proc.BadJOSEException;
import com.nimbusds.jose.proc.JWSVerificationKeySelector;
import com.nimbusds.jose.proc.SecurityContext;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.proc.DefaultJWTClaimsVerifier;
import com.nimbusds.jwt.proc.DefaultJWTProcessor;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.net.MalformedURLException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.text.ParseException;
import java.util.EnumSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.ranger.authorization.hadoop.config.RangerPluginConfig;
import org.apache.ranger.plugin.service.RangerBasePlugin;
import org.eclipse.jetty.ee10.servlet.FilterHolder;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Serves a catalog for people with tokens of one issuer, as far as Ranger's policies let them. Its
 * argument is a file of properties: those of Ranger's plugin, and catalog, root, folder, port,
 * issuer, keys, audience, operations. It prints a line when it answers, and ends when its standard
 * input does.
 */
public final class Lake {
  private Lake() {}

  public static void main(String[] args) throws Exception {
    Properties is = new Properties();
    try (InputStream in = Files.newInputStream(Path.of(args[0]))) {
      is.load(in);
    }
    String name = is.getProperty("catalog");
    Path folder = Path.of(is.getProperty("folder"));
    var catalog =
        CatalogUtil.buildIcebergCatalog(
            name,
            Map.of(
                "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
                "uri", "jdbc:sqlite:" + folder.resolve("catalog.db"),
                "warehouse", folder.resolve("warehouse").toUri().toString(),
                "clients", "1",
                "jdbc.schema-version", "V1"),
            new Configuration());
    // Groups of the user store count only with this constructor.
    var ranger = new RangerBasePlugin(new RangerPluginConfig("polaris", is.getProperty("service"), "lake", is));
    ranger.init();

    var gate = new Gate(catalog, ranger, is.getProperty("root"), name, Path.of(is.getProperty("operations")));
    var context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addFilter(new FilterHolder(new Tokens(is)), "/*", EnumSet.of(DispatcherType.REQUEST));
    context.addServlet(new ServletHolder(new RESTCatalogServlet(gate)), "/*");
    // %1F and %2F in names.
    context.getServletHandler().setDecodeAmbiguousURIs(true);
    var http = new HttpConfiguration();
    http.setUriCompliance(UriCompliance.UNSAFE);

    var server = new Server();
    var connector = new ServerConnector(server, new HttpConnectionFactory(http));
    connector.setHost("127.0.0.1");
    connector.setPort(Integer.parseInt(is.getProperty("port")));
    server.addConnector(connector);
    server.setHandler(context);
    server.start();
    System.out.println("ready");
    while (System.in.read() >= 0) {}
    System.exit(0);
  }

  /** Takes access tokens that are for this audience; what else comes is answered 401 without a body. */
  private static final class Tokens implements Filter {
    private final DefaultJWTProcessor<SecurityContext> verifier = new DefaultJWTProcessor<>();

    Tokens(Properties is) throws MalformedURLException {
      var keys = JWKSourceBuilder.create(URI.create(is.getProperty("keys")).toURL()).retrying(true).build();
      verifier.setJWSKeySelector(new JWSVerificationKeySelector<>(Set.of(JWSAlgorithm.RS256), keys));
      var claims =
          new DefaultJWTClaimsVerifier<>(
              is.getProperty("audience"),
              new JWTClaimsSet.Builder().issuer(is.getProperty("issuer")).build(),
              Set.of("exp", "preferred_username"));
      claims.setMaxClockSkew(0);
      verifier.setJWTClaimsSetVerifier(claims);
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain next) throws IOException, ServletException {
      String header = ((HttpServletRequest) request).getHeader("Authorization");
      try {
        if (header == null || !header.startsWith("Bearer ")) {
          throw new ParseException("no token", 0);
        }
        Gate.PRINCIPAL.set(verifier.process(header.substring(7), null).getStringClaim("preferred_username"));
      } catch (ParseException | BadJOSEException | JOSEException e) {
        ((HttpServletResponse) response).setHeader("WWW-Authenticate", "Bearer");
        ((HttpServletResponse) response).setStatus(401);
        return;
      }
      try {
        next.doFilter(request, response);
      } finally {
        Gate.PRINCIPAL.remove();
      }
    }
  }
}
