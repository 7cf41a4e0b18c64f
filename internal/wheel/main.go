// Command wheel builds the Python wheel: the command, the library of ONNX Runtime and the module of
// python/noether, for Linux on the machine's architecture. It runs in the root of a checkout.
//
//	go run ./internal/wheel -o dist
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
)

func main() {
	out := flag.String("o", "dist", "the folder to write to")
	flag.Parse()
	path, err := build(*out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wheel:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// build builds the command and the wheel, and returns the path of the wheel.
func build(out string) (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("wheels are built on Linux, not on %s", runtime.GOOS)
	}
	made, err := os.MkdirTemp("", "wheel")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	program := filepath.Join(made, "noether")
	command := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./cmd/noether")
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("building the command: %w", err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	library, libraryName, err := findLibrary()
	if err != nil {
		return "", err
	}
	tag, err := platformTag(runtime.GOARCH, program, library)
	if err != nil {
		return "", err
	}
	return writeWheel(out, wheel{
		version: pythonVersion(info.Main.Version), tag: "py3-none-" + tag,
		module: filepath.Join("python", "noether"), readme: "README.md", licence: "LICENSE",
		binaries: map[string]string{"noether": program, libraryName: library},
	})
}

// findLibrary returns the library that npm has installed, and its file name with its version.
func findLibrary() (path, name string, err error) {
	folder := filepath.Join("runtime", "node_modules", "onnxruntime-node")
	raw, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		return "", "", fmt.Errorf("no ONNX Runtime: run make build first: %w", err)
	}
	var about struct{ Version string }
	if err := json.Unmarshal(raw, &about); err != nil {
		return "", "", err
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return filepath.Join(folder, "bin", "napi-v6", "linux", arch, "libonnxruntime.so.1"), "libonnxruntime.so." + about.Version, nil
}

var goVersion = regexp.MustCompile(`^v(\d+\.\d+\.\d+)(?:-(?:0\.|[\w.]+\.0\.)?(\d{14})-([0-9a-f]{12}))?(?:\+dirty)?$`)

// pythonVersion returns a version of Go's build information in the form of PEP 440. Commits without
// a version are development versions.
func pythonVersion(version string) string {
	match := goVersion.FindStringSubmatch(version)
	switch {
	case match == nil:
		return "0.0.0.dev0"
	case match[2] == "":
		return match[1]
	}
	return match[1] + ".dev" + match[2] + "+g" + match[3]
}
