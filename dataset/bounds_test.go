package dataset

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
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
