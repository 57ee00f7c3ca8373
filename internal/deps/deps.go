//go:build deps

// Package deps keeps modules in go.mod until the packages that use them exist.
package deps

import (
	_ "github.com/BurntSushi/toml"
	_ "github.com/apache/arrow-go/v18/arrow/compute"
	_ "github.com/apache/arrow-go/v18/arrow/extensions"
	_ "github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/catalog/sql"
	_ "github.com/cockroachdb/datadriven"
	_ "github.com/dolthub/go-mysql-server/server"
	_ "github.com/dolthub/vitess/go/mysql"
	_ "github.com/duckdb/duckdb-go-bindings"
	_ "github.com/duckdb/duckdb-go/v2"
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/go-sql-driver/mysql"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/peterh/liner"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/shopspring/decimal"
	_ "go.uber.org/goleak"
	_ "golang.org/x/crypto/argon2"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
	_ "modernc.org/sqlite"
)
