package rangerclient

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sqe/plan"
	"sqe/policy"
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// The size of an installation that decisions must stay fast in: 2,500 tables with
// four policies each, a tag on each of twenty columns of each table.
const (
	largePolicies = 10_000
	largeRoles    = 2_000
	largeTags     = 50_000
	largeTables   = largePolicies / 4
	largeColumns  = 50
)

// largeBodies are downloads of that size, as a server sends them, by the names of
// documents.
func largeBodies(b testing.TB) map[string][]byte {
	b.Helper()
	f := newBuild(b)
	for n := range largeTables {
		res := fmt.Sprintf("database=db%d table=t%d", n%100, n)
		f.object(fmt.Sprintf("root=POLARIS catalog=c namespace=db%d table=t%d", n%100, n), item(fmt.Sprintf("role r%d group g%d", n%largeRoles, n%200), "table-data-read"))
		f.object(fmt.Sprintf("root=POLARIS catalog=c namespace=db%d table=t%d", n%100, n), item(fmt.Sprintf("user%d role r%d", n, (n+7)%largeRoles), "table-data-write"))
		f.filter(&f.data, res, "", fmt.Sprintf("role r%d: ", (n+1)%largeRoles), fmt.Sprintf("role r%d: region = 'EU'", n%largeRoles), "public: 1 = 0")
		f.mask(res+" column=c0", fmt.Sprintf("role r%d: MASK_NONE", (n+1)%largeRoles), fmt.Sprintf("role r%d: MASK", n%largeRoles), "public: MASK_NULL")
	}
	for n := range 10 {
		f.tagMask("T"+strconv.Itoa(n), fmt.Sprintf("role r%d: MASK_NONE", n), "public: MASK_HASH")
	}
	one := int64(1)
	roles := &model.Roles{ServiceName: "data", RoleVersion: &one}
	for n := range largeRoles {
		r := &model.Role{ID: int64(n + 1), Name: "r" + strconv.Itoa(n), Users: []model.Member{{Name: "user" + strconv.Itoa(n)}, {Name: "user" + strconv.Itoa(n+5000)}}, Groups: []model.Member{{Name: "g" + strconv.Itoa(n)}}}
		if n > 0 {
			r.Roles = []model.Member{{Name: "r" + strconv.Itoa((n-1)/8)}}
		}
		roles.RangerRoles = append(roles.RangerRoles, r)
	}
	users := &model.UserStore{Version: &one, UserAttrMapping: map[string]map[string]string{}, UserGroupMapping: map[string][]string{}}
	for n := range 10_000 {
		name := "user" + strconv.Itoa(n)
		users.UserAttrMapping[name] = map[string]string{"region": "EU"}
		users.UserGroupMapping[name] = []string{"g" + strconv.Itoa(n%2500)}
	}
	tags := &model.ServiceTags{Op: "add_or_update", ServiceName: "data", TagVersion: &one, Tags: map[string]model.Tag{}, ResourceToTagIDs: map[string][]int64{}}
	for n := range largeTags {
		id := int64(n + 1)
		table := n / (largeTags / largeTables)
		tags.Tags[strconv.FormatInt(id, 10)] = model.Tag{ID: id, GUID: fmt.Sprintf("00000000-0000-0000-0000-%012d", id), Type: "T" + strconv.Itoa(n%10), Attributes: model.Strings{"level": "3"}}
		tags.ServiceResources = append(tags.ServiceResources, model.ServiceResource{ID: id, GUID: fmt.Sprintf("10000000-0000-0000-0000-%012d", id), ResourceElements: map[string]model.Resource{
			"database": {Values: []string{"db" + strconv.Itoa(table%100)}}, "table": {Values: []string{"t" + strconv.Itoa(table)}}, "column": {Values: []string{"c" + strconv.Itoa(n%20)}},
		}})
		tags.ResourceToTagIDs[strconv.FormatInt(id, 10)] = []int64{id}
	}
	whole := func(service, typ string, policies, tagged []*model.Policy) map[string]any {
		out := map[string]any{"serviceName": service, "policyVersion": 1, "policies": policies}
		for at, t := range map[string]string{"serviceDef": typ, "tag": "tag"} {
			def, err := servicedef.JSON(t)
			if err != nil {
				b.Fatal(err)
			}
			if at == "tag" {
				out["tagPolicies"] = map[string]any{"serviceName": "tag", "policyVersion": 1, "policies": tagged, "serviceDef": def}
			} else {
				out[at] = def
			}
		}
		return out
	}
	bodies := map[string][]byte{}
	for name, document := range map[string]any{
		"policies/data": whole("data", "hive", f.data, f.tags), "policies/objects": whole("objects", "polaris", f.objects, nil),
		"tags/data": tags, "roles": roles, "users": users,
	} {
		text, err := json.Marshal(document)
		if err != nil {
			b.Fatal(err)
		}
		bodies[name] = text
	}
	return bodies
}

func largeState(b testing.TB) *State {
	b.Helper()
	d, err := (&downloads{dataService: "data", polarisService: "objects"}).parse(largeBodies(b))
	if err != nil {
		b.Fatal(err)
	}
	o := Options{}
	if err := o.check(); err != nil {
		b.Fatal(err)
	}
	return newState("large", o, d, time.Now)
}

func largeTable() *plan.Table {
	var names []string
	for n := range largeColumns {
		names = append(names, "c"+strconv.Itoa(n))
	}
	return table("c.db7.t7", names...)
}

