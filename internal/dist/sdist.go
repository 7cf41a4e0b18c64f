package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/release"
)

// ofSource reports whether a tracked file belongs to the source distribution: what builds the wheel
// and its licence, without tests, their data, results and pictures.
func ofSource(name string) bool {
	for _, folder := range []string{"docs/", "papers/", "python/tests/", "python/zoo/", "python/site/", "internal/fixtures/", ".github/", ".ci/"} {
		if strings.HasPrefix(name, folder) {
			return name == "docs/CHANGELOG.md"
		}
	}
	return !strings.HasSuffix(name, "_test.go") && !strings.Contains(path.Dir(name)+"/", "/testdata/")
}

var buildSystem = regexp.MustCompile(`(?s)# The module as it is in a checkout.*?\n\[build-system\]\n.*?\n\n`)

// backend names the module that builds a wheel from the source distribution.
const backend = `# The source distribution: noether_build builds the command, for which it needs Go.
[build-system]
requires = []
build-backend = "noether_build"
backend-path = ["python/sdist"]

`

// writeSource writes the source distribution of the files that git tracks in the current folder, and
// returns its path.
func writeSource(out string, p project, version string) (string, error) {
	listed, err := output("git", "ls-files")
	if err != nil {
		return "", err
	}
	all := members{}
	for name := range strings.Lines(string(listed)) {
		if name = strings.TrimSpace(name); ofSource(name) {
			info, err := os.Stat(name)
			if err == nil {
				err = all.add(name, name, info.Mode()&0o111 != 0)
			}
			if err != nil {
				return "", err
			}
		}
	}
	settings, readme := all["python/pyproject.toml"].content, all["README.md"].content
	all["pyproject.toml"] = member{content: buildSystem.ReplaceAll(settings, []byte(backend))}
	all["PKG-INFO"] = member{content: append(p.metadata(version, []string{"LICENSE"}), readme...)}
	if !bytes.Contains(all["pyproject.toml"].content, []byte("noether_build")) {
		return "", errors.New("python/pyproject.toml has no table build-system after its comment, which the source distribution replaces")
	}
	name := release.Import + "-" + version
	file := filepath.Join(out, name+".tar.gz")
	return file, atomicfile.WriteFunc(file, func(w io.Writer) error { return writeMembers(w, name, all) })
}
