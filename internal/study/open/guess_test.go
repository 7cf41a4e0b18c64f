package open

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/audio"
)

// TestGuessKind checks the kind of data that the files of a folder suggest, and that of single
// files. Names have brackets because these are special in glob patterns.
func TestGuessKind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, want := range map[string]string{
		"a[1]/data_batch_1.bin": "cifar10", "b[1]/test.bin": "cifar100", "c[x]/x-idx3-ubyte": "idx", "d[-]/a.parquet": "parquet", "e[]/a.tar": "webdataset", "f/a.png": "images",
	} {
		folder := filepath.Join(dir, filepath.Dir(name))
		writeEmpty(t, folder, filepath.Base(name))
		if got, err := GuessKind(folder); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]string{
		"x-images-idx3-ubyte.gz": "idx", "x.gz": "idx", "a.npz": "arrays", "a.tar": "webdataset",
		"a.tar.gz": "holds no data that Noether can read; give a folder", "a.tgz": "holds no data", "a.zip": "holds no data", "a.txt": "holds no data",
		"a.mat": "is an HDF5 or MATLAB file, which is not read: save its arrays", "a.onnx": "give the model first, then the data",
	} {
		writeEmpty(t, dir, name)
		got, err := GuessKind(filepath.Join(dir, name))
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", name, got, want)
		}
	}
	if _, err := UnpackedData(t.Context(), filepath.Join(dir, "photo")); err == nil || !strings.HasSuffix(err.Error(), "photo: no such file or folder") {
		t.Errorf("a path without a file: error %v", err)
	}
}

// TestGuessSound checks that recordings that cannot be read do not make a folder of sound one of
// images.
func TestGuessSound(t *testing.T) {
	t.Parallel()
	var tone bytes.Buffer
	if err := audio.WriteWAV(&tone, audio.Clip{Rate: 8000, Wave: make([]float32, 80)}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files map[string][]byte
		want  string
	}{
		"first empty":       {map[string][]byte{"a.wav": nil, "b.wav": tone.Bytes()}, "sound"},
		"first cut":         {map[string][]byte{"a.wav": tone.Bytes()[:20], "b.wav": tone.Bytes()}, "sound"},
		"first of no data":  {map[string][]byte{"a.wav": tone.Bytes()[:44], "b.wav": tone.Bytes()}, "sound"},
		"first another":     {map[string][]byte{"a.flac": []byte("ID3"), "b/c.wav": tone.Bytes()}, "sound"},
		"all empty":         {map[string][]byte{"a.wav": nil, "b.flac": nil}, "sound"},
		"empty, and images": {map[string][]byte{"a.wav": nil, "b.png": nil}, "images"},
	} {
		dir := t.TempDir()
		for file, data := range c.files {
			writeEmpty(t, filepath.Join(dir, filepath.Dir(file)), filepath.Base(file))
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := GuessKind(dir); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

// writeEmpty writes an empty file into a folder, which it makes if necessary.
func writeEmpty(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestOpenPathOfArchive opens a tar.gz of two images in folders of their classes, and one of a tar
// file: a shard of a WebDataset, which OpenPath does not unpack.
func TestOpenPathOfArchive(t *testing.T) {
	t.Setenv("NOETHER_CACHE", t.TempDir())
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 4))); err != nil {
		t.Fatal(err)
	}
	archive := func(name, content string, members ...string) string {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		w := tar.NewWriter(z)
		for _, m := range members {
			err := w.WriteHeader(&tar.Header{Name: m, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg})
			if err == nil {
				_, err = w.Write([]byte(content))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), name)
		w.Close()
		z.Close()
		if err := os.WriteFile(path, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	src, err := OpenPath(t.Context(), archive("data.tar.gz", picture.String(), "photos/cat/a.png", "photos/dog/b.png"))
	if err != nil {
		t.Fatal(err)
	}
	if src.Len() != 2 || fmt.Sprint(src.Classes()) != "[cat dog]" {
		t.Errorf("%d images of the classes %v, want 2 of cat and dog", src.Len(), src.Classes())
	}
	_, err = OpenPath(t.Context(), archive("shards.TGZ", "", "a.tar"))
	if err == nil || !strings.Contains(err.Error(), "unpack it and give the folder") {
		t.Errorf("an archive of a shard: error %v, want advice to unpack it", err)
	}
}
