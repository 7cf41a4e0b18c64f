// Package state writes and reads the states of accumulators in a small binary format that detects
// truncation and corruption. An accumulator holds the running sums of a measure, a way to score the
// layers of a model; its state is these sums.
//
// Interrupted measurements are resumed from states on disk, and shards, parts of the samples that
// other machines have measured, are merged by their states. So a state that differs from what was
// written must be an error, never a wrong score. The format, with all numbers little endian:
//
//	magic     8 bytes   "noether\x01"
//	kind      string    the accumulator, for instance "seis"
//	version   int       of the payload of that kind
//	payload             the caller's values, in the caller's order
//	checksum  4 bytes   CRC-32C of all bytes before it
//
// An int and a float64 take 8 bytes, a float32, an int32 and a uint16 take 4, and a bool takes 1. A
// string or slice is written as its length, an int, and then its bytes or elements. The payload has
// no types and no names, so a kind whose payload changes needs a new version.
//
// One function of a Codec describes a state for both directions:
//
//	code := func(c *state.Codec) { c.Values(&n, &sums) }
//	data, err := state.Marshal("mean", 1, code)
//	err = state.Unmarshal(data, "mean", 1, code)
package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"
)

const (
	magic       = "noether\x01"
	checksumLen = 4
	piece       = 1 << 15 // number of bytes that are read or written at a time
)

// castagnoli returns the table of CRC-32C, for which processors have instructions.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A Codec writes the values of a state, or reads them. After the first error it reads zeros.
type Codec struct {
	w   *writer // nil if the Codec reads
	r   *reader // nil if it writes
	err error   // the first error
}

// A Coder writes or reads itself as a part of a state.
type Coder interface{ Code(c *Codec) }

// Marshal returns the state that code writes.
func Marshal(kind string, version int, code func(*Codec)) ([]byte, error) {
	c := &Codec{w: &writer{}}
	c.start(kind, version)
	code(c)
	return binary.LittleEndian.AppendUint32(c.w.buf, crc32.Checksum(c.w.buf, castagnoli())), c.err
}

// Unmarshal calls code to read a state after checking its first bytes (magic), checksum, kind (what
// it is the state of, such as a measure's name) and version (of the kind's format). The byte slices
// that code reads may share memory with data. Bytes that code leaves unread are an error.
func Unmarshal(data []byte, kind string, version int, code func(*Codec)) error {
	if len(data) < len(magic)+checksumLen || string(data[:len(magic)]) != magic {
		return fmt.Errorf("not a state: its %d bytes do not start with the magic of one", len(data))
	}
	body, sum := data[:len(data)-checksumLen],
		binary.LittleEndian.Uint32(data[len(data)-checksumLen:])
	if crc32.Checksum(body, castagnoli()) != sum {
		return errAltered
	}
	c := &Codec{r: &reader{rest: body[len(magic):]}}
	if c.readHead(kind, version); c.err == nil {
		code(c)
	}
	if n := len(c.r.rest); n > 0 {
		c.Fail(fmt.Errorf("the state has %d bytes too many", n))
	}
	return c.err
}

// Stream writes the state that code writes to an io.Writer piece by piece, with little memory.
func Stream(to io.Writer, kind string, version int, code func(*Codec)) error {
	c := &Codec{w: &writer{to: to}}
	c.start(kind, version)
	code(c)
	if c.err != nil {
		return c.err
	}
	return c.w.close()
}

func (c *Codec) start(kind string, version int) {
	c.w.buf = append(c.w.buf, magic...)
	c.Values(&kind, &version)
}

func (c *Codec) readHead(kind string, version int) {
	var storedKind string
	var storedVersion int
	c.Values(&storedKind, &storedVersion)
	switch {
	case c.err != nil:
	case storedKind != kind:
		c.err = fmt.Errorf("the state is of %q, not of %q", storedKind, kind)
	case storedVersion != version:
		c.err = fmt.Errorf("the state of %s has version %d; this program reads version %d", kind,
			storedVersion, version)
	}
}

// Reads reports whether the Codec reads.
func (c *Codec) Reads() bool { return c.r != nil }

// Fail sets the error of the Codec if it has none. Callers use it for invalid values.
func (c *Codec) Fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// Failed reports whether there was an error.
func (c *Codec) Failed() bool { return c.err != nil }

// Check fails with an error of fmt.Errorf if the values that were read are not valid.
func (c *Codec) Check(valid bool, format string, args ...any) {
	if !valid && c.Reads() {
		c.Fail(fmt.Errorf(format, args...))
	}
}

var errOther = errors.New("the state is of another job")

// Matches writes an int, a string or a list of ints, or reads one and reports whether it is the
// same. If it is not, the state is of another job, which Load ignores.
func (c *Codec) Matches(want any) bool {
	same := false
	switch want := want.(type) {
	case int:
		got := want
		c.Values(&got)
		same = got == want
	case string:
		got := want
		c.Values(&got)
		same = got == want
	case []int:
		got := want
		c.Values(&got)
		same = slices.Equal(got, want)
	}
	c.Check(same, "%w", errOther)
	return same && !c.Failed()
}

// Len writes a number of elements, or reads one, and returns it. Fewer than 0 or more than most are
// an error, and read as 0.
func (c *Codec) Len(n *int, most int) int {
	if c.Values(n); c.Reads() && (*n < 0 || *n > most) {
		c.Fail(fmt.Errorf("the state has %d elements of at most %d", *n, most))
		*n = 0
	}
	return *n
}

