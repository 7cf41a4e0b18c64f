package dataset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npyBytes returns an array of little-endian values in NumPy's format. descr is its type, such as
// "<i8".
func npyBytes(t *testing.T, descr string, values any, shape ...int) []byte {
	t.Helper()
	dims := ""
	for _, d := range shape {
		dims += fmt.Sprintf("%d, ", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", descr, dims)
	b := bytes.NewBuffer([]byte("\x93NUMPY\x01\x00")) // magic string and format version 1.0
	b.Write([]byte{byte(len(header)), byte(len(header) >> 8)})
	b.WriteString(header)
	if err := binary.Write(b, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// writeNPZ writes arrays to an npz file and returns its path.
func writeNPZ(t *testing.T, arrays map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "set.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for key, raw := range arrays {
		w, err := z.CreateHeader(&zip.FileHeader{Name: key + ".npy", Method: zip.Store})
		if err == nil {
			_, err = w.Write(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRawArrays checks samples made of several arrays, such as token ids with an attention mask.
func TestRawArrays(t *testing.T) {
	t.Parallel()
	path := writeNPZ(t, map[string][]byte{
		"input_ids":      npyBytes(t, "<i8", []int64{5, 6, 7, 8, 9, 30522}, 2, 3),
		"attention_mask": npyBytes(t, "|b1", []bool{true, true, false, true, true, true}, 2, 3),
		"features":       npyBytes(t, "<f4", []float32{0.5, -1}, 2),
		"labels":         npyBytes(t, "<i4", []int32{1, 0}, 2),
	})
	a, err := OpenRawArrays(t.Context(), RawArraysOptions{Inputs: path})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	// An Array is its name, its shape without the axis of samples, and whether the model takes
	// integers.
	want := []Array{{"attention_mask", []int{3}, true}, {"features", nil, false}, {"input_ids", []int{3}, true}}
	for i, values := range [][]float32{{1, 1, 0, 0.5, 5, 6, 7}, {1, 1, 1, -1, 8, 9, 30522}} {
		s, err := a.At(t.Context(), i, Frame{Height: 8, Width: 8}) // a size for images, ignored
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.Input.Data, values) || s.Label != 1-i || s.Index != i || s.Name != fmt.Sprintf("set.npz#%d", i) {
			t.Errorf("sample %d: %+v, want %v", i, s, values)
		}
		if !slices.EqualFunc(s.Arrays, want, func(a, b Array) bool { return a.Equal(b) && a.Integer == b.Integer }) {
			t.Errorf("arrays %+v, want %+v", s.Arrays, want)
		}
	}
	// The fingerprint is a hash of the samples.
	if a.Len() != 2 || len(a.Classes()) != 2 || a.Fingerprint() == "" {
		t.Errorf("%d samples, classes %v, fingerprint %q", a.Len(), a.Classes(), a.Fingerprint())
	}
	one, err := OpenRawArrays(t.Context(), RawArraysOptions{Inputs: path, Key: "features"})
	if err != nil || len(one.arrays) != 1 || one.Fingerprint() == a.Fingerprint() {
		t.Errorf("one array: %+v, error %v", one, err)
	}
	// Pair matches clean (untransformed) samples with transformed ones; "": by row.
	_, err = Pair(t.Context(), a, one, "")
	if err == nil || !strings.Contains(err.Error(), "the clean samples are arrays of attention_mask [3] and features [] and input_ids [3], and the transformed samples arrays of features []") {
		t.Errorf("pairs of different arrays: %v", err)
	}
	if p, err := Pair(t.Context(), a, a, ""); err != nil {
		t.Error(err)
	} else if s, err := p.At(t.Context(), 1, Frame{}); err != nil || !slices.Equal(s.Input.Data, s.Transformed.Data) || len(s.Arrays) != 3 {
		t.Errorf("a pair: %+v, error %v", s, err)
	}
}

func TestRawArraysErrors(t *testing.T) {
	t.Parallel()
	ids := npyBytes(t, "<i8", []int64{5, 6}, 2, 1)
	write := func(raw []byte) string {
		path := filepath.Join(t.TempDir(), "x.npy")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		options RawArraysOptions
		want    string
	}{
		"rows":        {RawArraysOptions{Inputs: writeNPZ(t, map[string][]byte{"ids": ids, "mask": npyBytes(t, "<i8", []int64{1}, 1, 1)})}, `array "mask" has 1 rows, and array "ids" has 2: save one row for each sample`},
		"number":      {RawArraysOptions{Inputs: write(npyBytes(t, "<i8", int64(1)))}, "is a number: its first axis must count the samples"},
		"key":         {RawArraysOptions{Inputs: writeNPZ(t, map[string][]byte{"ids": ids}), Key: "id"}, `unknown array "id": use one of ids`},
		"labels":      {RawArraysOptions{Inputs: writeNPZ(t, map[string][]byte{"ids": ids, "labels": npyBytes(t, "<f4", []float32{0.5, 1}, 2)})}, "label 0 is 0.5"},
		"only labels": {RawArraysOptions{Inputs: writeNPZ(t, map[string][]byte{"labels": ids})}, "no arrays besides the labels"},
		"truncated":   {RawArraysOptions{Inputs: write(ids[:len(ids)-1])}, "too few for shape"},
		"too large":   {RawArraysOptions{Inputs: write(npyBytes(t, "<i8", []int64{1}, 1<<40, 1<<30))}, "too few for shape"},
		"text":        {RawArraysOptions{Inputs: write([]byte("a,b\n1,2\n"))}, "not an npy array"},
	} {
		_, err := OpenRawArrays(t.Context(), c.options)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for want, raw := range map[string][]byte{
		// Values become float32, which holds integers up to 2^24 exactly.
		"value 1 is 16777217: integers up to 16777216 are supported": npyBytes(t, "<i8", []int64{0, 1<<24 + 1}, 1, 2),
		"value 0 is 1e+300": npyBytes(t, "<f8", []float64{1e300, 1}, 1, 2),
		"value 0 is NaN":    npyBytes(t, "<f4", []float32{float32(math.NaN()), 1}, 1, 2),
	} {
		a, err := OpenRawArrays(t.Context(), RawArraysOptions{Inputs: write(raw)})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.At(t.Context(), 0, Frame{})
		var bad *BadSample // the error of one sample that cannot be used
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	a, err := OpenRawArrays(t.Context(), RawArraysOptions{Inputs: write(ids)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.At(t.Context(), 2, Frame{}); err == nil {
		t.Error("sample 2 of two samples, 0 and 1, is no error")
	}
}
