package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// A Reader takes a state apart, in the order in which it was written. The first error sticks: from then on every
// getter returns zero, and Close returns the error. A length is held against the bytes that remain before anything is allocated.
type Reader struct {
	rest []byte
	err  error
}

// NewReader checks the magic, the checksum, the kind and the version of a state. Data is not copied and must not
// change while it is read.
func NewReader(data []byte, kind string, version int) (*Reader, error) {
	if len(data) < len(magic)+checksumLen || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%d bytes that are no accumulator's state: they do not start as one", len(data))
	}
	body, sum := data[:len(data)-checksumLen], binary.LittleEndian.Uint32(data[len(data)-checksumLen:])
	if crc32.Checksum(body, castagnoli()) != sum {
		return nil, errors.New("a state that is cut short or altered: its checksum does not match")
	}
	r := &Reader{rest: body[len(magic):]}
	gotKind, gotVersion := r.String(), r.Int()
	switch {
	case r.err != nil:
		return nil, r.err
	case gotKind != kind:
		return nil, fmt.Errorf("a state of %q where one of %q is wanted", gotKind, kind)
	case gotVersion != version:
		return nil, fmt.Errorf("a state of %s in version %d; this program reads version %d", kind, gotVersion, version)
	}
	return r, nil
}

// Close returns the first error, or one if bytes are left that nobody has read.
func (r *Reader) Close() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("a state with %d bytes too many", len(r.rest))
	}
	return r.err
}

// Fail makes err the Reader's error if it has none yet: for values that are well formed and make no sense.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Int reads an integer.
func (r *Reader) Int() int { return int(r.uint64()) }

// Float reads a float64.
func (r *Reader) Float() float64 { return math.Float64frombits(r.uint64()) }

// Bool reads a truth value.
func (r *Reader) Bool() bool {
	b := r.take(1, 1)
	if b == nil {
		return false
	}
	if b[0] > 1 {
		r.Fail(fmt.Errorf("a state with %d for a truth value", b[0]))
		return false
	}
	return b[0] == 1
}

// String reads a string.
func (r *Reader) String() string { return string(r.take(r.Int(), 1)) }

// Ints reads a slice of integers.
func (r *Reader) Ints() []int {
	b := r.take(r.Int(), 8)
	v := make([]int, len(b)/8)
	for i := range v {
		v[i] = int(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return v
}

// Floats reads a slice of float64.
func (r *Reader) Floats() []float64 {
	b := r.take(r.Int(), 8)
	v := make([]float64, len(b)/8)
	getFloats(v, b)
	return v
}

// FloatsInto reads a slice of float64 into dst; a slice of another length is an error and leaves dst as it is.
func (r *Reader) FloatsInto(dst []float64) {
	if b := r.takeExactly(len(dst), 8); b != nil {
		getFloats(dst, b)
	}
}

// Float32s reads a slice of float32.
func (r *Reader) Float32s() []float32 {
	b := r.take(r.Int(), 4)
	v := make([]float32, len(b)/4)
	getFloat32s(v, b)
	return v
}

// Float32sInto reads a slice of float32 into dst; a slice of another length is an error and leaves dst as it is.
func (r *Reader) Float32sInto(dst []float32) {
	if b := r.takeExactly(len(dst), 4); b != nil {
		getFloat32s(dst, b)
	}
}

// Int32sInto reads a slice of 32-bit integers into dst; a slice of another length is an error and leaves dst as it is.
func (r *Reader) Int32sInto(dst []int32) {
	if b := r.takeExactly(len(dst), 4); b != nil {
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
}

func getFloats(dst []float64, b []byte) {
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
}

func getFloat32s(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

func (r *Reader) uint64() uint64 {
	b := r.take(1, 8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// takeExactly takes n elements where the state says that n come; nil else.
func (r *Reader) takeExactly(n, size int) []byte {
	if got := r.Int(); got != n {
		r.Fail(fmt.Errorf("a state with %d values where %d are wanted: it belongs to another layer or study", got, n))
		return nil
	}
	return r.take(n, size)
}

// take takes the bytes of n elements; nil, with the error set, where fewer remain.
func (r *Reader) take(n, size int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.rest)/size {
		r.err = fmt.Errorf("a state that claims %d elements of %d bytes with %d bytes left", n, size, len(r.rest))
		return nil
	}
	b := r.rest[: n*size : n*size]
	r.rest = r.rest[n*size:]
	return b
}
