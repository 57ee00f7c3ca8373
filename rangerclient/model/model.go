// Package model holds the JSON documents of Apache Ranger 2.9 that plugins
// download: policies of a service with its definition, tags, roles and users.
//
// The structures say what the wire says and nothing more. Members that Ranger
// leaves out when they have their default are pointers or have a method that
// knows the default. Decode* functions refuse what is truncated, not JSON, not
// UTF-8, or about another service; members that they do not know are ignored, as
// Ranger's own plugins do. The package decides nothing.
package model

// The kinds of policies (Policy.PolicyType).
const (
	AccessPolicy    = 0
	MaskPolicy      = 1
	RowFilterPolicy = 2
	AuditPolicy     = 3
)

// ServicePolicies is the body of a policy download.
type ServicePolicies struct {
	ServiceName      string                   `json:"serviceName"`
	ServiceID        int64                    `json:"serviceId,omitempty"`
	PolicyVersion    *int64                   `json:"policyVersion"`
	PolicyUpdateTime int64                    `json:"policyUpdateTime,omitempty"` // epoch milliseconds
	Policies         []*Policy                `json:"policies,omitempty"`
	PolicyDeltas     []*PolicyDelta           `json:"policyDeltas,omitempty"`
	ServiceDef       *ServiceDef              `json:"serviceDef"`
	AuditMode        string                   `json:"auditMode,omitempty"`
	TagPolicies      *TagPolicies             `json:"tagPolicies,omitempty"`
	SecurityZones    map[string]*ZonePolicies `json:"securityZones,omitempty"`
	ServiceConfig    Strings                  `json:"serviceConfig,omitempty"`
}

// TagPolicies are the policies of the linked tag service, in the same document.
type TagPolicies struct {
	ServiceName      string      `json:"serviceName"`
	ServiceID        int64       `json:"serviceId,omitempty"`
	PolicyVersion    *int64      `json:"policyVersion,omitempty"`
	PolicyUpdateTime int64       `json:"policyUpdateTime,omitempty"`
	Policies         []*Policy   `json:"policies,omitempty"`
	ServiceDef       *ServiceDef `json:"serviceDef,omitempty"`
	AuditMode        string      `json:"auditMode,omitempty"`
	ServiceConfig    Strings     `json:"serviceConfig,omitempty"`
}

// ZonePolicies are the resources and policies of a security zone.
type ZonePolicies struct {
	ZoneName                     string                `json:"zoneName"`
	Resources                    []map[string][]string `json:"resources,omitempty"`
	Policies                     []*Policy             `json:"policies,omitempty"`
	PolicyDeltas                 []*PolicyDelta        `json:"policyDeltas,omitempty"`
	ContainsAssociatedTagService bool                  `json:"containsAssociatedTagService,omitempty"`
}

// PolicyDelta is one change of a policy. ChangeType: 0 create, 1 update, 2 delete.
type PolicyDelta struct {
	ID              int64   `json:"id,omitempty"`
	ChangeType      int     `json:"changeType"`
	PoliciesVersion int64   `json:"policiesVersion,omitempty"`
	Policy          *Policy `json:"policy,omitempty"`
}

