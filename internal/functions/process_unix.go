//go:build unix

package functions

import (
	"os/exec"
	"syscall"
)

// separate keeps Ctrl-C on a terminal from the process: its caller ends it.
func separate(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill ends the process and what it has started.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
