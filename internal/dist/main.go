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
	"strings"

	"github.com/noether-ml/noether/internal/release"
	"github.com/noether-ml/noether/internal/tempfolder"
)

func main() {
	out := flag.String("o", "dist", "the folder to write to")
	commit := flag.String("commit", "", "the commit, which becomes part of the version")
	archive := flag.Bool("archive", false, "write the archive of a release too, and SHA256SUMS of all files")
	systems := flag.String("targets", runtime.GOOS+"/"+runtime.GOARCH, "the systems to build for, as OS/ARCHITECTURE, joined by commas; others than this one need -zig")
	zig := flag.String("zig", "", "compile the C code with this command of Zig, such as 'python3 -m ziglang': for other systems, and on Linux for older ones too")
	sums := flag.String("packaging", "", "build nothing, and write the files of package managers for the release with this SHA256SUMS")
	flag.Parse()
	if *sums != "" {
		if err := writePackaging(*out, release.Version, *sums); err != nil {
			fmt.Fprintln(os.Stderr, "dist:", err)
			os.Exit(1)
		}
		return
	}
	if err := build(*out, *commit, *archive, strings.Split(*systems, ","), *zig); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// build builds the packages for some systems and prints their paths.
func build(out, commit string, withArchive bool, systems []string, zig string) error {
	temp, remove, err := tempfolder.New("dist")
	if err != nil {
		return err
	}
	defer remove()
	host := filepath.Join(temp, target{os: runtime.GOOS}.program()) // the program for this system, which prints what the packages hold
	if err := compile(host, commit); err != nil {
		return err
	}
	share := filepath.Join(temp, "share")
	if _, err := output(host, "manuals", share); err != nil { // manual pages and shell completions
		return err
	}
	var written []string
	for _, system := range systems {
		t, err := findTarget(system)
		if err != nil {
			return err
		}
		var compiler []string
		switch native := system == runtime.GOOS+"/"+runtime.GOARCH; {
		case zig != "" && t.zig != "":
			compiler = t.environment(zig)
		case !native && t.zig == "":
			return fmt.Errorf("packages for %s are built on that system alone, which has its headers", system)
		case !native:
			return fmt.Errorf("building for %s on %s/%s needs a compiler for C: give -zig", system, runtime.GOOS, runtime.GOARCH)
		}
		program := filepath.Join(temp, t.os+"-"+t.arch, t.program())
		if err := compile(program, commit, compiler...); err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		paths, err := pack(out, t, host, program, share, withArchive)
		if err != nil {
			return fmt.Errorf("%s: %w", system, err)
		}
		written = append(written, paths...)
		fmt.Println(strings.Join(paths, "\n"))
	}
	if !withArchive {
		return nil
	}
	source, err := source(out, host)
	if err != nil {
		return err
	}
	fmt.Println(source)
	sums, err := writeSums(out, append(written, source)...)
	if err == nil {
		fmt.Println(sums)
	}
	return err
}

// compile builds the command, with variables of the environment that name a system and a compiler.
func compile(program, commit string, environment ...string) error {
	command := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w -X main.commit="+commit, "-o", program, "./cmd/noether")
	command.Env = append(os.Environ(), environment...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the command: %w\n%s", err, out)
	}
	return nil
}

// pack writes the wheel, and the archive, of a program and returns their paths. host is the same
// program for this system.
func pack(out string, t target, host, program, share string, withArchive bool) ([]string, error) {
	stated, err := statedVersion(host)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	library, err := findLibrary(t)
	if err != nil {
		return nil, err
	}
	parts, err := listParts(info, library.version) // the third-party software in the packages
	if err != nil {
		return nil, err
	}
	binaries := map[string]string{t.program(): program, library.name: library.path}
	tag, err := platformTag(t.os, t.arch, program, library.path)
	if err != nil {
		return nil, err
	}
	if jpeg, err := findJPEG(t, tag.glibc); err == nil {
		binaries[jpegLibrary], parts = jpeg.path, append(parts, jpeg.part)
	} else {
		fmt.Printf("%s/%s is without libjpeg-turbo: %v\n", t.os, t.arch, err)
	}
	notices, err := parts.notices()
	if err != nil {
		return nil, err
	}
	sbom, err := parts.sbom(stated)
	if err != nil {
		return nil, err
	}
	content := bundle{version: stated, binaries: binaries, share: share, notices: notices, sbom: sbom}
	ofWheel := content
	if ofWheel.version, err = release.PythonVersion(stated); err != nil {
		return nil, err
	}
	project, err := readProject(filepath.Join("python", "pyproject.toml"))
	if err != nil {
		return nil, err
	}
	wheel, err := writeWheel(out, wheel{bundle: ofWheel, tag: "py3-none-" + tag.String(), project: project, module: filepath.Join("python", release.Import), readme: "README.md", licence: "LICENSE"})
	if err != nil {
		return nil, err
	}
	if !withArchive {
		return []string{wheel}, nil
	}
	archive, err := writeArchive(out, t, content)
	return []string{wheel, archive}, err
}

// source writes the source distribution. host is the program, which states the version.
func source(out, host string) (string, error) {
	p, err := readProject(filepath.Join("python", "pyproject.toml"))
	if err != nil {
		return "", err
	}
	version, err := statedVersion(host)
	if err == nil {
		version, err = release.PythonVersion(version)
	}
	if err != nil {
		return "", err
	}
	return writeSource(out, p, version)
}

// statedVersion returns the version that a program states.
func statedVersion(program string) (string, error) {
	var about struct{ Noether string }
	raw, err := output(program, "version", "--json")
	if err == nil {
		err = json.Unmarshal(raw, &about)
	}
	return about.Noether, err
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

// findLibrary returns the library for a system.
func findLibrary(t target) (library, error) {
	folder := filepath.Join("internal", "runtime", "node_modules", "onnxruntime-node")
	raw, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		return library{}, fmt.Errorf("no ONNX Runtime: run make build first: %w", err)
	}
	var about struct{ Version string }
	if err := json.Unmarshal(raw, &about); err != nil {
		return library{}, err
	}
	arch := map[string]string{"amd64": "x64"}[t.arch]
	arch = cmp.Or(arch, t.arch)
	names := map[string][3]string{ // folder, file, installed name
		"linux":   {"linux", "libonnxruntime.so.1", "libonnxruntime.so." + about.Version},
		"darwin":  {"darwin", "libonnxruntime.1.dylib", "libonnxruntime." + about.Version + ".dylib"},
		"windows": {"win32", "onnxruntime.dll", "onnxruntime.dll"},
	}[t.os]
	l := library{filepath.Join(folder, "bin", "napi-v6", names[0], arch, names[1]), names[2], about.Version}
	if _, err := os.Stat(l.path); err != nil {
		return l, fmt.Errorf("no ONNX Runtime for %s/%s: %w", t.os, t.arch, err)
	}
	return l, nil
}
