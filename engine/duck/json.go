package duck

import (
	"github.com/apache/arrow-go/v18/arrow"

	"sqe/fault"
	"sqe/plan"
)

// toJSON is a value as JSON text.
func toJSON(s string, from arrow.DataType, try bool) (string, error) {
	if plan.IsString(from) {
		if !try {
			return "", fault.New(fault.Unsupported, "text cannot be converted to JSON here")
		}
		return "CASE WHEN json_valid(" + s + ") THEN " + s + " END", nil
	}
	v, err := jsonValue(s, from)
	return "CASE WHEN " + s + " IS NOT NULL THEN cast(to_json(" + v + ") AS VARCHAR) END", err
}

// jsonValue is a value of which DuckDB's to_json makes what is documented:
// numbers and decimals as numbers, truth values as true and false, dates and
// times as text in UTC, binary as lower-case hexadecimal, UUID as text.
func jsonValue(s string, t arrow.DataType) (string, error) {
	switch {
	case plan.IsJSON(t):
		return cast(s, "JSON"), nil
	case plan.IsUUID(t):
		return cast(s, "VARCHAR"), nil
	case isBinary(t):
		return "lower(hex(" + s + "))", nil
	case isTimestamp(t), t.ID() == arrow.TIME64:
		return toText(s, t)
	}
	if !needsText(t) {
		return s, nil
	}
	switch t := t.(type) {
	case *arrow.StructType:
		fields := ""
		for i, f := range t.Fields() {
			name, err := quoteName(f.Name)
			if err != nil {
				return "", err
			}
			v, err := jsonValue("("+s+")."+name, f.Type)
			if err != nil {
				return "", err
			}
			if i > 0 {
				fields += ", "
			}
			fields += name + " := " + v
		}
		return "CASE WHEN " + s + " IS NOT NULL THEN struct_pack(" + fields + ") END", nil
	case *arrow.MapType:
		k, err := jsonValue("e.key", t.KeyType())
		if err != nil {
			return "", err
		}
		v, err := jsonValue("e.value", t.ItemType())
		if err != nil {
			return "", err
		}
		return "map_from_entries(list_transform(map_entries(" + s + "), lambda e: struct_pack(key := " + k + ", value := " + v + ")))", nil
	case arrow.ListLikeType:
		v, err := jsonValue("e", t.Elem())
		return "list_transform(" + s + ", lambda e: " + v + ")", err
	}
	return s, nil
}

// needsText reports whether a type holds something that DuckDB would not write
// as documented.
func needsText(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.StructType:
		for _, f := range t.Fields() {
			if needsText(f.Type) {
				return true
			}
		}
		return false
	case *arrow.MapType:
		return needsText(t.KeyType()) || needsText(t.ItemType())
	case arrow.ListLikeType:
		return needsText(t.Elem())
	}
	return plan.IsUUID(t) || isBinary(t) || isTimestamp(t) || t.ID() == arrow.TIME64
}
