package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sqe/rangerclient/model"
	"sqe/rangerclient/transport"
)

// RESTConfig says where a Ranger Admin is and as whom it is administered.
type RESTConfig struct {
	URL string // "https://ranger.example:6182"
	// Username and Password of a user who may change what is to be changed: a
	// Ranger admin, or a user named in service.admin.users of the services.
	Username, Password string
	// AllowHTTP permits http:// to a host that is not this machine: the password
	// then goes over the network in the clear.
	AllowHTTP bool
	// CAFile holds the certificates (PEM) to trust beside the system's, CertFile
	// and KeyFile the client's own.
	CAFile, CertFile, KeyFile string
	Timeout                   time.Duration // of one request; 0: 10 s
	MaxBody                   int64         // bytes of one answer; 0: 256 MiB
	Now                       func() time.Time
}

// REST is a Ranger Admin, or a server that speaks as one. It records the
// configured user as the author of whatever is written. It is safe for concurrent
// use.
//
// Source of the paths and answers: Ranger 2.9, PublicAPIsv2, XUserREST, TagREST
// and ServiceREST of its security-admin.
type REST struct {
	client   *transport.Client
	page     int
	username string
}

var _ Server = (*REST)(nil)

// OpenREST prepares to administer a Ranger Admin. It sends nothing, and fails only
// for a configuration that can never work.
func OpenREST(c RESTConfig) (*REST, error) {
	client, err := transport.Open(transport.Config{
		URL: c.URL, Username: c.Username, Password: c.Password, AllowHTTP: c.AllowHTTP,
		CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		Timeout: c.Timeout, MaxBody: c.MaxBody, Now: c.Now,
	})
	if err != nil {
		return nil, err
	}
	return &REST{client: client, page: pageSize, username: c.Username}, nil
}

// Name implements Server.
func (r *REST) Name() string { return "the Ranger Admin at " + r.client.Server() }

// Username is who logs in.
func (r *REST) Username() string { return r.username }

// api and xusers are where the two families of calls live.
const (
	api    = "/service/public/v2/api/"
	xusers = "/service/xusers/"
)

// call sends a request with a document, nil for none, and reads the answer into
// out, nil for none.
func (r *REST) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	answer, err := r.client.Do(ctx, method, path, query, body)
	if err != nil {
		if refused := (*transport.Refused)(nil); errors.As(err, &refused) {
			return &Error{Kind: Unauthenticated, Reason: refused.Error()}
		}
		return fmt.Errorf("%s: %w", r.Name(), err)
	}
	switch answer.Status {
	case http.StatusOK, http.StatusCreated, http.StatusNoContent:
	default:
		return refusal(r.Name(), answer)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Body, out); err != nil {
		return fmt.Errorf("%s answered %s with something that is not the document asked for", r.Name(), method)
	}
	return nil
}

// pageSize is how many objects are asked for at once. A Ranger Admin gives
// serverPage unless told, and some lists of it are never cut into pages.
const (
	pageSize   = 1000
	serverPage = 200
)

// list asks for all objects of a list, page by page. get fetches a page and says
// how many objects it had and which was the first.
func (r *REST) list(query url.Values, get func(url.Values) (n int, first string, err error)) (pages int, err error) {
	before := ""
	for start := 0; ; {
		q := url.Values{}
		for k, v := range query {
			q[k] = v
		}
		q.Set("startIndex", strconv.Itoa(start))
		q.Set("pageSize", strconv.Itoa(r.page))
		n, first, err := get(q)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return pages, nil
		}
		if pages > 0 && first == before {
			return 0, fmt.Errorf("%s answered with the same part of a list again", r.Name())
		}
		pages++
		before = first
		if n < min(r.page, serverPage) || n > r.page { // the last, or all at once
			return pages, nil
		}
		start += n
	}
}

// listed reads a list whose pages are arrays.
func listed[T any](ctx context.Context, r *REST, path string, query url.Values) ([]T, int, error) {
	var all []T
	pages, err := r.list(query, func(q url.Values) (int, string, error) {
		var page []json.RawMessage
		if err := r.call(ctx, http.MethodGet, path, q, nil, &page); err != nil {
			return 0, "", err
		}
		for _, one := range page {
			var t T
			if err := json.Unmarshal(one, &t); err != nil {
				return 0, "", fmt.Errorf("%s answered with a list of something else than what was asked for", r.Name())
			}
			all = append(all, t)
		}
		if len(page) == 0 {
			return 0, "", nil
		}
		return len(page), string(page[0]), nil
	})
	return all, pages, err
}

