package paired_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
)

// TestStranger builds a module that defines a measure from outside, in at most 40 lines, and runs
// it on arrays and on an ONNX model.
func TestStranger(t *testing.T) {
	t.Parallel()
	library, _, err := ort.Find("")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(filepath.Join("testdata", "stranger", "signs.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(code, []byte("\n")); n > 40 {
		t.Errorf("the measure takes %d lines, want at most 40", n)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "stranger"))); err != nil {
		t.Fatal(err)
	}
	// The versions of all modules are those of this one.
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "go.mod" {
			const own = "github.com/noether-ml/noether"
			rest := strings.TrimPrefix(string(text), "module "+own+"\n")
			text = fmt.Appendf(nil, "module example.com/stranger\n%s\nrequire %s v0.0.0\n\nreplace %[2]s => %s\n", rest, own, root)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "go", "test", "-mod=mod", "./...")
	c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-trimpath", "ONNXRUNTIME_LIB="+library)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("go test in %s: %v\n%s", dir, err, out)
	}
}
