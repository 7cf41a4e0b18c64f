package machine

import (
	"os"
	"path/filepath"
	"slices"
)

// PythonPackages returns the folders of the packages of Python environments: the one that an
// executable is in, as SITE-PACKAGES/noether_ml/bin/noether, and the active one (venv or Conda).
func PythonPackages(executable string) []string {
	all := []string{filepath.Dir(filepath.Dir(filepath.Dir(executable)))}
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		root := os.Getenv(name)
		if root == "" {
			continue
		}
		for _, pattern := range []string{filepath.Join("lib", "python3*", "site-packages"), filepath.Join("Lib", "site-packages")} {
			found, _ := filepath.Glob(filepath.Join(root, pattern)) // the pattern is well formed
			all = append(all, found...)
		}
	}
	var out []string
	for _, p := range all {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
