//go:build unix

package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNamedPipes checks that a named pipe in the place of a file, for which opening it would wait
// forever, is an error of one line, and that one in a folder is left out.
func TestNamedPipes(t *testing.T) {
	t.Parallel()
	dir := dots(t, "a.png", "b.png")
	pipe := filepath.Join(dir, "pipe.png")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil || f.Len() != 2 {
		t.Fatalf("%d images, %v", f.Len(), err)
	}
	if got := Notes(f); len(got) != 1 || !strings.HasSuffix(got[0], "named pipe: pipe.png") {
		t.Errorf("the notes are %q", got)
	}
	for name, open := range map[string]func() error{
		"cifar":   func() error { _, err := OpenCIFAR10(t.Context(), CIFAROptions{Paths: []string{pipe}}); return err },
		"idx":     func() error { _, err := OpenIDX(t.Context(), IDXOptions{Images: pipe}); return err },
		"arrays":  func() error { _, err := OpenArrays(t.Context(), ArraysOptions{Images: pipe}); return err },
		"parquet": func() error { _, err := OpenParquet(t.Context(), ParquetOptions{Paths: []string{pipe}}); return err },
		"shards":  func() error { _, err := OpenShards(t.Context(), ShardsOptions{Paths: []string{pipe}}); return err },
		"coco":    func() error { _, err := OpenCOCO(t.Context(), COCOOptions{Annotations: pipe, Images: dir}); return err },
		"labels":  func() error { _, err := OpenFolder(t.Context(), FolderOptions{Dir: dir, Labels: pipe}); return err },
		"image": func() error {
			labels := filepath.Join(t.TempDir(), "labels.csv")
			if err := os.WriteFile(labels, []byte("file,label\npipe.png,1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := OpenFolder(t.Context(), FolderOptions{Dir: dir, Labels: labels})
			return err
		},
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "it is a named pipe, not a file") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line that names the pipe", name, err)
		}
	}
}
