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

// A Reader reads the values of a state, such as the saved running sums of a measure, in the order
// in which a Writer wrote them. After the first error every method returns zero, and Close returns
// the error. Whatever length a state claims, no more memory is allocated than it has bytes for.
type Reader struct {
	rest []byte // with NewReader: the bytes that are not read yet
	err  error

	from *bufio.Reader // with Open: the rest of the state; else nil
	sum  uint32        // checksum (CRC-32C) of the bytes that were read from the field from
}

// NewReader returns a Reader of a state after checking its first bytes (magic), checksum, kind
// (what it is the state of, such as a measure's name) and version (of the kind's format); a
// difference is an error. data is not copied and must not change while it is read.
func NewReader(data []byte, kind string, version int) (*Reader, error) {
	if len(data) < len(magic)+checksumLen || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("not a state: its %d bytes do not start with the magic of one", len(data))
	}
	body, sum := data[:len(data)-checksumLen], binary.LittleEndian.Uint32(data[len(data)-checksumLen:])
	if crc32.Checksum(body, castagnoli()) != sum {
		return nil, errAltered
	}
	r := &Reader{rest: body[len(magic):]}
	return r, r.readHead(kind, version)
}

// Open is NewReader for a state that is read in pieces, of piece (2^15) bytes at most. The checksum
// is at the end, so only Close reports whether the state is complete and unchanged.
func Open(from io.Reader, kind string, version int) (*Reader, error) {
	r := &Reader{from: bufio.NewReaderSize(from, piece)}
	if string(r.take(len(magic), 1)) != magic {
		return nil, errors.New("not a state: its bytes do not start with the magic of one")
	}
	if err := r.readHead(kind, version); err != nil {
		return nil, r.Close()
	}
	return r, nil
}

// readHead reads and checks the kind and the version.
func (r *Reader) readHead(kind string, version int) error {
	storedKind, storedVersion := r.String(), r.Int()
	switch {
	case r.err != nil:
	case storedKind != kind:
		r.err = fmt.Errorf("the state is of %q, not of %q", storedKind, kind)
	case storedVersion != version:
		r.err = fmt.Errorf("the state of %s has version %d; this program reads version %d", kind, storedVersion, version)
	}
	return r.err
}

// Close returns the first error. Unread bytes are an error.
func (r *Reader) Close() error {
	if r.from != nil {
		r.finish()
	}
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("the state has %d bytes too many", len(r.rest))
	}
	return r.err
}

// finish reads the rest of the state and checks the checksum. A wrong checksum replaces an earlier
// error, since it is the cause.
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
		r.Fail(fmt.Errorf("the state has %d bytes too many", left-checksumLen))
	}
}

var errAltered = errors.New("the state is cut short or altered: its checksum does not match")

// Fail sets the error of the Reader if it has none. Callers use it for invalid values.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Int reads an integer.
func (r *Reader) Int() int { return int(r.uint64()) }

// Float reads a float64.
func (r *Reader) Float() float64 { return math.Float64frombits(r.uint64()) }

// Bool reads a bool.
func (r *Reader) Bool() bool {
	b := r.take(1, 1)
	if len(b) == 0 {
		return false
	}
	if b[0] > 1 {
		r.Fail(fmt.Errorf("the state has the value %d for a bool", b[0]))
		return false
	}
	return b[0] == 1
}

// String reads a string.
func (r *Reader) String() string { return string(r.Raw()) }

// Raw reads the bytes that the String or Nested of a Writer wrote: a string, or the output of a
// function, such as another state. They may share memory with the data of NewReader.
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

// FloatsInto reads a slice of float64 into dst. A slice of another length is an error and does not
// change dst.
func (r *Reader) FloatsInto(dst []float64) { into(r, dst, 8, getFloat) }

// Float32s reads a slice of float32.
func (r *Reader) Float32s() []float32 { return list(r, r.Int(), 4, getFloat32) }

// Float32sInto reads a slice of float32 into dst. A slice of another length is an error and does
// not change dst.
func (r *Reader) Float32sInto(dst []float32) { into(r, dst, 4, getFloat32) }

// Int32sInto reads a slice of 32-bit integers into dst. A slice of another length is an error and
// does not change dst.
func (r *Reader) Int32sInto(dst []int32) {
	into(r, dst, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
}

// Uint16sInto reads into dst a slice that the Uint16s of a Writer wrote, in 32 bits each. A slice
// of another length is an error and does not change dst.
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

// list reads n elements of size bytes. It allocates no more memory than the state has bytes for.
func list[T any](r *Reader, n, size int, get func(b []byte) T) []T {
	atOnce := n
	if r.from != nil {
		atOnce = min(n, piece/size)
	}
	out := make([]T, 0)
	for {
		b := r.take(min(n-len(out), atOnce), size)
		out = slices.Grow(out, len(b)/size)
		for ; len(b) > 0; b = b[size:] {
			out = append(out, get(b))
		}
		if r.err != nil || len(out) == n {
			return out
		}
	}
}

// into reads a slice of elements of size bytes into dst, which must have the same length.
func into[T any](r *Reader, dst []T, size int, get func(b []byte) T) {
	if n := r.Int(); n != len(dst) {
		r.Fail(fmt.Errorf("the state has %d values instead of %d: it belongs to another layer or study", n, len(dst)))
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

// take returns the bytes of n elements of size bytes, or nil with the error set if fewer remain.
// With Open, n * size must be at most piece, and the bytes are valid until the next call.
func (r *Reader) take(n, size int) []byte {
	if r.err != nil {
		return nil
	}
	if r.from != nil {
		return r.read(n, size)
	}
	if n < 0 || n > len(r.rest)/size {
		r.err = fmt.Errorf("the state claims %d elements of %d bytes with %d bytes left", n, size, len(r.rest))
		return nil
	}
	b := r.rest[: n*size : n*size]
	r.rest = r.rest[n*size:]
	return b
}

// read implements take for a state that is read piece by piece.
func (r *Reader) read(n, size int) []byte {
	var b []byte
	if n >= 0 {
		b, r.err = r.from.Peek(n * size)
	}
	if n < 0 || r.err == io.EOF {
		r.err = fmt.Errorf("the state claims %d elements of %d bytes and has fewer", n, size)
	}
	if r.err != nil {
		return nil
	}
	r.sum = crc32.Update(r.sum, castagnoli(), b)
	r.from.Discard(len(b))
	return b
}
