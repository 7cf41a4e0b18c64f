package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/noether-ml/noether/tensor"
)

// An Array is an array in an npy or npz file whose rows, its slices along the first axis, are read when they are wanted: a
// matrix of activations that does not fit into memory. It must be closed.
type Array struct {
	file archive
	a    array
}

// smallArray is the number of bytes up to which an Array is read into memory at once: rows in random order are then no reads.
const smallArray = 64 << 20

// OpenArray opens the array of an .npy file, or that of a key in an .npz file ("": its only one).
func OpenArray(ctx context.Context, path, key string) (*Array, error) {
	file, a, err := openArray(ctx, path, key)
	if err != nil {
		return nil, fmt.Errorf("reading an array: %w", err) // which names the file
	}
	out := &Array{file, a}
	if n := tensor.Size(a.shape); n <= smallArray/a.bytes {
		raw, err := a.read(0, n)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("reading an array: %s: %w", path, err)
		}
		out.a.ReaderAt, out.a.offset = bytes.NewReader(raw), 0
	}
	return out, nil
}

// openArray opens an array of one axis or more; on success the archive is to be closed.
func openArray(ctx context.Context, path, key string) (archive, array, error) {
	file, err := openArchive(ctx, path)
	if err != nil {
		return archive{}, array{}, err
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
		return archive{}, array{}, err
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
func (a *Array) Close() error { return a.file.Close() }

// Shape is the array's shape; the first axis counts the rows.
func (a *Array) Shape() []int { return a.a.shape }

// Single reports whether all values of the array's type are float32 numbers.
func (a *Array) Single() bool {
	if a.a.kind == 'f' {
		return a.a.bytes <= 4
	}
	return a.a.bytes <= 2
}

// Rows reads the rows of the given indices, in that order, into dst: len(index) times the values of a row.
func (a *Array) Rows(index []int, dst []float64) error {
	width := a.a.row()
	for at := 0; at < len(index); {
		run := 1 // rows that follow each other in the file as well
		for at+run < len(index) && index[at+run] == index[at]+run {
			run++
		}
		raw, err := a.a.read(index[at]*width, run*width)
		if err != nil {
			return fmt.Errorf("reading %s: %w", a.file.path, err)
		}
		a.a.decode(raw, dst[at*width:(at+run)*width])
		at += run
	}
	return nil
}

// decode turns the bytes of some values into numbers.
func (a *array) decode(raw []byte, dst []float64) {
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
