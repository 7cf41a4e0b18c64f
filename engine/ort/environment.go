package ort

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

type versionedLibrary struct {
	path    string
	version [3]int
}

func (l versionedLibrary) String() string {
	return fmt.Sprintf("%d.%d.%d", l.version[0], l.version[1], l.version[2])
}

var versionedName = regexp.MustCompile(`^libonnxruntime\.(?:so\.)?(\d+)\.(\d+)(?:\.(\d+))?(?:\.dylib)?$`)

// versionedIn returns the newest library of a folder by the versions in file names, or zero.
func versionedIn(folder string) versionedLibrary {
	var found versionedLibrary
	entries, err := os.ReadDir(folder)
	if err != nil {
		return found
	}
	for _, e := range entries {
		match := versionedName.FindStringSubmatch(e.Name())
		if match == nil || e.IsDir() {
			continue
		}
		var version [3]int
		for i, text := range match[1:] {
			version[i], _ = strconv.Atoi(text) // empty: 0
		}
		if found.path == "" || compareVersions(version, found.version) > 0 {
			found = versionedLibrary{filepath.Join(folder, e.Name()), version}
		}
	}
	return found
}

func compareVersions(a, b [3]int) int {
	return slices.CompareFunc(a[:], b[:], cmp.Compare[int])
}

// environmentFolders returns the folders in which the packages onnxruntime and onnxruntime-gpu keep
// their library, in the executable's Python environment and in the active one (venv or Conda).
func environmentFolders(executable string) []string {
	packages := []string{filepath.Dir(filepath.Dir(filepath.Dir(executable)))} // of SITE-PACKAGES/noether_ml/bin/noether
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		root := os.Getenv(name)
		if root == "" {
			continue
		}
		for _, pattern := range []string{filepath.Join("lib", "python3*", "site-packages"), filepath.Join("Lib", "site-packages")} {
			found, _ := filepath.Glob(filepath.Join(root, pattern)) // the pattern is well formed
			packages = append(packages, found...)
		}
	}
	var out []string
	for _, p := range packages {
		if folder := filepath.Join(p, "onnxruntime", "capi"); !slices.Contains(out, folder) {
			out = append(out, folder)
		}
	}
	return out
}
