package dataset

import (
	"context"
	"errors"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/filestate"
	"github.com/noether-ml/noether/tensor"
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
		"raw arrays of an archive": func(dir string) (Source, string, error) {
			raw, err := os.ReadFile("testdata/arrays/stored.npz")
			file := filepath.Join(dir, "x.npz")
			if err := errors.Join(err, os.WriteFile(file, raw, 0o666)); err != nil {
				return nil, "", err
			}
			keys, err := ArrayKeys(ctx, file)
			if err != nil {
				return nil, "", err
			}
			src, err := OpenRawArrays(ctx, RawArraysOptions{Inputs: file, Key: keys[0]})
			return src, file, err
		},
		"parquet": func(dir string) (Source, string, error) {
			file := parquetOf(t, rowsOf(t, 0, 3), 3)
			src, err := OpenParquet(ctx, ParquetOptions{Paths: []string{file}})
			return src, file, err
		},
		"coco": func(dir string) (Source, string, error) {
			images := cocoFolder(t)
			src, err := OpenCOCO(ctx, COCOOptions{Annotations: writeText(t, filepath.Join(dir, "a.json"), cocoText), Images: images})
			return src, filepath.Join(images, "a.png"), err
		},
		"masks": func(dir string) (Source, string, error) {
			folder, err := OpenFolder(ctx, FolderOptions{Dir: cocoFolder(t)})
			if err != nil {
				return nil, "", err
			}
			for _, name := range []string{"a.png", "b.png"} {
				writeImage(t, filepath.Join(dir, name), image.NewGray(image.Rect(0, 0, 40, 20)))
			}
			src, err := WithMasks(ctx, folder, MasksOptions{Dir: dir})
			return src, filepath.Join(dir, "a.png"), err
		},
		"recordings": func(dir string) (Source, string, error) {
			file := filepath.Join(dir, "a.wav")
			if err := os.WriteFile(file, wavOfChannels(1, 1, 2, 3, 4), 0o666); err != nil {
				return nil, "", err
			}
			src, err := OpenAudio(ctx, AudioOptions{Dir: dir})
			return src, file, err
		},
		"decoded": func(dir string) (Source, string, error) {
			file := writeText(t, filepath.Join(dir, "a.txt"), "1")
			read := func(_ context.Context, path string, _ Frame, s *Sample) (err error) {
				_, err = os.ReadFile(path)
				s.Input = tensor.New(1, 1, 1)
				return err
			}
			src, err := OpenDecoded(ctx, FolderOptions{Dir: dir}, Decoder{What: "texts", Extensions: []string{".txt"}, Read: read})
			return src, file, err
		},
		"one of a pair": func(dir string) (Source, string, error) {
			clean, err := OpenFolder(ctx, FolderOptions{Dir: folderOf(t, map[string][]byte{"a.png": dot(t, 1)})})
			if err != nil {
				return nil, "", err
			}
			moved, err := OpenFolder(ctx, FolderOptions{Dir: folderOf(t, map[string][]byte{"a.png": dot(t, 2)})})
			if err != nil {
				return nil, "", err
			}
			src, err := Pair(ctx, clean, moved, "name")
			return src, filepath.Join(moved.dir, "a.png"), err
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
