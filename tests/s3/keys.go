package s3

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sqe/tests/sqetest"
)

// Key opens a store for a while, and as far as its policy says.
type Key struct {
	ID, Secret, Token string
	Expires           time.Time
	Policy            string
}

// Keys are the temporary credentials that a store knows, as a service of security
// tokens (STS) gives them: each a session of the role of a catalog, with a policy of
// its own. The store is a VersityGW that asks its IAM service about each request.
//
// That service gives sessions for tokens of public issuers alone, so this writes them
// into its file, in its format; whether one holds and what it may do is decided there.
type Keys struct {
	file string
	mu   sync.Mutex
	all  map[string]Key
}

// StartKeyed starts a store above a folder, each folder of which is a bucket, which
// writes down who asked for what. It ends with the test.
func StartKeyed(t testing.TB, dir string) (*Store, *Keys) {
	t.Helper()
	port, err := sqetest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.MkdirTemp("", "sqe-keys-") // the path of a socket is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(own) })
	k := &Keys{file: filepath.Join(own, "iam.json"), all: map[string]Key{}}
	k.write(t)
	socket, public := filepath.Join(own, "iam.sock"), filepath.Join(own, "public.sock")
	iam := sqetest.Owned(exec.Command(gateway(t), "--quiet", "--port", public, "iam", "--dir", own, "--private-ports", socket))
	iam.Env = append(os.Environ(), root...)
	if err := iam.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = iam.Process.Kill(); _ = iam.Wait() })
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		if time.Since(start) > 2*time.Minute {
			t.Fatal("the service of the keys does not listen")
		}
	}
	s := &Store{Dir: dir, address: fmt.Sprintf("127.0.0.1:%d", port), log: filepath.Join(own, "access.log"), iam: socket}
	s.Endpoint = "http://" + s.address
	s.Start(t)
	t.Cleanup(func() { s.Stop(t) })
	return s, k
}

// role is the name of the role whose sessions the keys are.
const role = "catalog"

// Give makes a key that holds for some time and permits what a policy of IAM says.
func (k *Keys) Give(t testing.TB, policy string, life time.Duration) Key {
	t.Helper()
	random := make([]byte, 60)
	_, _ = rand.Read(random) // never fails
	text := base64.RawURLEncoding.EncodeToString(random)
	id := strings.ToUpper(strings.NewReplacer("-", "A", "_", "B").Replace(text[:16]))
	key := Key{ID: "ASIA" + id, Secret: text[16:56], Token: text[56:] + text[:30], Expires: time.Now().Add(life), Policy: policy}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[key.ID] = key
	k.write(t)
	return key
}

// Change gives every key for which with is not zero what it returns: another policy, or
// another end.
func (k *Keys) Change(t testing.TB, with func(Key) Key) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, key := range k.all {
		key = with(key)
		key.ID = id
		k.all[id] = key
	}
	k.write(t)
}

// End ends every key that there is.
func (k *Keys) End(t testing.TB) {
	k.Change(t, func(key Key) Key { key.Expires = time.Now().Add(-time.Second); return key })
}

// All are the keys that were ever given.
func (k *Keys) All() []Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []Key
	for _, key := range k.all {
		out = append(out, key)
	}
	return out
}

func (k *Keys) write(t testing.TB) {
	t.Helper()
	type object = map[string]any
	arn := "arn:aws:iam::000000000000:role/" + role
	now := time.Now().UTC()
	sessions := object{}
	for id, key := range k.all {
		sessions[id] = object{
			"accessKeyId": id, "secretAccessKey": key.Secret, "sessionToken": key.Token, "roleArn": arn, "roleName": role, "roleId": "AROACATALOG",
			"roleSessionName": "sqe", "createDate": now, "expiration": key.Expires.UTC(), "policy": key.Policy,
		}
	}
	text, err := json.Marshal(object{
		"sessions": sessions,
		"roles": object{role: object{
			"RoleName": role, "RoleID": "AROACATALOG", "Arn": arn, "CreateDate": now, "Path": "/",
			// The service does not write that a role was used when it was later, so that
			// nobody but this writes the file.
			"RoleLastUsed": object{"LastUsedDate": now.AddDate(10, 0, 0), "Region": "us-east-1"},
			"Policies":     object{"inline": []object{{"PolicyName": "all", "PolicyDocument": Policy("*", "s3:*")}}},
		}},
	})
	if err == nil {
		err = os.WriteFile(k.file+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(k.file+".new", k.file)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Policy permits actions below a prefix of a bucket ("bucket/folder"), and to list what
// is there.
func Policy(prefix string, actions ...string) string {
	bucket, _, _ := strings.Cut(prefix, "/")
	text, _ := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []map[string]any{
		{"Effect": "Allow", "Action": actions, "Resource": []string{"arn:aws:s3:::" + prefix + "/*"}},
		{"Effect": "Allow", "Action": []string{"s3:ListBucket"}, "Resource": []string{"arn:aws:s3:::" + bucket}},
	}})
	return string(text)
}

// Use is a request that a store got.
type Use struct {
	Key, Operation, Object string
	Status                 string
}

// Uses are all requests so far.
func (s *Store) Uses(t testing.TB) []Use {
	t.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	var out []Use
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 20 {
			out = append(out, Use{Key: f[5], Operation: f[7], Object: f[1] + "/" + f[8], Status: f[10]})
		}
	}
	return out
}
