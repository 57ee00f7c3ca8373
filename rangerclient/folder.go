package rangerclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"sqe/fault"
	"sqe/rangerclient/model"
)

// FolderConfig configures a source that reads the bodies of Ranger's downloads
// from a folder:
//
//	policies_SERVICE.json  policies of a service, with tag policies and zones (required)
//	tags_SERVICE.json      tags of a service
//	roles.json             roles
//	userstore.json         users, their groups and attributes
type FolderConfig struct {
	Name string // name of the source
	Dir  string
	// PolarisService answers the object gate; empty: the source has none.
	PolarisService string
	// DataService, of type hive or trino, answers the data gate. Required.
	DataService     string
	RefreshInterval time.Duration // 0: DefaultRefreshInterval
	MaxStaleness    time.Duration // 0: DefaultMaxStaleness
	Options         Options
	Now             func() time.Time // nil: time.Now
	Log             *slog.Logger     // nil: no log
}

// OpenFolder opens a folder source and starts to watch it. It fails only for a
// configuration that can never work; a folder that cannot be read now is
// reported by State and Status and tried again.
func OpenFolder(c FolderConfig) (*Source, error) {
	switch {
	case c.Name == "" || c.Dir == "":
		return nil, fault.New(fault.Config, "a folder of policies needs a name and a folder")
	case c.DataService == "":
		return nil, fault.Wrap(fault.Config, errNoService, "policy source %s: %s", c.Name, errNoService)
	case strings.ContainsAny(c.PolarisService+c.DataService, `/\`):
		return nil, fault.New(fault.Config, "policy source %s: the name of a service cannot hold a slash", c.Name)
	}
	if err := c.Options.check(); err != nil {
		return nil, fault.Wrap(fault.Config, err, "policy source %s: %s", c.Name, err)
	}
	s := open(&Source{
		name: c.Name, options: c.Options, loader: &folder{c}, interval: c.RefreshInterval,
		maxStaleness: c.MaxStaleness, now: c.Now, log: c.Log,
	})
	s.watch(c.Dir)
	return s, nil
}

// settle is how long the folder must be quiet after a change before it is read,
// so that a set of files is read when all are written.
const settle = 100 * time.Millisecond

// watch wakes the refresher when the folder changes. Where the system cannot
// watch, polling alone does it.
func (s *Source) watch(dir string) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		s.log.Warn("the folder of policies is polled only", "source", s.name)
		return
	}
	if err := w.Add(dir); err != nil {
		_ = w.Close()
		s.log.Warn("the folder of policies is polled only", "source", s.name)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop := s.cancel
	s.cancel = func() { cancel(); stop() }
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		defer func() { _ = w.Close() }()
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case _, ok := <-w.Events:
				if !ok {
					return
				}
				timer.Reset(settle)
			case _, ok := <-w.Errors:
				if !ok {
					return
				}
				timer.Reset(settle)
			case <-timer.C:
				s.nudge()
			}
		}
	}()
}

// maxDocument bounds the size of one document in bytes.
const maxDocument = 256 << 20

type folder struct{ c FolderConfig }

func (folder) kind() string { return "folder" }

// read returns the content of a file; nil when it does not exist and is optional.
// Its errors name the file and not the folder.
func (f *folder) read(name string, optional bool) ([]byte, error) {
	path := filepath.Join(f.c.Dir, name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && optional:
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist", name)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read", name)
	case info.Size() > maxDocument:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, maxDocument)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read", name)
	}
	if body == nil {
		body = []byte{}
	}
	return body, nil
}

func (f *folder) load(ctx context.Context, prev *documents) (*documents, error) {
	files := []struct {
		name     string
		optional bool
		body     []byte
	}{
		{name: "policies_" + f.c.DataService + ".json"},
		{name: "tags_" + f.c.DataService + ".json", optional: true},
		{name: "roles.json", optional: true},
		{name: "userstore.json", optional: true},
		{name: "policies_" + f.c.PolarisService + ".json"},
		{name: "tags_" + f.c.PolarisService + ".json", optional: true},
	}
	if f.c.PolarisService == "" {
		files = files[:4]
	}
	hash := sha256.New()
	for i := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		body, err := f.read(files[i].name, files[i].optional)
		if err != nil {
			return nil, err
		}
		files[i].body = body
		fmt.Fprintf(hash, "%s %t %d\n", files[i].name, body != nil, len(body))
		hash.Write(body)
	}
	d := &documents{
		fingerprint: hex.EncodeToString(hash.Sum(nil)[:12]),
		objectsName: f.c.PolarisService, tablesName: f.c.DataService,
	}
	if prev != nil && prev.fingerprint == d.fingerprint {
		return prev, nil
	}
	var err error
	if d.tables, err = dataPolicies(files[0].body, f.c.DataService); err != nil {
		return nil, err
	}
	if b := files[1].body; b != nil {
		if d.tableTags, err = wholeTags(b, f.c.DataService); err != nil {
			return nil, err
		}
	}
	if b := files[2].body; b != nil {
		if d.roles, err = model.DecodeRoles(b); err != nil {
			return nil, err
		}
	}
	if b := files[3].body; b != nil {
		if d.users, err = model.DecodeUserStore(b); err != nil {
			return nil, err
		}
	}
	if len(files) > 4 {
		if d.objects, err = objectPolicies(files[4].body, f.c.PolarisService); err != nil {
			return nil, err
		}
		if b := files[5].body; b != nil {
			if d.objectTags, err = wholeTags(b, f.c.PolarisService); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// dataPolicies reads the policies of the data gate.
func dataPolicies(body []byte, service string) (*model.ServicePolicies, error) {
	p, err := model.DecodePolicies(body, service)
	if err != nil {
		return nil, err
	}
	if t := p.ServiceDef.Name; t != "hive" && t != "trino" {
		return nil, fmt.Errorf("policies of %s: a service of type %s has no row filters and masks; type hive or trino is needed", service, t)
	}
	return p, whole(p)
}

// objectPolicies reads the policies of the object gate.
func objectPolicies(body []byte, service string) (*model.ServicePolicies, error) {
	p, err := model.DecodePolicies(body, service)
	if err != nil {
		return nil, err
	}
	if t := p.ServiceDef.Name; t != "polaris" {
		return nil, fmt.Errorf("policies of %s: the service is of type %s; type polaris is needed", service, t)
	}
	return p, whole(p)
}

// whole refuses a document that holds changes to another one.
func whole(p *model.ServicePolicies) error {
	changes := p.PolicyDeltas != nil
	for _, z := range p.SecurityZones {
		changes = changes || z.PolicyDeltas != nil
	}
	if changes {
		return fmt.Errorf("policies of %s: the document holds changes only", p.ServiceName)
	}
	return nil
}

// wholeTags reads a tag document that is not a delta.
func wholeTags(body []byte, service string) (*model.ServiceTags, error) {
	t, err := model.DecodeTags(body, service)
	if err == nil && t.IsDelta {
		err = fmt.Errorf("tags of %s: the document holds changes only", service)
	}
	return t, err
}
