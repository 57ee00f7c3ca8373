//go:build race

package eval

// slowdown under the race detector, which is slow itself.
const slowdown = 12
