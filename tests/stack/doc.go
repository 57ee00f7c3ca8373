// Package stack tests SQE with what stands around it in production: a Keycloak that
// says who people are, an Iceberg REST catalog that decides by their tokens and by
// Ranger's policies with Ranger's own plugin library, and the embedded policy store
// that serves those policies to both. Its tests start real servers.
//
// The catalog is Iceberg's reference server (folder java), with the operations and
// accesses of Apache Polaris (java/operations.txt).
package stack
