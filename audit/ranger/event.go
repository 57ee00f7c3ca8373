package ranger

import (
	"bytes"
	"encoding/json"
	"time"
)

// Event is one access audit event, with the members of Ranger's AuthzAuditEvent
// in its order. As there, empty texts and lists are left out and numbers never
// are. Source: Ranger's agents-audit, class AuthzAuditEvent.
type Event struct {
	RepoType int      `json:"repoType"` // id of the service definition
	Repo     string   `json:"repo,omitempty"`
	User     string   `json:"reqUser,omitempty"`
	Time     string   `json:"evtTime"`          // in UTC, as timeLayout
	Access   string   `json:"access,omitempty"` // what was done: "SELECT", "ROW_FILTER", the type of a mask
	Resource string   `json:"resource,omitempty"`
	ResType  string   `json:"resType,omitempty"`
	Action   string   `json:"action,omitempty"` // the permission that it needs: "select", "table-data-read"
	Result   int      `json:"result"`           // 1 allowed, 0 denied
	Agent    string   `json:"agent,omitempty"`
	Policy   int64    `json:"policy"` // -1: no policy decided
	Reason   string   `json:"reason,omitempty"`
	Enforcer string   `json:"enforcer,omitempty"`
	Session  string   `json:"sess,omitempty"`
	CliType  string   `json:"cliType,omitempty"`
	CliIP    string   `json:"cliIP,omitempty"`
	Data     string   `json:"reqData,omitempty"` // the fingerprint of the statement
	Host     string   `json:"agentHost,omitempty"`
	LogType  string   `json:"logType,omitempty"`
	ID       string   `json:"id,omitempty"`
	Seq      int64    `json:"seq_num"`
	Count    int64    `json:"event_count"`
	Duration int64    `json:"event_dur_ms"`
	Tags     []string `json:"tags,omitempty"` // each a JSON object: {"type":"PII"}
	// Info is a JSON object of texts.
	Info    string `json:"additional_info,omitempty"`
	Cluster string `json:"cluster_name,omitempty"`
	Zone    string `json:"zone_name,omitempty"`
	Version *int64 `json:"policy_version,omitempty"`
}

// timeLayout is how Ranger's plugins write times into files.
const timeLayout = "2006-01-02 15:04:05.000"

// solrDoc is an event as a document of the Solr collection ranger_audits. Its
// names differ from those of the file where they do. Source: Ranger's
// SolrAuditDestination; the collection's schema knows cliType too, which Ranger
// Admin shows.
type solrDoc struct {
	ID       string    `json:"id"`
	Access   string    `json:"access,omitempty"`
	Enforcer string    `json:"enforcer,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Repo     string    `json:"repo,omitempty"`
	Session  string    `json:"sess,omitempty"`
	User     string    `json:"reqUser,omitempty"`
	Data     string    `json:"reqData,omitempty"`
	Resource string    `json:"resource,omitempty"`
	CliIP    string    `json:"cliIP,omitempty"`
	CliType  string    `json:"cliType,omitempty"`
	LogType  string    `json:"logType,omitempty"`
	Result   int       `json:"result"`
	Policy   int64     `json:"policy"`
	RepoType int       `json:"repoType"`
	ResType  string    `json:"resType,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Action   string    `json:"action,omitempty"`
	Time     time.Time `json:"evtTime"`
	Seq      int64     `json:"seq_num"`
	Count    int64     `json:"event_count"`
	Duration int64     `json:"event_dur_ms"`
	Tags     []string  `json:"tags,omitempty"`
	Cluster  string    `json:"cluster,omitempty"`
	Zone     string    `json:"zoneName,omitempty"`
	Host     string    `json:"agentHost,omitempty"`
	Version  *int64    `json:"policyVersion,omitempty"`
}

func (e *Event) solr() (solrDoc, error) {
	at, err := time.Parse(timeLayout, e.Time)
	return solrDoc{
		ID: e.ID, Access: e.Access, Enforcer: e.Enforcer, Agent: e.Agent, Repo: e.Repo, Session: e.Session, User: e.User,
		Data: e.Data, Resource: e.Resource, CliIP: e.CliIP, CliType: e.CliType, LogType: e.LogType, Result: e.Result,
		Policy: e.Policy, RepoType: e.RepoType, ResType: e.ResType, Reason: e.Reason, Action: e.Action,
		Time: at, Seq: e.Seq, Count: e.Count, Duration: e.Duration,
		Tags: e.Tags, Cluster: e.Cluster, Zone: e.Zone, Host: e.Host, Version: e.Version,
	}, err
}

// lines encodes events into b, one JSON object a line.
func lines(b *bytes.Buffer, events []Event) ([]byte, error) {
	b.Reset()
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	for i := range events {
		if err := encoder.Encode(&events[i]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
