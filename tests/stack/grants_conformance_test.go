//go:build e2e

package stack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"sqe/catalog/rest"
	"sqe/fault"
	"sqe/plan"
	"sqe/tests/catalogstest"
)

// everything are the access types of policies for somebody who may do everything in the
// catalog, by the level of what they are on.
var everything = map[string][]string{
	"catalog":   {"catalog-properties-read", "namespace-create", "namespace-list"},
	"namespace": {"namespace-metadata-full", "table-create", "table-list", "table-data-write", "view-create", "view-list"},
	"table":     {"table-metadata-full", "table-data-write", "view-metadata-full"},
}

// TestConformance: the catalog behind tokens and policies does, for somebody who may do
// everything by policies, what every kind of catalog does; and nothing for somebody else.
func TestConformance(t *testing.T) {
	cast(t)
	one := func(v string) object { return object{"values": []string{v}} }
	// Grants are on every root: there may be one policy on the same objects already.
	resources := object{"root": one("POLARIS"), "catalog": one("lake")}
	for _, level := range []string{"catalog", "namespace", "table"} {
		on := object{}
		for k, v := range resources {
			on[k] = v
		}
		if level != "catalog" {
			on["namespace"] = one("*")
		}
		if level == "table" {
			on["table"] = one("*")
		}
		var accesses []object
		for _, access := range everything[level] {
			accesses = append(accesses, object{"type": access, "isAllowed": true})
		}
		t.Cleanup(put(t, object{
			"service": "polaris", "name": "the suite: " + level, "policyType": 0, "isEnabled": true, "resources": on,
			"policyItems": []object{{"users": []string{"ext_auditor"}, "accesses": accesses}},
		}))
	}
	controls(t, "ext_auditor", inLake("/namespaces"), http.StatusOK)
	open := func(who string) func(testing.TB) catalogstest.Changer {
		return catalogstest.REST(rest.Options{
			URI: lake.Address, Warehouse: "lake", AllowHTTP: true, Tokens: catalogstest.Tokens(func() (string, error) {
				if token := people.Token(t, who); token != "" {
					return token, nil
				}
				return "", errors.New("no token")
			}),
		}, lake.Files)
	}
	// Locations are made of names: none with ? or #, and levels are parted by a dot.
	refused := ".?#"
	if lake.cmd == nil {
		refused = `./\%:*?"<>|#+;` + "`" // Polaris
	}
	catalogstest.Conformance(t, catalogstest.Site{
		Open:    open("ext_auditor"),
		Refuses: func(n string) bool { return strings.ContainsAny(n, refused) },
		// Polaris wants tables below the folder of their namespace.
		Insists: func(ns []string, _ string) bool { return lake.cmd == nil && len(ns) > 1 },
		// Iceberg's own server writes a percent sign into a location as it is.
		Unusable: func(n string) bool { return strings.Contains(n, "%") && lake.cmd != nil },
	})
	// The control: the same client with the token of somebody without policies.
	c := open("bob")(t)
	defer func() { _ = c.Close() }()
	if err := c.CreateNamespace(context.Background(), []string{"of_bob"}, nil, false); err == nil {
		t.Error("bob makes a namespace")
	}
	name := plan.TableName{Catalog: "lake", Namespace: []string{"writers"}, Name: "t"}
	if tb, err := c.Table(context.Background(), name, plan.AsOf{}, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("bob loads %v: %v", tb, err)
	}
	owner := open("ext_auditor")(t)
	defer func() { _ = owner.Close() }()
	if names, err := owner.Tables(context.Background(), name.Namespace); err != nil || len(names) == 0 {
		t.Errorf("there is nothing that bob could load: %v %v", names, err)
	}
}
