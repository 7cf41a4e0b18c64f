package dataset

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// arrayFile returns the path of a file that testdata/arrays.py wrote. Names of files end in NumPy's
// codes of types: u1 is uint8, i4 int32, f2 float16 and so on (bytes, not bits). They begin with
// the axes, such as nhwc.
func arrayFile(name string) string { return filepath.Join("testdata", "arrays", name) }

// checkBatch compares a source with the four images of 4 x 2 pixels that testdata/arrays.py wrote:
// channel c of image n is 60 n + 15 y + 5 x + c, in units of 1/255.
func checkBatch(t *testing.T, src Source, channels int, tolerance float64) {
	t.Helper()
	if src.Len() != 4 {
		t.Fatalf("%d images, want 4", src.Len())
	}
	for _, n := range []int{3, 0, 2, 1} {
		s, err := src.At(t.Context(), n, Frame{}) // Frame{}: not resized
		if err != nil {
			t.Fatal(err)
		}
		if want := []int{channels, 4, 2}; !slices.Equal(s.Input.Shape, want) {
			t.Fatalf("shape %v, want %v", s.Input.Shape, want)
		}
		for i, v := range s.Input.Data {
			c, y, x := i/8, i/2%4, i%2
			if want := float64(60*n+15*y+5*x+c) / 255; math.Abs(float64(v)-want) > tolerance {
				t.Fatalf("image %d at (%d, %d, %d) is %v, want %v", n, c, y, x, v, want)
			}
		}
	}
}

// TestArrays opens images as NumPy saves them, with and without labels. Keys select arrays of an
// npz file, which may also have the labels.
func TestArrays(t *testing.T) {
	t.Parallel()
	cases := []struct {
		options   ArraysOptions
		channels  int
		tolerance float64 // of values in [0, 1]; float16 rounds most
		labelled  bool
	}{
		{ArraysOptions{Images: "nhwc-u1.npy"}, 3, 1e-7, false},
		{ArraysOptions{Images: "nchw-u1.npy"}, 3, 1e-7, false},
		{ArraysOptions{Images: "nhw-u1.npy"}, 1, 1e-7, false},
		{ArraysOptions{Images: "nhwc-f2.npy"}, 3, 5e-4, false},
		{ArraysOptions{Images: "nhwc-f4.npy"}, 3, 1e-7, false},
		{ArraysOptions{Images: "nhwc-f4-big.npy"}, 3, 1e-7, false}, // big-endian
		{ArraysOptions{Images: "nhwc-f8.npy"}, 3, 1e-7, false},
		{ArraysOptions{Images: "nhwc-i4-max255.npy", Max: 255}, 3, 1e-7, false},
		{ArraysOptions{Images: "nhwc-u1.npy", Labels: "labels-i8.npy"}, 3, 1e-7, true},
		{ArraysOptions{Images: "nhwc-u1.npy", Labels: "labels-u1.npy"}, 3, 1e-7, true},
		{ArraysOptions{Images: "nhwc-u1.npy", Labels: "labels-f4.npy"}, 3, 1e-7, true},
		{ArraysOptions{Images: "nhwc-u1.npy", Labels: "packed.npz", LabelsKey: "labels"}, 3, 1e-7, true},
		{ArraysOptions{Images: "stored.npz"}, 3, 1e-7, true},
		{ArraysOptions{Images: "stored.npz", ImagesKey: "x_test", LabelsKey: "y_test"}, 3, 1e-7, true},
		{ArraysOptions{Images: "packed.npz"}, 3, 1e-7, true}, // compressed
		{ArraysOptions{Images: "one.npz"}, 3, 1e-7, false},   // one array, without labels
	}
	for _, c := range cases {
		t.Run(c.options.Images+" "+c.options.Labels, func(t *testing.T) {
			o := c.options
			o.Images = arrayFile(o.Images)
			if o.Labels != "" {
				o.Labels = arrayFile(o.Labels)
			}
			src, err := OpenArrays(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			checkBatch(t, src, c.channels, c.tolerance)
			labels, err := sampleLabels(t.Context(), src)
			if err != nil {
				t.Fatal(err)
			}
			want := []int{NoLabel, NoLabel, NoLabel, NoLabel}
			if c.labelled {
				want = []int{2, 0, 1, 0} // as in testdata/arrays.py
			}
			if !slices.Equal(labels, want) || len(src.Classes()) != slices.Max(want)+1 {
				t.Errorf("labels %v of classes %v, want %v", labels, src.Classes(), want)
			}
		})
	}
}

// TestOneImageAsArray checks that an array of H x W x 3 is read as one colour image.
func TestOneImageAsArray(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "image.npy")
	data, err := tensor.From(make([]float32, 5*4*3), 5, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	data.Data[1] = 0.5 // the green of the first pixel
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteNPY(f, data), f.Close()); err != nil {
		t.Fatal(err)
	}
	src, err := OpenArrays(t.Context(), ArraysOptions{Images: path})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	s, err := src.At(t.Context(), 0, Frame{})
	if err != nil {
		t.Fatal(err)
	}
	if src.Len() != 1 || !slices.Equal(s.Input.Shape, []int{3, 5, 4}) || s.Input.Data[5*4] != 0.5 {
		t.Errorf("%d images, the first of shape %v, its first green value %v; want 1, [3 5 4], 0.5", src.Len(), s.Input.Shape, s.Input.Data[5*4])
	}
}

