package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/noether-ml/noether/tensor"
)

// An ArrayFile is an array in an npy or npz file whose rows, its slices along the first axis, are
// read when they are wanted: a matrix of activations that does not fit into memory. It must be
// closed.
type ArrayFile struct {
	file archive
	npy  npyArray
}

// maxPreloaded is the number of bytes up to which an Array is read into memory at once: rows in
// random order are then no reads.
const maxPreloaded = 64 << 20

// OpenArrayFile opens the array of an .npy file, or that of a key in an .npz file ("": its only
// one).
func OpenArrayFile(ctx context.Context, path, key string) (*ArrayFile, error) {
	file, a, err := openArray(ctx, path, key)
	if err != nil {
		return nil, fmt.Errorf("reading an array: %w", err) // which names the file
	}
	out := &ArrayFile{file, a}
	if n := tensor.Size(a.shape); n <= maxPreloaded/a.bytes {
		raw, err := a.read(0, n)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("reading an array: %s: %w", path, err)
		}
		out.npy.ReaderAt, out.npy.offset = bytes.NewReader(raw), 0
	}
	return out, nil
}

// openArray opens an array of one axis or more; on success the archive is to be closed.
func openArray(ctx context.Context, path, key string) (archive, npyArray, error) {
	file, err := openArchive(ctx, path)
	if err != nil {
		return archive{}, npyArray{}, err
	}
	if key == "" && len(file.keys) == 1 {
		key = file.keys[0]
	}
	a, err := file.open(ctx, key)
	if err == nil && len(a.shape) == 0 {
		err = fmt.Errorf("%s holds one number, not an array", path)
	}
	if err != nil {
		file.Close()
		return archive{}, npyArray{}, err
	}
	return file, a, nil
}

// ArrayKeys lists the arrays in an .npz file in the order of the file; none for an .npy file.
func ArrayKeys(ctx context.Context, path string) ([]string, error) {
	file, err := openArchive(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading an array: %w", err)
	}
	defer file.Close()
	return file.keys, nil
}

// Close closes the file.
func (a *ArrayFile) Close() error { return a.file.Close() }

// Shape is the array's shape; the first axis counts the rows.
func (a *ArrayFile) Shape() []int { return a.npy.shape }

// Single reports whether all values of the array's type are float32 numbers.
func (a *ArrayFile) Single() bool {
	if a.npy.kind == 'f' {
		return a.npy.bytes <= 4
	}
	return a.npy.bytes <= 2
}

// Rows reads the rows of the given indices, in that order, into dst: len(index) times the values of
// a row.
func (a *ArrayFile) Rows(index []int, dst []float64) error {
	width := a.npy.row()
	for at := 0; at < len(index); {
		run := 1 // rows that follow each other in the file as well
		for at+run < len(index) && index[at+run] == index[at]+run {
			run++
		}
		raw, err := a.npy.read(index[at]*width, run*width)
		if err != nil {
			return fmt.Errorf("reading %s: %w", a.file.path, err)
		}
		a.npy.decode(raw, dst[at*width:(at+run)*width])
		at += run
	}
	return nil
}

// decode turns the bytes of some values into numbers.
func (a *npyArray) decode(raw []byte, dst []float64) {
	little := a.order == binary.ByteOrder(binary.LittleEndian)
	switch {
	case a.kind == 'f' && a.bytes == 4 && little:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		}
	case a.kind == 'f' && a.bytes == 8 && little:
		for i := range dst {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
		}
	default:
		for i := range dst {
			dst[i] = a.value(raw[i*a.bytes:])
		}
	}
}