// one reads or writes a single object.
func one[T any](ctx context.Context, r *REST, method, path string, query url.Values, in any) (*T, error) {
	out := new(T)
	if err := r.call(ctx, method, path, query, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

func seg(name string) string { return url.PathEscape(name) }

func num(id int64) string { return strconv.FormatInt(id, 10) }

// ServiceDefs implements Server.
func (r *REST) ServiceDefs(ctx context.Context) ([]json.RawMessage, error) {
	defs, _, err := listed[json.RawMessage](ctx, r, api+"servicedef/", nil)
	return defs, err
}

// ServiceDef implements Server.
func (r *REST) ServiceDef(ctx context.Context, name string) (json.RawMessage, error) {
	def, err := one[json.RawMessage](ctx, r, http.MethodGet, api+"servicedef/name/"+seg(name), nil, nil)
	if err != nil {
		return nil, missing(err, name)
	}
	return *def, nil
}

// CreateServiceDef implements Server.
func (r *REST) CreateServiceDef(ctx context.Context, def json.RawMessage) error {
	return r.call(ctx, http.MethodPost, api+"servicedef/", nil, def, nil)
}

// Services implements Server.
func (r *REST) Services(ctx context.Context) ([]*model.Service, error) {
	services, _, err := listed[*model.Service](ctx, r, api+"service", nil)
	return services, err
}

// Service implements Server.
func (r *REST) Service(ctx context.Context, name string) (*model.Service, error) {
	s, err := one[model.Service](ctx, r, http.MethodGet, api+"service/name/"+seg(name), nil, nil)
	return s, missing(err, name)
}

// CreateService implements Server.
func (r *REST) CreateService(ctx context.Context, s *model.Service) (*model.Service, error) {
	return one[model.Service](ctx, r, http.MethodPost, api+"service", nil, s)
}

// UpdateService implements Server.
func (r *REST) UpdateService(ctx context.Context, s *model.Service) (*model.Service, error) {
	id := s.ID
	if id == 0 {
		was, err := r.Service(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		id = was.ID
	}
	return one[model.Service](ctx, r, http.MethodPut, api+"service/"+num(id), nil, s)
}

// DeleteService implements Server.
func (r *REST) DeleteService(ctx context.Context, name string) error {
	return missing(r.call(ctx, http.MethodDelete, api+"service/name/"+seg(name), nil, nil, nil), name)
}

// Zones implements Server.
func (r *REST) Zones(ctx context.Context) ([]*model.Zone, error) {
	zones, _, err := listed[*model.Zone](ctx, r, api+"zones", nil)
	return zones, err
}

// CreateZone implements Server.
func (r *REST) CreateZone(ctx context.Context, z *model.Zone) (*model.Zone, error) {
	return one[model.Zone](ctx, r, http.MethodPost, api+"zones", nil, z)
}

// UpdateZone implements Server.
func (r *REST) UpdateZone(ctx context.Context, z *model.Zone) (*model.Zone, error) {
	id := z.ID
	if id == 0 {
		was, err := one[model.Zone](ctx, r, http.MethodGet, api+"zones/name/"+seg(z.Name), nil, nil)
		if err != nil {
			return nil, missing(err, z.Name)
		}
		id = was.ID
	}
	return one[model.Zone](ctx, r, http.MethodPut, api+"zones/"+num(id), nil, z)
}

// DeleteZone implements Server.
func (r *REST) DeleteZone(ctx context.Context, name string) error {
	return missing(r.call(ctx, http.MethodDelete, api+"zones/name/"+seg(name), nil, nil, nil), name)
}

// Roles implements Server.
func (r *REST) Roles(ctx context.Context) ([]*model.Role, error) {
	roles, _, err := listed[*model.Role](ctx, r, api+"roles", nil)
	return roles, err
}

// Role implements Server.
func (r *REST) Role(ctx context.Context, name string) (*model.Role, error) {
	role, err := one[model.Role](ctx, r, http.MethodGet, api+"roles/name/"+seg(name), nil, nil)
	// A Ranger Admin says the same of a role that it does not have and of one that
	// the caller may not see.
	return role, missing(err, name, "doesn't have permissions to get details")
}

// CreateRole implements Server.
func (r *REST) CreateRole(ctx context.Context, role *model.Role) (*model.Role, error) {
	return one[model.Role](ctx, r, http.MethodPost, api+"roles", nil, role)
}

// UpdateRole implements Server.
func (r *REST) UpdateRole(ctx context.Context, role *model.Role) (*model.Role, error) {
	id := role.ID
	if id == 0 {
		was, err := r.Role(ctx, role.Name)
		if err != nil {
			return nil, err
		}
		id = was.ID
	}
	return one[model.Role](ctx, r, http.MethodPut, api+"roles/"+num(id), nil, role)
}

// roleChange is GrantRevokeRoleRequest of Ranger as far as it is used. Without a
// grantor it is whoever calls.
type roleChange struct {
	Grantor     string   `json:"grantor,omitempty"`
	TargetRoles []string `json:"targetRoles"`
	Users       []string `json:"users"`
	Groups      []string `json:"groups"`
	Roles       []string `json:"roles"`
	GrantOption bool     `json:"grantOption"`
}

// AlterRole implements Server.
func (r *REST) AlterRole(ctx context.Context, service, name string, add, remove *model.Role) error {
	names := func(list []model.Member) []string {
		out := []string{}
		for _, m := range list {
			out = append(out, m.Name)
		}
		return out
	}
	for _, step := range []struct {
		verb string
		what *model.Role
	}{{"grant", add}, {"revoke", remove}} {
		if step.what == nil || len(step.what.Users)+len(step.what.Groups)+len(step.what.Roles) == 0 {
			continue
		}
		body := roleChange{Grantor: r.username, TargetRoles: []string{name}, Users: names(step.what.Users), Groups: names(step.what.Groups), Roles: names(step.what.Roles)}
		err := r.call(ctx, http.MethodPut, api+"roles/"+step.verb+"/"+seg(service), nil, body, nil)
		if e := (*Error)(nil); errors.As(err, &e) && strings.Contains(e.Reason, "doesn't have permissions") {
			e.Kind = Forbidden
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DeleteRole implements Server.
func (r *REST) DeleteRole(ctx context.Context, name string) error {
	return missing(r.call(ctx, http.MethodDelete, api+"roles/name/"+seg(name), nil, nil, nil), name)
}

// Tags implements Server. The account must be a Ranger admin or stand in
// tag.download.auth.users of the service.
func (r *REST) Tags(ctx context.Context, service string) (*model.ServiceTags, error) {
	answer, err := r.client.Do(ctx, http.MethodGet, "/service/tags/secure/download/"+seg(service), url.Values{"lastKnownVersion": {"-1"}, "pluginId": {"sqe"}}, nil)
	switch {
	case errors.As(err, new(*transport.Refused)):
		return nil, &Error{Kind: Unauthenticated, Reason: err.Error()}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.Name(), err)
	case answer.Status == http.StatusNotModified || answer.Status == http.StatusNoContent:
		none := int64(0)
		return &model.ServiceTags{ServiceName: service, TagVersion: &none}, nil
	case answer.Status != http.StatusOK:
		return nil, missing(refusal(r.Name(), answer), service)
	}
	return model.DecodeTags(answer.Body, service)
}

// ImportTags implements Server.
func (r *REST) ImportTags(ctx context.Context, t *model.ServiceTags) error {
	switch t.Op {
	case "add_or_update", "delete", "replace":
	default: // a Ranger Admin says yes and does nothing
		return &Error{Kind: Invalid, Reason: "the operation of an import of tags is add_or_update, delete or replace"}
	}
	err := r.call(ctx, http.MethodPut, "/service/tags/importservicetags", nil, importDocument(t), nil)
	if KindOf(err) == Invalid {
		// An unknown service is refused without a word.
		if _, serr := r.Service(ctx, t.ServiceName); KindOf(serr) == NotFound {
			return serr
		}
	}
	return err
}

// importDocument is t with what a Ranger Admin needs: a resource without an id
// would lose its tags, and the service stands in each resource.
func importDocument(t *model.ServiceTags) *model.ServiceTags {
	out := *t
	out.ServiceResources = make([]model.ServiceResource, len(t.ServiceResources))
	out.ResourceToTagIDs = make(map[string][]int64, len(t.ResourceToTagIDs))
	for i, res := range t.ServiceResources {
		out.ResourceToTagIDs[strconv.Itoa(i+1)] = t.ResourceToTagIDs[num(res.ID)]
		res.ID, res.ServiceName = int64(i+1), t.ServiceName
		out.ServiceResources[i] = res
	}
	return &out
}
