package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sqe/rangerclient/model"
	"sqe/rangerclient/transport"
)

func restFor(t *testing.T, handler http.HandlerFunc) *REST {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	r, err := OpenREST(RESTConfig{URL: s.URL, Username: t.Name(), Password: "p", Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCapturedRefusals: what a Ranger Admin 2.9.0 answered, case by case. The
// fixture was captured from one.
func TestCapturedRefusals(t *testing.T) {
	want := map[string]Error{ // Reason: a part of it
		"wrong password": {Kind: Unauthenticated, Reason: "Authentication Failed"},
		"no credentials": {Kind: Unauthenticated, Reason: "Authentication Failed"},
		"download: user not in policy.download.auth.users": {Kind: Forbidden, Reason: "permission to download policy"},
		"download: unknown service":                        {Kind: NotFound, Reason: "ServiceName=nosuch"},
		"download: number malformed":                       {},
		"download: unsecured path":                         {Kind: Invalid, Reason: "Unauthenticated access not allowed"},
		"tags download: not allowed":                       {Kind: Forbidden, Reason: "permission to download tags"},
		"tags import: not an admin":                        {Kind: Forbidden, Reason: "only an administrator"},
		"policy: unknown service":                          {Kind: NotFound, Code: 3007, Reason: "nosuch"},
		"policy: unknown user":                             {Kind: UnknownPrincipal, Name: "ghost", Reason: "ghost"},
		"policy: unknown group":                            {Kind: UnknownPrincipal, Name: "ghosts", Reason: "ghosts"},
		"policy: unknown role":                             {Kind: UnknownPrincipal, Name: "ghost_role", Reason: "ghost_role"},
		"policy: unknown access type":                      {Kind: Invalid, Code: 3022, Reason: "fly"},
		"policy: unknown resource":                         {Kind: Invalid, Code: 3011, Reason: "Invalid resources"},
		"policy: same resource":                            {Kind: Exists, Code: 3010, Name: "select sales", Reason: "select sales"},
		"policy: same name":                                {Kind: Exists, Code: 3006, Reason: "policy-id=[12]"},
		"policy: caller lacks delegated admin":             {Kind: Forbidden, Reason: "delegated-admin"},
		"policy: item without principals":                  {Kind: Invalid, Code: 3020, Reason: "null/empty"},
		"policy: unknown mask type":                        {Kind: Invalid, Reason: "MASK_BOGUS"},
		"policy: mask on a service type without masks":     {Kind: Invalid, Code: 3011, Reason: "does not have any resource"},
		"policy: delete missing id":                        {Kind: NotFound, Reason: "Data Not Found"},
		"policy: get missing name":                         {Kind: NotFound, Reason: "Not found"},
		"role: duplicate":                                  {Kind: Exists, Reason: "already exists"},
		"role: unknown user":                               {Kind: UnknownPrincipal, Name: "ghost", Reason: "ghost"},
		"role: delete missing":                             {Kind: NotFound, Code: 4007, Reason: "nosuch"},
		"role: get missing":                                {Kind: Invalid, Reason: "doesn't have permissions"},
		"service: get missing":                             {Kind: NotFound, Reason: "Not found"},
		"zone: overlap":                                    {Kind: Exists, Code: 3046, Reason: "eu_x"},
		"policy: simultaneous PUT, the loser":              {Kind: Conflict, Reason: "OptimisticLockException"},
	}
	text, err := os.ReadFile("testdata/errors.json")
	if err != nil {
		t.Fatal(err)
	}
	var captured map[string]struct {
		Status int
		Body   json.RawMessage
	}
	if err := json.Unmarshal(text, &captured); err != nil {
		t.Fatal(err)
	}
	for name, c := range captured {
		body := []byte(c.Body)
		if body[0] == '"' {
			var page string
			if err := json.Unmarshal(body, &page); err != nil {
				t.Fatal(err)
			}
			body = []byte(page)
		}
		w, ok := want[name]
		if !ok {
			t.Errorf("%s: what it means is not told", name)
			continue
		}
		delete(want, name)
		err := refusal("the server", &transport.Answer{Status: c.Status, Body: body})
		e, refused := err.(*Error)
		if w.Kind == "" {
			if refused {
				t.Errorf("%s: %v is a refusal, and nobody knows what happened", name, err)
			}
			continue
		}
		if !refused || e.Kind != w.Kind || e.Code != w.Code || e.Name != w.Name || !strings.Contains(e.Reason, w.Reason) {
			t.Errorf("%s: %+v, want %+v", name, err, w)
		}
	}
	for name := range want {
		t.Errorf("%s: no such answer was captured", name)
	}
	for text, w := range map[string]Error{
		`{"msgDesc":"ERROR: duplicate key value violates unique constraint \"x_policy_uk_service_signature\""}`: {Kind: Exists},
		`{"msgDesc":"Role 'r' can not be deleted as it is referenced in one or more policies"}`:                 {Kind: InUse},
		`{"msgDesc":"Can Not Delete user: 'u' as its present in role : r"}`:                                     {Kind: InUse},
		`{"msgDesc":"x is Not Found"}`:        {Kind: NotFound},
		`{"msgDesc":"x already exists"}`:      {Kind: Exists},
		`{"RemoteException":{"message":"m"}}`: {Kind: Invalid},
		`{"statusCode":400}`:                  {Kind: Invalid},
	} {
		if err := refusal("s", &transport.Answer{Status: 400, Body: []byte(text)}); KindOf(err) != w.Kind {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, a := range []transport.Answer{{Status: 500, Body: []byte(`{"msgDesc":"already exists"}`)}, {Status: 400, Body: []byte("<html>")}, {Status: 404}, {Status: 302}} {
		if err := refusal("s", &a); err == nil || KindOf(err) != "" {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// TestPages: a list is read to its end, and again when it moved meanwhile.
func TestPages(t *testing.T) {
	var version, lists atomic.Int64
	moves := int64(2)
	r := restFor(t, func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/service/name/hive") {
			fmt.Fprintf(w, `{"name":"hive","policyVersion":%d}`, version.Load())
			return
		}
		var start, size int
		_, _ = fmt.Sscan(req.URL.Query().Get("startIndex"), &start)
		_, _ = fmt.Sscan(req.URL.Query().Get("pageSize"), &size)
		if start == 0 && lists.Add(1) <= moves {
			version.Add(1)
		}
		page := []*model.Policy{}
		for i := start; i < min(start+size, 7); i++ {
			page = append(page, &model.Policy{ID: int64(7 - i), Service: "hive", Name: "p"})
		}
		_ = json.NewEncoder(w).Encode(page)
	})
	r.page = 3
	got, err := r.Policies(context.Background(), "hive")
	if err != nil || len(got) != 7 || got[0].ID != 1 || got[6].ID != 7 || lists.Load() != 3 {
		t.Fatalf("%v %v, %d lists", got, err, lists.Load())
	}
	moves = 1 << 30
	if _, err := r.Policies(context.Background(), "hive"); KindOf(err) != Conflict {
		t.Error(err)
	}
}

// TestRepeatedPage: a server that heeds the size of a page and not its start.
func TestRepeatedPage(t *testing.T) {
	r := restFor(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `[{"name":"a"},{"name":"b"}]`) })
	for page, ok := range map[int]bool{1: true, 2: false, 3: true} {
		r.page = page
		roles, err := r.Roles(context.Background())
		if ok != (err == nil && len(roles) == 2) {
			t.Errorf("pages of %d: %v %v", page, roles, err)
		}
	}
}

// TestUserDocument: what SQE has no word for stays, groups become ids, and no
// password is sent unless there is a new one.
func TestUserDocument(t *testing.T) {
	var sent map[string]any
	r := restFor(t, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Method == http.MethodPut:
			b, _ := io.ReadAll(req.Body)
			_ = json.Unmarshal(b, &sent)
			fmt.Fprint(w, "{}")
		case strings.HasSuffix(req.URL.Path, "/groups/groupName/eng"):
			fmt.Fprint(w, `{"id":7,"name":"eng"}`)
		case strings.Contains(req.URL.Path, "/groups/groupName/"):
			w.WriteHeader(400)
			fmt.Fprint(w, `{"statusCode":1,"msgDesc":"ghosts is Not Found"}`)
		default:
			fmt.Fprint(w, `{"id":5,"name":"ann","password":"*****","syncSource":"LDAP","groupIdList":[9],"groupNameList":["z","eng"],"otherAttributes":"{\"dept\":\"x\",\"n\":1}","userRoleList":["ROLE_USER"]}`)
		}
	})
	u, err := r.User(context.Background(), "ann")
	if err != nil || !slices.Equal(u.Groups, []string{"eng", "z"}) || u.Attributes["dept"] != "x" || u.Attributes["n"] != "1" {
		t.Fatalf("%+v %v", u, err)
	}
	u.Groups, u.Attributes = []string{"eng"}, map[string]string{"dept": "y"}
	if _, err := r.UpdateUser(context.Background(), u); err != nil {
		t.Fatal(err)
	}
	if sent["password"] != "*****" || sent["syncSource"] != "LDAP" || fmt.Sprint(sent["groupIdList"]) != "[7]" || sent["otherAttributes"] != `{"dept":"y"}` {
		t.Errorf("%v", sent)
	}
	sent, u.Groups = nil, []string{"ghosts"}
	if _, err := r.UpdateUser(context.Background(), u); KindOf(err) != UnknownPrincipal || err.(*Error).Name != "ghosts" || sent != nil {
		t.Errorf("%v, sent %v", err, sent)
	}
}

// TestDeleteReferred: Ranger would remove the name from policies without a word.
func TestDeleteReferred(t *testing.T) {
	policies, roles, deleted := "[]", "[]", false
	r := restFor(t, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.Method == http.MethodDelete:
			deleted = true
			w.WriteHeader(204)
		case strings.HasSuffix(req.URL.Path, "/policy"):
			fmt.Fprint(w, policies)
		case strings.HasSuffix(req.URL.Path, "/roles"):
			fmt.Fprint(w, roles)
		default:
			fmt.Fprint(w, `{"id":5,"name":"ann"}`)
		}
	})
	for _, in := range []struct{ policies, roles string }{
		{`[{"name":"p","denyPolicyItems":[{"users":["ann"]}]}]`, "[]"},
		{`[{"name":"p","rowFilterPolicyItems":[{"users":["ann"]}]}]`, "[]"},
		{"[]", `[{"name":"r","users":[{"name":"ann"}]}]`},
	} {
		policies, roles = in.policies, in.roles
		if err := r.DeleteUser(context.Background(), "ann"); KindOf(err) != InUse || deleted {
			t.Errorf("%+v: %v", in, err)
		}
	}
	policies, roles = `[{"name":"p","policyItems":[{"groups":["ann"]}]}]`, "[]" // a group of that name
	if err := r.DeleteUser(context.Background(), "ann"); err != nil || !deleted {
		t.Error(err)
	}
	deleted = false
	if err := r.DeleteGroup(context.Background(), "ann"); KindOf(err) != InUse || deleted {
		t.Error(err)
	}
}

