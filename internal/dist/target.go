package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/release"
)

// A target is a system to build for.
type target struct {
	os, arch string // as Go names them
	zig      string // as Zig names it, with the oldest C library or system to run on; "": Zig lacks the system's headers
}

// targets are the systems that ONNX Runtime's npm package has a library for, by OS/ARCHITECTURE.
var targets = map[string]target{
	"linux/amd64":   {"linux", "amd64", "x86_64-linux-gnu.2.28"},
	"linux/arm64":   {"linux", "arm64", "aarch64-linux-gnu.2.28"},
	"darwin/arm64":  {"darwin", "arm64", ""}, // whose headers come with Xcode
	"windows/amd64": {"windows", "amd64", "x86_64-windows-gnu"},
}

func findTarget(system string) (target, error) {
	t, known := targets[system]
	if !known {
		return t, fmt.Errorf("no packages are built for %s, but for %s", system, strings.Join(slices.Sorted(maps.Keys(targets)), ", "))
	}
	return t, nil
}

// program returns the name of the command's file.
func (t target) program() string {
	if t.os == "windows" {
		return release.Command + ".exe"
	}
	return release.Command
}

// environment returns the variables with which Go builds for the target and Zig compiles C.
func (t target) environment(zig string) []string {
	compile := fmt.Sprintf("%s cc -target %s", zig, t.zig)
	return []string{"CGO_ENABLED=1", "GOOS=" + t.os, "GOARCH=" + t.arch, "CC=" + compile, "CXX=" + strings.Replace(compile, " cc ", " c++ ", 1)}
}
