//go:build !race

package eval

// slowdown is by how much tests of limits are more patient than the limits: other
// work may share the machine.
const slowdown = 3
