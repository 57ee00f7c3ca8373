package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

// download is one of the documents that plugins fetch. Source of paths, names of
// parameters and configuration keys: Ranger 2.9.
type download struct {
	kind    string // as in plugin information
	path    string // below /service, before "download/"
	known   string // the parameter with the known version
	keys    []string
	refused string
	fetch   func(ctx context.Context, service string, known int64) ([]byte, error)
}

// The configuration keys of a service that name users, separated by commas; "*"
// is every user who is logged in.
const (
	mayPolicies  = "policy.download.auth.users"
	mayGrant     = "policy.grantrevoke.auth.users"
	mayTags      = "tag.download.auth.users"
	mayUserStore = "userstore.download.auth.users"
	adminUsers   = "service.admin.users"
	adminGroups  = "service.admin.groups"
)

func (h *Handler) downloadRoutes() {
	for _, d := range []*download{
		{"policy", "plugins/policies", "lastKnownVersion", []string{mayPolicies, mayGrant}, "User doesn't have permission to download policy", h.store.DownloadPolicies},
		{"tag", "tags", "lastKnownVersion", []string{mayTags}, "User doesn't have permission to download tags", h.store.DownloadTags},
		{"role", "roles", "lastKnownRoleVersion", []string{mayPolicies}, "User doesn't have permission to download UserGroupRoles", h.store.DownloadRoles},
		{"userstore", "xusers", "lastKnownUserStoreVersion", []string{mayUserStore}, "User doesn't have permission to download UsersAndGroups", h.store.DownloadUserStore},
	} {
		// Plugins older than 2.9 send a password and leave "secure" out; a Ranger
		// Admin refuses that, whatever the password.
		h.handle(http.MethodGet, d.path+"/download/:service", nobody, func(c *call) (any, error) {
			if _, _, basic := c.r.BasicAuth(); !basic {
				return nil, errAnonymous
			}
			account, err := h.authenticate(c.w, c.r)
			if err != nil {
				return nil, err
			}
			c.account = account
			return h.download(c, d)
		})
		secure := strings.Replace(d.path+"/download/:service", "plugins/", "plugins/secure/", 1)
		if d.path != "plugins/policies" {
			secure = d.path + "/secure/download/:service"
		}
		h.handle(http.MethodGet, secure, anybody, func(c *call) (any, error) { return h.download(c, d) })
	}
	list := func(c *call) ([]pluginInfo, error) {
		return h.plugins.list(c.query("serviceName"), c.query("pluginHostName")), nil
	}
	h.handle(http.MethodGet, "public/v2/api/plugins/info", readers, func(c *call) (any, error) { return list(c) })
	h.handle(http.MethodGet, "plugins/plugins/info", readers, func(c *call) (any, error) {
		infos, err := list(c)
		return map[string]any{"startIndex": 0, "pageSize": len(infos), "totalCount": len(infos), "resultSize": len(infos), "pluginInfoList": infos}, err
	})
}

var errAnonymous = &answer{status: 400, body: vxResponse{Status: 400, Text: "Unauthenticated access not allowed"}}

func (h *Handler) download(c *call, d *download) (any, error) {
	known := int64(-1)
	if text := c.query(d.known); text != "" {
		var err error
		if known, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, errNoPage
		}
	}
	name := c.vars["service"]
	service, err := h.store.Service(c.ctx, name)
	switch {
	case admin.KindOf(err) == admin.NotFound && d.kind == "tag":
		return nil, &answer{status: 404, body: vxResponse{Status: 404, Text: fmt.Sprintf("Service:%s not found", name)}}
	case admin.KindOf(err) == admin.NotFound:
		// A plugin that reads this text forgets its policies.
		return nil, &answer{status: 404, body: vxResponse{Status: 404, Text: fmt.Sprintf("RANGER_ERROR_SERVICE_NOT_FOUND: ServiceName=%s", name)}}
	case err != nil:
		return nil, err
	}
	if !c.account.IsAdmin() && !slices.ContainsFunc(d.keys, func(key string) bool { return listed(service.Configs[key], c.account.Name) }) {
		return nil, forbidden("%s", d.refused)
	}
	if !service.IsEnabled() {
		return nil, &answer{status: 400, body: vxResponse{Status: 400, Text: fmt.Sprintf("Service:%s is disabled", name)}}
	}
	body, err := d.fetch(c.ctx, name, known)
	if err != nil {
		return nil, err
	}
	h.plugins.saw(c, d.kind, service, known, body != nil)
	if body == nil {
		return unchanged{}, nil
	}
	return document(body), nil
}

