package admin_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"sqe/policystore"
	"sqe/rangerclient/admin"
	"sqe/rangerclient/model"
)

func openStore(t *testing.T) *policystore.Store {
	t.Helper()
	s, err := policystore.Open(context.Background(), filepath.Join(t.TempDir(), "policies.db"), policystore.Options{AdminPassword: "Passw0rd1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestTransferWithStore(t *testing.T) {
	admin.Transfers(t, func() admin.Server { return openStore(t) })
}

// TestWritersOfStore: the store keeps what the merge needs.
func TestWritersOfStore(t *testing.T) {
	ctx := context.Background()
	s := openStore(t)
	for _, x := range []*model.Service{{Name: "tags", Type: "tag"}, {Name: "lake", Type: "hive", TagService: "tags", Configs: model.Strings{"username": "x", "password": "x", "jdbc.driverClassName": "x", "jdbc.url": "x"}}} {
		if _, err := s.CreateService(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	admin.Writers(t, s, 3, 4, func(name string) {
		if _, err := s.CreateUser(ctx, &model.User{Name: name, Password: "Passw0rd1"}); err != nil {
			t.Fatal(fmt.Errorf("user %s: %w", name, err))
		}
	})
}
