package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sqe/engine/parse"
	"sqe/engine/write"
	"sqe/fault"
	"sqe/plan"
	"sqe/policy"
)

// Access types of maintenance.
const (
	tableSnapshotAdd     policy.Privilege = "table-snapshot-add"
	tableSnapshotsRemove policy.Privilege = "table-snapshots-remove"
)

// How old a file must be to be an orphan. Younger ones may belong to a write, of any
// engine, that has not committed yet.
const (
	orphanAge      = 3 * 24 * time.Hour // when the statement says nothing
	leastOrphanAge = 24 * time.Hour
)

// maintenanceRights are those that the procedures ask for: what Polaris asks for the
// commit, and the right to write files, or delete them.
var maintenanceRights = map[string][]policy.Privilege{
	parse.ExpireSnapshots:   {tableDataWrite, tableSnapshotsRemove, tableRefRemove},
	parse.RewriteDataFiles:  {tableDataWrite, tableSnapshotAdd, tableRefSet},
	parse.RewriteManifests:  {tableDataWrite, tableSnapshotAdd, tableRefSet},
	parse.RemoveOrphanFiles: {tableDataWrite},
}

// isMaintenance reports whether a statement changes the files of a table and neither
// its rows nor its definition.
func isMaintenance(stmt parse.Statement) bool {
	c, ok := stmt.(*parse.Call)
	return ok && maintenanceRights[c.Procedure] != nil
}

// maintain is CALL of a procedure that maintains the files of a table. Rows go from
// file to file as they are, and nobody sees them: policies have nothing to do there.
func (st *statement) maintain(ctx context.Context, x *parse.Call) (*Result, error) {
	o, err := st.callTable(x)
	if err != nil {
		return nil, err
	}
	if err := st.mayTable(ctx, "CALL", o, maintenanceRights[x.Procedure]...); err != nil {
		return nil, err
	}
	t, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	options, done := st.writeOptions(o)
	defer done()
	options.Progress = nil // files are told, not rows
	st.session.vars.SetWarnings(nil)
	var out *Result
	switch x.Procedure {
	case parse.ExpireSnapshots:
		out, err = st.expireSnapshots(ctx, x, t, options)
	case parse.RewriteDataFiles:
		out, err = st.rewriteDataFiles(ctx, x, t, options)
	case parse.RewriteManifests:
		out, err = st.rewriteManifests(ctx, t, options)
	case parse.RemoveOrphanFiles:
		out, err = st.removeOrphanFiles(ctx, x, t, options)
	default:
		err = unsupported("CALL system." + x.Procedure)
	}
	if err != nil {
		return nil, o.hidden(err)
	}
	out.Warnings = st.session.vars.WarningCount()
	return out, nil
}

// counts is a result of one row of numbers. To who sees the table under a row filter or
// mask they are NULL: they tell of rows that are hidden, as the metadata tables do.
func (st *statement) counts(ctx context.Context, t *plan.Table, names []string, values ...int64) (*Result, error) {
	b, err := st.bound(ctx, t)
	if err != nil {
		return nil, err
	}
	columns := make([]plan.Column, len(names))
	row := make([]any, len(names))
	for i, n := range names {
		columns[i] = plan.Column{Name: n, Type: plan.Int64, Nullable: true}
		if b.Record().Unrestricted {
			row[i] = values[i]
		}
	}
	out := typedTable(columns...)
	out.row(row...)
	return out.result(), nil
}

// files tells the process list how many files of a table something was done with, in a
// text with a place for one or both numbers; to who does not see all rows, only the
// other text.
func (st *statement) files(ctx context.Context, t *plan.Table, text, uncounted string) (func(done, of int), error) {
	b, err := st.bound(ctx, t)
	if err != nil {
		return nil, err
	}
	if !b.Record().Unrestricted {
		return func(int, int) { st.progress(uncounted) }, nil
	}
	return func(done, of int) {
		numbers := []any{counted(int64(done)), counted(int64(of))}
		st.progress(fmt.Sprintf(text, numbers[:strings.Count(text, "%s")]...))
	}, nil
}

// deleting is files for files that are deleted.
func (st *statement) deleting(ctx context.Context, t *plan.Table) (func(done, of int), error) {
	return st.files(ctx, t, "deleting files: %s of %s", "deleting files")
}

func (st *statement) expireSnapshots(ctx context.Context, x *parse.Call, t *plan.Table, options write.Options) (*Result, error) {
	if x.Snapshots != nil {
		return nil, fault.New(fault.Unsupported, "expire_snapshots cannot expire single snapshots (snapshot_ids); older_than and retain_last say which expire")
	}
	e := write.ExpireOptions{RetainLast: int(x.RetainLast)}
	var err error
	if e.Progress, err = st.deleting(ctx, t); err != nil {
		return nil, err
	}
	if x.Time != nil {
		// What is to be older than a time to come is to be older than now.
		e.OlderThan = max(st.started.Sub(*x.Time), time.Millisecond)
	}
	st.progress("expiring snapshots")
	res, err := write.ExpireSnapshots(ctx, t, e, options)
	if err != nil {
		if res.Snapshots > 0 {
			st.warned([]string{fmt.Sprintf("%d snapshots of table '%s' expired, and of the files that nothing needs now some are left; remove_orphan_files finds them", res.Snapshots, t.Name.Name)})
		}
		return nil, err
	}
	st.left(t, res.Left)
	d := res.Expired
	return st.counts(ctx, t, []string{
		"deleted_data_files_count", "deleted_position_delete_files_count", "deleted_equality_delete_files_count",
		"deleted_manifest_files_count", "deleted_manifest_lists_count", "deleted_statistics_files_count",
	}, int64(d.Data), int64(d.PositionDeletes), int64(d.EqualityDeletes), int64(d.Manifests), int64(d.ManifestLists), int64(d.Statistics))
}

