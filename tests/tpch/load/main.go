// Command load makes TPC-H tables in an Iceberg catalog on local disk, to try
// them by hand: go run ./tests/tpch/load -scale 1 -dir FOLDER.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"sqe/tests/tpch"
)

func main() {
	scale := flag.Float64("scale", 0.01, "scale factor; 1 is about 1 GB of text")
	dir := flag.String("dir", "", "folder of the catalog and the tables")
	name := flag.String("catalog", "lake", "name of the catalog")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "load: -dir is missing")
		os.Exit(2)
	}
	if err := tpch.Load(context.Background(), *dir, *name, *scale); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}
