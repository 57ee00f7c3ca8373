// Package changes runs statements that change rows up to the rows that a writer
// gets: bound, governed, completed, verified and computed by DuckDB over data files.
package changes
