// Package stack tests SQE with what stands around it in production: a Keycloak that
// says who people are, an Iceberg REST catalog that decides by their tokens and by
// Ranger's policies with Ranger's own plugin library, and the embedded policy store
// that serves those policies to both. Its tests start real servers.
//
// The catalog is Iceberg's reference server (folder java), with the operations and
// accesses of Apache Polaris (java/operations.txt). Where tables lie in an object store,
// a proxy (vendor) makes the catalog's folder a bucket of a real one, and gives
// credentials of it with each table.
package stack
