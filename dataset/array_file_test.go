package dataset

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRowsOfAnArray checks that rows of arrays, in any order, equal those of ReadArray. arrayFile
// returns the path of a file that testdata/arrays.py wrote. Names of npy files end in NumPy's codes
// of types: u1 is uint8, f4 is float32; big: big-endian. The arrays of packed.npz are compressed,
// those of stored.npz are not.
func TestRowsOfAnArray(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file, key string // key: the name of the array in an npz file; "" for npy
		single    bool   // whether float32 represents all values of the type
	}{
		{"nhwc-u1.npy", "", true}, {"nhwc-f2.npy", "", true}, {"nhwc-f4.npy", "", true}, {"nhwc-f4-big.npy", "", true},
		{"nhwc-f8.npy", "", false}, {"nhwc-i4-max255.npy", "", false}, {"stored.npz", "x_train", true}, {"packed.npz", "labels", true},
	} {
		whole, err := ReadArray(t.Context(), arrayFile(c.file), c.key)
		if err != nil {
			t.Fatal(err)
		}
		a, err := OpenArrayFile(t.Context(), arrayFile(c.file), c.key)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		if !slices.Equal(a.Shape(), whole.Shape) || a.Single() != c.single {
			t.Errorf("%s: shape %v, single %v; want %v, %v", c.file, a.Shape(), a.Single(), whole.Shape, c.single)
		}
		n := whole.Shape[0]
		order := []int{2 % n, 3 % n, 0, 2 % n} // adjacent rows, a step back, and a row twice
		width := whole.Len() / whole.Shape[0]
		got := make([]float64, len(order)*width)
		if err := a.Rows(order, got); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if want := whole.Data[order[i/width]*width+i%width]; float32(v) != want {
				t.Fatalf("%s: value %d of row %d is %v, want %v", c.file, i%width, order[i/width], v, want)
			}
		}
	}
}

// TestColumnMajor checks that a column-major array is read like the same array in row-major order.
func TestColumnMajor(t *testing.T) {
	t.Parallel()
	shape := []int{3, 2, 4}
	// write writes the values 0 to 23 of an array of 3 x 2 x 4; at is the position in the file of
	// the value with the indices i, j and k.
	write := func(name, fortran string, at func(i, j, k int) int) string {
		values := make([]float32, 24)
		for i := range 24 {
			values[at(i/8, i/4%2, i%4)] = float32(i)
		}
		header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': %s, 'shape': (3, 2, 4), }", fortran)
		// The format npy begins with magic, version 1.0 and the length of the header in two bytes.
		raw := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
		raw, err := binary.Append(append(raw, header...), binary.LittleEndian, values)
		path := filepath.Join(t.TempDir(), name)
		if err == nil {
			err = os.WriteFile(path, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, path := range map[string]string{
		"row-major":    write("c.npy", "False", func(i, j, k int) int { return 8*i + 4*j + k }),
		"column-major": write("f.npy", "True", func(i, j, k int) int { return i + 3*j + 6*k }),
	} {
		x, err := ReadArray(t.Context(), path, "")
		if err != nil || !slices.Equal(x.Shape, shape) {
			t.Fatal(name, x.Shape, err)
		}
		for i, v := range x.Data {
			if v != float32(i) {
				t.Fatalf("%s: value %d is %v, want %d", name, i, v, i)
			}
		}
	}
}

// TestArrayKeys checks the names of the arrays in an npz file; those of an npy file are empty.
func TestArrayKeys(t *testing.T) {
	t.Parallel()
	keys, err := ArrayKeys(t.Context(), arrayFile("stored.npz"))
	if err != nil || !slices.Contains(keys, "x_train") {
		t.Errorf("keys %v, error %v; want x_train among them", keys, err)
	}
	if keys, err := ArrayKeys(t.Context(), arrayFile("nhwc-f4.npy")); err != nil || len(keys) > 0 {
		t.Errorf("an npy file has the keys %v, error %v; want none", keys, err)
	}
}

// FuzzOpenArray checks that any bytes give an error or an array whose rows can be read.
func FuzzOpenArray(f *testing.F) {
	header := `{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`
	f.Add(slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), []byte(header), make([]byte, 4)))
	type row struct {
		X float64 `parquet:"x"`
	}
	if data, err := os.ReadFile(parquetOf(f, []row{{1}, {2}}, 2)); err == nil {
		f.Add(data)
	}
	for _, name := range []string{"nhwc-f4.npy", "nhwc-f4-big.npy", "labels-i8.npy", "stored.npz", "one.npz"} {
		data, err := os.ReadFile(arrayFile(name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "a.npy")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := OpenArrayFile(context.Background(), path, "")
		if err != nil {
			return
		}
		defer a.Close()
		width := a.npy.rowLen()
		if width > 1<<20 { // two rows would need too much memory for a test
			return
		}
		last := a.Shape()[0] - 1
		if err := a.Rows([]int{0, last}, make([]float64, 2*width)); err != nil {
			t.Errorf("rows of an array of shape %v: %v", a.Shape(), err)
		}
	})
}
