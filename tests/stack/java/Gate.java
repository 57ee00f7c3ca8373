package org.apache.iceberg.rest;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.UpdateRequirement;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.rest.requests.CommitTransactionRequest;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.RegisterTableRequest;
import org.apache.iceberg.rest.requests.RenameTableRequest;
import org.apache.iceberg.rest.requests.ReportMetricsRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.ranger.plugin.policyengine.RangerAccessRequestImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResourceImpl;
import org.apache.ranger.plugin.service.RangerBasePlugin;

/**
 * Lets a request through to the catalog when Ranger allows every access that its operation needs.
 * Which ones these are is in operations.txt. What has no operation there is refused. Lists are given
 * whole, as Polaris gives them.
 */
final class Gate extends RESTCatalogAdapter {
  /** The principal of the request that this thread works on. */
  static final ThreadLocal<String> PRINCIPAL = new ThreadLocal<>();

  /** The accesses of an operation: to its own object, and to the other one. */
  private record Operation(List<String> own, List<String> other) {}

  /** An object of Ranger's service type polaris; leaf is null for a namespace. */
  private record Target(Namespace namespace, String leaf) {
    static Target of(TableIdentifier id) {
      return new Target(id.namespace(), id.name());
    }

    Target container() {
      return new Target(namespace, null);
    }
  }

  private final Map<String, Operation> operations = new HashMap<>();
  private final RangerBasePlugin ranger;
  private final String root;
  private final String name;

  Gate(Catalog catalog, RangerBasePlugin ranger, String root, String name, Path table) throws IOException {
    super(catalog);
    this.ranger = ranger;
    this.root = root;
    this.name = name;
    for (String line : Files.readAllLines(table)) {
      if (!line.startsWith("#")) {
        String[] parts = line.split("[:/]", 3);
        operations.put(parts[0], new Operation(words(parts[1]), parts.length < 3 ? List.of() : words(parts[2])));
      }
    }
  }

  private static List<String> words(String text) {
    return List.of(text.trim().split(" +"));
  }

  @Override
  public <T extends RESTResponse> T handleRequest(
      Route route, Map<String, String> vars, HTTPRequest request, Class<T> type, Consumer<Map<String, String>> headers) {
    decide(route, vars, request);
    return super.handleRequest(route, vars, request, type, headers);
  }

  private void decide(Route route, Map<String, String> vars, HTTPRequest request) {
    Object body = request.body();
    Namespace namespace = vars.containsKey("namespace")
        ? RESTUtil.decodeNamespace(vars.get("namespace"), NAMESPACE_SEPARATOR_URLENCODED_UTF_8)
        : Namespace.empty();
    String leaf = vars.getOrDefault("table", vars.get("view"));
    Target target = new Target(namespace, leaf == null ? null : RESTUtil.decodeString(leaf));
    boolean delegated = request.headers().contains("X-Iceberg-Access-Delegation");
    switch (route) {
      case CONFIG -> {
        String warehouse = vars.getOrDefault("warehouse", "");
        if (!warehouse.isEmpty() && !warehouse.equals(name)) {
          throw new NotFoundException("Unable to find warehouse %s", warehouse);
        }
      }
      case LIST_NAMESPACES -> {
        String parent = vars.getOrDefault("parent", "");
        need("LIST_NAMESPACES", new Target(parent.isEmpty() ? namespace : RESTUtil.namespaceFromQueryParam(parent, "."), null));
      }
      case CREATE_NAMESPACE -> {
        String[] levels = ((CreateNamespaceRequest) body).namespace().levels();
        need("CREATE_NAMESPACE", new Target(Namespace.of(Arrays.copyOf(levels, Math.max(levels.length - 1, 0))), null));
      }
      case LOAD_NAMESPACE -> need("LOAD_NAMESPACE_METADATA", target);
      case UPDATE_NAMESPACE -> need("UPDATE_NAMESPACE_PROPERTIES", target);
      case CREATE_TABLE -> {
        String how = ((CreateTableRequest) body).stageCreate() ? "CREATE_TABLE_STAGED" : "CREATE_TABLE_DIRECT";
        need(how + (delegated ? "_WITH_WRITE_DELEGATION" : ""), target);
      }
      case REGISTER_TABLE -> {
        String how = ((RegisterTableRequest) body).overwrite() ? "REGISTER_TABLE_OVERWRITE" : "REGISTER_TABLE";
        need(how + (delegated ? "_WITH_WRITE_DELEGATION" : ""), target);
      }
      case LOAD_TABLE -> {
        // Polaris tries the right to write first.
        if (!delegated) {
          need("LOAD_TABLE", target);
        } else if (!may("LOAD_TABLE_WITH_WRITE_DELEGATION", target, null)) {
          need("LOAD_TABLE_WITH_READ_DELEGATION", target);
        }
      }
      case UPDATE_TABLE -> {
        for (String operation : changes((UpdateTableRequest) body)) {
          need(operation, operation.equals("UPDATE_TABLE_FOR_STAGED_CREATE") ? target.container() : target);
        }
      }
      case DROP_TABLE -> {
        boolean purge = Boolean.parseBoolean(vars.get("purgeRequested"));
        need(purge ? "DROP_TABLE_WITH_PURGE" : "DROP_TABLE_WITHOUT_PURGE", target);
      }
      case RENAME_TABLE, RENAME_VIEW -> {
        RenameTableRequest r = (RenameTableRequest) body;
        if (!may(route.name(), Target.of(r.source()), Target.of(r.destination()).container())) {
          throw refused(route.name());
        }
      }
      case REPORT_METRICS -> {
        boolean read = ((ReportMetricsRequest) body).reportType() == ReportMetricsRequest.ReportType.SCAN_REPORT;
        need(read ? "REPORT_READ_METRICS" : "REPORT_WRITE_METRICS", target);
      }
      case COMMIT_TRANSACTION -> {
        for (UpdateTableRequest change : ((CommitTransactionRequest) body).tableChanges()) {
          need("COMMIT_TRANSACTION", Target.of(change.identifier()));
        }
      }
      case UPDATE_VIEW -> need("REPLACE_VIEW", target);
      // A plan of a scan names files and bounds of columns. Polaris has none.
      case PLAN_TABLE_SCAN, FETCH_PLANNING_RESULT, FETCH_SCAN_TASKS, CANCEL_PLAN_TABLE_SCAN ->
          need("LOAD_TABLE_WITH_READ_DELEGATION", target);
      // The other routes have the name of their operation.
      default -> need(route.name(), target);
    }
  }