// Policy is RangerPolicy.
type Policy struct {
	ID                   int64                 `json:"id,omitempty"`
	GUID                 string                `json:"guid,omitempty"`
	Enabled              *bool                 `json:"isEnabled,omitempty"`
	Version              int64                 `json:"version,omitempty"`
	Service              string                `json:"service,omitempty"`
	ServiceType          string                `json:"serviceType,omitempty"`
	Name                 string                `json:"name"`
	Description          string                `json:"description,omitempty"`
	PolicyType           int                   `json:"policyType"`
	PolicyPriority       int                   `json:"policyPriority"`
	ResourceSignature    string                `json:"resourceSignature,omitempty"`
	AuditEnabled         *bool                 `json:"isAuditEnabled,omitempty"`
	DenyAllElse          bool                  `json:"isDenyAllElse"`
	ZoneName             string                `json:"zoneName,omitempty"`
	PolicyLabels         []string              `json:"policyLabels,omitempty"`
	Options              map[string]any        `json:"options,omitempty"`
	Resources            map[string]Resource   `json:"resources,omitempty"`
	AdditionalResources  []map[string]Resource `json:"additionalResources,omitempty"`
	Conditions           []Condition           `json:"conditions,omitempty"`
	PolicyItems          []*Item               `json:"policyItems,omitempty"`
	DenyPolicyItems      []*Item               `json:"denyPolicyItems,omitempty"`
	AllowExceptions      []*Item               `json:"allowExceptions,omitempty"`
	DenyExceptions       []*Item               `json:"denyExceptions,omitempty"`
	DataMaskPolicyItems  []*Item               `json:"dataMaskPolicyItems,omitempty"`
	RowFilterPolicyItems []*Item               `json:"rowFilterPolicyItems,omitempty"`
	ValiditySchedules    []Schedule            `json:"validitySchedules,omitempty"`
	// Who made and last changed the policy; absent in searches and downloads.
	CreatedBy  string `json:"createdBy,omitempty"`
	UpdatedBy  string `json:"updatedBy,omitempty"`
	CreateTime int64  `json:"createTime,omitempty"` // epoch milliseconds
	UpdateTime int64  `json:"updateTime,omitempty"`
}

// IsEnabled is true when the member is absent.
func (p *Policy) IsEnabled() bool { return p.Enabled == nil || *p.Enabled }

// Resource is the pattern of one resource element.
type Resource struct {
	Values    []string `json:"values,omitempty"`
	Excludes  bool     `json:"isExcludes"`
	Recursive bool     `json:"isRecursive"`
}

// Item binds principals to accesses, a mask or a filter.
type Item struct {
	Accesses      []Access       `json:"accesses,omitempty"`
	Users         []string       `json:"users,omitempty"`
	Groups        []string       `json:"groups,omitempty"`
	Roles         []string       `json:"roles,omitempty"`
	Conditions    []Condition    `json:"conditions,omitempty"`
	DelegateAdmin bool           `json:"delegateAdmin"`
	DataMaskInfo  *DataMaskInfo  `json:"dataMaskInfo,omitempty"`
	RowFilterInfo *RowFilterInfo `json:"rowFilterInfo,omitempty"`
}

// Access is one access type of an item.
type Access struct {
	Type    string `json:"type"`
	Allowed *bool  `json:"isAllowed,omitempty"`
}

// IsAllowed is true when the member is absent.
func (a Access) IsAllowed() bool { return a.Allowed == nil || *a.Allowed }

// Condition is a named condition with its values.
type Condition struct {
	Type   string   `json:"type"`
	Values []string `json:"values,omitempty"`
}

// DataMaskInfo is the mask of a mask item.
type DataMaskInfo struct {
	DataMaskType  string `json:"dataMaskType,omitempty"`
	ConditionExpr string `json:"conditionExpr,omitempty"`
	ValueExpr     string `json:"valueExpr,omitempty"`
}

// RowFilterInfo is the filter of a row filter item. Ranger tells an absent
// expression from an empty one.
type RowFilterInfo struct {
	FilterExpr *string `json:"filterExpr,omitempty"`
}

// Schedule is a period in which a policy or a tag is valid; times are
// "yyyy/MM/dd HH:mm:ss" in TimeZone (empty: UTC), both ends inclusive.
type Schedule struct {
	StartTime   string       `json:"startTime,omitempty"`
	EndTime     string       `json:"endTime,omitempty"`
	TimeZone    string       `json:"timeZone,omitempty"`
	Recurrences []Recurrence `json:"recurrences,omitempty"`
}

// Recurrence is a repeated start with a length.
type Recurrence struct {
	Schedule struct {
		Minute     string `json:"minute,omitempty"`
		Hour       string `json:"hour,omitempty"`
		DayOfMonth string `json:"dayOfMonth,omitempty"`
		DayOfWeek  string `json:"dayOfWeek,omitempty"` // 1 is Sunday
		Month      string `json:"month,omitempty"`     // 1 is January
		Year       string `json:"year,omitempty"`
	} `json:"schedule"`
	Interval struct {
		Days    int `json:"days"`
		Hours   int `json:"hours"`
		Minutes int `json:"minutes"`
	} `json:"interval"`
}

