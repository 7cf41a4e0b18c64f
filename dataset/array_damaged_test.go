package dataset

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// npyStart returns an npy file of float64 without its values.
func npyStart(shape string) []byte {
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }", shape)
	out := append([]byte("\x93NUMPY\x01\x00"), binary.LittleEndian.AppendUint16(nil, uint16(len(header)))...)
	return append(out, header...)
}

// npyOf returns an npy file of rows x 8 values of float64, which are 1, 2, 3 and so on.
func npyOf(rows int) []byte {
	out := npyStart(fmt.Sprintf("%d, 8", rows))
	for i := range rows * 8 {
		out, _ = binary.Append(out, binary.LittleEndian, float64(i+1))
	}
	return out
}

// npzOf returns an npz file with the array x.
func npzOf(t *testing.T, method uint16, npy []byte) []byte {
	t.Helper()
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	w, err := z.CreateHeader(&zip.FileHeader{Name: "x.npy", Method: method})
	if err == nil {
		_, err = w.Write(npy)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestDamagedArrays checks that an array that is cut short, or whose bytes differ from their
// checksum, is refused in one line.
func TestDamagedArrays(t *testing.T) {
	t.Parallel()
	whole := npyOf(50)
	flipped := func(file []byte) []byte {
		at := len(file) / 2 // within the values
		file[at] ^= 0x10
		return file
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"cut.npy":           {whole[:len(whole)-800], fmt.Sprintf("%d bytes are too few for shape [50 8], which needs %d", len(whole)-800, len(whole))},
		"header.npy":        {whole[:40], "the npy header claims"},
		"cut-stored.npz":    {npzOf(t, zip.Store, whole[:len(whole)-800]), "which needs"},
		"cut-deflated.npz":  {npzOf(t, zip.Deflate, whole[:len(whole)-800]), "which needs"},
		"flip-stored.npz":   {flipped(npzOf(t, zip.Store, whole)), "differ from the checksum"},
		"flip-deflated.npz": {flipped(npzOf(t, zip.Deflate, whole)), "array \"x\""},
		"overflow.npy":      {npyStart("9999999999, 9999999999"), "too few for shape"},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadArray(t.Context(), path, "")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", name, err, c.want)
		}
	}
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		path := filepath.Join(t.TempDir(), "x.npz")
		if err := os.WriteFile(path, npzOf(t, method, whole), 0o600); err != nil {
			t.Fatal(err)
		}
		if x, err := ReadArray(t.Context(), path, ""); err != nil || x.Data[399] != 400 {
			t.Errorf("method %d: the last value is %v, error %v; want 400", method, x.Data[399:], err)
		}
	}
}

// TestArrayCutShortWhileOpen checks that an array, labels of IDX and their images are not read as
// zeros once their file has become shorter.
func TestArrayCutShortWhileOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := errors.Join(os.WriteFile(path, npyStart("2097152, 8"), 0o600), os.Truncate(path, 129<<20)); err != nil {
		t.Fatal(err) // a sparse file, too large to be read whole when it is opened
	}
	a, err := OpenArrayFile(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := os.Truncate(path, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := a.Rows([]int{1<<21 - 1}, make([]float64, 8)); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("the last row of a file that was cut: error %v", err)
	}

	path = filepath.Join(t.TempDir(), "images-idx3-ubyte")
	idx := append([]byte{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 4}, bytes.Repeat([]byte{200}, 32)...)
	if err := os.WriteFile(path, idx, 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := OpenIDX(t.Context(), IDXOptions{Images: path})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := os.Truncate(path, 40); err != nil {
		t.Fatal(err)
	}
	if _, err := x.at(1, Frame{}); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("the last image of a file that was cut: error %v", err)
	}
}

// TestDecompressedBlocks checks reading across the blocks of decompressed data.
func TestDecompressedBlocks(t *testing.T) {
	t.Parallel()
	whole := make([]byte, 2*memoryBlock+5)
	for i := range whole {
		whole[i] = byte(i >> 10)
	}
	b, err := decompress(bytes.NewReader(whole), int64(len(whole)))
	if err != nil || b.size != int64(len(whole)) {
		t.Fatalf("%d bytes, error %v; want %d", b.size, err, len(whole))
	}
	got, err := io.ReadAll(io.NewSectionReader(b, 0, b.size))
	if err != nil || !bytes.Equal(got, whole) {
		t.Errorf("%d bytes differ from those compressed, error %v", len(got), err)
	}
	if err := b.readFull(make([]byte, 6), b.size-5); err == nil {
		t.Error("bytes beyond the end are no error")
	}
	if _, err := decompress(bytes.NewReader(whole), int64(len(whole))-1); err == nil {
		t.Error("more bytes than the limit are no error")
	}
}
