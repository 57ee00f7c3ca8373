package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sqe/rangerclient/model"
)

// The documents of a folder. Those named policies_SERVICE.json, tags_SERVICE.json,
// roles.json and userstore.json are the bodies of Ranger's downloads, as a folder
// source reads them; the others hold what the downloads leave out.
const (
	policiesFile   = "policies_"
	tagsFile       = "tags_"
	serviceFile    = "service_"
	definitionFile = "servicedef_"
	rolesFile      = "roles.json"
	userstoreFile  = "userstore.json"
	usersFile      = "users.json"
	groupsFile     = "groups.json"
	zonesFile      = "zones.json"
)

// policiesDocument is model.ServicePolicies with whole service definitions.
type policiesDocument struct {
	ServiceName   string                         `json:"serviceName"`
	PolicyVersion int64                          `json:"policyVersion"`
	Policies      []*model.Policy                `json:"policies,omitempty"`
	ServiceDef    json.RawMessage                `json:"serviceDef"`
	AuditMode     string                         `json:"auditMode,omitempty"`
	TagPolicies   *policiesDocument              `json:"tagPolicies,omitempty"`
	SecurityZones map[string]*model.ZonePolicies `json:"securityZones,omitempty"`
}

// user and group give model.User and model.Group names in JSON.
type user struct {
	Name        string            `json:"name"`
	FirstName   string            `json:"firstName,omitempty"`
	LastName    string            `json:"lastName,omitempty"`
	Description string            `json:"description,omitempty"`
	Email       string            `json:"email,omitempty"`
	Groups      []string          `json:"groups,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	AdminRoles  []string          `json:"adminRoles,omitempty"`
}

type group struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
}

// WriteFolder writes a bundle as a folder of JSON documents, and removes those of
// services that the bundle does not have. The same bundle gives the same bytes.
// The files are readable for the owner alone: they tell who may see what.
func (b *Bundle) WriteFolder(dir string) error {
	documents, err := b.documents()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("the folder cannot be made: %w", err)
	}
	old, err := folderFiles(dir)
	if err != nil {
		return err
	}
	for _, name := range keys(documents) {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetIndent("", " ")
		e.SetEscapeHTML(false) // filters are read by people
		if err := e.Encode(documents[name]); err != nil {
			return err
		}
		if err := replaceFile(filepath.Join(dir, name), out.Bytes()); err != nil {
			return fmt.Errorf("%s cannot be written: %w", name, err)
		}
	}
	for _, name := range old {
		if _, ok := documents[name]; !ok {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("%s cannot be removed: %w", name, err)
			}
		}
	}
	return nil
}

// replaceFile puts a whole file in the place of another one.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".policies-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// folderFiles lists the documents of services in a folder.
func folderFiles(dir string) ([]string, error) {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the folder cannot be read: %w", err)
	}
	var out []string
	for _, f := range list {
		for _, prefix := range []string{policiesFile, tagsFile, serviceFile, definitionFile} {
			if strings.HasPrefix(f.Name(), prefix) && strings.HasSuffix(f.Name(), ".json") {
				out = append(out, f.Name())
			}
		}
	}
	return out, nil
}

func (b *Bundle) documents() (map[string]any, error) {
	out := map[string]any{}
	byName := map[string]*policiesDocument{}
	id := int64(0)
	for _, s := range b.Services {
		if strings.ContainsAny(s.Name+s.Type, `/\`) {
			return nil, fmt.Errorf("service %q cannot be the name of a file", s.Name)
		}
		d := &policiesDocument{ServiceName: s.Name, PolicyVersion: 1, ServiceDef: b.Definitions[s.Type], AuditMode: "audit-default"}
		zones := map[string]*model.ZonePolicies{}
		if s.Type != tagType {
			for _, z := range b.Zones {
				if r, ok := z.Services[s.Name]; ok {
					zones[z.Name] = &model.ZonePolicies{
						ZoneName: z.Name, Resources: r.Resources,
						ContainsAssociatedTagService: s.TagService != "" && slices.Contains(z.TagServices, s.TagService),
					}
				}
			}
		}
		for _, p := range b.Policies[s.Name] {
			p = clone(p)
			id++
			p.ID, p.Version, p.ServiceType = id, 1, s.Type
			if z := zones[p.ZoneName]; z != nil {
				z.Policies = append(z.Policies, p)
			} else {
				d.Policies = append(d.Policies, p)
			}
		}
		if len(zones) > 0 {
			d.SecurityZones = zones
		}
		byName[s.Name] = d
		out[policiesFile+s.Name+".json"] = d
		out[serviceFile+s.Name+".json"] = s
		out[definitionFile+s.Type+".json"] = b.Definitions[s.Type]
		if s.Type != tagType {
			out[tagsFile+s.Name+".json"] = b.Tags[s.Name]
		}
	}
	for _, s := range b.Services {
		if t := byName[s.TagService]; t != nil {
			byName[s.Name].TagPolicies = t
		}
	}
	version := int64(1)
	out[rolesFile] = &model.Roles{RoleVersion: &version, RangerRoles: b.Roles}
	store := &model.UserStore{Version: &version, UserAttrMapping: map[string]map[string]string{}, GroupAttrMapping: map[string]map[string]string{}, UserGroupMapping: map[string][]string{}}
	users, groups := []user{}, []group{}
	for _, u := range b.Users {
		users = append(users, user{u.Name, u.FirstName, u.LastName, u.Description, u.Email, u.Groups, u.Attributes, u.AdminRoles})
		store.UserAttrMapping[u.Name] = orEmpty(u.Attributes)
		if len(u.Groups) > 0 {
			store.UserGroupMapping[u.Name] = u.Groups
		}
	}
	for _, g := range b.Groups {
		groups = append(groups, group{g.Name, g.Description, g.Attributes})
		store.GroupAttrMapping[g.Name] = orEmpty(g.Attributes)
	}
	zones := b.Zones
	if zones == nil {
		zones = []*model.Zone{}
	}
	out[userstoreFile], out[usersFile], out[groupsFile], out[zonesFile] = store, users, groups, zones
	return out, nil
}

func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// ReadFolder reads a bundle from a folder. Of the documents only those of policies
// must be there: services, zones, users and groups are found in the bodies of the
// downloads too, as far as they are told there.
func ReadFolder(dir string) (*Bundle, error) {
	b := &Bundle{Definitions: map[string]json.RawMessage{}, Policies: map[string][]*model.Policy{}, Tags: map[string]*model.ServiceTags{}}
	files, err := folderFiles(dir)
	if err != nil {
		return nil, err
	}
	r := &folderReader{dir: dir, Bundle: b}
	for _, name := range files {
		what, _ := strings.CutSuffix(name, ".json")
		switch {
		case strings.HasPrefix(what, serviceFile):
			s := &model.Service{}
			if err := r.decode(name, s); err != nil {
				return nil, err
			}
			b.Services = append(b.Services, s)
		case strings.HasPrefix(what, definitionFile):
			var d json.RawMessage
			if err := r.decode(name, &d); err != nil {
				return nil, err
			}
			b.Definitions[strings.TrimPrefix(what, definitionFile)] = d
		}
	}
	found := false
	for _, name := range files {
		if strings.HasPrefix(name, policiesFile) {
			found = true
			if err := r.policies(name); err != nil {
				return nil, err
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("the folder has no document %sSERVICE.json", policiesFile)
	}
	for _, s := range b.Services {
		name := tagsFile + s.Name + ".json"
		if !slices.Contains(files, name) {
			continue
		}
		t := &model.ServiceTags{}
		if err := r.decode(name, t); err != nil {
			return nil, err
		}
		b.Tags[s.Name] = t
	}
	if err := r.principals(); err != nil {
		return nil, err
	}
	return b, b.normalize()
}

type folderReader struct {
	*Bundle
	dir string
}

// decode reads one document. Errors name the file and no content.
func (r *folderReader) decode(name string, into any) error {
	body, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%s is not the JSON that it should be, at byte %d", name, d.InputOffset())
	}
	return nil
}

func (r *folderReader) policies(name string) error {
	d := &policiesDocument{}
	if err := r.decode(name, d); err != nil {
		return err
	}
	if want, _ := strings.CutSuffix(strings.TrimPrefix(name, policiesFile), ".json"); d.ServiceName != want {
		return fmt.Errorf("%s is about another service", name)
	}
	if err := r.take(name, d, false); err != nil {
		return err
	}
	if t := d.TagPolicies; t != nil && t.ServiceName != "" {
		if _, err := os.Stat(filepath.Join(r.dir, policiesFile+t.ServiceName+".json")); errors.Is(err, fs.ErrNotExist) && r.Policies[t.ServiceName] == nil {
			if err := r.take(name, t, true); err != nil {
				return err
			}
		}
		for _, s := range r.Services {
			if s.Name == d.ServiceName && s.TagService == "" {
				s.TagService = t.ServiceName
			}
		}
	}
	return nil
}

// take puts the policies of a document into the bundle, and the service, its
// definition and the zones unless there are documents of their own.
func (r *folderReader) take(name string, d *policiesDocument, embedded bool) error {
	var def struct{ Name string }
	if err := json.Unmarshal(d.ServiceDef, &def); err != nil || def.Name == "" {
		return fmt.Errorf("%s has no service definition", name)
	}
	if r.Definitions[def.Name] == nil {
		r.Definitions[def.Name] = d.ServiceDef
	}
	if !slices.ContainsFunc(r.Services, func(s *model.Service) bool { return s.Name == d.ServiceName }) {
		r.Services = append(r.Services, &model.Service{Name: d.ServiceName, Type: def.Name})
	}
	list := slices.Clone(d.Policies)
	for zone, z := range d.SecurityZones {
		if z == nil {
			return fmt.Errorf("%s: security zone %q is null", name, zone)
		}
		for _, p := range z.Policies {
			if p != nil {
				p.ZoneName = zone
			}
			list = append(list, p)
		}
		if _, err := os.Stat(filepath.Join(r.dir, zonesFile)); errors.Is(err, fs.ErrNotExist) && !embedded {
			r.zone(zone, d, z)
		}
	}
	for _, p := range list {
		if p == nil || p.Name == "" {
			return fmt.Errorf("%s: a policy is null or has no name", name)
		}
	}
	r.Policies[d.ServiceName] = list
	return nil
}

// zone gathers a zone that several services have a part in.
func (r *folderReader) zone(name string, d *policiesDocument, z *model.ZonePolicies) {
	n := slices.IndexFunc(r.Zones, func(x *model.Zone) bool { return x.Name == name })
	if n < 0 {
		r.Zones = append(r.Zones, &model.Zone{Name: name, Services: map[string]model.ZoneService{}})
		n = len(r.Zones) - 1
	}
	r.Zones[n].Services[d.ServiceName] = model.ZoneService{Resources: z.Resources}
	if z.ContainsAssociatedTagService && d.TagPolicies != nil {
		r.Zones[n].TagServices = set(append(r.Zones[n].TagServices, d.TagPolicies.ServiceName))
	}
}

func (r *folderReader) principals() error {
	optional := func(name string, into any) (bool, error) {
		if _, err := os.Stat(filepath.Join(r.dir, name)); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return true, r.decode(name, into)
	}
	roles := &model.Roles{}
	if _, err := optional(rolesFile, roles); err != nil {
		return err
	}
	r.Roles = roles.RangerRoles
	if _, err := optional(zonesFile, &r.Zones); err != nil {
		return err
	}
	var users []user
	hasUsers, err := optional(usersFile, &users)
	if err != nil {
		return err
	}
	for _, u := range users {
		r.Users = append(r.Users, &model.User{Name: u.Name, FirstName: u.FirstName, LastName: u.LastName, Description: u.Description, Email: u.Email, Groups: u.Groups, Attributes: u.Attributes, AdminRoles: u.AdminRoles})
	}
	var groups []group
	hasGroups, err := optional(groupsFile, &groups)
	if err != nil {
		return err
	}
	for _, g := range groups {
		r.Groups = append(r.Groups, &model.Group{Name: g.Name, Description: g.Description, Attributes: g.Attributes})
	}
	store := &model.UserStore{}
	if _, err := optional(userstoreFile, store); err != nil {
		return err
	}
	own := func(m map[string]string) map[string]string {
		out := map[string]string{}
		for k, v := range m {
			if !strings.HasPrefix(k, "_") { // what the server itself puts there
				out[k] = v
			}
		}
		return out
	}
	names := map[string]bool{}
	for k := range store.GroupAttrMapping {
		names[k] = true
	}
	for _, u := range keys(store.UserAttrMapping) {
		if !hasUsers {
			r.Users = append(r.Users, &model.User{Name: u, Attributes: own(store.UserAttrMapping[u]), Groups: store.UserGroupMapping[u], Email: store.UserAttrMapping[u]["_emailAddress"]})
		}
	}
	for u, list := range store.UserGroupMapping {
		if _, ok := store.UserAttrMapping[u]; !ok && !hasUsers {
			r.Users = append(r.Users, &model.User{Name: u, Groups: list})
		}
		for _, g := range list {
			names[g] = true
		}
	}
	for _, g := range keys(names) {
		if !hasGroups {
			r.Groups = append(r.Groups, &model.Group{Name: g, Attributes: own(store.GroupAttrMapping[g])})
		}
	}
	return nil
}
