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
//	w := state.NewWriter("mean", 1)
//	w.Int(n)
//	w.Floats(sums)
//	data := w.Bytes()
//
//	r, err := state.NewReader(data, "mean", 1)
//	n, sums := r.Int(), r.Floats()
//	err = r.Close()
package state

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

const (
	magic       = "noether\x01"
	checksumLen = 4
)

// castagnoli returns the table of CRC-32C, for which processors have instructions.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A Writer builds a state in memory, or writes it to an io.Writer piece by piece.
type Writer struct {
	buf []byte    // the bytes that are not yet sent to the io.Writer
	to  io.Writer // nil: the whole state is kept in buf
	sum uint32    // checksum of the bytes that were sent
	err error     // the first error of the io.Writer
}

// NewWriter returns a Writer of a state of a kind and version in memory. Bytes returns the state.
func NewWriter(kind string, version int) *Writer { return start(&Writer{}, kind, version) }

// Stream returns a Writer that writes a state to an io.Writer piece by piece, with little memory.
// Close ends the state.
func Stream(to io.Writer, kind string, version int) *Writer {
	return start(&Writer{to: to}, kind, version)
}

// start writes the magic, the kind and the version.
func start(w *Writer, kind string, version int) *Writer {
	w.buf = append(w.buf, magic...)
	w.String(kind)
	w.Int(version)
	return w
}

// Int writes an integer.
func (w *Writer) Int(v int) { binary.LittleEndian.PutUint64(w.room(8), uint64(v)) }

// Float writes a float64, NaN and infinities included.
func (w *Writer) Float(v float64) {
	binary.LittleEndian.PutUint64(w.room(8), math.Float64bits(v))
}

// Bool writes a bool.
func (w *Writer) Bool(v bool) {
	b := w.room(1)
	b[0] = 0
	if v {
		b[0] = 1
	}
}

// String writes a string of any bytes.
func (w *Writer) String(v string) {
	w.length(len(v), 1)
	for len(v) > 0 {
		v = v[copy(w.room(min(len(v), piece)), v):]
	}
}

// Nested writes the output of f, such as the state of another accumulator, as a string. It calls f
// twice: first to learn the length, then to write. Both calls must write the same bytes; another
// number of bytes is an error.
func (w *Writer) Nested(f func(io.Writer) error) error {
	var size counter
	if err := f(&size); err != nil {
		return err
	}
	w.length(int(size), 1)
	var written counter
	if err := f(io.MultiWriter(&written, content{w})); err != nil {
		return err
	}
	if written != size {
		return fmt.Errorf("the nested state had %d bytes at first and %d when it was written", size, written)
	}
	return nil
}

// content is an io.Writer to the payload of a state.
type content struct{ *Writer }

func (c content) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		rest = rest[copy(c.room(min(len(rest), piece)), rest):]
	}
	return len(p), c.err
}

// counter counts the bytes written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Ints writes a slice of integers.
func (w *Writer) Ints(v []int) {
	each(w, v, 8, func(b []byte, x int) { binary.LittleEndian.PutUint64(b, uint64(x)) })
}

// Floats writes a slice of float64.
func (w *Writer) Floats(v []float64) {
	each(w, v, 8, func(b []byte, x float64) { binary.LittleEndian.PutUint64(b, math.Float64bits(x)) })
}

// Float32s writes a slice of float32.
func (w *Writer) Float32s(v []float32) {
	each(w, v, 4, func(b []byte, x float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(x)) })
}

// Int32s writes a slice of 32-bit integers.
func (w *Writer) Int32s(v []int32) {
	each(w, v, 4, func(b []byte, x int32) { binary.LittleEndian.PutUint32(b, uint32(x)) })
}

// Uint16s writes a slice of 16-bit integers as Int32s does.
func (w *Writer) Uint16s(v []uint16) {
	each(w, v, 4, func(b []byte, x uint16) { binary.LittleEndian.PutUint32(b, uint32(x)) })
}

// piece is the number of bytes that are read or written at a time.
const piece = 1 << 15

// each writes a slice of elements of size bytes, piece by piece.
func each[T any](w *Writer, v []T, size int, put func(b []byte, x T)) {
	w.length(len(v), size)
	for part := range slices.Chunk(v, piece/size) {
		b := w.room(size * len(part))
		for i, x := range part {
			put(b[size*i:], x)
		}
	}
}

// length writes n, the number of elements that follow, each of size bytes. For a state in memory it
// also reserves space for them.
func (w *Writer) length(n, size int) {
	w.Int(n)
	if w.to == nil {
		w.buf = slices.Grow(w.buf, n*size+checksumLen)
	}
}

// room extends the buffer by n bytes and returns these for the caller to set. With an io.Writer, n
// is at most piece.
func (w *Writer) room(n int) []byte {
	if w.to != nil && len(w.buf)+n > 2*piece {
		w.send()
	}
	end := len(w.buf)
	w.buf = slices.Grow(w.buf, n)[:end+n]
	return w.buf[end:]
}

// send writes the buffer to the io.Writer. After an error nothing more is written.
func (w *Writer) send() {
	if w.err == nil {
		w.sum = crc32.Update(w.sum, castagnoli(), w.buf)
		_, w.err = w.to.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// Close ends a state of Stream with its checksum. It returns the first error of the io.Writer.
func (w *Writer) Close() error {
	w.send()
	w.buf = binary.LittleEndian.AppendUint32(w.buf, w.sum)
	w.send()
	return w.err
}

// Bytes ends a state of NewWriter with its checksum and returns it. The Writer must not be used
// afterwards.
func (w *Writer) Bytes() []byte {
	return binary.LittleEndian.AppendUint32(w.buf, crc32.Checksum(w.buf, castagnoli()))
}