// BenchmarkCompile reads full downloads and makes the state of them. live-MB is
// what the state and its documents occupy, beside the bodies.
func BenchmarkCompile(b *testing.B) {
	bodies := largeBodies(b)
	size := 0
	for _, body := range bodies {
		size += len(body)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var st *State
	measure(b, func() {
		d, err := (&downloads{dataService: "data", polarisService: "objects"}).parse(bodies)
		if err != nil {
			b.Fatal(err)
		}
		st = newState("large", Options{Realm: "POLARIS"}, d, time.Now)
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "live-MB")
	b.ReportMetric(float64(size)/1e6, "download-MB")
	if n := st.policies(); n != largePolicies+10 {
		b.Fatal(n)
	}
	runtime.KeepAlive(bodies)
}

// BenchmarkDecision is what one table of fifty columns, twenty of them tagged,
// costs when nothing is remembered.
func BenchmarkDecision(b *testing.B) {
	st, tab := largeState(b), largeTable()
	someone := reader
	someone.Name, someone.Groups, someone.Roles = "user7", nil, nil
	b.Run("object", func(b *testing.B) {
		measure(b, func() {
			if !st.Authorize(someone, policy.TableObject(tab.Name), policy.TableDataRead).Allow {
				b.Fatal("denied")
			}
		})
	})
	b.Run("rows and values", func(b *testing.B) {
		measure(b, func() {
			r, err := st.Restrict(someone, tab)
			if err != nil || len(r.Filters) != 1 || len(r.Columns) < 18 {
				b.Fatalf("%+v %v", r, err)
			}
		})
	})
}

// rangerCommand runs Ranger's own plugin, which then decides the same beside.
var rangerCommand = flag.String("ranger", "", "command that runs the Java program of tests/plugin, as tests/e2e/stack/ranger-plugin prints it")

// BenchmarkRanger has Ranger's engine read the same documents and answer the same
// questions, when -ranger is given: one question for each column and one for the
// rows of the table, and one for the object. It reports processor times of a
// JVM that is warm; first-ms is the first time.
func BenchmarkRanger(b *testing.B) {
	if *rangerCommand == "" {
		b.Skip("-ranger is not given")
	}
	bodies := largeBodies(b)
	question := func(ask, access string, elements map[string]string) map[string]any {
		return map[string]any{"ask": ask, "elements": elements, "user": "user7", "groups": []string{}, "access": access}
	}
	rows := []map[string]any{question("filter", "select", map[string]string{"database": "db7", "table": "t7"})}
	for n := range largeColumns {
		rows = append(rows, question("mask", "select", map[string]string{"database": "db7", "table": "t7", "column": "c" + strconv.Itoa(n)}))
	}
	object := []map[string]any{question("access", "table-data-read", map[string]string{"root": "POLARIS", "catalog": "c", "namespace": "db7", "table": "t7"})}
	for _, x := range []struct {
		name, service, typ string
		requests           []map[string]any
	}{{"object", "objects", "polaris", object}, {"rows and values", "data", "hive", rows}} {
		b.Run(x.name, func(b *testing.B) {
			document := map[string]any{
				"type": x.typ, "storeGroups": true, "measure": 10, "requests": x.requests,
				"policies": json.RawMessage(bodies["policies/"+x.service]), "roles": json.RawMessage(bodies["roles"]), "users": json.RawMessage(bodies["users"]), "tags": nil,
			}
			if x.service == "data" {
				document["tags"] = json.RawMessage(bodies["tags/data"])
			}
			text, err := json.Marshal(document)
			if err != nil {
				b.Fatal(err)
			}
			cmd := exec.CommandContext(b.Context(), "bash", "-c", *rangerCommand)
			cmd.Stdin = bytes.NewReader(append(text, '\n'))
			out, err := cmd.Output() // the program repeats by itself
			if err != nil {
				b.Fatal(err)
			}
			var r struct{ Compile, Heap, Rounds, Round, First float64 }
			if err := json.Unmarshal(out, &r); err != nil || r.Rounds == 0 {
				b.Fatalf("%v: %s", err, out)
			}
			b.ReportMetric(r.Round/1000, "CPU-µs/op")
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(r.Compile/1e6, "compile-ms")
			b.ReportMetric(r.Heap/1e6, "live-MB")
			b.ReportMetric(r.First/1e6, "first-ms")
		})
	}
}

// BenchmarkUnchanged is a poll that is answered 304 six times.
func BenchmarkUnchanged(b *testing.B) {
	bodies := largeBodies(b)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v := r.URL.Query(); v.Get("lastKnownVersion")+v.Get("lastKnownRoleVersion")+v.Get("lastKnownUserStoreVersion") == "1" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		for name, part := range map[string]string{"policies/data": "policies/download/data", "policies/objects": "policies/download/objects", "tags/data": "tags/secure/download/data", "roles": "roles/", "users": "xusers/"} {
			if strings.Contains(r.URL.Path, part) {
				_, _ = w.Write(bodies[name])
				return
			}
		}
		w.WriteHeader(http.StatusNotModified) // no tags of objects
	}))
	defer server.Close()
	s, err := OpenREST(RESTConfig{Name: "large", URL: server.URL, Username: "u", Password: "p", PolarisService: "objects", DataService: "data", RefreshInterval: time.Hour, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if _, err := s.State(); err != nil {
		b.Fatal(err)
	}
	measure(b, func() {
		if err := s.Reload(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
}

// measure repeats f and reports also the processor time of this process, which
// other work on the machine does not lengthen.
func measure(b *testing.B, f func()) {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	b.ReportAllocs()
	runtime.GC()
	before, n := used(), 0
	for b.Loop() {
		f()
		n++
	}
	b.ReportMetric(float64((used()-before).Nanoseconds())/1000/float64(n), "CPU-µs/op")
}
