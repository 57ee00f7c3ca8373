package catalog

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	icebergsql "github.com/apache/iceberg-go/catalog/sql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"sqe/fault"
)

// OpenPostgres opens an SQL catalog in a PostgreSQL database. Its two tables are made
// when they are missing. warehouse is the folder (or the URI) for new tables.
//
// Changes of namespaces and names wait for each other by a lock of the database
// that other engines do not know: what they do at the same moment is held apart by
// the keys of the tables alone.
//
// A database that does not answer, or whose tables are no such catalog, is
// fault.Unavailable; an address that cannot be understood is fault.Config. Neither
// shows the address: it may hold a password.
func OpenPostgres(name, address, warehouse string, o SQLOptions) (*SQL, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		// Its text may hold parts of the address.
		return nil, fault.New(fault.Config, "The address of the database of catalog '%s' cannot be understood; write it as postgres://user:password@host:5432/database", name)
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 10 * time.Second
	}
	if warehouse, err = location(warehouse); err != nil {
		return nil, unavailable(name, err)
	}
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	db.SetConnMaxIdleTime(5 * time.Minute)
	c, err := newSQL(name, &database{
		DB: db, numbered: true,
		lock: `SELECT pg_advisory_xact_lock(hashtextextended('iceberg catalog ' || $1::text, 0))`,
	}, icebergsql.Postgres, iceberg.Properties{"warehouse": warehouse, "init_catalog_tables": "true"}, o)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return c, nil
}

// location is a folder as a URI.
func location(folder string) (string, error) {
	if strings.Contains(folder, "://") {
		return folder, nil
	}
	if folder == "" {
		return "", errors.New("the catalog has no warehouse")
	}
	abs, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String(), nil
}
