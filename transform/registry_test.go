package transform

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryKindIsRegistered checks that Kinds, in kind.go, calls each function of the package that
// returns a Kind, the description of one kind of transform.
func TestEveryKindIsRegistered(t *testing.T) {
	t.Parallel()
	registry, err := os.ReadFile("kind.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (\w+Kind)\(\) Kind `).FindAllStringSubmatch(string(text), -1) {
			n++
			if !strings.Contains(string(registry), m[1]+"()") {
				t.Errorf("%s: %s is not called by Kinds in kind.go", file, m[1])
			}
		}
	}
	if n != len(Kinds()) {
		t.Errorf("%d functions describe kinds, and Kinds returns %d", n, len(Kinds()))
	}
}
