package engine

import "sqe/engine/write"

// writeOptions are those of a write to the table o.
func (st *statement) writeOptions(o *object) write.Options {
	return write.Options{Committer: o.changer, Planner: st.engine.scans}
}
