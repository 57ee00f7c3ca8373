// Package servicedef holds the service definitions of Ranger 2.9 that SQE knows:
// hive and trino for rows and values, polaris for objects, tag for tag policies.
// They are as a Ranger Admin serves them; whoever writes policy documents without
// one takes them from here.
package servicedef

import (
	"embed"
	"encoding/json"
	"fmt"

	"sqe/rangerclient/model"
)

//go:embed *.json
var files embed.FS

// JSON is the definition of a type ("hive", "polaris", "tag", "trino") as Ranger
// Admin serves it.
func JSON(typ string) (json.RawMessage, error) {
	b, err := files.ReadFile(typ + ".json")
	if err != nil {
		return nil, fmt.Errorf("no service definition %q is known", typ)
	}
	return b, nil
}

// Definition is the part of a definition that evaluation needs.
func Definition(typ string) (*model.ServiceDef, error) {
	b, err := JSON(typ)
	if err != nil {
		return nil, err
	}
	d := &model.ServiceDef{}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, fmt.Errorf("service definition %q: %w", typ, err)
	}
	return d, nil
}
