package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"sqe/tests/sqetest"
)

// object is a JSON object.
type object = map[string]any

// Policies are Ranger's documents for the tables of a namespace of Catalog. The
// user pat is governed, root is the control and sees everything.
type Policies struct {
	namespace string
	version   int
	hive      []object
	polaris   []object
	last      object
}

const (
	accessPolicy = iota // Ranger's policyType
	maskPolicy
	filterPolicy
)

// PoliciesOf lets root read everything and pat these tables of a namespace.
func PoliciesOf(namespace string, tables ...string) *Policies {
	p := &Policies{namespace: namespace, version: nextVersion()}
	p.grant("all", "*", "*", "root")
	for _, t := range tables {
		p.grant("read "+t, namespace, t, "pat")
	}
	return p
}

// NewPolicies are the policies of the laboratory.
func NewPolicies() *Policies {
	p := PoliciesOf(Namespace,
		"people", "orders", "crossing", "chained", "withheld", "unknown", "unfiltered", "missing", "ghost", "scoped", "nested",
		"people_view", "people_view2", "narrow")
	p.Filter("people", PeopleFilter)
	p.Mask("people", "name", "MASK", "")
	p.Mask("people", "ssn", "MASK_SHOW_LAST_4", "")
	p.Mask("people", "email", "MASK_HASH", "")
	p.Mask("people", "dob", "MASK_DATE_SHOW_YEAR", "")
	p.Mask("people", "salary", "MASK_NULL", "")
	p.Mask("people", "note", "CUSTOM", "concat('c:', substr({col}, 1, 1))")
	p.Filter("orders", OrdersFilter)
	p.Mask("orders", "memo", "MASK_NULL", "")

	p.Mask("crossing", "a", "CUSTOM", "concat('of ', b)")
	p.Mask("chained", "a", "CUSTOM", "concat('of ', b)")
	p.Mask("chained", "b", "MASK_NULL", "")
	for _, column := range []string{"id", "region", "a", "b"} {
		p.Mask("withheld", column, "MASK_OF_TOMORROW", "")
	}
	p.Mask("unknown", "a", "MASK_OF_TOMORROW", "")
	p.Filter("unfiltered", "region = = 'EU'")
	p.Filter("missing", "no_such_column = 1")
	p.Mask("ghost", "no_such_column", "MASK_NULL", "")
	p.Mask("ghost", "a", "MASK_NULL", "")
	p.Filter("scoped", "region IN (SELECT region FROM lab.mapping WHERE owner = current_user())")
	p.Mask("scoped", "a", "MASK_NULL", "")
	p.Mask("nested", "profile.phone", "MASK_NULL", "")
	p.Mask("nested", "phones", "MASK_NULL", "")
	p.Mask("nested", "attributes", "MASK_NULL", "")
	return p
}

func (p *Policies) add(to *[]object, kind int, service, name string, resources object, items object) {
	policy := object{
		"id": len(p.hive) + len(p.polaris) + 1, "guid": name, "isEnabled": true, "version": 1, "service": service, "name": name,
		"policyType": kind, "policyPriority": 0, "isAuditEnabled": true, "resources": resources,
	}
	for k, v := range items {
		policy[k] = v
	}
	*to, p.last = append(*to, policy), policy
}

// When lets the policy that was added last act only where a script holds.
func (p *Policies) When(script string) {
	p.last["conditions"] = []object{{"type": "_expression", "values": []string{script}}}
}

func values(v ...string) object {
	return object{"values": v, "isExcludes": false, "isRecursive": false}
}

func item(user string, types []string, more object) []object {
	var accesses []object
	for _, t := range types {
		accesses = append(accesses, object{"type": t, "isAllowed": true})
	}
	it := object{"accesses": accesses, "users": []string{user}, "delegateAdmin": false}
	for k, v := range more {
		it[k] = v
	}
	return []object{it}
}

