package seis

import (
	"unsafe"

	"github.com/noether-ml/noether/internal/huge"
	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
)

const single, double = 4, 8 // bytes of a number

// bandSize is how many values are converted at once.
const bandSize = 1 << 16

// A slot is where a scatter lies in a Store.
type slot struct {
	n     int // observations
	mean  []float64
	width int64 // bytes of a number, if there are observations
	at    int64
	room  int64 // bytes that have been reserved
}

// shape makes room for a scatter of so many values of a width.
func (s *slot) shape(store measure.Store, n int, mean []float64, values int, width int64) {
	if need := int64(values) * width; n > 0 && s.room < need {
		s.at, s.room = store.Reserve(need), need
	}
	s.n, s.mean, s.width = n, append([]float64(nil), mean...), width
}

// put writes a scatter into a slot.
func put[T float32 | float64](store measure.Store, s *slot, x *linalg.Scatter[T]) error {
	s.shape(store, x.N, x.Mean, len(x.Data), sizeOf[T]())
	if x.N == 0 {
		return nil
	}
	_, err := store.WriteAt(bytesOf(x.Data), s.at)
	return err
}

// putSingle writes a scatter into a slot in float32.
func putSingle(store measure.Store, s *slot, x *linalg.Scatter[float64]) error {
	s.shape(store, x.N, x.Mean, len(x.Data), single)
	values := make([]float32, min(bandSize, len(x.Data)))
	for at := 0; at < len(x.Data); at += len(values) {
		from := x.Data[at:min(at+len(values), len(x.Data))]
		for i, v := range from {
			values[i] = float32(v)
		}
		if _, err := store.WriteAt(bytesOf(values[:len(from)]), s.at+int64(at)*single); err != nil {
			return err
		}
	}
	return nil
}

// take reads a scatter from a slot, of whichever width it is.
func take[T float32 | float64](store measure.Store, s *slot, x *linalg.Scatter[T]) error {
	x.N = s.n
	if s.n == 0 {
		clear(x.Mean)
		clear(x.Data)
		return nil
	}
	copy(x.Mean, s.mean)
	switch {
	case s.width == sizeOf[T]():
		_, err := store.ReadAt(bytesOf(x.Data), s.at)
		return err
	case s.width == double:
		return takeAs[float64](store, s, x.Data)
	}
	return takeAs[float32](store, s, x.Data)
}

// takeAs reads values of a width and converts them.
func takeAs[S, T float32 | float64](store measure.Store, s *slot, dst []T) error {
	values := make([]S, min(bandSize, len(dst)))
	for at := 0; at < len(dst); at += len(values) {
		part := values[:min(len(values), len(dst)-at)]
		if _, err := store.ReadAt(bytesOf(part), s.at+int64(at)*s.width); err != nil {
			return err
		}
		for i, v := range part {
			dst[at+i] = T(v)
		}
	}
	return nil
}

// merge adds what is in a slot to a scatter.
func merge(store measure.Store, s *slot, x *linalg.Scatter[float64]) error {
	switch {
	case s.n == 0:
		return nil
	case s.width == double:
		return mergeAs[float64](store, s, x)
	}
	return mergeAs[float32](store, s, x)
}

func mergeAs[S float32 | float64](store measure.Store, s *slot, x *linalg.Scatter[float64]) error {
	return linalg.MergeStored(x, s.n, s.mean, func(values []S, at int) error {
		_, err := store.ReadAt(bytesOf(values), s.at+int64(at)*s.width)
		return err
	})
}

func sizeOf[T float32 | float64]() int64 {
	var one T
	return int64(unsafe.Sizeof(one))
}

// bytesOf are the bytes of numbers as this machine has them: a Store is read by who wrote it.
func bytesOf[T float32 | float64](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), int64(len(x))*sizeOf[T]())
}

// A shelf is a Store in memory.
type shelf struct {
	end    int64
	starts []int64
	rooms  [][]byte
}

// Reserve implements measure.Store.
func (s *shelf) Reserve(n int64) (at int64) {
	at = s.end
	s.end += n
	s.starts, s.rooms = append(s.starts, at), append(s.rooms, bytesOf(huge.Make[float64](int((n + 7) / 8)))[:n])
	return at
}

// WriteAt implements measure.Store.
func (s *shelf) WriteAt(p []byte, at int64) (int, error) { return copy(s.from(at), p), nil }

// ReadAt implements measure.Store.
func (s *shelf) ReadAt(p []byte, at int64) (int, error) { return copy(p, s.from(at)), nil }

// from is the room that a place lies in, from there on.
func (s *shelf) from(at int64) []byte {
	i := len(s.starts) - 1
	for s.starts[i] > at {
		i--
	}
	return s.rooms[i][at-s.starts[i]:]
}