func TestOpenArraysErrors(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(arrayFile("nhwc-f4.npy"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := []struct {
		name    string
		options ArraysOptions
		want    string
	}{
		{"missing", ArraysOptions{Images: filepath.Join(dir, "no.npy")}, "no such file"},
		{"truncated", ArraysOptions{Images: write("short.npy", whole[:len(whole)-1])}, "is the file truncated?"},
		{"header alone", ArraysOptions{Images: write("head.npy", whole[:20])}, "damaged"},
		{"text", ArraysOptions{Images: write("text.npy", []byte("hello, here are no numbers"))}, "not an npy array"},
		{"empty", ArraysOptions{Images: write("empty.npy", nil)}, "not an npy array"},
		{"huge", ArraysOptions{Images: write("huge.npy", bytes.Replace(whole, []byte("(4, 4, 2, 3)"), []byte("(4, 9999999)"), 1))}, "too few"},
		{"objects", ArraysOptions{Images: arrayFile("objects.npy")}, "not plain numbers"},
		{"rank", ArraysOptions{Images: arrayFile("labels-i8.npy")}, "shape [4]"},
		{"layout", ArraysOptions{Images: arrayFile("nhwc-u1.npy"), Layout: "NHW"}, "does not fit shape"},
		{"unknown layout", ArraysOptions{Images: arrayFile("nhwc-u1.npy"), Layout: "CHWN"}, "unknown layout"},
		{"key", ArraysOptions{Images: arrayFile("stored.npz"), ImagesKey: "x"}, "use one of x_test, y_test, x_train, y_train"},
		{"labels are images", ArraysOptions{Images: arrayFile("nhwc-u1.npy"), Labels: arrayFile("nhwc-u1.npy")}, "does not match 4 images"},
		{"negative max", ArraysOptions{Images: arrayFile("nhwc-f4.npy"), Max: -1}, "above 0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := OpenArrays(t.Context(), c.options); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestArraysRange checks that values above 1 need Max, the value of white, or Raw, which leaves
// them unscaled. Image 3 starts with 3 * 60 (see checkBatch).
func TestArraysRange(t *testing.T) {
	t.Parallel()
	path := arrayFile("nhwc-i4-max255.npy") // values up to 231, while white is 1 by default
	src, err := OpenArrays(t.Context(), ArraysOptions{Images: path})
	if err != nil {
		t.Fatal(err)
	}
	var bad *BadSample // the error of one sample that cannot be used
	if _, err := src.At(t.Context(), 0, Frame{}); !errors.As(err, &bad) || !strings.Contains(err.Error(), "set max") {
		t.Errorf("error %v, want a bad sample with advice to set max", err)
	}
	if src, err = OpenArrays(t.Context(), ArraysOptions{Images: path, Raw: true}); err != nil {
		t.Fatal(err)
	}
	s, err := src.At(t.Context(), 3, Frame{})
	if err != nil || s.Input.Data[0] != 180 {
		t.Errorf("raw values start with %v (%v), want 180", s.Input.Data[:1], err)
	}
}

// TestHalfPrecision checks that values stored as float16 equal the same values stored as float64.
func TestHalfPrecision(t *testing.T) {
	t.Parallel()
	read := func(name string) []float64 {
		file, err := openArchive(t.Context(), arrayFile(name))
		if err != nil {
			t.Fatal(err)
		}
		a, err := file.open(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := a.read(0, a.shape[0])
		if err != nil {
			t.Fatal(err)
		}
		var values []float64
		for i := range a.shape[0] {
			values = append(values, a.value(raw[i*a.bytes:]))
		}
		return values
	}
	got, want := read("halves.npy"), read("halves-f8.npy") // half precision is float16
	for i := range want {
		if math.Float64bits(got[i]) != math.Float64bits(want[i]) && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Errorf("value %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// FuzzArrays checks that any file is an error or gives an image of the requested size.
func FuzzArrays(f *testing.F) {
	for _, name := range []string{"nhwc-u1.npy", "nhwc-f2.npy", "stored.npz", "packed.npz", "fortran.npy", "objects.npy"} {
		data, err := os.ReadFile(arrayFile(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "fuzzed.npz")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, layout := range []string{"", "NHWC"} {
			src, err := OpenArrays(context.Background(), ArraysOptions{Images: path, Layout: layout})
			if err != nil {
				continue
			}
			defer src.Close()
			s, err := src.At(context.Background(), src.Len()-1, Frame{Height: 3, Width: 3})
			if err == nil && len(s.Input.Data) != 3*3*src.c {
				t.Errorf("%d values in an image of %d channels", len(s.Input.Data), src.c)
			}
		}
	})
}
