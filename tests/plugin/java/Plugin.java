import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TimeZone;
import org.apache.ranger.authorization.hadoop.config.RangerPluginConfig;
import org.apache.ranger.plugin.model.RangerServiceDef;
import org.apache.ranger.plugin.policyengine.RangerAccessRequestImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResourceImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResult;
import org.apache.ranger.plugin.service.RangerBasePlugin;
import org.apache.ranger.plugin.util.RangerRoles;
import org.apache.ranger.plugin.util.RangerUserStore;
import org.apache.ranger.plugin.util.ServiceDefUtil;
import org.apache.ranger.plugin.util.ServicePolicies;
import org.apache.ranger.plugin.util.ServiceTags;

/**
 * Ranger's own plugin, asked over standard input and output: one JSON document a line each way.
 *
 * <ul>
 *   <li>{"policies", "tags", "roles", "users", "type", "requests"}: decides the requests by these documents.
 *   <li>the same with "measure", a number of seconds: decides them again and again, and tells the time each takes.
 *   <li>{"server", "name", "type", "service", "user", "password", "poll" in ms, "cache" a folder}: starts a plugin that
 *       follows a policy server.
 *   <li>{"validate", ...}: see Validator.
 *   <li>{"name", "requests"}: decides the requests by what that plugin has downloaded, and tells its versions.
 * </ul>
 */
public class Plugin {
  private static final ObjectMapper JSON = new ObjectMapper();

