package machine_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/machine"
)

// TestPythonPackages finds the environment of a program of a wheel, and the active ones, each once.
func TestPythonPackages(t *testing.T) {
	root := t.TempDir()
	site := filepath.Join(root, "lib", "python3.12", "site-packages")
	if err := os.MkdirAll(site, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("VIRTUAL_ENV", root)
	if got := machine.PythonPackages(filepath.Join(site, "noether_ml", "bin", "noether")); !slices.Equal(got, []string{site}) {
		t.Errorf("%q, want %q", got, site)
	}
	if got := machine.PythonPackages("/opt/noether/bin/noether"); !slices.Equal(got, []string{"/opt", site}) {
		t.Errorf("%q", got)
	}
}