  /** The operations of a commit: one for each kind of change to the metadata. */
  private List<String> changes(UpdateTableRequest request) {
    if (request.requirements().stream().anyMatch(r -> r instanceof UpdateRequirement.AssertTableDoesNotExist)) {
      return List.of("UPDATE_TABLE_FOR_STAGED_CREATE");
    }
    List<String> out = new ArrayList<>();
    for (MetadataUpdate update : request.updates()) {
      String operation = operationOf(update);
      out.add(operations.containsKey(operation) ? operation : "UPDATE_TABLE");
    }
    return out.isEmpty() ? List.of("UPDATE_TABLE") : out;
  }

  /** AddSchema is ADD_TABLE_SCHEMA, SetSnapshotRef is SET_TABLE_SNAPSHOT_REF, and so on. */
  private static String operationOf(MetadataUpdate update) {
    String[] words = update.getClass().getSimpleName().replace("UUID", "Uuid").split("(?=[A-Z])");
    List<String> out = new ArrayList<>(List.of(words));
    out.add(1, "Table");
    return String.join("_", out).toUpperCase(Locale.ROOT);
  }

  private void need(String operation, Target target) {
    if (!may(operation, target, null)) {
      throw refused(operation);
    }
  }

  private static ForbiddenException refused(String operation) {
    return new ForbiddenException("Principal '%s' is not authorized for op '%s'", PRINCIPAL.get(), operation);
  }

  private boolean may(String operation, Target own, Target other) {
    Operation o = operations.get(operation);
    return o != null
        && o.own.stream().allMatch(access -> allowed(access, own))
        && o.other.stream().allMatch(access -> allowed(access, other));
  }

  private boolean allowed(String access, Target target) {
    var resource = new RangerAccessResourceImpl();
    resource.setServiceDef(ranger.getServiceDef());
    resource.setValue("root", root);
    resource.setValue("catalog", name);
    List<String> levels = List.of(target.namespace.levels());
    if (target.leaf == null) {
      if (!levels.isEmpty()) {
        resource.setValue("namespace", String.join("/", levels));
      }
    } else {
      // As Polaris says it: sales.eu.orders is the table eu/orders of sales.
      resource.setValue("namespace", levels.get(0));
      List<String> rest = new ArrayList<>(levels.subList(1, levels.size()));
      rest.add(target.leaf);
      resource.setValue("table", String.join("/", rest));
    }
    var result = ranger.isAccessAllowed(new RangerAccessRequestImpl(resource, access, PRINCIPAL.get(), null, null));
    return result != null && result.getIsAccessDetermined() && result.getIsAllowed();
  }
}
