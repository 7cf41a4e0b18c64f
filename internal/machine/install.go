package machine

import (
	"os"
	"runtime"
)

// Packages are the names of a library's package in different package managers.
type Packages struct {
	Library                                       string // its own name
	Debian, Fedora, Arch, Alpine, Homebrew, Conda string
}

// HowToInstall returns the command that installs a library on this system, or, if the system is
// unknown, the words "install LIBRARY with the system's package manager".
func HowToInstall(p Packages) string {
	switch runtime.GOOS {
	case "darwin":
		return "brew install " + p.Homebrew
	case "windows":
		return "conda install -c conda-forge " + p.Conda
	}
	for _, known := range []struct{ file, command string }{
		{"/etc/debian_version", "apt-get install " + p.Debian},
		{"/etc/fedora-release", "dnf install " + p.Fedora},
		{"/etc/redhat-release", "dnf install " + p.Fedora},
		{"/etc/arch-release", "pacman -S " + p.Arch},
		{"/etc/alpine-release", "apk add " + p.Alpine},
	} {
		if _, err := os.Stat(known.file); err == nil {
			return known.command
		}
	}
	return "install " + p.Library + " with the system's package manager"
}
