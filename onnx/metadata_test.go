package onnx_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// TestMetadata checks that metadata properties of a small model (of model_test.go) are written to a
// file and read again. A later value of a key replaces an earlier one. A missing key reads as "",
// and files that are not ONNX are errors.
func TestMetadata(t *testing.T) {
	t.Parallel()
	m := small(t).WithMetadata("a", "1").WithMetadata("b", "two").WithMetadata("a", "3")
	data, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"a": "3", "b": "two", "c": ""} {
		if got, err := onnx.ReadMetadata(path, key); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", key, got, err, want)
		}
	}
	read, err := onnx.Read(path)
	if err != nil || len(read.Proto().MetadataProps) != 2 {
		t.Errorf("the model does not have two metadata properties: %v, %v", read, err)
	}
	// A file with no content here is not written.
	for name, content := range map[string]string{"text.onnx": "this is no model", "missing.onnx": ""} {
		bad := filepath.Join(t.TempDir(), name)
		if content != "" {
			if err := os.WriteFile(bad, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := onnx.ReadMetadata(bad, "a"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
