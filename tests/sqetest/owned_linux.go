package sqetest

import (
	"os/exec"
	"syscall"
)

// Owned has a command that was not started yet killed when the tests die without a
// chance to stop it: by a panic, a time-out or a signal.
func Owned(cmd *exec.Cmd) *exec.Cmd {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return cmd
}
