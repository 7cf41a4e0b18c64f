package recorded_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/recorded"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// numbered returns an array of the shape with the values first, first + 1, ...
func numbered(first float32, shape ...int) tensor.Tensor {
	t := tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = first + float32(i)
	}
	return t
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func writeNPY(t *testing.T, path string, a tensor.Tensor) {
	t.Helper()
	var b strings.Builder
	if err := dataset.WriteNPY(&b, a); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, []byte(b.String()))
}

// safetensors returns a file of float32 arrays in the order of the names.
func safetensors(t *testing.T, names []string, arrays ...tensor.Tensor) []byte {
	t.Helper()
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	var values []byte
	for i, name := range names {
		from := len(values)
		for _, v := range arrays[i].Data {
			values = binary.LittleEndian.AppendUint32(values, math.Float32bits(v))
		}
		header[name] = map[string]any{"dtype": "F32", "shape": arrays[i].Shape, "data_offsets": []int{from, len(values)}}
	}
	raw, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(raw))), raw, values)
}

// writeZarr writes an array of Zarr in chunks of two rows.
func writeZarr(t *testing.T, dir string, a tensor.Tensor) {
	t.Helper()
	list := func(shape []int) string { return strings.Join(strings.Fields(fmt.Sprint(shape)), ", ") }
	writeFile(t, filepath.Join(dir, "zarr.json"), fmt.Appendf(nil, `{"zarr_format": 3, "node_type": "array", "data_type": "float32", "fill_value": 0, "shape": %s,
		"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": %s}}, "chunk_key_encoding": {"name": "default"},
		"codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}`, list(a.Shape), list(append([]int{2}, a.Shape[1:]...))))
	size := tensor.Size(a.Shape[1:])
	for at := 0; at < a.Shape[0]; at += 2 {
		chunk := make([]float32, 2*size)
		copy(chunk, a.Data[at*size:])
		raw, err := binary.Append(nil, binary.LittleEndian, chunk)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "c", fmt.Sprint(at/2)+strings.Repeat("/0", len(a.Shape)-1)), raw)
	}
}

// rowsOf runs a network on some samples and returns the rows of a layer.
func rowsOf(t *testing.T, n *recorded.Network, layer tensor.Layer, s engine.Samples) ([]float32, error) {
	t.Helper()
	session, err := n.Open(t.Context(), engine.Request{Outputs: []engine.Output{{Name: layer.Name, Shape: layer.Shape}}})
	if err != nil {
		t.Fatal(err)
	}
	out := engine.NewArray(engine.Float, append([]int{len(s.Index)}, layer.Shape...)...)
	err = session.Run(t.Context(), engine.Batch{Outputs: []*engine.Array{out}, Samples: s})
	return out.Tensor().Data, err
}

