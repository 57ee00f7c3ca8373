package engine

import "sqe/engine/write"

// writeOptions are those of a write to the table o; done is called when it is over.
func (st *statement) writeOptions(o *object) (opts write.Options, done func()) {
	return write.Options{Committer: o.changer, Planner: st.engine.scans}, func() {}
}
