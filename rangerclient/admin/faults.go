package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sqe/fault"
)

// refusals say what Ranger's codes of refused policies mean, for those that a
// statement can cause.
var refusals = map[int]string{
	3007: "it has no such service",
	3018: "a name holds characters that it does not allow",
	3022: "it knows no such access for this service; for a row filter on a tag its property ranger.servicedef.autopropagate.rowfilterdef.to.tag must be on",
	3011: "its service definition has no row filters or masks on such resources; for a row filter on a tag its property ranger.servicedef.autopropagate.rowfilterdef.to.tag must be on",
	3024: "its service definition has no row filters or masks on such resources",
	3029: "the validity is not one that it accepts",
	3030: "the priority is not one that it accepts",
	3032: "the security zone is not one that it accepts",
	3033: "it has no such security zone",
}

// unknown names the principal that a server does not have, with its kind where the
// server says it.
func unknown(e *Error) string {
	what := fmt.Sprintf("%q", e.Name)
	for _, kind := range []string{"user", "group", "role"} {
		if strings.HasPrefix(strings.ToLower(e.Reason), "operation denied. "+kind+" name:") {
			what = "the " + kind + " " + what
			if kind == "user" {
				what += " (a role is named with ROLE before it, a group with GROUP)"
			}
		}
	}
	return what
}

// fault says to an administrator what an error means and what to do. The server's
// own words are for the log: they may hold what was sent.
func (a *Administrator) fault(err error, service string) error {
	var known *fault.Fault
	var clash *MergeConflict
	var lost *Lost
	var refused *Error
	name := a.server.Name()
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &clash):
		return fault.Wrap(fault.Conflict, err, "%s; look at it and repeat the statement", err)
	case errors.As(err, &lost):
		return fault.Wrap(fault.Unavailable, err, "%s (%s)", lost, name)
	case errors.Is(err, context.Canceled):
		return fault.Wrap(fault.Cancelled, err, "the statement was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Timeout, err, "%s did not answer in time", name)
	case !errors.As(err, &refused):
		return fault.Wrap(fault.Unavailable, err, "%s does not answer; nothing was changed. The log of the server says more", name)
	}
	switch refused.Kind {
	case NotFound:
		return fault.Wrap(fault.NotFound, err, "%s has no service %s, or what was to be changed is gone; SHOW POLICIES lists the policies", name, service)
	case Exists:
		if refused.Code == 3006 || refused.Name == "" {
			return fault.Wrap(fault.BadStatement, err, "there is a policy of that name, or on the same resource, in service %s already; SHOW POLICIES lists them, ALTER POLICY ... ADD adds to one", service)
		}
		return fault.Wrap(fault.BadStatement, err, "policy %q in service %s is on the same already, and there can be one only; add to it with ALTER POLICY %q ADD", refused.Name, service, refused.Name)
	case UnknownPrincipal:
		if refused.Name == "" {
			return fault.Wrap(fault.NoPrincipal, err, "%s does not know a principal of the policy; create it there first, or correct the name", name)
		}
		return fault.Wrap(fault.NoPrincipal, err, "%s does not know %s; create it there first, or correct the name", name, unknown(refused))
	case Forbidden:
		return fault.Wrap(fault.Denied, err, "the user with which SQE writes to %s may not change service %s; name it in the setting service.admin.users of that service, and make it an administrator of the policy server for tags", name, service)
	case Unauthenticated:
		return fault.Wrap(fault.Unavailable, err, "%s refuses the user or the password with which SQE writes; correct them in the configuration of source %s", name, a.config.Source)
	case Conflict:
		return fault.Wrap(fault.Conflict, err, "others change the policy all the time; repeat the statement")
	case InUse:
		return fault.Wrap(fault.BadStatement, err, "it is still referred to on %s", name)
	}
	if why, ok := refusals[refused.Code]; ok {
		return fault.Wrap(fault.BadStatement, err, "%s refuses the policy: %s (code %d)", name, why, refused.Code)
	}
	return fault.Wrap(fault.BadStatement, err, "%s refuses the policy (code %d); a mask that it does not know is the usual cause. The log of the server says more", name, refused.Code)
}
