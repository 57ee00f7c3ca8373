package restrictions

import (
	"encoding/json"
	"testing"

	"sqe/plan"
)

// FuzzCompile: whatever a catalog sends, the answer is complete or a refusal, and a
// filter is a condition over columns of the table.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		"", "null", "{}", `{"required-row-filter":{"type":"not","child":{"type":"in","term":{"type":"reference","id":2},"values":["a"]}}}`,
		`{"required-row-filter":{"type":"lt-eq","left":{"type":"apply","function":{"catalog":"iceberg_functions","identifier":["bucket"]},"arguments":[4,{"type":"reference","id":6}]},"right":{"type":"literal","value":1,"data-type":"int"}}}`,
		`{"required-row-filter":{"type":"eq","left":{"type":"reference","id":22},"right":"\ud83d\ude00"}}`,
		`{"required-column-projections":[{"action":"show-last-4","field-id":21},{"action":"x","field-id":41},{"action":"sha-256-global","field-id":31}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := Compile(raw, orders())
		if !r.Complete {
			t.Fatal("no decision")
		}
		if r.Refuse != "" && r.Unrestricted() {
			t.Fatal("a refusal restricts nothing")
		}
		if !json.Valid(raw) && len(raw) > 0 && r.Refuse == "" {
			t.Fatal("what is not JSON is understood")
		}
		for _, c := range r.Filters {
			if c.Cond.Type().ID() != plan.Bool.ID() || c.Scan == nil {
				t.Fatalf("the filter is %s", plan.TypeName(c.Cond.Type()))
			}
		}
		for id, c := range r.Columns {
			if !c.Masks() {
				t.Fatalf("the rule on field id %d masks nothing", id)
			}
		}
	})
}
