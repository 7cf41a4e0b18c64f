package dataset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/filestate"
)

// TestFilesThatChange checks for sources of every kind that a sample of a file that was replaced,
// or written to, after the source was opened is an error of the source, and no *BadSample. Before
// the change the samples can be read.
func TestFilesThatChange(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, open := range map[string]func(dir string) (src Source, file string, err error){
		"folder": func(dir string) (Source, string, error) {
			src, err := OpenFolder(ctx, FolderOptions{Dir: folderOf(t, map[string][]byte{"a.png": dot(t, 1)})})
			return src, filepath.Join(src.dir, "a.png"), err
		},
		"shards": func(dir string) (Source, string, error) {
			file := shard(t, "a.tar", member{"1.png", dot(t, 1)})
			src, err := OpenShards(ctx, ShardsOptions{Paths: []string{file}})
			return src, file, err
		},
		"cifar": func(dir string) (Source, string, error) {
			file := filepath.Join(dir, "test_batch.bin")
			if err := os.WriteFile(file, make([]byte, 2*3073), 0o666); err != nil {
				return nil, "", err
			}
			src, err := OpenCIFAR10(ctx, CIFAROptions{Paths: []string{file}})
			return src, file, err
		},
		"idx": func(dir string) (Source, string, error) {
			file := filepath.Join(dir, "t10k-images-idx3-ubyte")
			raw := append([]byte{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2}, 1, 2, 3, 4)
			if err := os.WriteFile(file, raw, 0o666); err != nil {
				return nil, "", err
			}
			src, err := OpenIDX(ctx, IDXOptions{Images: file})
			return src, file, err
		},
		"arrays": func(dir string) (Source, string, error) {
			file := filepath.Join(dir, "x.npy")
			header := "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2), }"
			header += strings.Repeat(" ", 117-len(header)) + "\n"
			raw := append([]byte("\x93NUMPY\x01\x00\x76\x00"+header), 1, 2, 3, 4)
			if err := os.WriteFile(file, raw, 0o666); err != nil {
				return nil, "", err
			}
			src, err := OpenArrays(ctx, ArraysOptions{Images: file})
			return src, file, err
		},
	} {
		src, file, err := open(t.TempDir())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		defer Close(src)
		// Wrapped sources pass the error on.
		src = Limit(src, 1)
		if _, err := src.At(ctx, 0, Frame{}); err != nil {
			t.Errorf("%s: before the change: %v", name, err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)-1]++
		if err := errors.Join(os.WriteFile(file, raw, 0o666), os.Chtimes(file, time.Time{}, info.ModTime())); err != nil {
			t.Fatal(err)
		}
		_, err = src.At(ctx, 0, Frame{})
		if changed := (*filestate.ChangedError)(nil); !errors.As(err, &changed) || changed.Path != file || errors.As(err, new(*BadSample)) {
			t.Errorf("%s: a changed file: %v, want an error that names %s", name, err, file)
		}
	}
}

// TestErrorsThatPass checks that a file that is missing for a moment is read, and that one that
// stays away is an error of the source, and no *BadSample.
func TestErrorsThatPass(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, map[string][]byte{"a.png": dot(t, 1), "b.png": dot(t, 2)})
	src, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	// To rename the folder changes nothing of the files.
	away := dir + " away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(60*time.Millisecond, func() { os.Rename(away, dir) })
	if _, err := src.At(t.Context(), 0, Frame{}); err != nil {
		t.Errorf("a file that was missing for a moment: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "b.png")); err != nil {
		t.Fatal(err)
	}
	_, err = src.At(t.Context(), 1, Frame{})
	if err == nil || errors.As(err, new(*BadSample)) || !errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a file that was removed: %v", err)
	}
}
