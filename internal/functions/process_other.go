//go:build !unix

package functions

import "os/exec"

func separate(*exec.Cmd) {}

func kill(c *exec.Cmd) { _ = c.Process.Kill() }