// left warns of files that could not be deleted, and tells the operator which.
func (st *statement) left(t *plan.Table, files []string) {
	if len(files) == 0 {
		return
	}
	st.engine.log.Warn("files could not be deleted", "table", t.Name.String(), "count", len(files), "first", files[:min(10, len(files))])
	st.warned([]string{fmt.Sprintf("%d files of table '%s' could not be deleted; the server's log has the first of them", len(files), t.Name.Name)})
}

func (st *statement) rewriteDataFiles(ctx context.Context, x *parse.Call, t *plan.Table, options write.Options) (*Result, error) {
	r, err := rewriteOptions(x)
	if err != nil {
		return nil, err
	}
	if r.Progress, err = st.files(ctx, t, "rewriting: %s of %s files", "rewriting files"); err != nil {
		return nil, err
	}
	b, err := st.bound(ctx, t)
	if err != nil {
		return nil, err
	}
	options.Hidden = b.Hides
	st.progress("rewriting: looking for files")
	res, err := write.RewriteDataFiles(ctx, t, r, options)
	if err != nil {
		return nil, err
	}
	return st.counts(ctx, t, []string{"rewritten_data_files_count", "added_data_files_count", "rewritten_bytes_count", "removed_delete_files_count"},
		int64(res.RemovedFiles), int64(res.Files), res.RemovedBytes, int64(res.RemovedDeleteFiles))
}

// rewriteOptions are the arguments of rewrite_data_files. A condition on rows would
// tell of rows and values that a policy hides, so there is none.
func rewriteOptions(x *parse.Call) (r write.RewriteOptions, err error) {
	switch {
	case x.Where != "":
		return r, fault.New(fault.Unsupported, "rewrite_data_files takes no condition (where); it finds the files that are worth rewriting by itself")
	case x.Strategy == "sort" || x.SortOrder != "":
		return r, fault.New(fault.Unsupported, "rewrite_data_files cannot sort a table as a whole; every file that it writes has the sort order of the table, which ALTER TABLE ... WRITE ORDERED BY sets")
	}
	for _, p := range x.Options {
		switch p.Key {
		case "rewrite-all":
			if r.All, err = strconv.ParseBool(strings.ToLower(p.Value)); err != nil {
				return r, fault.New(fault.BadStatement, "the option 'rewrite-all' is 'true' or 'false'")
			}
		case "min-input-files":
			n, err := strconv.Atoi(p.Value)
			if err != nil || n < 1 {
				return r, fault.New(fault.BadStatement, "the option 'min-input-files' is a number of at least 1")
			}
			r.MinFiles = n
		case "min-file-size-bytes":
			n, err := strconv.ParseInt(p.Value, 10, 64)
			if err != nil || n < 1 {
				return r, fault.New(fault.BadStatement, "the option 'min-file-size-bytes' is a number of at least 1")
			}
			r.SmallerThan = n
		default:
			return r, fault.New(fault.Unsupported, "rewrite_data_files has no option '%s'; there are rewrite-all, min-input-files and min-file-size-bytes", p.Key)
		}
	}
	return r, nil
}

func (st *statement) rewriteManifests(ctx context.Context, t *plan.Table, options write.Options) (*Result, error) {
	st.progress("rewriting manifests")
	rewritten, added, err := write.RewriteManifests(ctx, t, options)
	if err != nil {
		return nil, err
	}
	return st.counts(ctx, t, []string{"rewritten_manifests_count", "added_manifests_count"}, int64(rewritten), int64(added))
}

// removeOrphanFiles is remove_orphan_files. The path of a file may hold the values of
// its partition: who sees rows or columns of the table under a policy is told of each
// file, and not its path.
func (st *statement) removeOrphanFiles(ctx context.Context, x *parse.Call, t *plan.Table, options write.Options) (*Result, error) {
	r := write.OrphanOptions{
		OlderThan: orphanAge, DryRun: x.DryRun,
	}
	seen, err := st.files(ctx, t, "looking for orphans: %s files seen", "looking for orphans")
	if err == nil {
		r.Progress, err = st.deleting(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	r.Listed = func(files int) { seen(files, 0) }
	if x.Time != nil {
		r.OlderThan = st.started.Sub(*x.Time)
	}
	if r.OlderThan < leastOrphanAge && !r.DryRun && !st.principal.Admin {
		return nil, fault.New(fault.BadStatement, "older_than must be at least 24 hours ago: younger files may belong to a statement that still runs; dry_run => true lists them, and an administrator may remove them")
	}
	b, err := st.bound(ctx, t)
	if err != nil {
		return nil, err
	}
	st.progress("looking for orphans")
	res, err := write.RemoveOrphans(ctx, t, r, options)
	if err != nil {
		return nil, err
	}
	st.left(t, res.Left)
	out := typedTable(plan.Column{Name: "orphan_file_location", Nullable: true})
	for _, p := range res.Orphans {
		if b.Record().Unrestricted {
			out.row(p)
		} else {
			out.row(nil)
		}
	}
	return out.result(), nil
}
