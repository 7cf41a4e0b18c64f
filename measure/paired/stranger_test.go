package paired_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestStranger tests a module that defines a measure from outside, in at most 40 lines.
func TestStranger(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("testdata", "stranger")
	code, err := os.ReadFile(filepath.Join(dir, "signs.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(code, []byte("\n")); n > 40 {
		t.Errorf("the measure takes %d lines, want at most 40", n)
	}
	c := exec.CommandContext(t.Context(), "go", "test", "./...")
	c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath")
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("go test in %s: %v\n%s", dir, err, out)
	}
}
