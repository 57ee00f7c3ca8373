package rangerclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"sqe/fault"
	"sqe/rangerclient/transport"
)

// RESTConfig configures a source that downloads from a Ranger Admin (or a server
// that speaks as one).
type RESTConfig struct {
	Name string // name of the source
	URL  string // "https://ranger.example:6182"
	// Username and Password of a user that the service's configuration lets
	// download policies, tags and the user store.
	Username, Password string
	// AllowHTTP permits http:// to a host that is not this machine: the password
	// then goes over the network in the clear.
	AllowHTTP bool
	// CAFile holds the certificates (PEM) to trust beside the system's, CertFile
	// and KeyFile the client's own.
	CAFile, CertFile, KeyFile string
	Timeout                   time.Duration // of one request; 0: 10 s
	MaxBody                   int64         // bytes of one answer; 0: 256 MiB
	// SnapshotFile keeps the last good documents for a restart while the server is
	// away; empty: none is kept.
	SnapshotFile string

	PolarisService  string // empty: no object gate
	DataService     string
	RefreshInterval time.Duration
	MaxStaleness    time.Duration
	Options         Options
	Now             func() time.Time
	Log             *slog.Logger
}

// rest fetches documents from a Ranger Admin.
type rest struct {
	client *transport.Client
	name   string // of the source
}

// OpenREST opens a source that polls a Ranger Admin. It fails only for a
// configuration that can never work.
func OpenREST(c RESTConfig) (*Source, error) {
	fail := func(format string, args ...any) (*Source, error) {
		return nil, fault.New(fault.Config, "policy source "+c.Name+": "+format, args...)
	}
	switch {
	case c.Name == "":
		return nil, fault.New(fault.Config, "a policy source needs a name")
	case c.DataService == "":
		return fail("%s", errNoService)
	}
	if err := c.Options.check(); err != nil {
		return fail("%s", err)
	}
	if c.MaxBody <= 0 {
		c.MaxBody = maxDocument
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	client, err := transport.Open(transport.Config{
		URL: c.URL, Username: c.Username, Password: c.Password, AllowHTTP: c.AllowHTTP,
		CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile,
		Timeout: c.Timeout, MaxBody: c.MaxBody, Now: c.Now,
	})
	if err != nil {
		return fail("%s", err)
	}
	r := &rest{client: client, name: c.Name}
	return open(&Source{
		name: c.Name, options: c.Options, loader: &downloads{
			server: c.URL, snapshotFile: c.SnapshotFile, polarisService: c.PolarisService, dataService: c.DataService,
			now: c.Now, fetch: r.get, kindName: "ranger",
		}, interval: c.RefreshInterval,
		maxStaleness: c.MaxStaleness, now: c.Now, log: c.Log,
	}), nil
}

// get downloads a document; nil when the server has nothing newer than version.
func (r *rest) get(ctx context.Context, d document, version int64) ([]byte, error) {
	path, query := d.address(version)
	query.Set("pluginId", "sqe@"+r.name)
	answer, err := r.client.Do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return nil, err
	}
	switch answer.Status {
	case http.StatusOK:
		if len(answer.Body) == 0 {
			return nil, errors.New("the answer is empty")
		}
		return answer.Body, nil
	case http.StatusNotModified, http.StatusNoContent:
		return nil, nil
	case http.StatusForbidden:
		return nil, errors.New("the Ranger Admin does not let this user download (403); name the user in policy.download.auth.users, tag.download.auth.users and userstore.download.auth.users of the service")
	case http.StatusNotFound:
		if strings.Contains(string(answer.Body), "RANGER_ERROR_SERVICE_NOT_FOUND") || strings.Contains(string(answer.Body), "not found") {
			return nil, errors.New("the Ranger Admin knows no such service (404)")
		}
		return nil, errors.New("the server has no such address (404); is it a Ranger Admin?")
	}
	return nil, fmt.Errorf("the Ranger Admin answered %d", answer.Status)
}
