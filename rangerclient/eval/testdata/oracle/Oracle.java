import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import java.util.HashSet;
import java.util.Properties;
import java.util.Set;
import java.util.TimeZone;
import org.apache.ranger.authorization.hadoop.config.RangerPluginConfig;
import org.apache.ranger.plugin.policyengine.RangerAccessRequestImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResourceImpl;
import org.apache.ranger.plugin.policyengine.RangerAccessResult;
import org.apache.ranger.plugin.service.RangerBasePlugin;
import org.apache.ranger.plugin.util.RangerRoles;
import org.apache.ranger.plugin.util.RangerUserStore;
import org.apache.ranger.plugin.util.ServicePolicies;
import org.apache.ranger.plugin.util.ServiceTags;

/**
 * Answers requests by Ranger's own policy engine, one JSON document a line: a line with "policies" sets policies,
 * tags, roles and users and has no answer; every other line is a request.
 *
 * <p>mvn dependency:copy-dependencies -DoutputDirectory=lib && javac -cp 'lib/*' Oracle.java, then
 * go test ./rangerclient/eval -run Oracle -oracle "cd testdata/oracle && exec java -cp '.:lib/*' Oracle"
 */
public class Oracle {
  private static final String[] SWITCHES = {
    "policyengine.option.disable.policy.refresher", "policyengine.option.disable.tag.retriever",
    "policyengine.option.disable.userstore.retriever", "policyengine.option.disable.gdsinfo.retriever",
    "enable.implicit.userstore.enricher",
  };

  public static void main(String[] args) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC")); // recurrences are computed in the zone of the JVM
    PrintStream out = System.out;
    System.setOut(System.err);
    ObjectMapper json = new ObjectMapper();
    json.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    RangerBasePlugin plugin = null;
    String line;
    while ((line = in.readLine()) != null) {
      JsonNode n = json.readTree(line);
      if (n.has("policies")) {
        plugin = plugin(json, n);
        continue;
      }
      ObjectNode answer = json.createObjectNode();
      RangerAccessResult access = plugin.isAccessAllowed(request(n), null);
      answer.put("allowed", access != null && access.getIsAllowed());
      answer.put("apol", access == null ? -1 : access.getPolicyId());
      RangerAccessResult mask = plugin.evalDataMaskPolicies(request(n), null);
      if (mask != null) {
        answer.put("mask", mask.getMaskType());
        answer.put("value", mask.getMaskedValue());
        answer.put("mpol", mask.getPolicyId());
      }
      RangerAccessResult filter = plugin.evalRowFilterPolicies(request(n), null);
      if (filter != null) {
        answer.put("filter", filter.getFilterExpr());
        answer.put("fpol", filter.getPolicyId());
      }
      out.println(json.writeValueAsString(answer));
      out.flush();
    }
  }

  private static RangerBasePlugin plugin(ObjectMapper json, JsonNode n) throws Exception {
    String type = n.get("type").asText();
    Properties switches = new Properties();
    for (String s : SWITCHES) {
      switches.setProperty("ranger.plugin." + type + "." + s, "true");
    }
    ServicePolicies policies = json.treeToValue(n.get("policies"), ServicePolicies.class);
    ServiceTags tags = json.treeToValue(n.get("tags"), ServiceTags.class);
    RangerRoles roles = json.treeToValue(n.get("roles"), RangerRoles.class);
    RangerUserStore users = json.treeToValue(n.get("users"), RangerUserStore.class);
    return new RangerBasePlugin(new RangerPluginConfig(type, policies.getServiceName(), "oracle", switches), policies, tags, roles, users);
  }

  /** A new request for each question: requests keep what was found for them. */
  private static RangerAccessRequestImpl request(JsonNode n) {
    RangerAccessResourceImpl resource = new RangerAccessResourceImpl();
    n.get("elements").fields().forEachRemaining(e -> resource.setValue(e.getKey(), e.getValue().asText()));
    if (n.hasNonNull("owner")) {
      resource.setOwnerUser(n.get("owner").asText());
    }
    Set<String> groups = new HashSet<>();
    n.get("groups").forEach(g -> groups.add(g.asText()));
    RangerAccessRequestImpl r = new RangerAccessRequestImpl(resource, n.get("access").asText(), n.get("user").asText(), groups, null);
    r.setAccessTime(new Date(n.get("time").asLong()));
    return r;
  }
}
