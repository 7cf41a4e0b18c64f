package extract_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/recorded"
	"github.com/noether-ml/noether/internal/extract"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/tensor"
)

var layers = []tensor.Layer{
	{Name: "/block/conv", Depth: 1, Shape: []int{2, 1, 3}, Axes: "NCHW"},
	{Name: "logits", Depth: 2, Shape: []int{2}, Axes: "NC"},
}

// value is the i-th value of a layer for the sample with an index, under a view.
func value(view string, layer, index, i int) float32 {
	return float32(len(view)*1000 + layer*100 + index*10 + i)
}

// write writes two batches of samples, with the indices 0, 1 and 3 of four, and a third batch that
// is empty. The tensors have room for two samples.
func write(t *testing.T, dir string, o extract.Options, views []string) *extract.Writer {
	t.Helper()
	w, err := extract.NewWriter(dir, o, layers, views, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, indices := range [][]int{{0, 1}, {3}} {
		var samples []dataset.Sample
		for _, i := range indices {
			samples = append(samples, dataset.Sample{Name: string(rune('a' + i)), Index: i, Label: i - 1})
		}
		if err := w.Samples(samples); err != nil {
			t.Fatal(err)
		}
		for _, view := range views {
			var z []tensor.Tensor
			for k, l := range layers {
				x := tensor.New(append([]int{2}, l.Shape...)...)
				for row, index := range indices {
					for i := range x.At(row).Data {
						x.At(row).Data[i] = value(view, k, index, i)
					}
				}
				z = append(z, x)
			}
			if err := w.Write(view, z); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestFormats writes three of four announced samples in each format, and reads them as recorded
// activations and as arrays.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, format := range extract.Formats() {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "model")
			views := []string{"", "turn/90"}
			w := write(t, dir, extract.Options{Format: format}, views)
			if w.Rows() != 3 || len(w.NonFinite) != 0 {
				t.Errorf("%d rows, NaN at %v", w.Rows(), w.NonFinite)
			}
			var entries []extract.Entry
			raw, err := os.ReadFile(filepath.Join(dir, "activations.json"))
			if err == nil {
				err = json.Unmarshal(raw, &entries)
			}
			if err != nil || len(entries) != 4 {
				t.Fatalf("%d entries: %v", len(entries), err)
			}
			for i, e := range entries {
				view, k := views[i/2], i%2
				a, err := dataset.ReadArray(t.Context(), filepath.Join(dir, e.File), e.Key)
				if err != nil {
					t.Fatal(err)
				}
				want := append([]int{3}, layers[k].Shape...)
				if format == extract.Parquet {
					want = []int{3, tensor.Size(layers[k].Shape)}
				}
				if e.Layer != layers[k].Name || !slices.Equal(a.Shape, want) || !slices.Equal(e.Shape, want) {
					t.Errorf("%+v has the shape %v, want %s with %v", e, a.Shape, layers[k].Name, want)
				}
				for row, index := range []int{0, 1, 3} {
					for j, got := range a.At(row).Data {
						if want := value(view, k, index, j); got != want {
							t.Errorf("%s, layer %s, sample %d, value %d is %g, want %g", e.View, e.Layer, index, j, got, want)
						}
					}
				}
			}

			net, err := recorded.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer net.Close()
			found, err := net.Layers(t.Context(), engine.Setup{})
			if err != nil {
				t.Fatal(err)
			}
			if n, listed := net.Samples(); n != 3 || !listed || len(found.All) != 2 {
				t.Errorf("%d samples, listed: %v, %d layers", n, listed, len(found.All))
			}
			list, err := os.ReadFile(filepath.Join(dir, "samples.csv"))
			if want := "row,sample,index,label\n0,a,0,\n1,b,1,0\n2,d,3,2\n"; string(list) != want || err != nil {
				t.Errorf("samples %q, want %q: %v", list, want, err)
			}
		})
	}
}

