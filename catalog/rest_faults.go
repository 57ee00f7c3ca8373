package catalog

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/identity"
	"sqe/plan"
)

// hides reports whether the catalog refused to show something. The principal is told
// that there is nothing; the operator can tell by the log.
func (c *REST) hides(ctx context.Context, err error, object plan.TableName) bool {
	if !c.refused(ctx, err, object) {
		return false
	}
	p, _ := identity.FromContext(ctx)
	c.log.LogAttrs(ctx, slog.LevelInfo, "catalog refused", slog.String("catalog", c.name), slog.String("principal", p.Name), slog.Any("reason", err))
	return true
}

// refused is hides without a line in the log: for an answer that is kept, and was
// logged when it came. A tool that browses meets each of them many times a second.
func (c *REST) refused(ctx context.Context, err error, object plan.TableName) bool {
	var e *rest.Error
	if !errors.As(err, &e) || e.Status != http.StatusForbidden {
		return false
	}
	if object.Catalog = c.name; c.told != nil {
		c.told(ctx, Refusal{Operation: e.Operation, Object: object})
	}
	return true
}

func statusOf(err error) int {
	var e *rest.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// failed gives an error of the client a kind, but for what it says about one object.
func (c *REST) failed(ctx context.Context, err error) error {
	var f *fault.Fault
	if errors.As(err, &f) {
		return err
	}
	if ctx.Err() != nil {
		return interrupted(ctx, ctx.Err())
	}
	var e *rest.Error
	if !errors.As(err, &e) {
		return fault.Wrap(fault.BadStatement, err, "Catalog '%s' cannot hold such a name", c.name)
	}
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == 419:
		return c.refusedToken(ctx, err)
	case e.Status == http.StatusForbidden:
		c.hides(ctx, err, plan.TableName{})
		return fault.Wrap(fault.Denied, err, "Catalog '%s' does not permit you to do this", c.name)
	case e.Status == http.StatusTooManyRequests:
		return fault.Wrap(fault.Unavailable, err, "Catalog '%s' has too much to do; try again later", c.name)
	case e.Status == http.StatusNotImplemented || e.Status == http.StatusMethodNotAllowed || e.Status == http.StatusNotAcceptable:
		return fault.Wrap(fault.Unsupported, err, "Catalog '%s' does not support this", c.name)
	case e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity:
		return fault.Wrap(fault.BadStatement, err, "Catalog '%s' refuses such a name or definition", c.name)
	case errors.Is(err, rest.ErrMetadata):
		return fault.Wrap(fault.Corrupt, err, "Catalog '%s' has metadata that cannot be understood; an administrator must look at the log", c.name)
	case e.Status == 0 && rest.Untrusted(err):
		return fault.Wrap(fault.Unavailable, err, "Catalog '%s' does not answer over a connection that this server trusts; an administrator must look at its certificate, at ca-file and at the log", c.name)
	case e.Status == 0 && rest.TimedOut(err):
		return fault.Wrap(fault.Unavailable, err, "Catalog '%s' does not answer in time; try again, or ask an administrator to look at it and at its timeout", c.name)
	case e.Status >= 500 || e.Status == 0 && !rest.Nonsense(err):
		return unavailable(c.name, err)
	}
	return fault.Wrap(fault.Unavailable, err, "Catalog '%s' does not answer as an Iceberg REST catalog does; an administrator must look at its address and at the log", c.name)
}

// refusedToken is the fault of a 401.
func (c *REST) refusedToken(ctx context.Context, err error) error {
	if _, ok := identity.CredentialFrom(ctx); ok {
		return fault.Wrap(fault.Auth, err, "Catalog '%s' refuses the token of this session: it has expired, or is not meant for the catalog; log in again", c.name)
	}
	return fault.Wrap(fault.Unavailable, err, "Catalog '%s' refuses the credentials of this server; an administrator must look at the log", c.name)
}

// namespaceFault is failed for what is asked about a namespace.
func (c *REST) namespaceFault(ctx context.Context, err error, namespace []string) error {
	switch {
	case rest.Is(err, http.StatusNotFound), c.hides(ctx, err, plan.TableName{Namespace: namespace}), errors.Is(err, rest.ErrName):
		return noNamespace(namespace)
	}
	return c.failed(ctx, err)
}

// tableFault is failed for what is asked about a table or view; reading: without
// changing it.
func (c *REST) tableFault(ctx context.Context, err error, name plan.TableName, reading bool) error {
	var e *rest.Error
	errors.As(err, &e)
	switch {
	case errors.Is(err, rest.ErrName) && reading:
		return missing(name)
	case rest.Is(err, http.StatusNotFound):
		if !reading {
			_, _ = c.shown(ctx, name) // as for one that is hidden: it takes as long
		}
		return missing(name)
	case e != nil && e.Status == http.StatusForbidden && reading:
		c.hides(ctx, err, name)
		return missing(name)
	case e != nil && e.Status == http.StatusForbidden:
		return c.denied(ctx, err, name)
	case errors.Is(err, rest.ErrMetadata):
		return fault.Wrap(fault.Corrupt, err, "The metadata of '%s' cannot be understood; restore it or register an older one", name)
	}
	return c.failed(ctx, err)
}

// denied is the fault of a change that the catalog does not permit: not found for
// who may not see the object.
func (c *REST) denied(ctx context.Context, err error, name plan.TableName) error {
	c.hides(ctx, err, name)
	switch shown, failed := c.shown(ctx, name); {
	case failed != nil:
		return c.failed(ctx, failed)
	case !shown:
		return missing(name)
	}
	return fault.Wrap(fault.Denied, err, "Catalog '%s' does not permit you to do this with '%s'", c.name, name)
}

// shown reports whether the principal may see a table or view of that name.
func (c *REST) shown(ctx context.Context, name plan.TableName) (bool, error) {
	ctx = rest.MetadataOnly(ctx)
	_, err := c.client.LoadTable(ctx, name.Namespace, name.Name, "")
	if status := statusOf(err); status == http.StatusForbidden || status == http.StatusNotFound {
		_, err = c.client.LoadView(ctx, name.Namespace, name.Name)
	}
	if status := statusOf(err); status == http.StatusForbidden || status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

// createFault is the fault of creating a table or view; seen: its namespace may be
// looked at (hasNamespace).
func (c *REST) createFault(ctx context.Context, err error, name plan.TableName, seen bool) error {
	if rest.Is(err, http.StatusNotFound) || errors.Is(err, rest.ErrName) || !seen && c.hides(ctx, err, plan.TableName{Namespace: name.Namespace}) {
		return noNamespace(name.Namespace)
	}
	return c.failed(ctx, err)
}

// WithoutToken reports whether an answer failed because the catalog decides by the
// token of the user and the session of the context has none.
func WithoutToken(err error) bool { return errors.Is(err, rest.ErrNoToken) }