// listed reports whether a configuration value names the user.
func listed(value, user string) bool {
	for _, name := range strings.Split(value, ",") {
		if name = strings.TrimSpace(name); name == "*" || name == user && name != "" {
			return true
		}
	}
	return false
}

// pluginInfo is RangerPluginInfo: what a plugin holds of a service.
type pluginInfo struct {
	ID          int64             `json:"id"`
	CreateTime  int64             `json:"createTime"`
	UpdateTime  int64             `json:"updateTime"`
	ServiceName string            `json:"serviceName"`
	ServiceType string            `json:"serviceType"`
	HostName    string            `json:"hostName"`
	AppType     string            `json:"appType"`
	IPAddress   string            `json:"ipAddress"`
	Info        map[string]string `json:"info"`
}

// maxPlugins bounds how many plugins are remembered.
const maxPlugins = 1000

// plugins remembers, while the server runs, who downloads what.
type plugins struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[[3]string]*pluginInfo
	ids int64
}

func newPlugins(now func() time.Time) *plugins {
	return &plugins{now: now, of: map[[3]string]*pluginInfo{}}
}

// saw notes a download. A plugin says with the version it knows which one is in
// force there; its id is "application@host-service".
func (p *plugins) saw(c *call, kind string, s *model.Service, known int64, sent bool) {
	id := c.query("pluginId")
	if id == "" || len(id) > 512 {
		return
	}
	app, host, _ := strings.Cut(id, "@")
	host = strings.TrimSuffix(host, "-"+s.Name)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now().UnixMilli()
	key := [3]string{s.Name, app, host}
	info := p.of[key]
	if info == nil {
		if len(p.of) >= maxPlugins {
			var oldest [3]string
			var at int64
			for k, v := range p.of {
				if at == 0 || v.UpdateTime < at {
					oldest, at = k, v.UpdateTime
				}
			}
			delete(p.of, oldest)
		}
		p.ids++
		info = &pluginInfo{ID: p.ids, CreateTime: now, ServiceName: s.Name, ServiceType: s.Type, HostName: host, AppType: app, Info: map[string]string{}}
		p.of[key] = info
	}
	info.UpdateTime, info.IPAddress = now, remote(c.r)
	if known >= 0 {
		info.Info[kind+"ActiveVersion"] = strconv.FormatInt(known, 10)
	}
	if at := c.query("lastActivationTime"); at != "" && len(at) < 20 {
		info.Info[kind+"ActivationTime"] = at
	}
	if !sent {
		return
	}
	info.Info[kind+"DownloadTime"] = strconv.FormatInt(now, 10)
	switch kind {
	case "policy":
		info.Info["policyDownloadedVersion"] = strconv.FormatInt(s.PolicyVersion, 10)
	case "tag":
		info.Info["tagDownloadedVersion"] = strconv.FormatInt(s.TagVersion, 10)
	}
}

func (p *plugins) list(service, host string) []pluginInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []pluginInfo{}
	for _, info := range p.of {
		if (service == "" || info.ServiceName == service) && (host == "" || info.HostName == host) {
			i := *info
			i.Info = map[string]string{}
			for k, v := range info.Info {
				i.Info[k] = v
			}
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b pluginInfo) int { return int(a.ID - b.ID) })
	return out
}