// TestImportDocument: ids of resources start at one, for one of zero is left out.
func TestImportDocument(t *testing.T) {
	got := importDocument(&model.ServiceTags{
		ServiceName:      "hive",
		ServiceResources: []model.ServiceResource{{ID: 0}, {ID: 9}},
		ResourceToTagIDs: map[string][]int64{"0": {1, 2}, "9": {3}},
	})
	if got.ServiceResources[0].ID != 1 || got.ServiceResources[1].ServiceName != "hive" || len(got.ResourceToTagIDs["1"]) != 2 || got.ResourceToTagIDs["2"][0] != 3 {
		t.Errorf("%+v", got)
	}
	r := restFor(t, func(http.ResponseWriter, *http.Request) { t.Error("sent") })
	if err := r.ImportTags(context.Background(), &model.ServiceTags{Op: "bogus"}); KindOf(err) != Invalid {
		t.Error(err)
	}
}

// TestRecurrencesAreWhole: a Ranger Admin answers 400 to a schedule that leaves a
// field out.
func TestRecurrencesAreWhole(t *testing.T) {
	p := &model.Policy{ID: 9007199254740993, Name: "p", ValiditySchedules: []model.Schedule{{Recurrences: make([]model.Recurrence, 1)}}}
	p.ValiditySchedules[0].Recurrences[0].Schedule.Hour = "8"
	body, err := policyBody(p)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"hour":"8"`, `"minute":""`, `"dayOfMonth":""`, `"dayOfWeek":""`, `"month":""`, `"year":""`, `"id":9007199254740993`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	p.ValiditySchedules = nil
	if body, err := policyBody(p); err != nil || body != any(p) {
		t.Errorf("a policy without recurrences is sent as %v, %v", body, err)
	}
}
