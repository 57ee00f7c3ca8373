package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sqe/audit"
	"sqe/config"
	"sqe/policy"
	"sqe/rangerclient"
	"sqe/rangerclient/admin"
)

// openSources opens the policy sources of the configuration, in its order.
func (in *instance) openSources() ([]policy.Source, error) {
	var out []policy.Source
	for _, p := range in.config.Policies {
		src, err := in.openSource(p)
		if err != nil {
			return nil, err
		}
		in.closing(func() { _ = src.Close() })
		out = append(out, src)
	}
	return out, nil
}

func sourceOptions(p config.Policy) rangerclient.Options {
	// The default of each choice is the zero value there.
	choice := func(value, standard string) string {
		if value == standard {
			return ""
		}
		return value
	}
	return rangerclient.Options{
		Realm: p.Realm, Groups: rangerclient.Groups(choice(p.Groups, "both")),
		DatabaseKey:       rangerclient.DatabaseKey(choice(p.DatabaseKey, "both")),
		MaskPrecedence:    rangerclient.MaskPrecedence(choice(p.MaskPrecedence, "tag")),
		FilterCombination: rangerclient.FilterCombination(choice(p.Filters, "all")),
		ColumnAccess:      rangerclient.ColumnAccess(choice(p.ColumnAccess, "deny")),
		NestedWildcards:   rangerclient.NestedWildcards(choice(p.NestedWild, "schema")),
	}
}

func (in *instance) openSource(p config.Policy) (*rangerclient.Source, error) {
	options := sourceOptions(p)
	switch p.Kind {
	case "store":
		return rangerclient.OpenStore(rangerclient.StoreConfig{
			Name: p.Name, Store: in.store, PolarisService: p.PolarisService, DataService: p.DataService,
			RefreshInterval: time.Duration(p.PollInterval), MaxStaleness: time.Duration(p.MaxStaleness), Options: options, Log: in.log,
		})
	case "ranger":
		return rangerclient.OpenREST(rangerclient.RESTConfig{
			Name: p.Name, URL: p.URL, Username: p.Username, Password: p.Password.Reveal(), AllowHTTP: p.AllowHTTP,
			CAFile: string(p.CAFile), CertFile: string(p.ClientCert), KeyFile: string(p.ClientKey),
			Timeout: time.Duration(p.Timeout), SnapshotFile: string(p.SnapshotFile),
			PolarisService: p.PolarisService, DataService: p.DataService,
			RefreshInterval: time.Duration(p.PollInterval), MaxStaleness: time.Duration(p.MaxStaleness), Options: options, Log: in.log,
		})
	}
	return rangerclient.OpenFolder(rangerclient.FolderConfig{
		Name: p.Name, Dir: string(p.Directory), PolarisService: p.PolarisService, DataService: p.DataService,
		RefreshInterval: time.Duration(p.PollInterval), MaxStaleness: time.Duration(p.MaxStaleness), Options: options, Log: in.log,
	})
}

func statuses(sources []policy.Source) []policy.Status {
	out := make([]policy.Status, len(sources))
	for i, s := range sources {
		out[i] = s.Status()
	}
	return out
}

// policyServer is the server on which policies of a source are written; nil for a
// folder, which is only read.
func (in *instance) policyServer(p config.Policy) (admin.Server, error) {
	switch p.Kind {
	case "store":
		return in.store, nil
	case "ranger":
		username, password := p.AdminUsername, p.AdminPassword.Reveal()
		if username == "" {
			username, password = p.Username, p.Password.Reveal()
		}
		return admin.OpenREST(admin.RESTConfig{
			URL: p.URL, Username: username, Password: password, AllowHTTP: p.AllowHTTP,
			CAFile: string(p.CAFile), CertFile: string(p.ClientCert), KeyFile: string(p.ClientKey), Timeout: time.Duration(p.Timeout),
		})
	}
	return nil, nil
}

// openAdministrators makes what writes policies, for each source that can be
// written. sources are those of the configuration, in its order.
func (in *instance) openAdministrators(sources []policy.Source) ([]policy.Administrator, error) {
	var out []policy.Administrator
	for i, p := range in.config.Policies {
		server, err := in.policyServer(p)
		if err != nil {
			return nil, fmt.Errorf("policy source %s: %w", p.Name, err)
		}
		if server == nil {
			continue
		}
		source := sources[i].(*rangerclient.Source)
		a, err := admin.New(server, admin.Config{
			Source: p.Name, DataService: p.DataService, PolarisService: p.PolarisService, Options: sourceOptions(p),
			ProjectTags: p.ProjectTags, GroupsAsRoles: p.GroupsAsRoles, Reload: source.Reload,
			ReapplyLost: p.ReapplyLost, Lost: in.lost, RangerDecides: p.GrantAuthority == "ranger", RolesFile: in.rolesFile(p),
		})
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// rolesFile keeps what statements said of the members of roles of a policy source.
func (in *instance) rolesFile(p config.Policy) string {
	sum := sha256.Sum256([]byte(p.Name + "\x00" + p.URL))
	return filepath.Join(string(in.config.Server.StateDirectory), "roles-"+hex.EncodeToString(sum[:6])+".jsonl")
}

// watchPolicies has those who write policies look after what others make of them.
func (in *instance) watchPolicies(sources []policy.Source, administrators []policy.Administrator) {
	for _, s := range sources {
		for _, a := range administrators {
			source, ok := s.(*rangerclient.Source)
			if watcher, can := a.(rangerclient.Watcher); ok && can && a.Source() == s.Name() {
				source.Watch(watcher)
			}
		}
	}
}

// lost tells of a change of a policy that somebody erased.
func (in *instance) lost(l admin.Loss) {
	kind := "lost"
	if !l.Restored.IsZero() {
		kind = "restored"
	}
	if l.Role != "" {
		in.log.Warn("a change of a role seems to be "+kind, "role", l.Role, "by", l.By, "what", strings.Join(l.What, ", "))
	} else {
		in.log.Warn("a change of a policy was "+kind, "policy", l.Policy, "id", l.ID, "service", l.Service, "version", l.Version, "by", l.By, "what", strings.Join(l.What, ", "))
	}
	if sink := in.sink.Load(); sink != nil {
		e := audit.Event{Type: "policy", Kind: kind, User: l.By, Reason: l.String(), Outcome: "ok"}
		if err := sink.Record(e); err != nil {
			in.log.Error("a lost change of a policy could not be recorded", "error", err.Error())
		}
	}
}

// accessManagedBy says of catalogs on which this server does not grant where that is
// done.
func accessManagedBy(cfg *config.Config) map[string]string {
	here := slices.ContainsFunc(cfg.Policies, func(p config.Policy) bool { return p.Kind != "folder" && p.PolarisService != "" })
	out := map[string]string{}
	for _, c := range cfg.Catalogs {
		switch {
		case c.ManagedBy != "":
			out[c.Name] = c.ManagedBy
		case c.Kind == "rest" && c.Identity == "user" && !here:
			out[c.Name] = "the catalog itself, which knows each user by the token of the session"
		}
	}
	return out
}