  public static void main(String[] args) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC")); // recurrences are computed in the zone of the JVM
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    System.setOut(System.err);
    JSON.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Map<String, RangerBasePlugin> following = new HashMap<>();
    String line;
    while ((line = in.readLine()) != null) {
      JsonNode n = JSON.readTree(line);
      ObjectNode reply = JSON.createObjectNode();
      if (n.has("server")) {
        following.put(n.get("name").asText(), follow(n));
      } else if (n.has("validate")) {
        Validator.validate(JSON, n, reply);
      } else if (n.has("measure")) {
        measure(n, reply);
      } else {
        boolean alone = n.has("policies");
        RangerBasePlugin plugin = alone ? fixed(n) : following.get(n.get("name").asText());
        ArrayNode answers = reply.putArray("answers");
        for (JsonNode r : n.get("requests")) {
          answers.add(decide(plugin, r));
        }
        reply.put("policies", plugin.getPoliciesVersion());
        reply.put("roles", plugin.getRolesVersion());
        reply.put("tags", plugin.getTagsVersion());
        reply.put("users", plugin.getUserStoreVersion());
        if (alone) {
          plugin.cleanup();
        }
      }
      out.println(JSON.writeValueAsString(reply));
      out.flush();
    }
    System.exit(0); // threads that poll are no reason to stay
  }

  private static ObjectNode decide(RangerBasePlugin plugin, JsonNode n) {
    ObjectNode answer = JSON.createObjectNode();
    RangerAccessResult access = plugin.isAccessAllowed(request(n), null);
    answer.put("allowed", access != null && access.getIsAllowed());
    if (access != null) {
      answer.put("accessPolicy", access.getPolicyId());
    }
    RangerAccessResult mask = plugin.evalDataMaskPolicies(request(n), null);
    if (mask != null && mask.getMaskType() != null) {
      answer.put("mask", mask.getMaskType());
      answer.put("value", mask.getMaskedValue());
      answer.put("maskPolicy", mask.getPolicyId());
    }
    RangerAccessResult filter = plugin.evalRowFilterPolicies(request(n), null);
    if (filter != null && filter.getFilterExpr() != null) {
      answer.put("filter", filter.getFilterExpr());
      answer.put("filterPolicy", filter.getPolicyId());
    }
    return answer;
  }

  /** A plugin that follows nobody. */
  private static RangerBasePlugin fixed(JsonNode n) throws Exception {
    String type = n.get("type").asText();
    Properties p = new Properties();
    for (String s : new String[] {"policy.refresher", "tag.retriever", "userstore.retriever", "gdsinfo.retriever"}) {
      p.setProperty("ranger.plugin." + type + ".policyengine.option.disable." + s, "true");
    }
    if (n.path("storeGroups").asBoolean()) {
      p.setProperty("ranger.plugin." + type + ".use.rangerGroups", "true");
    }
    ServicePolicies policies = JSON.treeToValue(n.get("policies"), ServicePolicies.class);
    ServiceTags tags = JSON.treeToValue(n.get("tags"), ServiceTags.class);
    RangerRoles roles = JSON.treeToValue(n.get("roles"), RangerRoles.class);
    RangerUserStore users = JSON.treeToValue(n.get("users"), RangerUserStore.class);
    // By itself a plugin has attributes of users only when it finds that a policy mentions them.
    ServiceDefUtil.addUserStoreEnricher(policies, "", "60000");
    return new RangerBasePlugin(new RangerPluginConfig(type, policies.getServiceName(), "oracle", p), policies, tags, roles, users);
  }

  /** A plugin as an engine has it. */
  private static RangerBasePlugin follow(JsonNode n) {
    String type = n.get("type").asText();
    String prefix = "ranger.plugin." + type + ".";
    String poll = n.get("poll").asText();
    Properties p = new Properties();
    p.setProperty(prefix + "policy.rest.url", n.get("server").asText());
    p.setProperty(prefix + "policy.rest.client.username", n.get("user").asText());
    p.setProperty(prefix + "policy.rest.client.password", n.get("password").asText());
    p.setProperty(prefix + "policy.pollIntervalMs", poll);
    p.setProperty(prefix + "policy.cache.dir", n.get("cache").asText());
    p.setProperty(prefix + "policy.source.impl", "org.apache.ranger.admin.client.RangerAdminRESTClient");
    p.setProperty(prefix + "enable.implicit.userstore.enricher", "true");
    p.setProperty(prefix + "use.rangerGroups", "true"); // attributes of users always, and groups of the user store
    p.setProperty("userStoreRefresherPollingInterval", poll);
    RangerBasePlugin plugin = new Follower(new RangerPluginConfig(type, n.get("service").asText(), "consumer", p), poll);
    plugin.init();
    return plugin;
  }

  /** How often a plugin asks for tags is in the definition of the tag service, a minute; here it is as often as for policies. */
  private static class Follower extends RangerBasePlugin {
    private final String poll;

    Follower(RangerPluginConfig config, String poll) {
      super(config);
      this.poll = poll;
    }

    @Override
    public void setPolicies(ServicePolicies policies) {
      if (policies != null && policies.getTagPolicies() != null && policies.getTagPolicies().getServiceDef() != null) {
        for (RangerServiceDef.RangerContextEnricherDef e : policies.getTagPolicies().getServiceDef().getContextEnrichers()) {
          Map<String, String> options = new HashMap<>(e.getEnricherOptions());
          options.put("tagRefresherPollingInterval", poll);
          e.setEnricherOptions(options);
        }
      }
      super.setPolicies(policies);
    }
  }

  /** Times are processor times of the whole process, which other work on the machine does not lengthen. */
  private static void measure(JsonNode n, ObjectNode reply) throws Exception {
    OperatingSystemMXBean cpu = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    List<JsonNode> questions = new ArrayList<>();
    n.get("requests").forEach(questions::add);
    System.gc();
    Runtime rt = Runtime.getRuntime();
    long before = rt.totalMemory() - rt.freeMemory();
    long start = cpu.getProcessCpuTime();
    RangerBasePlugin plugin = fixed(n);
    reply.put("compile", cpu.getProcessCpuTime() - start);
    System.gc();
    reply.put("heap", rt.totalMemory() - rt.freeMemory() - before);
    start = cpu.getProcessCpuTime();
    questions.forEach(q -> decideOne(plugin, q));
    reply.put("first", cpu.getProcessCpuTime() - start);
    long half = (long) (n.get("measure").asDouble() * 0.5e9);
    for (long until = System.nanoTime() + half; System.nanoTime() < until; ) { // the JVM warms up
      questions.forEach(q -> decideOne(plugin, q));
    }
    int rounds = 0;
    start = cpu.getProcessCpuTime();
    for (long until = System.nanoTime() + half; System.nanoTime() < until; rounds++) {
      questions.forEach(q -> decideOne(plugin, q));
    }
    reply.put("rounds", rounds);
    reply.put("round", (cpu.getProcessCpuTime() - start) / Math.max(1, rounds));
  }

  /** The one question that the request names in "ask". */
  private static void decideOne(RangerBasePlugin plugin, JsonNode n) {
    switch (n.get("ask").asText()) {
      case "access":
        plugin.isAccessAllowed(request(n), null);
        break;
      case "mask":
        plugin.evalDataMaskPolicies(request(n), null);
        break;
      default:
        plugin.evalRowFilterPolicies(request(n), null);
    }
  }

  /** A new request for each question: requests keep what was found for them. */
  private static RangerAccessRequestImpl request(JsonNode n) {
    RangerAccessResourceImpl resource = new RangerAccessResourceImpl();
    n.get("elements").fields().forEachRemaining(e -> resource.setValue(e.getKey(), e.getValue().asText()));
    if (n.hasNonNull("owner")) {
      resource.setOwnerUser(n.get("owner").asText());
    }
    RangerAccessRequestImpl r =
        new RangerAccessRequestImpl(resource, n.get("access").asText(), n.get("user").asText(), strings(n.get("groups")), strings(n.get("roles")));
    r.setAccessTime(n.hasNonNull("time") ? new Date(n.get("time").asLong()) : new Date());
    if (n.hasNonNull("ip")) {
      r.setClientIPAddress(n.get("ip").asText());
    }
    return r;
  }

  private static Set<String> strings(JsonNode n) {
    Set<String> out = new HashSet<>();
    if (n != null) {
      n.forEach(x -> out.add(x.asText()));
    }
    return out;
  }
}
