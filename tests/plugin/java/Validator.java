import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.apache.ranger.plugin.model.RangerPolicy;
import org.apache.ranger.plugin.model.RangerService;
import org.apache.ranger.plugin.model.RangerServiceDef;
import org.apache.ranger.plugin.model.validation.RangerPolicyValidator;
import org.apache.ranger.plugin.model.validation.RangerValidator.Action;
import org.apache.ranger.plugin.store.ServiceStore;

/**
 * The checks of a Ranger Admin on policies that it is given: {"validate": policies, "others": policies that there are,
 * "serviceDef", "service"} is answered with {"refused": a text for each policy, "" where it is good}.
 */
final class Validator {
  private Validator() {}

  static void validate(ObjectMapper json, JsonNode n, ObjectNode reply) throws Exception {
    RangerServiceDef definition = json.treeToValue(n.get("serviceDef"), RangerServiceDef.class);
    RangerService service = new RangerService(definition.getName(), n.get("service").asText(), "", "", null);
    service.setId(1L);
    List<RangerPolicy> others = new ArrayList<>();
    for (JsonNode p : n.path("others")) {
      others.add(json.treeToValue(p, RangerPolicy.class));
    }
    ServiceStore store =
        (ServiceStore)
            Proxy.newProxyInstance(
                Validator.class.getClassLoader(), new Class<?>[] {ServiceStore.class}, (proxy, method, args) -> answer(method, args, definition, service, others));
    ArrayNode refused = reply.putArray("refused");
    for (JsonNode p : n.get("validate")) {
      String why = "";
      try {
        new RangerPolicyValidator(store).validate(json.treeToValue(p, RangerPolicy.class), Action.CREATE, true);
      } catch (Exception e) {
        why = String.valueOf(e.getMessage());
      }
      refused.add(why);
    }
  }

  private static Object answer(Method method, Object[] args, RangerServiceDef definition, RangerService service, List<RangerPolicy> others) {
    switch (method.getName()) {
      case "getServiceByName":
        return service.getName().equals(args[0]) ? service : null;
      case "getServiceDefByName":
      case "getServiceDef":
        return definition;
      case "getPolicies":
      case "getServicePolicies":
        return others;
      case "getPoliciesByResourceSignature":
        List<RangerPolicy> same = new ArrayList<>();
        for (RangerPolicy p : others) {
          if (args[1].equals(p.getResourceSignature())) {
            same.add(p);
          }
        }
        return same;
      case "getPolicyId":
        for (RangerPolicy p : others) {
          if (p.getName().equals(args[1])) {
            return p.getId();
          }
        }
        return null;
      default:
        Class<?> type = method.getReturnType();
        if (type == boolean.class) {
          return false;
        }
        if (type == List.class) {
          return new ArrayList<>();
        }
        return type.isPrimitive() && type != void.class ? (Object) 0 : null;
    }
  }
}