// Map writes the entries of a map in the order of their names, or reads at most most of them. code
// writes or reads a value.
func Map[V any](c *Codec, m map[string]V, most int, code func(v *V)) {
	names := slices.Sorted(maps.Keys(m))
	n := len(names)
	for i := range c.Len(&n, most) {
		var name string
		var v V
		if !c.Reads() {
			name, v = names[i], m[names[i]]
		}
		c.Values(&name)
		if code(&v); c.Failed() {
			return
		}
		if c.Reads() {
			m[name] = v
		}
	}
}

// Nested writes the output of write, such as the state of another accumulator; Values reads it as a
// slice of bytes. Nested calls write twice: first to learn the length, then to write. Both calls
// must write the same bytes; another number of bytes is an error.
func (c *Codec) Nested(write func(io.Writer) error) {
	var size, written counter
	c.Fail(write(&size))
	c.w.length(int(size), 1)
	c.Fail(write(io.MultiWriter(&written, content{c.w})))
	if written != size {
		c.Fail(fmt.Errorf("the nested state had %d bytes at first and %d when it was written", size,
			written))
	}
}

// counter counts the bytes written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Values writes values, or reads them. Pointers to an int, float64, bool, string or slice are set;
// whatever length a state claims, no more memory is allocated than it has bytes for. The elements
// of a slice that is passed itself are set if the state has as many; another length is an error.
func (c *Codec) Values(values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case Coder:
			v.Code(c)
		case *int:
			scalar(c, v, integers)
		case *float64:
			scalar(c, v, doubles)
		case *bool:
			c.boolean(v)
		case *string:
			b := []byte(*v)
			if c.bytes(&b); c.Reads() {
				*v = string(b)
			}
		case *[]byte:
			c.bytes(v)
		case *[]int:
			list(c, v, integers)
		case *[]float64:
			list(c, v, doubles)
		case *[]float32:
			list(c, v, singles)
		case []int:
			elements(c, v, integers)
		case []float64:
			elements(c, v, doubles)
		case []float32:
			elements(c, v, singles)
		case []int32:
			elements(c, v, words)
		case []uint16:
			elements(c, v, halfWords)
		default:
			panic(fmt.Sprintf("state: a value of type %T", v))
		}
	}
}

// A format is how a number is stored.
type format[T any] struct {
	size int // bytes
	put  func(b []byte, v T)
	get  func(b []byte) T
}

var (
	little = binary.LittleEndian

	flags = format[byte]{1, func(b []byte, v byte) { b[0] = v },
		func(b []byte) byte { return b[0] }}
	integers = format[int]{8, func(b []byte, v int) { little.PutUint64(b, uint64(v)) },
		func(b []byte) int { return int(little.Uint64(b)) }}
	doubles = format[float64]{8,
		func(b []byte, v float64) { little.PutUint64(b, math.Float64bits(v)) },
		func(b []byte) float64 { return math.Float64frombits(little.Uint64(b)) }}
	singles = format[float32]{4,
		func(b []byte, v float32) { little.PutUint32(b, math.Float32bits(v)) },
		func(b []byte) float32 { return math.Float32frombits(little.Uint32(b)) }}
	words = format[int32]{4, func(b []byte, v int32) { little.PutUint32(b, uint32(v)) },
		func(b []byte) int32 { return int32(little.Uint32(b)) }}
	halfWords = format[uint16]{4, func(b []byte, v uint16) { little.PutUint32(b, uint32(v)) },
		func(b []byte) uint16 { return uint16(little.Uint32(b)) }}
)

func scalar[T any](c *Codec, v *T, f format[T]) {
	if !c.Reads() {
		f.put(c.w.room(f.size), *v)
		return
	}
	var read T
	if b := c.take(1, f.size); len(b) > 0 {
		read = f.get(b)
	}
	*v = read
}

func (c *Codec) boolean(v *bool) {
	var b byte
	if *v {
		b = 1
	}
	if scalar(c, &b, flags); c.Reads() {
		*v = b == 1
		c.Check(b <= 1, "the state has the value %d for a bool", b)
	}
}

// bytes writes or reads the bytes of a string. With Unmarshal they share memory with its data.
func (c *Codec) bytes(v *[]byte) {
	switch {
	case !c.Reads():
		c.w.length(len(*v), 1)
		content{c.w}.Write(*v)
	case c.r.from == nil:
		var n int
		c.Values(&n)
		*v = c.take(n, 1)
	default:
		list(c, v, flags)
	}
}

// list writes or reads a slice of any length.
func list[T any](c *Codec, v *[]T, f format[T]) {
	if !c.Reads() {
		elements(c, *v, f)
		return
	}
	var n int
	c.Values(&n)
	atOnce := n
	if c.r.from != nil {
		atOnce = min(n, piece/f.size)
	}
	out := make([]T, 0)
	for {
		b := c.take(min(n-len(out), atOnce), f.size)
		out = slices.Grow(out, len(b)/f.size)
		for ; len(b) > 0; b = b[f.size:] {
			out = append(out, f.get(b))
		}
		if c.Failed() || len(out) == n {
			*v = out
			return
		}
	}
}

// elements writes the elements of a slice, or reads as many.
func elements[T any](c *Codec, v []T, f format[T]) {
	if !c.Reads() {
		c.w.length(len(v), f.size)
	} else {
		var n int
		if c.Values(&n); n != len(v) {
			c.Fail(fmt.Errorf(
				"the state has %d values instead of %d: it belongs to another layer or study", n,
				len(v)))
			return
		}
	}
	for part := range slices.Chunk(v, piece/f.size) {
		if !c.Reads() {
			b := c.w.room(f.size * len(part))
			for i, x := range part {
				f.put(b[f.size*i:], x)
			}
			continue
		}
		b := c.take(len(part), f.size)
		if c.Failed() {
			return
		}
		for i := range part {
			part[i] = f.get(b[i*f.size:])
		}
	}
}
