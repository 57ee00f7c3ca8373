//go:build !linux

package sqetest

import "os/exec"

// Owned leaves a command as it is: on Linux it would be killed when the tests die
// without a chance to stop it.
func Owned(cmd *exec.Cmd) *exec.Cmd { return cmd }