// ServiceDef is the part of a service definition that evaluation needs.
type ServiceDef struct {
	ID                int64           `json:"id,omitempty"`
	GUID              string          `json:"guid,omitempty"`
	Name              string          `json:"name"`
	DisplayName       string          `json:"displayName,omitempty"`
	ImplClass         string          `json:"implClass,omitempty"`
	Label             string          `json:"label,omitempty"`
	Description       string          `json:"description,omitempty"`
	Options           Strings         `json:"options,omitempty"`
	Resources         []ResourceDef   `json:"resources,omitempty"`
	AccessTypes       []AccessTypeDef `json:"accessTypes,omitempty"`
	MarkerAccessTypes []AccessTypeDef `json:"markerAccessTypes,omitempty"`
	PolicyConditions  []ConditionDef  `json:"policyConditions,omitempty"`
	DataMaskDef       *DataMaskDef    `json:"dataMaskDef,omitempty"`
	RowFilterDef      *RowFilterDef   `json:"rowFilterDef,omitempty"`
}

// ResourceDef defines one resource element.
type ResourceDef struct {
	ItemID             int64   `json:"itemId,omitempty"`
	Name               string  `json:"name"`
	Type               string  `json:"type,omitempty"`
	Level              int     `json:"level,omitempty"`
	Parent             string  `json:"parent,omitempty"`
	Mandatory          bool    `json:"mandatory,omitempty"`
	ExcludesSupported  bool    `json:"excludesSupported,omitempty"`
	RecursiveSupported bool    `json:"recursiveSupported,omitempty"`
	Matcher            string  `json:"matcher,omitempty"`
	MatcherOptions     Strings `json:"matcherOptions,omitempty"`
	IsValidLeaf        *bool   `json:"isValidLeaf,omitempty"`
	ValidationRegEx    string  `json:"validationRegEx,omitempty"` // of a whole value
}

// AccessTypeDef defines an access type and what it implies (one level).
type AccessTypeDef struct {
	ItemID        int64    `json:"itemId,omitempty"`
	Name          string   `json:"name"`
	Label         string   `json:"label,omitempty"`
	Category      string   `json:"category,omitempty"`
	ImpliedGrants []string `json:"impliedGrants,omitempty"`
}

// ConditionDef names the evaluator class of a condition.
type ConditionDef struct {
	ItemID           int64   `json:"itemId,omitempty"`
	Name             string  `json:"name"`
	Evaluator        string  `json:"evaluator,omitempty"`
	EvaluatorOptions Strings `json:"evaluatorOptions,omitempty"`
}

// DataMaskDef says what mask policies may name.
type DataMaskDef struct {
	MaskTypes   []MaskTypeDef   `json:"maskTypes,omitempty"`
	AccessTypes []AccessTypeDef `json:"accessTypes,omitempty"`
	Resources   []ResourceDef   `json:"resources,omitempty"`
}

// MaskTypeDef is one mask type.
type MaskTypeDef struct {
	ItemID      int64  `json:"itemId,omitempty"`
	Name        string `json:"name"`
	Label       string `json:"label,omitempty"`
	Description string `json:"description,omitempty"`
	Transformer string `json:"transformer,omitempty"`
}

// RowFilterDef says what row filter policies may name.
type RowFilterDef struct {
	AccessTypes []AccessTypeDef `json:"accessTypes,omitempty"`
	Resources   []ResourceDef   `json:"resources,omitempty"`
}

// ServiceTags is the body of a tag download. Map keys are ids as strings.
type ServiceTags struct {
	Op               string                   `json:"op,omitempty"`
	ServiceName      string                   `json:"serviceName"`
	TagVersion       *int64                   `json:"tagVersion"`
	TagUpdateTime    int64                    `json:"tagUpdateTime,omitempty"`
	TagDefinitions   map[string]TagDefinition `json:"tagDefinitions,omitempty"`
	Tags             map[string]Tag           `json:"tags,omitempty"`
	ServiceResources []ServiceResource        `json:"serviceResources,omitempty"`
	ResourceToTagIDs map[string][]int64       `json:"resourceToTagIds,omitempty"`
	IsDelta          bool                     `json:"isDelta"`
	TagsChangeExtent string                   `json:"tagsChangeExtent,omitempty"`
	IsTagsDeduped    bool                     `json:"isTagsDeduped,omitempty"`
}