// TestFormats reads the same activations from every kind of file, clean and of a view.
func TestFormats(t *testing.T) {
	t.Parallel()
	type row struct {
		Layer2  []float32 `parquet:"layer2,list"`
		Layer10 []float32 `parquet:"layer10,list"`
		Note    string    `parquet:"note"`
	}
	clean := []tensor.Tensor{numbered(0, 3, 2), numbered(100, 3, 4)}
	moved := []tensor.Tensor{numbered(1000, 3, 2), numbered(1100, 3, 4)}
	for name, write := range map[string]func(base string, arrays []tensor.Tensor){
		"folder of npy": func(base string, a []tensor.Tensor) {
			writeNPY(t, filepath.Join(base, "layer2.npy"), a[0])
			writeNPY(t, filepath.Join(base, "layer10.npy"), a[1])
		},
		"safetensors": func(base string, a []tensor.Tensor) {
			writeFile(t, base+".safetensors", safetensors(t, []string{"layer2", "layer10"}, a...))
		},
		"folder of zarr": func(base string, a []tensor.Tensor) {
			writeZarr(t, filepath.Join(base, "layer2.zarr"), a[0])
			writeZarr(t, filepath.Join(base, "layer10"), a[1])
		},
		"group of zarr": func(base string, a []tensor.Tensor) {
			writeFile(t, filepath.Join(base+".zarr", "zarr.json"), []byte(`{"zarr_format": 3, "node_type": "group"}`))
			writeZarr(t, filepath.Join(base+".zarr", "layer2"), a[0])
			writeZarr(t, filepath.Join(base+".zarr", "layer10"), a[1])
		},
		"parquet": func(base string, a []tensor.Tensor) {
			var rows []row
			for i := range 3 {
				rows = append(rows, row{a[0].At(i).Data, a[1].At(i).Data, "x"})
			}
			if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := parquet.WriteFile(base+".parquet", rows); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(filepath.Join(dir, "clean"), clean)
			write(filepath.Join(dir, "rotate", "90"), moved)
			n, err := recorded.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			found, err := n.Layers(t.Context(), engine.Setup{})
			if err != nil {
				t.Fatal(err)
			}
			samples, listed := n.Samples()
			if got := strings.Join(onnx.Names(found.All), " "); got != "layer2 layer10" || samples != 3 || listed || found.All[1].Axes != "NC" {
				t.Fatalf("layers %s of %d samples, want layer2 layer10 of 3", got, samples)
			}
			for view, want := range map[string][]float32{"": {108, 109, 110, 111, 100, 101, 102, 103}, "rotate/90": {1108, 1109, 1110, 1111, 1100, 1101, 1102, 1103}} {
				got, err := rowsOf(t, n, found.All[1], engine.Samples{View: view, Index: []int{2, 0}})
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("view %q: %v, error %v; want %v", view, got, err, want)
				}
			}
			hash, err := n.Hash()
			if err != nil {
				t.Fatal(err)
			}
			write(filepath.Join(dir, "rotate", "90"), clean)
			if _, err := rowsOf(t, n, found.All[1], engine.Samples{View: "rotate/90", Index: []int{0}}); err == nil || !strings.Contains(err.Error(), "has changed") {
				t.Errorf("rows of a file that has changed: %v", err)
			}
			changed, err := recorded.Open(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer changed.Close()
			if again, err := changed.Hash(); err != nil || again == hash {
				t.Errorf("the hash %s, error %v, does not change with the values", again, err)
			}
		})
	}
}

// TestErrors checks that damaged files, other shapes and other numbers of samples are errors of one
// line that name the file or the layer.
func TestErrors(t *testing.T) {
	t.Parallel()
	whole := safetensors(t, []string{"a"}, numbered(0, 3, 2))
	damaged := map[string]struct {
		files map[string][]byte
		want  string
	}{
		"no folder":          {nil, "there is no folder"},
		"no arrays":          {map[string][]byte{"clean/readme.txt": nil}, "has no arrays"},
		"cut safetensors":    {map[string][]byte{"clean.safetensors": whole[:len(whole)-4]}, "is it truncated?"},
		"cut header":         {map[string][]byte{"clean.safetensors": whole[:12]}, "not a whole safetensors file"},
		"no JSON":            {map[string][]byte{"clean.safetensors": append(binary.LittleEndian.AppendUint64(nil, 4), "{nope"...)}, "not a safetensors file"},
		"unknown type":       {map[string][]byte{"clean.safetensors": []byte(strings.Replace(string(whole), `"F32"`, `"F8_"`, 1))}, "type F8_ is not supported"},
		"cut npy":            {map[string][]byte{"clean/a.npy": []byte("\x93NUMPY\x01\x00")}, "a.npy"},
		"cut parquet":        {map[string][]byte{"clean.parquet": []byte("PAR1 and no more")}, "not a whole Parquet file"},
		"cut zarr.json":      {map[string][]byte{"clean/a.zarr/zarr.json": []byte("{")}, "zarr.json: unexpected end of JSON"},
		"old zarr":           {map[string][]byte{"clean/a/.zarray": []byte("{}")}, "Zarr, version 2"},
		"two of a name":      {map[string][]byte{"clean/a.safetensors": whole, "clean/a.npz": whole}, "two arrays of layer a"},
		"many axes":          {map[string][]byte{"clean.safetensors": safetensors(t, []string{"a"}, numbered(0, slices.Repeat([]int{1}, 65)...))}, "has 65 axes: the limit is 64"},
		"vector":             {map[string][]byte{"clean.safetensors": safetensors(t, []string{"a"}, numbered(0, 3))}, "layer a has the shape [3]"},
		"numbers of samples": {map[string][]byte{"clean.safetensors": safetensors(t, []string{"a", "b"}, numbered(0, 3, 2), numbered(0, 4, 2))}, "layer b has 4 samples, and layer a has 3"},
	}
	for name, c := range damaged {
		dir := t.TempDir()
		for path, data := range c.files {
			writeFile(t, filepath.Join(dir, path), data)
		}
		_, err := recorded.Open(t.Context(), dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "activations "+dir+": ") {
			t.Errorf("%s: error %v, want one line with %q", name, err, c.want)
		}
	}

	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "clean.safetensors"), whole)
	writeFile(t, filepath.Join(dir, "flip.safetensors"), safetensors(t, []string{"a"}, numbered(0, 3, 5)))
	writeFile(t, filepath.Join(dir, "grayscale.safetensors"), safetensors(t, []string{"other"}, numbered(0, 3, 2)))
	n, err := recorded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	layer := tensor.Layer{Name: "a", Shape: []int{2}}
	for want, s := range map[string]engine.Samples{
		"has the shape [3 5] in flip":                  {View: "flip", Index: []int{0}},
		"no activations of layer a for grayscale":      {View: "grayscale", Index: []int{0}},
		"there is no folder " + dir + "/rotate":        {View: "rotate/90", Index: []int{0}},
		"names no folder":                              {View: "../other", Index: []int{0}},
		"activations of 3 samples, and none of sample": {Index: []int{0, 3}},
		"cannot run on other inputs":                   {},
	} {
		if _, err := rowsOf(t, n, layer, s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", s, err, want)
		}
	}
	var axes *engine.AxesError
	if _, err := n.Layers(t.Context(), engine.Setup{Axes: map[string]tensor.Axes{"a": "NCHW"}}); !errors.As(err, &axes) {
		t.Errorf("error %v, want one about the axes", err)
	}
	if fmt.Sprint(n.Metadata().Outputs) != "[a float[? 2]]" {
		t.Errorf("outputs %v", n.Metadata().Outputs)
	}
}

