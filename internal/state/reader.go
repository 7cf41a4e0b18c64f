package state

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// A Reader takes a state apart, in the order in which it was written. The first error sticks: from then on every
// getter returns zero, and Close returns the error. A length is held against the bytes that remain before anything is allocated.
type Reader struct {
	rest []byte
	err  error

	from *bufio.Reader // nil: rest is all that there is
	sum  uint32        // of what has been read
}

// NewReader checks the magic, the checksum, the kind and the version of a state. Data is not copied and must not
// change while it is read.
func NewReader(data []byte, kind string, version int) (*Reader, error) {
	if len(data) < len(magic)+checksumLen || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("%d bytes that are no accumulator's state: they do not start as one", len(data))
	}
	body, sum := data[:len(data)-checksumLen], binary.LittleEndian.Uint32(data[len(data)-checksumLen:])
	if crc32.Checksum(body, castagnoli()) != sum {
		return nil, errAltered
	}
	r := &Reader{rest: body[len(magic):]}
	return r, r.head(kind, version)
}

// Open is NewReader for a state that is read as it is taken apart. Whether it is whole and unaltered is known when Close returns.
func Open(from io.Reader, kind string, version int) (*Reader, error) {
	r := &Reader{from: bufio.NewReaderSize(from, piece)}
	if string(r.take(len(magic), 1)) != magic {
		return nil, errors.New("bytes that are no state: they do not start as one")
	}
	if err := r.head(kind, version); err != nil {
		return nil, r.Close()
	}
	return r, nil
}

// head reads whose state it is.
func (r *Reader) head(kind string, version int) error {
	gotKind, gotVersion := r.String(), r.Int()
	switch {
	case r.err != nil:
	case gotKind != kind:
		r.err = fmt.Errorf("a state of %q where one of %q is wanted", gotKind, kind)
	case gotVersion != version:
		r.err = fmt.Errorf("a state of %s in version %d; this program reads version %d", kind, gotVersion, version)
	}
	return r.err
}

// Close returns the first error, or one if bytes are left that nobody has read.
func (r *Reader) Close() error {
	if r.from != nil {
		r.finish()
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("a state with %d bytes too many", len(r.rest))
	}
	return r.err
}

// finish reads what is left, the checksum at the end of it. A state that is altered is told before what seemed wrong in it.
func (r *Reader) finish() {
	var last []byte
	left := 0
	for {
		b, err := r.from.Peek(piece)
		if len(b) == 0 && err != nil {
			if err != io.EOF {
				r.Fail(err)
				return
			}
			break
		}
		left += len(b)
		last = append(last, b...)
		r.from.Discard(len(b))
		if ready := len(last) - checksumLen; ready > 0 {
			r.sum = crc32.Update(r.sum, castagnoli(), last[:ready])
			last = last[:copy(last, last[ready:])]
		}
	}
	switch {
	case len(last) < checksumLen || binary.LittleEndian.Uint32(last) != r.sum:
		r.err = errAltered
	case left > checksumLen:
		r.Fail(fmt.Errorf("a state with %d bytes too many", left-checksumLen))
	}
}

var errAltered = errors.New("a state that is cut short or altered: its checksum does not match")

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
	if len(b) == 0 {
		return false
	}
	if b[0] > 1 {
		r.Fail(fmt.Errorf("a state with %d for a truth value", b[0]))
		return false
	}
	return b[0] == 1
}

// String reads a string.
func (r *Reader) String() string { return string(r.Raw()) }

// Raw reads what String or Nested has written. It may be a part of what the Reader was given.
func (r *Reader) Raw() []byte {
	n := r.Int()
	if r.from == nil {
		return r.take(n, 1)
	}
	return list(r, n, 1, func(b []byte) byte { return b[0] })
}

// Ints reads a slice of integers.
func (r *Reader) Ints() []int { return list(r, r.Int(), 8, getInt) }

// Floats reads a slice of float64.
func (r *Reader) Floats() []float64 { return list(r, r.Int(), 8, getFloat) }

// FloatsInto reads a slice of float64 into dst; a slice of another length is an error and leaves dst as it is.
func (r *Reader) FloatsInto(dst []float64) { into(r, dst, 8, getFloat) }

// Float32s reads a slice of float32.
func (r *Reader) Float32s() []float32 { return list(r, r.Int(), 4, getFloat32) }

// Float32sInto reads a slice of float32 into dst; a slice of another length is an error and leaves dst as it is.
func (r *Reader) Float32sInto(dst []float32) { into(r, dst, 4, getFloat32) }

// Int32sInto reads a slice of 32-bit integers into dst; a slice of another length is an error and leaves dst as it is.
func (r *Reader) Int32sInto(dst []int32) {
	into(r, dst, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
}

// Uint16sInto reads what Uint16s has written into dst; a slice of another length is an error and leaves dst as it is.
func (r *Reader) Uint16sInto(dst []uint16) {
	into(r, dst, 4, func(b []byte) uint16 { return uint16(binary.LittleEndian.Uint32(b)) })
}

func getInt(b []byte) int         { return int(binary.LittleEndian.Uint64(b)) }
func getFloat(b []byte) float64   { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
func getFloat32(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }

func (r *Reader) uint64() uint64 {
	b := r.take(1, 8)
	if len(b) == 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// list reads n elements of so many bytes, which take no more memory than what is there.
func list[T any](r *Reader, n, size int, get func(b []byte) T) []T {
	most := n
	if r.from != nil {
		most = min(n, piece/size)
	}
	out := make([]T, 0)
	for {
		b := r.take(min(n-len(out), most), size)
		out = slices.Grow(out, len(b)/size)
		for ; len(b) > 0; b = b[size:] {
			out = append(out, get(b))
		}
		if r.err != nil || len(out) == n {
			return out
		}
	}
}

// into reads as many elements as dst has, where the state says that so many come.
func into[T any](r *Reader, dst []T, size int, get func(b []byte) T) {
	if got := r.Int(); got != len(dst) {
		r.Fail(fmt.Errorf("a state with %d values where %d are wanted: it belongs to another layer or study", got, len(dst)))
		return
	}
	for len(dst) > 0 {
		b := r.take(min(len(dst), piece/size), size)
		if r.err != nil {
			return
		}
		for i := range len(b) / size {
			dst[i] = get(b[i*size:])
		}
		dst = dst[len(b)/size:]
	}
}

// take takes the bytes of n elements; nil, with the error set, where fewer remain. Of what is read as it comes they hold until the next
// call, and are a piece at most.
func (r *Reader) take(n, size int) []byte {
	if r.err != nil {
		return nil
	}
	if r.from != nil {
		return r.read(n, size)
	}
	if n < 0 || n > len(r.rest)/size {
		r.err = fmt.Errorf("a state that claims %d elements of %d bytes with %d bytes left", n, size, len(r.rest))
		return nil
	}
	b := r.rest[: n*size : n*size]
	r.rest = r.rest[n*size:]
	return b
}

func (r *Reader) read(n, size int) []byte {
	var b []byte
	if n >= 0 {
		b, r.err = r.from.Peek(n * size)
	}
	if n < 0 || r.err == io.EOF {
		r.err = fmt.Errorf("a state that claims %d elements of %d bytes where there are fewer", n, size)
	}
	if r.err != nil {
		return nil
	}
	r.sum = crc32.Update(r.sum, castagnoli(), b)
	r.from.Discard(len(b))
	return b
}
