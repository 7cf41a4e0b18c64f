// Package browse shows a file to the user of a desktop.
package browse

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// ErrNoDesktop is the error of a machine without a desktop, or of a session that does not reach it.
var ErrNoDesktop = errors.New("there is no desktop to open a file on")

// Open opens a file with the program that the desktop has for its kind. It does not wait for that.
func Open(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	name, args := opener(runtime.GOOS, os.Getenv)
	if name == "" {
		return ErrNoDesktop
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return ErrNoDesktop
	}
	c := exec.Command(program, append(args, abs)...)
	if err := c.Start(); err != nil {
		return err
	}
	go c.Wait() // lest it stay a zombie for as long as we live
	return nil
}

// opener is the program of a system that opens files, and its first arguments; "" where nobody would see what it opens.
func opener(system string, env func(string) string) (name string, args []string) {
	switch system {
	case "windows":
		return "rundll32", []string{"url.dll,FileProtocolHandler"}
	case "darwin":
		if env("SSH_CONNECTION") == "" {
			return "open", nil
		}
	default:
		if env("DISPLAY") != "" || env("WAYLAND_DISPLAY") != "" {
			return "xdg-open", nil
		}
	}
	return "", nil
}
