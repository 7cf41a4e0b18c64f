package dataset

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
)

// cifarFileOf writes a file of n records. A record has one byte of labels (CIFAR-10) or two
// (CIFAR-100: the coarse label and the fine label), then 3 * 32 * 32 = 3072 pixel values: 3073 or
// 3074 bytes. The (fine) labels are first, first+1, ... (mod 10); a coarse label is half the fine
// one. The first pixel value equals the label, the others are 100.
func cifarFileOf(t testing.TB, path string, n, labelBytes, first int) {
	t.Helper()
	data := make([]byte, 0, n*(labelBytes+cifarPixels))
	for i := range n {
		label := byte((first + i) % 10)
		record := bytes.Repeat([]byte{100}, labelBytes+cifarPixels)
		record[0], record[labelBytes-1], record[labelBytes] = label/2, label, label
		if labelBytes == 1 {
			record[0] = label
		}
		data = append(data, record...)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCIFAR checks labels, pixels, names and fingerprints (hashes of the samples) of parts of
// CIFAR-10.
func TestCIFAR(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	cifarFileOf(t, file("data_batch_1.bin"), 3, 1, 0)
	cifarFileOf(t, file("data_batch_2.bin"), 2, 1, 3)
	cifarFileOf(t, file("test_batch.bin"), 4, 1, 5)
	cases := []struct {
		name    string
		options CIFAROptions
		labels  []int
		last    string // name of the last sample: file#record
	}{
		{"test by default", CIFAROptions{Paths: []string{dir}}, []int{5, 6, 7, 8}, "test_batch.bin#3"},
		{"train", CIFAROptions{Paths: []string{dir}, Part: "train"}, []int{0, 1, 2, 3, 4}, "data_batch_2.bin#1"},
		{"all", CIFAROptions{Paths: []string{dir}, Part: "all"}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, "test_batch.bin#3"},
		{"one file", CIFAROptions{Paths: []string{file("data_batch_2.bin")}}, []int{3, 4}, "data_batch_2.bin#1"},
		{"two files", CIFAROptions{Paths: []string{file("test_batch.bin"), file("data_batch_2.bin")}}, []int{5, 6, 7, 8, 3, 4}, "data_batch_2.bin#1"},
	}
	caseOf := map[string]string{} // by fingerprint
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			src, err := OpenCIFAR10(t.Context(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			for i := range src.Len() {
				s, err := src.At(t.Context(), i, Frame{}) // Frame{}: not resized
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, s.Label)
				if s.Index != i || s.Input.Data[0] != float32(s.Label)/255 || s.Input.Data[3071] != 100./255 {
					t.Errorf("sample %d: index %d, label %d, pixels %v to %v", i, s.Index, s.Label, s.Input.Data[0], s.Input.Data[3071])
				}
			}
			if !slices.Equal(got, c.labels) || src.Describe(src.Len()-1).Name != c.last {
				t.Errorf("labels %v, the last from %s; want %v, %s", got, src.Describe(src.Len()-1).Name, c.labels, c.last)
			}
			if other, taken := caseOf[src.Fingerprint()]; taken {
				t.Errorf("the fingerprint equals that of %q", other)
			}
			caseOf[src.Fingerprint()] = c.name
		})
	}
}

