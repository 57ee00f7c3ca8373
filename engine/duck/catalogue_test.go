package duck

import (
	"slices"
	"testing"

	"sqe/plan"
)

// The functions of the catalogue that are not computed, each with its reason.
var uncomputed = map[string]string{
	"json_contains_path": "its catalogue entry has no place for more than one path",
	"json_objectagg":     "which value of a key wins is not defined",
}

// Every function of the catalogue is either computed or in the list above, so that
// an addition to the catalogue is noticed here.
func TestCatalogue(t *testing.T) {
	aggregates := []string{
		"count", "sum", "avg", "min", "max", "any_value", "stddev_pop", "stddev_samp", "var_pop", "var_samp",
		"group_concat", "bit_and", "bit_or", "bit_xor", "json_arrayagg",
	}
	windows := []string{
		"row_number", "rank", "dense_rank", "ntile", "percent_rank", "cume_dist", "lag", "lead", "first_value", "last_value", "nth_value",
	}
	for _, f := range plan.Functions() {
		computed := scalars[f.Name] != nil
		switch f.Kind {
		case plan.AggregateFunction:
			computed = slices.Contains(aggregates, f.Name)
		case plan.WindowFunction:
			computed = slices.Contains(windows, f.Name)
		}
		if _, listed := uncomputed[f.Name]; listed == computed {
			t.Errorf("%s: computed %v, listed as not computed %v", f.Name, computed, listed)
		}
	}
	for name := range scalars {
		if _, ok := plan.Lookup(name); !ok {
			t.Errorf("%s is computed and not in the catalogue", name)
		}
	}
}
