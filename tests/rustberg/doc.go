// Package rustberg tests SQE with an Iceberg REST catalog that others wrote:
// Rustberg, which knows people by Keycloak's tokens, decides by Cedar policies of its
// own, filters its lists, and demands of a person's reads of a table a row filter and
// column actions (read-restrictions) and that the catalog plans them.
//
// The script install builds it from the Rust registry. SQE's own policies let
// everybody do everything, unless a test says otherwise: what is refused here, the
// catalog refuses.
package rustberg
