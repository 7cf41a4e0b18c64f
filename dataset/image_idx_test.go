package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// idxImages returns an IDX file (the format of MNIST) of n images of 2 x 3 whose pixels count up
// from 0. The header is two zeros, the type of the elements (8: bytes, 13: float32), the number of
// axes, and the size of each axis in four bytes.
func idxImages(n byte) []byte {
	data := []byte{0, 0, 8, 3, 0, 0, 0, n, 0, 0, 0, 2, 0, 0, 0, 3}
	for i := range 6 * n {
		data = append(data, i)
	}
	return data
}

// idxLabels returns an IDX file of labels.
func idxLabels(labels ...byte) []byte {
	return append([]byte{0, 0, 8, 1, 0, 0, 0, byte(len(labels))}, labels...)
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// folderOf makes a folder of files, given as their contents by name, and returns its path.
func folderOf(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestIDX opens a folder of files with the names of MNIST, and single files.
func TestIDX(t *testing.T) {
	t.Parallel()
	dir := folderOf(t, map[string][]byte{
		"train-images-idx3-ubyte":    idxImages(3),
		"train-labels-idx1-ubyte.gz": gzipped(t, idxLabels(4, 0, 2)),
		"t10k-images.idx3-ubyte.gz":  gzipped(t, idxImages(2)),
		"t10k-labels.idx1-ubyte":     idxLabels(1, 3),
		"alone":                      idxImages(1),
		"alone-labels":               idxLabels(7),
	})
	cases := []struct {
		name    string
		options IDXOptions
		labels  []int
	}{
		{"test by default", IDXOptions{Images: dir}, []int{1, 3}},
		{"train", IDXOptions{Images: dir, Part: "train"}, []int{4, 0, 2}},
		{"all", IDXOptions{Images: dir, Part: "all"}, []int{4, 0, 2, 1, 3}},
		{"file", IDXOptions{Images: filepath.Join(dir, "t10k-images.idx3-ubyte.gz")}, []int{1, 3}},
		{"no labels", IDXOptions{Images: filepath.Join(dir, "alone")}, []int{NoLabel}},
		{"labels", IDXOptions{Images: filepath.Join(dir, "alone"), Labels: filepath.Join(dir, "alone-labels")}, []int{7}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			src, err := OpenIDX(t.Context(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			labels, err := sampleLabels(t.Context(), src)
			if err != nil || !slices.Equal(labels, c.labels) || len(src.Classes()) != slices.Max(c.labels)+1 {
				t.Errorf("labels %v of %v (%v), want %v", labels, src.Classes(), err, c.labels)
			}
			s, err := src.At(t.Context(), src.Len()-1, Frame{}) // Frame{}: not resized
			if err != nil || !slices.Equal(s.Input.Shape, []int{1, 2, 3}) {
				t.Fatalf("shape %v, %v", s.Input.Shape, err)
			}
			// The name ends in # and the number of the image in its file; an image has six pixels.
			number := strings.Split(s.Name, "#")[1][0] - '0'
			for i, v := range s.Input.Data {
				if want := float32(6*number+byte(i)) / 255; v != want {
					t.Errorf("pixel %d of %s is %v, want %v", i, s.Name, v, want)
				}
			}
		})
	}
}

// TestOpenIDXErrors opens files with one mistake each. The header of "floats" has the type float32,
// and that of "huge" has axes of 2^32 - 1; cut.gz lacks its last 9 bytes, and not.gz is not
// compressed.
func TestOpenIDXErrors(t *testing.T) {
	t.Parallel()
	images := idxImages(3)
	whole := gzipped(t, images)
	dir := folderOf(t, map[string][]byte{
		"short": images[:len(images)-1], "part of the header": images[:9], "text": []byte("text, not images"), "labels": idxLabels(1, 2),
		"floats": append([]byte{0, 0, 13}, images[3:]...), "huge": append([]byte{0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, images...),
		"none": {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3}, "good": images, "cut.gz": whole[:len(whole)-9], "not.gz": images,
	})
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct {
		options IDXOptions
		want    string
	}{
		"short":              {IDXOptions{Images: file("short")}, "truncated"},
		"part of the header": {IDXOptions{Images: file("part of the header")}, "too short"},
		"text":               {IDXOptions{Images: file("text")}, "not an IDX file"},
		"labels as images":   {IDXOptions{Images: file("labels")}, "exchanged"},
		"floats":             {IDXOptions{Images: file("floats")}, "only bytes"},
		"huge":               {IDXOptions{Images: file("huge")}, "do not fit"},
		"none":               {IDXOptions{Images: file("none")}, "is 0"},
		"other count":        {IDXOptions{Images: file("good"), Labels: file("labels")}, "2 labels for 3 images"},
		"cut":                {IDXOptions{Images: file("cut.gz")}, "too early"},
		"no gzip":            {IDXOptions{Images: file("not.gz")}, "gzip"},
		"folder":             {IDXOptions{Images: dir}, "no file *t10k-images"},
		"no file":            {IDXOptions{Images: file("nowhere")}, "no such file"},
		"a folder":           {IDXOptions{Images: file("good"), Labels: dir}, "is a folder"},
	} {
		if _, err := OpenIDX(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// FuzzIDX checks that any files are an error or give images with valid labels.
func FuzzIDX(f *testing.F) {
	f.Add(idxImages(3), idxLabels(1, 2, 3), false)
	f.Add(gzipped(f, idxImages(2)), gzipped(f, idxLabels(1, 2)), true)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, images, labels []byte, zipped bool) {
		ending := ""
		if zipped {
			ending = ".gz"
		}
		paths := []string{filepath.Join(dir, "images"+ending), filepath.Join(dir, "labels"+ending)}
		for i, data := range [][]byte{images, labels} {
			if err := os.WriteFile(paths[i], data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		src, err := OpenIDX(context.Background(), IDXOptions{Images: paths[0], Labels: paths[1]})
		if err != nil {
			return
		}
		defer src.Close()
		for i := range min(src.Len(), 20) {
			s, err := src.At(context.Background(), i, Frame{Height: 2, Width: 2})
			if err != nil || s.Label < 0 || s.Label >= len(src.Classes()) {
				t.Fatalf("image %d: label %d, %v", i, s.Label, err)
			}
		}
	})
}
