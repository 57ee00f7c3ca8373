package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// ScanTasks is one answer of planning: data files, and the deletes that apply to
// them, to which they refer by their places in it.
type ScanTasks struct {
	Files   []ScanTask    `json:"file-scan-tasks"`
	Deletes []ContentFile `json:"delete-files"`
}

// ScanTask is a data file that holds rows of the scan.
type ScanTask struct {
	Data     *ContentFile    `json:"data-file"`
	Deletes  []int           `json:"delete-file-references"`
	Residual json.RawMessage `json:"residual-filter"`
}

// Residue reports whether a task demands a condition of its rows.
func (t ScanTask) Residue() bool {
	text := string(bytes.TrimSpace(t.Residual))
	return text != "" && text != "null" && text != "true"
}

// ContentFile is a data or delete file, without its statistics.
type ContentFile struct {
	Content     string            `json:"content"` // "data", "position-deletes", "equality-deletes"
	Path        string            `json:"file-path"`
	Format      string            `json:"file-format"`
	SpecID      int               `json:"spec-id"`
	Partition   []json.RawMessage `json:"partition"`
	Size        int64             `json:"file-size-in-bytes"`
	Rows        int64             `json:"record-count"`
	KeyMetadata *string           `json:"key-metadata"`
	FirstRowID  *int64            `json:"first-row-id"`
	EqualityIDs []int             `json:"equality-ids"`
	// Of a deletion vector.
	Referenced *string `json:"referenced-data-file"`
	Offset     *int64  `json:"content-offset"`
	Length     *int64  `json:"content-size-in-bytes"`
}

// planned is PlanTableScanResult, FetchPlanningResult and FetchScanTasksResult.
type planned struct {
	Status    string   `json:"status"`
	PlanID    string   `json:"plan-id"`
	PlanTasks []string `json:"plan-tasks"`
	ScanTasks
}

// The bounds of planning.
const (
	mostPlanTasks = 10_000
	planWait      = 2 * time.Second // the longest between two questions
	planFor       = 5 * time.Minute
)

// Plan has the server plan a scan of a whole snapshot: it names every file that
// holds rows for the principal. The server may leave out files whose rows that one
// may not see; what it demands of reads besides is in Table.ReadRestrictions still.
func (c *Client) Plan(ctx context.Context, namespace []string, name string, snapshot int64) ([]ScanTasks, error) {
	const operation = "plan table scan"
	fail := func(cause error) ([]ScanTasks, error) {
		return nil, &Error{Operation: operation, Outcome: NotDone, cause: cause}
	}
	var p planned
	err := c.at(ctx, call{operation: operation, method: http.MethodPost, header: c.delegation(ctx), into: &p, body: map[string]any{"snapshot-id": snapshot}}, namespace, "tables", name, "plan")
	if err != nil {
		return nil, err
	}
	if p.Status == "submitted" {
		if p.PlanID == "" {
			return fail(errNonsense)
		}
		if p, err = c.await(ctx, operation, namespace, name, p.PlanID); err != nil {
			return nil, err
		}
	}
	if p.Status != "completed" {
		return fail(fmt.Errorf("the plan is %s", brief(p.Status)))
	}
	out := []ScanTasks{p.ScanTasks}
	seen := map[string]bool{}
	for todo := p.PlanTasks; len(todo) > 0; {
		task := todo[0]
		todo = todo[1:]
		if seen[task] {
			continue
		}
		if seen[task] = true; len(seen) > mostPlanTasks {
			return fail(fmt.Errorf("the plan has more than %d parts", mostPlanTasks))
		}
		var part planned
		err := c.at(ctx, call{operation: "fetch scan tasks", method: http.MethodPost, into: &part, body: map[string]any{"plan-task": task}}, namespace, "tables", name, "tasks")
		if err != nil {
			return nil, err
		}
		out, todo = append(out, part.ScanTasks), append(todo, part.PlanTasks...)
	}
	return out, nil
}

// await asks for a submitted plan until it is there.
func (c *Client) await(ctx context.Context, operation string, namespace []string, name, id string) (planned, error) {
	ctx, cancel := context.WithTimeout(ctx, planFor)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, planWait) {
		select {
		case <-ctx.Done():
			// Nobody waits for it any more. Whether the server hears that does not matter.
			end, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_ = c.at(end, call{operation: "cancel planning", method: http.MethodDelete}, namespace, "tables", name, "plan", id)
			done()
			return planned{}, &Error{Operation: operation, Outcome: NotDone, cause: ctx.Err()}
		case <-time.After(wait):
		}
		var p planned
		if err := c.at(ctx, call{operation: operation, method: http.MethodGet, into: &p}, namespace, "tables", name, "plan", id); err != nil {
			return planned{}, err
		}
		if p.Status != "submitted" {
			return p, nil
		}
	}
}

func brief(s string) string {
	if len(s) > 20 {
		s = s[:20]
	}
	return fmt.Sprintf("%q", s)
}
