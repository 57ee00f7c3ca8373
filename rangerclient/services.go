package rangerclient

import (
	"sqe/rangerclient/model"
	"sqe/rangerclient/servicedef"
)

// Service is a Ranger service whose policies a source reads.
type Service struct {
	Name string
	Type string // name of its service definition: "polaris", "hive", "trino"
	ID   int64  // id of its service definition, as the policy server gives it
}

// Services are the services of access to objects (the zero Service: none) and of
// rows and values, as the last documents name them. Before any were read both are
// zero.
func (s *Source) Services() (objects, data Service) {
	c := s.current.Load()
	if c == nil {
		return objects, data
	}
	return serviceOf(c.state.docs.objects), serviceOf(c.state.docs.tables)
}

func serviceOf(p *model.ServicePolicies) Service {
	if p == nil {
		return Service{}
	}
	out := Service{Name: p.ServiceName}
	if p.ServiceDef != nil {
		out.Type, out.ID = p.ServiceDef.Name, p.ServiceDef.ID
		if out.ID == 0 { // a document that somebody wrote by hand
			if def, err := servicedef.Definition(out.Type); err == nil {
				out.ID = def.ID
			}
		}
	}
	return out
}