// TagDefinition names a kind of tag.
type TagDefinition struct {
	ID            int64          `json:"id,omitempty"`
	GUID          string         `json:"guid,omitempty"`
	Enabled       *bool          `json:"isEnabled,omitempty"`
	Name          string         `json:"name"`
	Source        string         `json:"source,omitempty"`
	AttributeDefs []AttributeDef `json:"attributeDefs,omitempty"`
}

// AttributeDef names an attribute that tags of a kind have.
type AttributeDef struct {
	Name string `json:"name"`
	Type string `json:"type,omitempty"`
}

// The owners of tags (Tag.Owner).
const (
	TagOfResource = 0 // the tag belongs to the resources that carry it; the default
	TagShared     = 1 // the tag is one for all that carry it, known by its guid
)

// Tag is a tag with its attributes.
type Tag struct {
	ID              int64          `json:"id,omitempty"`
	GUID            string         `json:"guid,omitempty"`
	Enabled         *bool          `json:"isEnabled,omitempty"`
	Type            string         `json:"type"`
	Owner           int            `json:"owner,omitempty"` // absent in downloads
	Attributes      Strings        `json:"attributes,omitempty"`
	Options         map[string]any `json:"options,omitempty"`
	ValidityPeriods []Schedule     `json:"validityPeriods,omitempty"`
}

// ServiceResource is a resource that carries tags.
type ServiceResource struct {
	ID                int64               `json:"id,omitempty"`
	GUID              string              `json:"guid,omitempty"`
	Enabled           *bool               `json:"isEnabled,omitempty"`
	ServiceName       string              `json:"serviceName,omitempty"` // absent in downloads
	ResourceElements  map[string]Resource `json:"resourceElements,omitempty"`
	OwnerUser         string              `json:"ownerUser,omitempty"`
	ResourceSignature string              `json:"resourceSignature,omitempty"`
	AdditionalInfo    Strings             `json:"additionalInfo,omitempty"`
}

// Roles is the body of a role download.
type Roles struct {
	ServiceName string  `json:"serviceName,omitempty"`
	RoleVersion *int64  `json:"roleVersion"`
	UpdateTime  int64   `json:"roleUpdateTime,omitempty"`
	RangerRoles []*Role `json:"rangerRoles,omitempty"`
}

// Role is RangerRole. Roles lists the roles that are members of this one: they
// inherit it.
type Role struct {
	ID            int64          `json:"id,omitempty"`
	Enabled       *bool          `json:"isEnabled,omitempty"`
	CreatedBy     string         `json:"createdBy,omitempty"`
	UpdatedBy     string         `json:"updatedBy,omitempty"`
	CreateTime    int64          `json:"createTime,omitempty"` // epoch milliseconds
	UpdateTime    int64          `json:"updateTime,omitempty"`
	Name          string         `json:"name"`
	Description   string         `json:"description,omitempty"`
	Options       map[string]any `json:"options,omitempty"`
	Users         []Member       `json:"users,omitempty"`
	Groups        []Member       `json:"groups,omitempty"`
	Roles         []Member       `json:"roles,omitempty"`
	CreatedByUser string         `json:"createdByUser,omitempty"`
}

// Member is a user, group or role in a role.
type Member struct {
	Name    string `json:"name"`
	IsAdmin bool   `json:"isAdmin"`
}

// UserStore is the body of a user store download.
type UserStore struct {
	Version          *int64                       `json:"userStoreVersion"`
	UpdateTime       int64                        `json:"userStoreUpdateTime,omitempty"`
	UserAttrMapping  map[string]map[string]string `json:"userAttrMapping,omitempty"`
	GroupAttrMapping map[string]map[string]string `json:"groupAttrMapping,omitempty"`
	UserGroupMapping map[string][]string          `json:"userGroupMapping,omitempty"`
}
