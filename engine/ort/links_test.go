package ort_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
)

// The cache of the Hugging Face Hub stores files by their hash in the folder blobs, and for each
// commit a folder of symbolic links to them. A model and its weights, in a second file, are read
// through such links.
func TestWeightsBehindLinks(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	dir := t.TempDir()
	snapshot, blobs := filepath.Join(dir, "snapshots", "commit"), filepath.Join(dir, "blobs")
	if err := errors.Join(os.MkdirAll(snapshot, 0o777), os.MkdirAll(blobs, 0o777)); err != nil {
		t.Fatal(err)
	}
	// 1f00 and 2e11 stand for hashes.
	for name, blob := range map[string]string{"external.onnx": "1f00", "external.bin": "2e11"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(blobs, blob), raw, 0o666)
		}
		if err == nil {
			err = os.Symlink(filepath.Join("..", "..", "blobs", blob), filepath.Join(snapshot, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	plain, err := onnx.Read("testdata/external.onnx")
	if err != nil {
		t.Fatal(err)
	}
	linked, err := onnx.Read(filepath.Join(snapshot, "external.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	a, err1 := plain.SHA256()
	b, err2 := linked.SHA256()
	if err := errors.Join(err1, err2); err != nil || a != b {
		t.Errorf("hashes %s and %s, %v", a, b, err)
	}
	s, err := rt.NewSession(linked, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
