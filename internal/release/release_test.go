package release_test

import (
	"os"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/noether-ml/noether/internal/release"
)

// TestPythonVersion checks versions in the form of PEP 440. A release has no commit in its version,
// unless it was built with uncommitted changes (dirty).
func TestPythonVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"1.2.3": "1.2.3", "1.2.3+e7550aa1ad19": "1.2.3", "1.2.3+e7550aa1ad19.dirty": "1.2.3.dev0+e7550aa1ad19.dirty",
		"0.1.0-dev": "0.1.0.dev0", "0.1.0-dev+e7550aa1ad19": "0.1.0.dev0+e7550aa1ad19",
	} {
		if got, err := release.PythonVersion(version); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", version, got, err, want)
		}
	}
	for _, version := range []string{"", "1.2", "v1.2.3", "1.2.3-rc1"} {
		if got, err := release.PythonVersion(version); err == nil {
			t.Errorf("%q is taken for a version: %q", version, got)
		}
	}
}

// TestOthersRepeatTheRelease checks the files that state the version and the names again: the
// changelog has a section of the release, or of unreleased changes if the version ends in -dev.
func TestOthersRepeatTheRelease(t *testing.T) {
	t.Parallel()
	changelog := read(t, "../../docs/CHANGELOG.md")
	heading := "## [" + release.Version + "]"
	if strings.HasSuffix(release.Version, "-dev") {
		heading = "## [Unreleased]"
	}
	if !strings.Contains(changelog, heading+"\n") && !strings.Contains(changelog, heading+" ") {
		t.Errorf("the changelog has no heading %q", heading)
	}
	var file struct {
		Project struct {
			Name, Version string
			Scripts       map[string]string
		}
		Tool struct {
			Setuptools struct{ Packages []string }
			Mypy       struct{ Files []string }
		}
	}
	if _, err := toml.Decode(read(t, "../../python/pyproject.toml"), &file); err != nil {
		t.Fatal(err)
	}
	version, err := release.PythonVersion(release.Version)
	if err != nil {
		t.Fatal(err)
	}
	p, tool := file.Project, file.Tool
	for what, got := range map[string][2]string{
		"name":                      {p.Name, release.Distribution},
		"version":                   {p.Version, version},
		"script":                    {p.Scripts[release.Command], release.Import + ".__main__:main"},
		"tool.setuptools, packages": {strings.Join(tool.Setuptools.Packages, " "), release.Import},
		"tool.mypy, files":          {strings.Join(tool.Mypy.Files, " "), release.Import},
	} {
		if got[0] != got[1] {
			t.Errorf("python/pyproject.toml, %s: %q, want %q", what, got[0], got[1])
		}
	}
	if _, err := os.Stat("../../python/" + release.Import + "/__init__.py"); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
