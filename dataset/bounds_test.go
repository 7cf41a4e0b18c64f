package dataset

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDecodingIsBounded checks that an image is not decoded while others use up maxPixels, the
// largest number of pixels that are decoded at once.
func TestDecodingIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "a.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, image.NewGray(image.Rect(0, 0, 5, 4))); err != nil {
		t.Fatal(err)
	}
	folder, err := OpenFolder(t.Context(), FolderOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := decoding.Acquire(t.Context(), maxPixels); err != nil {
		t.Fatal(err)
	}
	expiring, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := folder.At(expiring, 0, Frame{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an image beyond the limit gives the error %v, want that of the expired context", err)
	}
	decoding.Release(maxPixels)
	if _, err := folder.At(t.Context(), 0, Frame{}); err != nil {
		t.Error(err)
	}
}

// TestDeclaredSizeOfNPZ checks that an array of an .npz file (a ZIP archive of .npy files) is
// refused before it is decompressed if its declared size is above the limit.
func TestDeclaredSizeOfNPZ(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bomb.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "x.npy", Method: zip.Deflate, CompressedSize64: 4, UncompressedSize64: 1 << 50})
	if err == nil {
		// Not a deflate stream: decompressing it gives another error.
		_, err = w.Write([]byte{1, 2, 3, 4})
	}
	if err := errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	a, err := openArchive(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.open(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "the decompressed data exceed") {
		t.Errorf("an array of 1 PiB: error %v, want one on the size of the decompressed data", err)
	}
}

// TestJPEGScans checks that a progressive JPEG whose scans are repeated thousands of times, each of
// which takes the time of a whole image, is refused.
func TestJPEGScans(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/images/progressive.jpg")
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndex(data, []byte("\xff\xda"))
	many := append(bytes.Clone(data[:last]), bytes.Repeat(data[last:len(data)-2], 5000)...)
	if _, err := decodeImage(append(many, data[len(data)-2:]...)); err == nil || !strings.Contains(err.Error(), "scans of") {
		t.Errorf("error %v, want one on the number of scans", err)
	}
	if _, err := decodeImage(data); err != nil {
		t.Errorf("the image with its own scans: %v", err)
	}
}

// TestWideTables checks that tables of labels of many columns, of one row without end, or of a
// quote that is not closed, are read or refused within seconds.
func TestWideTables(t *testing.T) {
	t.Parallel()
	header := func(n int) string {
		var b strings.Builder
		b.WriteString("file,label")
		for i := range n {
			fmt.Fprintf(&b, ",c%d", i)
		}
		return b.String() + "\n"
	}
	read := func(text string) (labelTable, error) {
		start := time.Now()
		table, err := readLabelTable(strings.NewReader(text), "", func(string) bool { return false })
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("a table of %d bytes takes %v", len(text), took)
		}
		return table, err
	}
	if table, err := read(header(9_000) + "a.png,1" + strings.Repeat(",2", 9_000) + "\n"); err != nil || len(table.factors) != 9_000 {
		t.Errorf("9,000 columns: %d factors, error %v", len(table.factors), err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"columns": {header(500_000), "500002 columns: the limit is 10000"},
		"quote":   {"file,label\n\"a.png,1\n" + strings.Repeat("b.png,1\n", 3<<20), "is a quote not closed?"},
		"row":     {"file,label\n" + strings.Repeat("b", 17<<20), "a row of more than 16777216 bytes"},
	} {
		if _, err := read(c.text); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%s: error %.300v, want one with %q", name, err, c.want)
		}
	}
	// Factors with missing values make few notes.
	dir := dots(t, "a.png")
	labels := filepath.Join(t.TempDir(), "labels.csv")
	if err := os.WriteFile(labels, []byte(header(2_000)+"a.png,1"+strings.Repeat(",", 2_000)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(t.Context(), FolderOptions{Dir: dir, Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	if notes := Notes(f); len(notes) != 6 || !strings.HasPrefix(notes[5], "left out 1995 more factors with missing values: c5, c6") {
		t.Errorf("%d notes, the last is %q", len(notes), notes[len(notes)-1])
	}
}
