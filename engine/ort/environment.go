package ort

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/internal/machine"
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
	var out []string
	for _, p := range machine.PythonPackages(executable) {
		out = append(out, filepath.Join(p, "onnxruntime", "capi"))
	}
	return out
}
