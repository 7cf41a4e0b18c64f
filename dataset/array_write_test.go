package dataset_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
)

// TestWriteNPY checks that ReadArray reads what WriteNPY writes, and that the size of the header is
// a multiple of 64, as the npy format asks.
func TestWriteNPY(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 5).Draw(r, "shape")
		want := tensor.New(shape...)
		for i := range want.Data {
			want.Data[i] = float32(i) - 1.5
		}
		var b bytes.Buffer
		if err := dataset.WriteNPY(&b, want); err != nil {
			r.Fatal(err)
		}
		if (b.Len()-4*len(want.Data))%64 != 0 {
			r.Fatalf("the header has %d bytes, not a multiple of 64", b.Len()-4*len(want.Data))
		}
		path := filepath.Join(dir, "a.npy")
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			r.Fatal(err)
		}
		got, err := dataset.ReadArray(t.Context(), path, "")
		if err != nil {
			r.Fatal(err)
		}
		if !slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Data, want.Data) {
			r.Fatalf("read %v, wrote %v", got.Shape, want.Shape)
		}
	})
}
