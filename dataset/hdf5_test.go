package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHDF5 checks that an HDF5 file in place of an array, a folder, a Parquet file or a shard (a
// tar file of samples) gives an error of one line with hdf5Hint, which says how to convert it.
func TestHDF5(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "x.h5")
	if err := os.WriteFile(file, []byte(hdf5Signature+strings.Repeat("\x00", 100)), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() error{
		"arrays":           func() error { _, err := OpenArrayFile(t.Context(), file, ""); return err },
		"a folder":         func() error { _, err := OpenFolder(t.Context(), FolderOptions{Dir: dir}); return err },
		"a file as folder": func() error { _, err := OpenFolder(t.Context(), FolderOptions{Dir: file}); return err },
		"Parquet":          func() error { _, err := OpenParquet(t.Context(), ParquetOptions{Paths: []string{file}}); return err },
		"shards":           func() error { _, err := OpenShards(t.Context(), ShardsOptions{Paths: []string{file}}); return err },
	} {
		err := open()
		if err == nil || !strings.Contains(err.Error(), "x.h5") || !strings.Contains(err.Error(), hdf5Hint) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with the name of the file and %q", name, err, hdf5Hint)
		}
	}
	// y.h5 lacks the signature of HDF5.
	if err := os.WriteFile(filepath.Join(dir, "y.h5"), []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(t.Context(), FolderOptions{Dir: dir}); err == nil || strings.Contains(err.Error(), hdf5Hint) {
		t.Errorf("a folder with another file that ends in .h5: %v, want an error that is not about HDF5", err)
	}
}