// TestZarr writes rows of 3 MiB, of which a chunk has two, and reads the files: the last chunk has
// zeros in place of a fourth row. Tests of the Python package read such files by its library.
func TestZarr(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "model")
	layer := tensor.Layer{Name: "/a/b", Shape: []int{3, 512, 512}, Axes: "NCHW"}
	w, err := extract.NewWriter(dir, extract.Options{Format: extract.Zarr}, []tensor.Layer{layer}, []string{""}, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range [][]float32{{1}, {2, 3}} { // the second batch is in two chunks
		z := tensor.New(len(rows), 3, 512, 512)
		for i, v := range rows {
			for j := range z.At(i).Data {
				z.At(i).Data[j] = v
			}
		}
		if err := errors.Join(w.Samples(make([]dataset.Sample, len(rows))), w.Write("", []tensor.Tensor{z})); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var array struct {
		Shape     []int
		ChunkGrid struct {
			Configuration struct {
				ChunkShape []int `json:"chunk_shape"`
			}
		} `json:"chunk_grid"`
		DimensionNames []string `json:"dimension_names"`
	}
	path := filepath.Join(dir, "clean", "a", "b.zarr")
	raw, err := os.ReadFile(filepath.Join(path, "zarr.json"))
	if err == nil {
		err = json.Unmarshal(raw, &array)
	}
	if err != nil || !slices.Equal(array.Shape, []int{3, 3, 512, 512}) || !slices.Equal(array.ChunkGrid.Configuration.ChunkShape, []int{2, 3, 512, 512}) ||
		strings.Join(array.DimensionNames, "") != "NCHW" {
		t.Errorf("%+v: %v", array, err)
	}
	for _, group := range []string{"", "clean", "clean/a"} {
		if raw, err := os.ReadFile(filepath.Join(dir, group, "zarr.json")); err != nil || !strings.Contains(string(raw), `"group"`) {
			t.Errorf("group %q: %s, %v", group, raw, err)
		}
	}
	for chunk, rows := range [][]float32{{1, 2}, {3, 0}} {
		raw, err := os.ReadFile(filepath.Join(path, "c", strconv.Itoa(chunk), "0", "0", "0"))
		if err != nil || len(raw) != 2*4*tensor.Size(layer.Shape) {
			t.Fatalf("chunk %d has %d bytes: %v", chunk, len(raw), err)
		}
		for i, want := range rows {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(raw[i*len(raw)/2:])); got != want {
				t.Errorf("chunk %d, row %d is %v, want %v", chunk, i, got, want)
			}
		}
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, extract.Options{Format: extract.NPY, Pool: pooling.Mean}, []string{""})
	a, err := dataset.ReadArray(t.Context(), filepath.Join(dir, "clean", "block", "conv.npy"), "")
	if err != nil {
		t.Fatal(err)
	}
	// Of the last sample, channel 1 has the values 33, 34 and 35.
	if !slices.Equal(a.Shape, []int{3, 2}) || a.At(2).Data[1] != 34 {
		t.Errorf("shape %v, last value %g, want 3 x 2 and 34", a.Shape, a.At(2).Data[1])
	}
}

func TestNonFinite(t *testing.T) {
	t.Parallel()
	w, err := extract.NewWriter(t.TempDir(), extract.Options{Format: extract.Safetensors}, layers, []string{""}, 1)
	if err != nil {
		t.Fatal(err)
	}
	bad := tensor.New(1, 2)
	bad.Data[1] = float32(math.NaN())
	if err := w.Samples(make([]dataset.Sample, 1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Write("", []tensor.Tensor{tensor.New(1, 2, 1, 3), bad}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || len(w.NonFinite) != 1 || !w.NonFinite["logits"] {
		t.Errorf("NaN at %v, want logits: %v", w.NonFinite, err)
	}
}

// TestNames checks that layers whose names are no paths get files of their own inside the folder.
func TestNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var odd []tensor.Layer
	for _, name := range []string{"../a", "a:0", "..", "a/", "con*", "é"} {
		odd = append(odd, tensor.Layer{Name: name, Shape: []int{1}, Axes: "NC"})
	}
	w, err := extract.NewWriter(filepath.Join(dir, "model"), extract.Options{Format: extract.NPY}, odd, []string{""}, 1)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(dir, "model", "clean", "*.npy"))
	outside, _ := filepath.Glob(filepath.Join(dir, "*.npy"))
	if len(found) != len(odd) || len(outside) != 0 {
		t.Errorf("files %q inside and %q outside, want %d inside", found, outside, len(odd))
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    extract.Options
		want string
	}{
		{extract.Options{Format: "zip"}, `unknown format "zip"`},
		{extract.Options{Format: extract.NPY, Pool: "median"}, `unknown pooling "median"`},
		{extract.Options{Format: extract.NPY, Pool: pooling.Class}, "needs an axis of tokens"},
	} {
		dir := filepath.Join(t.TempDir(), "model")
		if _, err := extract.NewWriter(dir, c.o, layers, []string{""}, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%+v: made a folder", c.o)
		}
	}
	w, err := extract.NewWriter(t.TempDir(), extract.Options{Format: extract.NPY}, layers, []string{""}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Samples(make([]dataset.Sample, 2)); err == nil || !strings.Contains(err.Error(), "2 samples, where 1 were announced") {
		t.Errorf("too many samples: %v", err)
	}
}