// TestSampleList checks that samples.csv says which samples the rows belong to, and that a list
// that does not fit the arrays is refused.
func TestSampleList(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ list, wantErr string }{
		{"row,sample,index,label\n0,a,7,\n1,b,3,\n2,c,5,\n", ""},
		{"", "no column index"},
		{"row,sample\n0,a\n1,b\n2,c\n", "no column index"},
		{"index\n7\n3\n", "lists 2 samples, and the arrays have 3 rows"},
		{"index\n7\n3\n7\n", `line 4: the index is "7"`},
		{"index\n7\n3\nx\n", `line 4: the index is "x"`},
		{"index\n7\n3\n-1\n", `line 4: the index is "-1"`},
		{"index\n7\n3,4\n5\n", "wrong number of fields"},
	} {
		dir := t.TempDir()
		writeNPY(t, filepath.Join(dir, "clean", "layer.npy"), numbered(0, 3, 2))
		writeFile(t, filepath.Join(dir, recorded.SamplesFile), []byte(c.list))
		n, err := recorded.Open(t.Context(), dir)
		if c.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("%q: %v, want %q", c.list, err, c.wantErr)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		layer := tensor.Layer{Name: "layer", Shape: []int{2}}
		if got, err := rowsOf(t, n, layer, engine.Samples{Index: []int{5, 7}}); err != nil || !slices.Equal(got, []float32{4, 5, 0, 1}) {
			t.Errorf("samples 5 and 7 have %v, want rows 2 and 0: %v", got, err)
		}
		if _, err := rowsOf(t, n, layer, engine.Samples{Index: []int{0}}); err == nil || !strings.Contains(err.Error(), "none of sample 0 (see samples.csv)") {
			t.Errorf("a sample that is not listed: %v", err)
		}
	}
}

// TestManyLayersInAFile checks that the list of what a file holds is read once for all its layers,
// by the memory that opening them allocates: reading it for each took 3 GB for 20,000 layers.
func TestManyLayersInAFile(t *testing.T) {
	const n = 3000
	dir, one := t.TempDir(), numbered(0, 2, 1)
	var names []string
	for i := range n {
		names = append(names, fmt.Sprint("layer", i))
	}
	writeFile(t, filepath.Join(dir, "clean.safetensors"), safetensors(t, names, slices.Repeat([]tensor.Tensor{one}, n)...))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	net, err := recorded.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer net.Close()
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 200<<20 || len(net.Metadata().Outputs) != n {
		t.Errorf("opening %d of %d layers allocated %d MB", len(net.Metadata().Outputs), n, got>>20)
	}
}
