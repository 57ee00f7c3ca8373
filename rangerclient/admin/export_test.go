package admin

// For tests with the embedded store, which cannot be in this package since the
// store imports it.
var (
	Transfers = transfers
	Writers   = writers
)
