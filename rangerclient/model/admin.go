package model

// The documents of a Ranger Admin's own API, which plugins do not download.

// Service is RangerService: a set of policies of one service definition.
type Service struct {
	ID          int64  `json:"id,omitempty"`
	GUID        string `json:"guid,omitempty"`
	Enabled     *bool  `json:"isEnabled,omitempty"`
	Type        string `json:"type"` // name of the service definition
	Name        string `json:"name"`
	DisplayName string `json:"displayName,omitempty"`
	Description string `json:"description,omitempty"`
	// TagService names the linked service of type tag; empty: none.
	TagService string  `json:"tagService,omitempty"`
	Configs    Strings `json:"configs,omitempty"`
	// The versions that downloads compare; epoch milliseconds for the times.
	PolicyVersion    int64  `json:"policyVersion,omitempty"`
	PolicyUpdateTime int64  `json:"policyUpdateTime,omitempty"`
	TagVersion       int64  `json:"tagVersion,omitempty"`
	TagUpdateTime    int64  `json:"tagUpdateTime,omitempty"`
	CreatedBy        string `json:"createdBy,omitempty"`
	UpdatedBy        string `json:"updatedBy,omitempty"`
	CreateTime       int64  `json:"createTime,omitempty"`
	UpdateTime       int64  `json:"updateTime,omitempty"`
	Version          int64  `json:"version,omitempty"`
}

// IsEnabled is true when the member is absent.
func (s *Service) IsEnabled() bool { return s.Enabled == nil || *s.Enabled }

// User is a user as the Admin's user API describes one (VXUser), with names
// instead of ids for the groups.
type User struct {
	ID          int64
	Name        string
	FirstName   string
	LastName    string
	Description string
	Email       string
	Groups      []string // names, sorted
	// Attributes become userAttrMapping in the user store download.
	Attributes map[string]string
	// AdminRoles are the roles in the Admin itself: "ROLE_USER",
	// "ROLE_SYS_ADMIN", "ROLE_ADMIN_AUDITOR". They are not roles of policies.
	AdminRoles []string
	// Password is set only on the way to a server; none ever returns it.
	Password string
}

// Group is a group of users (VXGroup).
type Group struct {
	ID          int64
	Name        string
	Description string
	Attributes  map[string]string
}

// Zone is RangerSecurityZone.
type Zone struct {
	ID          int64  `json:"id,omitempty"`
	GUID        string `json:"guid,omitempty"`
	Enabled     *bool  `json:"isEnabled,omitempty"`
	Version     int64  `json:"version,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Services holds by service name the resources of the zone.
	Services        map[string]ZoneService `json:"services,omitempty"`
	TagServices     []string               `json:"tagServices,omitempty"`
	AdminUsers      []string               `json:"adminUsers,omitempty"`
	AdminUserGroups []string               `json:"adminUserGroups,omitempty"`
	AdminRoles      []string               `json:"adminRoles,omitempty"`
	AuditUsers      []string               `json:"auditUsers,omitempty"`
	AuditUserGroups []string               `json:"auditUserGroups,omitempty"`
	AuditRoles      []string               `json:"auditRoles,omitempty"`
	CreatedBy       string                 `json:"createdBy,omitempty"`
	UpdatedBy       string                 `json:"updatedBy,omitempty"`
	CreateTime      int64                  `json:"createTime,omitempty"`
	UpdateTime      int64                  `json:"updateTime,omitempty"`
}

// ZoneService is the part of a zone that lies in one service.
type ZoneService struct {
	Resources []map[string][]string `json:"resources,omitempty"`
}
