// Package browse opens a file on the desktop of the user.
package browse

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// ErrNoDesktop is returned on a machine without a desktop or without its program that opens files,
// and on macOS in a session by SSH.
var ErrNoDesktop = errors.New("there is no desktop to open a file on")

// Open opens a file with the default program of the desktop. It does not wait for the program, and
// returns only errors of starting it, such as ErrNoDesktop.
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
	go c.Wait() // reaps the process
	return nil
}

// opener returns the program by which a system (a GOOS) opens files, and its first arguments; "" if
// there is no desktop. env returns environment variables.
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
