// Package catalogs holds every kind of catalog to the same expectations: SQLite,
// PostgreSQL, and REST catalogs that others wrote. Its tests start real servers.
package catalogs