// grant lets a user read a table (or view) through both gates.
func (p *Policies) grant(name, namespace, table, user string) {
	catalog := object{"root": values("*"), "catalog": values(Catalog)}
	p.add(&p.polaris, accessPolicy, "polaris", "catalog "+name, catalog,
		object{"policyItems": item(user, []string{"catalog-list", "catalog-properties-read", "namespace-list"}, nil)})
	in := object{"root": values("*"), "catalog": values(Catalog), "namespace": values(namespace)}
	p.add(&p.polaris, accessPolicy, "polaris", "namespace "+name, in,
		object{"policyItems": item(user, []string{"namespace-list", "namespace-properties-read", "table-list", "view-list"}, nil)})
	of := object{"root": values("*"), "catalog": values(Catalog), "namespace": values(namespace), "table": values(table)}
	p.add(&p.polaris, accessPolicy, "polaris", "table "+name, of, object{"policyItems": item(user,
		[]string{"table-list", "table-properties-read", "table-data-read", "view-list", "view-properties-read"}, nil)})
	p.add(&p.hive, accessPolicy, "hive", "select "+name, object{"database": values(namespace), "table": values(table), "column": values("*")},
		object{"policyItems": item(user, []string{"select"}, nil)})
}

// Allow gives a user rights of the object gate: on a table or view of a namespace,
// on a namespace (no table), or on the catalog (no namespace).
func (p *Policies) Allow(user, namespace, table string, rights ...string) {
	on := object{"root": values("*"), "catalog": values(Catalog)}
	if namespace != "" {
		on["namespace"] = values(namespace)
	}
	if table != "" {
		on["table"] = values(table)
	}
	p.add(&p.polaris, accessPolicy, "polaris", "rights of "+user+" on "+namespace+" "+table, on, object{"policyItems": item(user, rights, nil)})
}

// Mask puts a mask on a column for pat.
func (p *Policies) Mask(table, column, kind, expression string) {
	info := object{"dataMaskType": kind}
	if expression != "" {
		info["valueExpr"] = expression
	}
	p.add(&p.hive, maskPolicy, "hive", "mask "+table+"."+column,
		object{"database": values(p.namespace), "table": values(table), "column": values(column)},
		object{"dataMaskPolicyItems": item("pat", []string{"select"}, object{"dataMaskInfo": info})})
}

// Filter puts a row filter on a table for pat.
func (p *Policies) Filter(table, condition string) {
	p.add(&p.hive, filterPolicy, "hive", "filter "+table,
		object{"database": values(p.namespace), "table": values(table)},
		object{"rowFilterPolicyItems": item("pat", []string{"select"}, object{"rowFilterInfo": object{"filterExpr": condition}})})
}

// Write writes the documents into dir, as a new version when they are there
// already. Each file appears whole.
func (p *Policies) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	p.version++
	hive, err := definition("hive")
	if err != nil {
		return err
	}
	polaris, err := definition("polaris")
	if err != nil {
		return err
	}
	documents := map[string]object{
		"policies_hive.json":    {"serviceName": "hive", "serviceId": 2, "policyVersion": p.version, "policies": p.hive, "serviceDef": hive},
		"policies_polaris.json": {"serviceName": "polaris", "serviceId": 3, "policyVersion": p.version, "policies": p.polaris, "serviceDef": polaris},
	}
	for name, doc := range documents {
		text, err := json.MarshalIndent(doc, "", " ")
		if err != nil {
			return err
		}
		temporary := filepath.Join(dir, "."+name)
		if err := os.WriteFile(temporary, text, 0o644); err != nil {
			return err
		}
		if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// definition is Ranger's definition of a service type.
func definition(service string) (json.RawMessage, error) {
	return os.ReadFile(filepath.Join(sqetest.Root(), "rangerclient", "servicedef", service+".json"))
}

var lastVersion atomic.Int64

// nextVersion is greater than each before it, also than those of an earlier process.
func nextVersion() int {
	now := time.Now().UnixMilli()
	for {
		last := lastVersion.Load()
		if next := max(now, last+1); lastVersion.CompareAndSwap(last, next) {
			return int(next)
		}
	}
}
