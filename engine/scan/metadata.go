package scan

import (
	"context"

	"sqe/catalog"
	"sqe/fault"
	"sqe/plan"
)

// metadataStream yields the rows of a metadata table.
type metadataStream struct {
	handle *catalog.Handle
	table  *plan.Table
	cols   []plan.ScanColumn
}

// Open implements Stream.
func (s *metadataStream) Open(ctx context.Context, columns []int) (Reader, error) {
	return nil, fault.New(fault.Unsupported, "Metadata table '%s' is not supported", s.table.Metadata)
}
