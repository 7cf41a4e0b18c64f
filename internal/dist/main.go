// Command dist builds what users install: the Python wheel, and with -archive the archive of a
// release with its checksums. Both hold the command, the library of ONNX Runtime, manual pages,
// shell completions, and the licences and a list (CycloneDX) of third-party software in them. It
// runs in the root of a checkout and builds for the system that it runs on.
//
//	go run ./internal/dist -o dist -commit 5e7a483c71f0
package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/noether-ml/noether/internal/release"
	"github.com/noether-ml/noether/internal/tempfolder"
)

func main() {
	out := flag.String("o", "dist", "the folder to write to")
	commit := flag.String("commit", "", "the commit, which becomes part of the version")
	archive := flag.Bool("archive", false, "write the archive of a release too, and SHA256SUMS of all files")
	flag.Parse()
	if err := build(*out, *commit, *archive); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// build builds the command and the packages that contain it, and prints the paths of the packages.
func build(out, commit string, withArchive bool) error {
	temp, remove, err := tempfolder.New("dist")
	if err != nil {
		return err
	}
	defer remove()
	name := release.Command
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	program, share := filepath.Join(temp, name), filepath.Join(temp, "share")
	if _, err := output("go", "build", "-trimpath", "-ldflags=-s -w -X main.commit="+commit, "-o", program, "./cmd/noether"); err != nil {
		return fmt.Errorf("building the command: %w", err)
	}
	if _, err := output(program, "manuals", share); err != nil { // manual pages and shell completions
		return err
	}
	var about struct{ Noether string }
	raw, err := output(program, "version", "--json")
	if err == nil {
		err = json.Unmarshal(raw, &about)
	}
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	library, err := findLibrary()
	if err != nil {
		return err
	}
	parts, err := listParts(info, library.version) // the third-party software in the packages
	if err != nil {
		return err
	}
	notices, err := parts.notices()
	if err != nil {
		return err
	}
	sbom, err := parts.sbom(about.Noether)
	if err != nil {
		return err
	}
	tag, err := platformTag(runtime.GOOS, runtime.GOARCH, program, library.path)
	if err != nil {
		return err
	}
	content := bundle{version: about.Noether, binaries: map[string]string{name: program, library.name: library.path}, share: share, notices: notices, sbom: sbom}
	ofWheel := content
	if ofWheel.version, err = release.PythonVersion(about.Noether); err != nil {
		return err
	}
	project, err := readProject(filepath.Join("python", "pyproject.toml"))
	if err != nil {
		return err
	}
	wheel, err := writeWheel(out, wheel{bundle: ofWheel, tag: "py3-none-" + tag, project: project, module: filepath.Join("python", release.Import), readme: "README.md", licence: "LICENSE"})
	if err != nil {
		return err
	}
	fmt.Println(wheel)
	if !withArchive {
		return nil
	}
	archive, err := writeArchive(out, content)
	if err != nil {
		return err
	}
	fmt.Println(archive)
	sums, err := writeSums(out, wheel, archive)
	if err == nil {
		fmt.Println(sums)
	}
	return err
}

// output runs a program and returns its standard output.
func output(name string, args ...string) ([]byte, error) {
	command := exec.Command(name, args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", filepath.Base(name), args[0], err)
	}
	return out, nil
}

// A library is the library of ONNX Runtime that npm has installed.
type library struct {
	path, name, version string // name is that of the file as it is installed
}

// findLibrary returns the library for the system that the program runs on.
func findLibrary() (library, error) {
	folder := filepath.Join("internal", "runtime", "node_modules", "onnxruntime-node")
	raw, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		return library{}, fmt.Errorf("no ONNX Runtime: run make build first: %w", err)
	}
	var about struct{ Version string }
	if err := json.Unmarshal(raw, &about); err != nil {
		return library{}, err
	}
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	arch = cmp.Or(arch, runtime.GOARCH)
	names := map[string][3]string{ // folder, file, installed name
		"linux":   {"linux", "libonnxruntime.so.1", "libonnxruntime.so." + about.Version},
		"darwin":  {"darwin", "libonnxruntime.1.dylib", "libonnxruntime." + about.Version + ".dylib"},
		"windows": {"win32", "onnxruntime.dll", "onnxruntime.dll"},
	}[runtime.GOOS]
	l := library{filepath.Join(folder, "bin", "napi-v6", names[0], arch, names[1]), names[2], about.Version}
	if _, err := os.Stat(l.path); err != nil {
		return l, fmt.Errorf("no ONNX Runtime for %s/%s: %w", runtime.GOOS, runtime.GOARCH, err)
	}
	return l, nil
}