func TestCIFAR100(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cifarFileOf(t, filepath.Join(dir, "test.bin"), 10, 2, 0)
	fine, err := OpenCIFAR100(t.Context(), CIFAROptions{Paths: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	coarse, err := OpenCIFAR100(t.Context(), CIFAROptions{Paths: []string{dir}, Coarse: true})
	if err != nil {
		t.Fatal(err)
	}
	if f, c := fine.Describe(7).Label, coarse.Describe(7).Label; f != 7 || c != 3 {
		t.Errorf("labels %d and %d, want 7 and 3", f, c)
	}
	if len(fine.Classes()) != 100 || !slices.IsSorted(fine.Classes()) || len(coarse.Classes()) != 20 || !slices.IsSorted(coarse.Classes()) {
		t.Errorf("%d and %d classes, or not in the published order", len(fine.Classes()), len(coarse.Classes()))
	}
	if fine.Fingerprint() == coarse.Fingerprint() {
		t.Error("fine and coarse labels have the same fingerprint")
	}
	s, err := fine.At(t.Context(), 7, Frame{})
	if err != nil || s.Input.Data[0] != 7./255 {
		t.Errorf("the first pixel is %v (%v), want 7 / 255", s.Input.Data[:1], err)
	}
}

func TestOpenCIFARErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := []struct {
		name    string
		options CIFAROptions
		want    string
	}{
		{"no path", CIFAROptions{}, "no file and no folder"},
		{"missing", CIFAROptions{Paths: []string{filepath.Join(dir, "no.bin")}}, "no such file"},
		{"length", CIFAROptions{Paths: []string{file("short.bin", make([]byte, 2*3073-1))}}, "short.bin: 6145 bytes is not a multiple of CIFAR-10 records of 3073 bytes; 1 image would be 3073 bytes"},
		{"empty", CIFAROptions{Paths: []string{file("empty.bin", nil)}}, "0 bytes"},
		{"label", CIFAROptions{Paths: []string{file("label.bin", bytes.Repeat([]byte{10}, 3073))}}, "record 0: label 10, but CIFAR-10 has 10 classes"},
		{"folder", CIFAROptions{Paths: []string{dir}}, "no file test_batch.bin"},
		{"part", CIFAROptions{Paths: []string{dir}, Part: "validation"}, "test, train or all"},
		{"coarse", CIFAROptions{Paths: []string{dir}, Coarse: true}, "only CIFAR-100"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := OpenCIFAR10(t.Context(), c.options)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want a line with %q", err, c.want)
			}
		})
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenCIFAR10(cancelled, CIFAROptions{Paths: []string{file("good.bin", make([]byte, 3073))}}); err == nil {
		t.Error("opened although the context is cancelled")
	}
}

// TestCIFARTestSet compares all images of CIFAR-10's test set with the bytes of the file.
func TestCIFARTestSet(t *testing.T) {
	t.Parallel()
	path := testdata.Path(t, "cifar10", "test_batch.bin")
	src, err := OpenCIFAR10(t.Context(), CIFAROptions{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	perClass := make([]int, 10)
	for i := range src.Len() {
		s, err := src.At(t.Context(), i, Frame{})
		if err != nil {
			t.Fatal(err)
		}
		perClass[s.Label]++
		for j, b := range raw[i*3073+1 : (i+1)*3073] {
			if s.Input.Data[j] != float32(b)/255 {
				t.Fatalf("image %d, value %d is %v, want %d / 255", i, j, s.Input.Data[j], b)
			}
		}
	}
	if slices.ContainsFunc(perClass, func(n int) bool { return n != 1000 }) {
		t.Errorf("the classes have %v images, want 1,000 each", perClass)
	}
}

// FuzzCIFAR checks that a file is rejected, or has only samples with valid labels.
func FuzzCIFAR(f *testing.F) {
	f.Add(make([]byte, 3073), false)
	f.Add(bytes.Repeat([]byte{3}, 2*3074), true)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, is100 bool) {
		path := filepath.Join(dir, "fuzzed.bin")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		open := OpenCIFAR10
		if is100 {
			open = OpenCIFAR100
		}
		src, err := open(context.Background(), CIFAROptions{Paths: []string{path}})
		if err != nil {
			return
		}
		defer src.Close()
		for i := range src.Len() {
			s, err := src.At(context.Background(), i, Frame{})
			if err != nil || s.Label < 0 || s.Label >= len(src.Classes()) {
				t.Fatalf("image %d: label %d, %v", i, s.Label, err)
			}
		}
	})
}

func BenchmarkCIFAR(b *testing.B) {
	path := filepath.Join(b.TempDir(), "test_batch.bin")
	cifarFileOf(b, path, 1000, 1, 0)
	src, err := OpenCIFAR10(b.Context(), CIFAROptions{Paths: []string{path}})
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		if _, err := src.At(b.Context(), i%src.Len(), Frame{}); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
}
