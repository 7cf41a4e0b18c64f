package ort

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/machine"
)

// putLibrary creates an empty file with the library's name in a folder, and returns its path.
func putLibrary(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, libraryNames()[0])
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFindConfigured checks that a path that is given, as an argument or by the environment
// variable, is the only one tried.
func TestFindConfigured(t *testing.T) {
	dir := t.TempDir()
	lib := putLibrary(t, dir)
	other := putLibrary(t, filepath.Join(dir, "other"))
	t.Setenv(envLibrary, other)
	for _, c := range []struct{ explicit, want string }{{lib, lib}, {dir, lib}, {"", other}} {
		if got, tried, err := Find(c.explicit); err != nil || got != c.want || len(tried) != 1 {
			t.Errorf("Find(%q) = %q, %q, %v, want %q", c.explicit, got, tried, err, c.want)
		}
	}
	for _, explicit := range []string{filepath.Join(dir, "none"), t.TempDir()} {
		_, _, err := Find(explicit)
		if err == nil || !strings.Contains(err.Error(), explicit) || !strings.Contains(err.Error(), "--onnxruntime") {
			t.Errorf("Find(%q) returns error %v", explicit, err)
		}
	}
	t.Setenv(envLibrary, filepath.Join(dir, "none"))
	if _, _, err := Find(""); err == nil || !strings.Contains(err.Error(), envLibrary) {
		t.Errorf("Find with a wrong %s returns error %v", envLibrary, err)
	}
}

// TestFindSearchesFolders checks that without a given path the folder that npm installs into, below
// the working folder or one above it, comes before the user's cache folder.
func TestFindSearchesFolders(t *testing.T) {
	t.Setenv(envLibrary, "")
	root, cache := t.TempDir(), t.TempDir()
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	t.Setenv("HOME", cache)
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("LocalAppData", cache)
	npm := npmFolder(runtime.GOOS, runtime.GOARCH)

	if _, tried, err := Find(""); err == nil {
		t.Log("the system or a Python environment has the library")
	} else if !errors.Is(err, errNotFound) || !slices.Contains(tried, filepath.Join(below, npm)) || !slices.Contains(tried, filepath.Join(root, npm)) {
		t.Errorf("tried %q, %v", tried, err)
	}
	cacheDir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cached := putLibrary(t, filepath.Join(cacheDir, "noether", "onnxruntime"))
	if got, _, err := Find(""); err != nil || got != cached {
		t.Errorf("Find = %q, %v, want %q", got, err, cached)
	}
	checkout := putLibrary(t, filepath.Join(root, npm))
	if got, _, err := Find(""); err != nil || got != checkout {
		t.Errorf("Find = %q, %v, want %q", got, err, checkout)
	}
}

func TestNpmFolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ goos, goarch, end string }{
		{"linux", "amd64", "linux/x64"}, {"linux", "arm64", "linux/arm64"}, {"darwin", "arm64", "darwin/arm64"}, {"windows", "amd64", "win32/x64"},
	} {
		if got := filepath.ToSlash(npmFolder(c.goos, c.goarch)); got != "internal/runtime/node_modules/onnxruntime-node/bin/napi-v6/"+c.end {
			t.Errorf("%s, %s: %q", c.goos, c.goarch, got)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"1.24.1": true, "1.30.0": true, "2.0.0": true, "1.24.0-dev": true,
		"1.23.2": false, "1.9.0": false, "0.5.0": false, "": false, "nonsense": false, "a.b": false,
	} {
		if err := checkVersion(version); (err == nil) != ok {
			t.Errorf("version %q: %v", version, err)
		} else if err != nil && !strings.Contains(err.Error(), "install 1.24") {
			t.Errorf("version %q: %v does not name the version to install", version, err)
		}
	}
}

// TestFindInPythonEnvironment checks when the library of the Python package onnxruntime is taken:
// if it is not too old, and has what the device needs. Auto stands for a graphics processor if
// there is one, or else the CPU.
func TestFindInPythonEnvironment(t *testing.T) {
	t.Setenv(envLibrary, "")
	root := t.TempDir()
	t.Setenv("VIRTUAL_ENV", root)
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("HOME", root)
	t.Setenv("XDG_CACHE_HOME", root)
	t.Chdir(root)
	capi := filepath.Join(root, "lib", "python3.11", "site-packages", "onnxruntime", "capi")
	if err := os.MkdirAll(capi, 0o755); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(capi, "libonnxruntime.so.1.20.1")
	recent := filepath.Join(capi, "libonnxruntime.so.1.130.0") // newer than any release
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := FindFor("", "cuda"); err == nil || !strings.Contains(err.Error(), old) || !strings.Contains(err.Error(), "pip install") {
		t.Errorf("a library that is too old: %v", err)
	}
	if err := os.WriteFile(recent, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, device := range []string{"cpu", "cuda"} {
		if got, _, err := FindFor("", device); err != nil || got != recent {
			t.Errorf("FindFor(%q) = %q, %v, want %q", device, got, err, recent)
		}
	}
	for _, device := range []string{"webgpu", Auto} { // other folders come first: the package has neither WebGPU nor, yet, CUDA
		if _, tried, err := FindFor("", device); err != nil || len(tried) < 2 {
			t.Errorf("FindFor(%q) tried %q, %v, want more folders than the package's", device, tried, err)
		}
	}
	provider := filepath.Join(capi, "libonnxruntime_providers_cuda.so")
	if err := os.WriteFile(provider, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, tried, err := FindFor("", Auto); err != nil || got != recent || len(tried) > 2 {
		t.Errorf("FindFor(auto) = %q, %v after %q, want the package with CUDA", got, err, tried)
	}
	beside := filepath.Join(filepath.Dir(machine.Program()), "libonnxruntime.so.1.131.0")
	if err := os.WriteFile(beside, nil, 0o644); err != nil {
		t.Skip("no library can be put beside the test's program:", err)
	}
	defer os.Remove(beside)
	if got, _, err := FindFor("", "cpu"); err != nil || got != beside {
		t.Errorf("FindFor(cpu) = %q, %v, want the newer one beside the program", got, err)
	}
	if got, _, err := FindFor("", "cuda"); err != nil || got != recent {
		t.Errorf("FindFor(cuda) = %q, %v, want %q", got, err, recent)
	}
}
