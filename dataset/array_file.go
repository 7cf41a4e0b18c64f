package dataset

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/noether-ml/noether/tensor"
)

// An ArrayFile is an array in an npy, npz, safetensors or Parquet file, or in a folder of Zarr, whose
// rows, the slices along the first axis, are read on demand. It serves matrices of activations that
// do not fit into memory. Close it after use.
type ArrayFile struct {
	file *sharedArchive
	npy  npyArray // shape and type of the array, and where its bytes are
}

// A sharedArchive is closed when the last of its arrays is.
type sharedArchive struct {
	archive
	arrays atomic.Int32
}

func (s *sharedArchive) Close() error {
	if s.arrays.Add(-1) > 0 {
		return nil
	}
	return s.archive.Close()
}

// maxPreloaded is the largest size in bytes of an array that OpenArrayFile reads into memory whole.
// Rows then reads no file.
const maxPreloaded = 64 << 20

// OpenArrayFile opens the array of an .npy file, or the array of a key in an .npz, safetensors or
// Parquet file. The key "" selects the only array of a file. The arrays of a Parquet file are its
// columns of numbers, or of lists of equally many numbers.
//
// path may also be a folder: an array of Zarr, version 3, or a group, whose arrays have their paths
// below it as keys. Their chunks are not compressed, or by gzip or zstd, perhaps with crc32c.
func OpenArrayFile(ctx context.Context, path, key string) (*ArrayFile, error) {
	arrays, err := OpenArrayFiles(ctx, path, []string{key})
	if err != nil {
		return nil, err
	}
	return arrays[0], nil
}

// OpenArrayFiles opens the arrays of keys in one file or folder, as OpenArrayFile does. It reads the
// list of what the file holds once.
func OpenArrayFiles(ctx context.Context, path string, keys []string) ([]*ArrayFile, error) {
	opened, err := openArrays(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading an array: %w", err)
	}
	file := &sharedArchive{archive: opened}
	file.arrays.Store(int32(len(keys)))
	arrays := make([]*ArrayFile, len(keys))
	for i, key := range keys {
		if arrays[i], err = file.array(ctx, key); err != nil {
			opened.Close()
			return nil, fmt.Errorf("reading an array: %w", err)
		}
	}
	return arrays, nil
}

func (s *sharedArchive) array(ctx context.Context, key string) (*ArrayFile, error) {
	a, err := s.openAxes(ctx, key)
	if err != nil {
		return nil, err
	}
	out := &ArrayFile{s, a}
	if n := tensor.Size(a.shape); n <= maxPreloaded/a.bytes {
		raw, err := a.read(0, n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
		out.npy.ReaderAt, out.npy.offset = bytes.NewReader(raw), 0
	}
	return out, nil
}

// openArray opens an array of at least one axis. The caller must close the archive, the open file.
func openArray(ctx context.Context, path, key string) (archive, npyArray, error) {
	file, err := openArrays(ctx, path)
	if err != nil {
		return archive{}, npyArray{}, err
	}
	a, err := file.openAxes(ctx, key)
	if err != nil {
		file.Close()
		return archive{}, npyArray{}, err
	}
	return file, a, nil
}

// openAxes opens an array of at least one axis. The key "" selects the only array.
func (a archive) openAxes(ctx context.Context, key string) (npyArray, error) {
	if key == "" && len(a.keys) == 1 {
		key = a.keys[0]
	}
	arr, err := a.open(ctx, key)
	if err == nil && len(arr.shape) == 0 {
		err = fmt.Errorf("%s contains a scalar, not an array", a.path)
	}
	return arr, err
}

// openArrays opens a file of arrays, or a folder of Zarr.
func openArrays(ctx context.Context, path string) (archive, error) {
	if a, ok, err := openZarr(path); ok {
		return a, err
	}
	return openArchive(ctx, path)
}

// ArrayKeys returns the keys of the arrays in an .npz, safetensors or Parquet file, in the order of
// the file, or in a group of Zarr, by name. An .npy file and an array of Zarr have none.
func ArrayKeys(ctx context.Context, path string) ([]string, error) {
	file, err := openArrays(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("reading an array: %w", err)
	}
	defer file.Close()
	return file.keys, nil
}

func (a *ArrayFile) Close() error { return a.file.Close() }

// Shape returns the array's shape. The first axis counts the rows.
func (a *ArrayFile) Shape() []int { return a.npy.shape }

// Single reports whether float32 represents all values of the array's type.
func (a *ArrayFile) Single() bool {
	if a.npy.kind == 'f' { // floats; otherwise integers or booleans
		return a.npy.bytes <= 4
	}
	return a.npy.bytes <= 2
}

// Rows reads the rows with the given indices into dst, in that order. dst has len(index) times the
// number of values of a row.
func (a *ArrayFile) Rows(index []int, dst []float64) error {
	width := a.npy.rowLen()
	for done := 0; done < len(index); {
		run := 1 // number of rows that are adjacent in the file, too: one read covers them
		for done+run < len(index) && index[done+run] == index[done]+run {
			run++
		}
		raw, err := a.npy.read(index[done]*width, run*width)
		if err != nil {
			return fmt.Errorf("reading %s: %w", a.file.path, err)
		}
		a.npy.decode(raw, dst[done*width:(done+run)*width])
		done += run
	}
	return nil
}

// decode converts the bytes of len(dst) values to float64.
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
