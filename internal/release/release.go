// Package release names the program and its version, as registries of packages and users see them.
// It is the one place that states them: python/pyproject.toml, the changelog and the citation file
// repeat them, and the tests of this package compare these.
package release

import (
	"fmt"
	"regexp"
	"strings"
)

const (
	// Version is the version of the program, the Python wheel and the archives. It ends in -dev
	// between releases.
	Version = "0.3.0"
	// Command is the name of the program.
	Command = "noether"
	// Distribution is the name on the Python package index, where noether is another package.
	Distribution = "noether-ml"
	// Import is the name under which Python imports the package, since two other distributions are
	// imported as noether.
	Import = "noether_ml"
)

var form = regexp.MustCompile(`^(\d+\.\d+\.\d+)(-dev)?(?:\+([0-9a-z.]+))?$`)

// PythonVersion returns a version of the program in the form of PEP 440, such as
// 0.1.0.dev0+5e7a483c71f0. For a release it is 0.1.0, without the commit, since registries take no
// versions with a local part. A release with uncommitted changes is a dev version.
func PythonVersion(version string) (string, error) {
	match := form.FindStringSubmatch(version)
	switch {
	case match == nil:
		return "", fmt.Errorf("the version %q is not one such as 1.2.3, 1.2.3-dev or 1.2.3-dev+5e7a483c71f0", version)
	case match[2] == "" && !strings.HasSuffix(match[3], ".dirty"):
		return match[1], nil
	case match[3] == "":
		return match[1] + ".dev0", nil
	}
	return match[1] + ".dev0+" + match[3], nil
}
