package seis

import (
	"unsafe"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure"
)

const single, double = 4, 8 // bytes of a float32 and of a float64

// bandSize is the number of values that are converted between float32 and float64 at once.
const bandSize = 1 << 16

// A storedScatter describes a linalg.Scatter in a measure.Store, its upper triangle.
type storedScatter struct {
	n        int // observations
	mean     []float64
	width    int64 // bytes of a number: single or double
	offset   int64 // offset in the Store
	reserved int64 // bytes reserved at this offset
}

// reserve describes a scatter and gives it new space in the Store, which frees none, if its old
// space is too small.
func (s *storedScatter) reserve(store measure.Store, n int, mean []float64, values int, width int64) {
	if need := int64(values) * width; n > 0 && s.reserved < need {
		s.offset, s.reserved = store.Reserve(need), need
	}
	s.n, s.mean, s.width = n, append([]float64(nil), mean...), width
}

func save[T float32 | float64](store measure.Store, s *storedScatter, x *linalg.Scatter[T]) error {
	s.reserve(store, x.N, x.Mean, len(x.Data), sizeOf[T]())
	if x.N == 0 {
		return nil
	}
	_, err := store.WriteAt(bytesOf(x.Data), s.offset)
	return err
}

// saveSingle is save in float32. The scatter must have observations.
func saveSingle(store measure.Store, s *storedScatter, x *linalg.Scatter[float64]) error {
	s.reserve(store, x.N, x.Mean, len(x.Data), single)
	values := make([]float32, min(bandSize, len(x.Data)))
	for at := 0; at < len(x.Data); at += len(values) {
		from := x.Data[at:min(at+len(values), len(x.Data))]
		for i, v := range from {
			values[i] = float32(v)
		}
		if _, err := store.WriteAt(bytesOf(values[:len(from)]), s.offset+int64(at)*single); err != nil {
			return err
		}
	}
	return nil
}

func load[T float32 | float64](store measure.Store, s *storedScatter, x *linalg.Scatter[T]) error {
	x.N = s.n
	if s.n == 0 {
		clear(x.Mean)
		clear(x.Data)
		return nil
	}
	copy(x.Mean, s.mean)
	switch {
	case s.width == sizeOf[T]():
		_, err := store.ReadAt(bytesOf(x.Data), s.offset)
		return err
	case s.width == double:
		return loadAs[float64](store, s, x.Data)
	}
	return loadAs[float32](store, s, x.Data)
}

func loadAs[S, T float32 | float64](store measure.Store, s *storedScatter, dst []T) error {
	values := make([]S, min(bandSize, len(dst)))
	for at := 0; at < len(dst); at += len(values) {
		part := values[:min(len(values), len(dst)-at)]
		if _, err := store.ReadAt(bytesOf(part), s.offset+int64(at)*s.width); err != nil {
			return err
		}
		for i, v := range part {
			dst[at+i] = T(v)
		}
	}
	return nil
}

func mergeStored(store measure.Store, s *storedScatter, x *linalg.Scatter[float64]) error {
	switch {
	case s.n == 0:
		return nil
	case s.width == double:
		return mergeStoredAs[float64](store, s, x)
	}
	return mergeStoredAs[float32](store, s, x)
}

func mergeStoredAs[S float32 | float64](store measure.Store, s *storedScatter, x *linalg.Scatter[float64]) error {
	return linalg.MergeStored(x, s.n, s.mean, func(values []S, at int) error {
		_, err := store.ReadAt(bytesOf(values), s.offset+int64(at)*s.width)
		return err
	})
}

func sizeOf[T float32 | float64]() int64 {
	var one T
	return int64(unsafe.Sizeof(one))
}

// The bytes are in the machine's order: only the process that wrote a Store reads it.
func bytesOf[T float32 | float64](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), int64(len(x))*sizeOf[T]())
}

type memoryStore struct {
	end     int64    // bytes reserved so far: the offset of the next range
	starts  []int64  // offset of each reserved range
	buffers [][]byte // contents of each range
}

func (s *memoryStore) Reserve(n int64) (at int64) {
	at = s.end
	s.end += n
	s.starts, s.buffers = append(s.starts, at), append(s.buffers, bytesOf(make([]float64, int((n+7)/8)))[:n])
	return at
}

func (s *memoryStore) WriteAt(p []byte, at int64) (int, error) { return copy(s.bytesFrom(at), p), nil }

func (s *memoryStore) ReadAt(p []byte, at int64) (int, error) { return copy(p, s.bytesFrom(at)), nil }

// bytesFrom returns the memory from an offset to the end of the reserved range that contains it.
func (s *memoryStore) bytesFrom(at int64) []byte {
	i := len(s.starts) - 1
	for s.starts[i] > at {
		i--
	}
	return s.buffers[i][at-s.starts[i]:]
}
