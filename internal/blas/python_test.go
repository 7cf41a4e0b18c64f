package blas

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// TestThePackageOfPythonComesFirst checks that OpenBLAS of an active environment is tried before
// the libraries of the system.
func TestThePackageOfPythonComesFirst(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "lib", "python3.12", "site-packages", packageName, "lib")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "libscipy_openblas.so")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("VIRTUAL_ENV", root)
	if found := ofPython(); !slices.Equal(found, []string{path}) {
		t.Fatalf("found %q, want %s", found, path)
	}
	if all := candidates(); runtime.GOOS != "darwin" && all[0] != path {
		t.Errorf("%s is not the first of %q", path, all)
	}
}
