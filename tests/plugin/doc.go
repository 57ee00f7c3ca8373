// Package plugin holds SQE to Ranger's own plugin library: a Java program on
// ranger-plugins-common decides the same requests.
//
// As an oracle it is given the documents that a generator makes, and must answer
// as rangerclient/eval does. As a consumer it follows SQE's policy store over
// HTTP, and must decide as SQE's own client of the same store does. As a
// benchmark it decides what SQE decides, beside it.
//
// The generator leaves out exactly what docs/decisions/ranger-deviations.md
// names. Seeds are printed. The tests run with `make e2e` (build tag e2e) and need
// Java and Maven (tests/e2e/stack/ranger-plugin).
package plugin
