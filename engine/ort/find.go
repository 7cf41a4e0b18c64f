package ort

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/noether-ml/noether/internal/dynlib"
	"github.com/noether-ml/noether/internal/machine"
)

// envLibrary names the environment variable that holds the path of the ONNX Runtime library.
const envLibrary = "ONNXRUNTIME_LIB"

var errNotFound = errors.New("the ONNX Runtime library was not found: run 'npm ci --ignore-scripts' in the folder internal/runtime of the checkout, 'pip install onnxruntime' in a Python environment, or set --onnxruntime or " + envLibrary + " to the path of a library")

// Find is FindFor for the CPU.
func Find(explicit string) (path string, tried []string, err error) { return FindFor(explicit, cpu) }

// FindFor returns the path of the ONNX Runtime library for a device (a value of Options.Device, or
// Auto for the first graphics processor, else the CPU), and the paths that it tried, in order:
//
//   - explicit (the program's flag --onnxruntime), if it is not empty: a file, or the folder of the
//     library;
//   - the environment variable ONNXRUNTIME_LIB, likewise;
//   - the Python package onnxruntime or onnxruntime-gpu, in the Python environment that the
//     executable of this program belongs to, or in the active one. For the CPU it is taken here
//     only if a library lies beside the executable and is not newer; for Auto, only if the package
//     has CUDA; for WebGPU, which the package lacks, not here;
//   - the folder of the executable;
//   - internal/runtime/node_modules/onnxruntime-node, which npm installs, beside the executable, in the
//     parent of its folder, in the working directory and in the parents of that;
//   - noether/onnxruntime in the user's cache folder;
//   - the Python package, without these conditions;
//   - what the system's loader finds; path is then a bare file name.
//
// If explicit or the environment variable is set, the library must be there: no other place is
// searched. It is an error if there is no library, or if a Python package that would be taken for
// another device than the CPU is too old.
func FindFor(explicit, device string) (path string, tried []string, err error) {
	for _, named := range []struct{ by, path string }{{"--onnxruntime", explicit}, {envLibrary, os.Getenv(envLibrary)}} {
		if named.path == "" {
			continue
		}
		path, ok := libraryAt(named.path)
		if !ok {
			err = fmt.Errorf("no ONNX Runtime library at %s, set by %s: expected %s or its folder", named.path, named.by, libraryNames()[0])
		}
		return path, []string{named.path}, err
	}
	executable := machine.Program()
	environment := environmentFolders(executable)
	beside := versionedIn(filepath.Dir(executable))
	for _, dir := range environment {
		tried = append(tried, dir)
		found := versionedIn(dir)
		switch {
		case found.path == "", device == webgpu, device == Auto && !hasCUDA(dir):
		// Version 1.x of the library has the versions of the C API up to x.
		case device != cpu && checkVersion(found.String()) != nil:
			return "", tried, fmt.Errorf("the Python package's library %s is too old: 1.%d or later is needed ('pip install --upgrade onnxruntime-gpu')", found.path, apiVersion)
		case device != cpu || beside.path != "" && compareVersions(found.version, beside.version) >= 0:
			return found.path, tried, nil
		}
	}
	for _, dir := range append(searchFolders(executable), environment...) {
		tried = append(tried, dir)
		if path, ok := libraryAt(dir); ok {
			return path, tried, nil
		}
	}
	for _, name := range libraryNames() {
		tried = append(tried, name+" (system)")
		if library, err := dynlib.Open(name); err == nil {
			library.Close()
			return name, tried, nil
		}
	}
	return "", tried, errNotFound
}

// hasCUDA reports whether a folder of libraries contains ONNX Runtime's CUDA execution provider.
func hasCUDA(folder string) bool {
	found, _ := filepath.Glob(filepath.Join(folder, "*onnxruntime_providers_cuda*")) // the pattern is well formed
	return len(found) > 0
}

func libraryAt(path string) (string, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if !info.IsDir() {
		return path, true
	}
	for _, name := range libraryNames() {
		file := filepath.Join(path, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file, true
		}
	}
	found := versionedIn(path)
	return found.path, found.path != ""
}

func searchFolders(executable string) []string {
	var folders []string
	seen := map[string]bool{}
	add := func(dir string) {
		if !seen[dir] {
			seen[dir] = true
			folders = append(folders, dir)
		}
	}
	npm := npmFolder(runtime.GOOS, runtime.GOARCH)
	if executable != "" {
		dir := filepath.Dir(executable)
		add(dir)
		add(filepath.Join(dir, npm))
		add(filepath.Join(filepath.Dir(dir), npm))
	}
	if dir, err := os.Getwd(); err == nil {
		for {
			add(filepath.Join(dir, npm))
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	if cache, err := os.UserCacheDir(); err == nil {
		add(filepath.Join(cache, "noether", "onnxruntime"))
	}
	return folders
}

// npmFolder returns the folder of the library for a system and processor in the npm package
// onnxruntime-node, relative to a checkout of this repository. Node.js has its own names for
// systems and processors.
func npmFolder(goos, goarch string) string {
	if goos == "windows" {
		goos = "win32"
	}
	if goarch == "amd64" {
		goarch = "x64"
	}
	return filepath.Join("internal", "runtime", "node_modules", "onnxruntime-node", "bin", "napi-v6", goos, goarch)
}

// libraryNames returns the names of the library's file on this system, the most likely first.
func libraryNames() []string {
	switch runtime.GOOS {
	case "windows":
		return []string{"onnxruntime.dll"}
	case "darwin":
		return []string{"libonnxruntime.dylib", "libonnxruntime.1.dylib"}
	}
	return []string{"libonnxruntime.so", "libonnxruntime.so.1"}
}
