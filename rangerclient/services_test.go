package rangerclient

import (
	"testing"

	"sqe/rangerclient/model"
)

// TestServiceOf: the id of a service's type is that of the policy server, or of
// Ranger's own definition where the document has none.
func TestServiceOf(t *testing.T) {
	tests := []struct {
		in   *model.ServicePolicies
		want Service
	}{
		{nil, Service{}},
		{&model.ServicePolicies{ServiceName: "s"}, Service{Name: "s"}},
		{&model.ServicePolicies{ServiceName: "s", ServiceDef: &model.ServiceDef{Name: "hive", ID: 77}}, Service{"s", "hive", 77}},
		{&model.ServicePolicies{ServiceName: "s", ServiceDef: &model.ServiceDef{Name: "hive"}}, Service{"s", "hive", 3}},
		{&model.ServicePolicies{ServiceName: "s", ServiceDef: &model.ServiceDef{Name: "own"}}, Service{"s", "own", 0}},
	}
	for _, tt := range tests {
		if got := serviceOf(tt.in); got != tt.want {
			t.Errorf("%+v gives %+v, want %+v", tt.in, got, tt.want)
		}
	}
	if objects, data := (&Source{}).Services(); objects != (Service{}) || data != (Service{}) {
		t.Error("services before any document")
	}
}
