// Package state writes and reads the states of accumulators: a small binary format that says what it holds and
// notices when it has been cut short or altered.
//
// A run that stops is resumed from states on disk, and shards computed elsewhere are merged from theirs, so a state
// that is not exactly what was written must be an error and never a wrong score. The layout, all numbers little
// endian:
//
//	magic     8 bytes   "noether\x01"
//	kind      string    whose state it is, for instance "seis"
//	version   int       of that kind's payload
//	payload             what the caller wrote, in the caller's order
//	checksum  4 bytes   CRC-32C of everything before it
//
// An int takes 8 bytes, a float64 8, a float32 and an int32 4, a bool 1; strings and slices are their length as an int and
// then their elements. The payload carries no types and no names: a kind whose payload changes takes a new version.
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

// castagnoli is the polynomial of CRC-32C, which processors compute at memory speed.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A Writer puts a state together, in memory or on its way to where it is kept.
type Writer struct {
	buf []byte
	to  io.Writer // nil: all stays in buf
	sum uint32    // of what has gone to it
	err error
}

// NewWriter starts a state of a kind and a version, which Bytes returns.
func NewWriter(kind string, version int) *Writer { return start(&Writer{}, kind, version) }

// Stream starts a state that goes to a writer as it comes, which Close ends. It takes no memory to speak of.
func Stream(to io.Writer, kind string, version int) *Writer {
	return start(&Writer{to: to}, kind, version)
}

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

// Bool writes a truth value.
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

// Nested writes what f writes as a string. Where the state goes on its way as it comes f is called twice, first to learn how long
// it gets, and must write the same.
func (w *Writer) Nested(f func(io.Writer) error) error {
	var size counter
	if err := f(&size); err != nil {
		return err
	}
	w.length(int(size), 1)
	var again counter
	if err := f(io.MultiWriter(&again, content{w})); err != nil {
		return err
	}
	if again != size {
		return fmt.Errorf("a state within a state took %d bytes, and %d when it was written again", size, again)
	}
	return nil
}

// content is the inside of a state that is being written.
type content struct{ *Writer }

func (c content) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		rest = rest[copy(c.room(min(len(rest), piece)), rest):]
	}
	return len(p), c.err
}

// counter counts what is written to it.
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

// piece is how many bytes are written at a time.
const piece = 1 << 15

// each writes a slice of elements of so many bytes, piece by piece.
func each[T any](w *Writer, v []T, size int, put func(b []byte, x T)) {
	w.length(len(v), size)
	for part := range slices.Chunk(v, piece/size) {
		b := w.room(size * len(part))
		for i, x := range part {
			put(b[size*i:], x)
		}
	}
}

// length writes that n elements of so many bytes follow. In memory it makes room for them.
func (w *Writer) length(n, size int) {
	w.Int(n)
	if w.to == nil {
		w.buf = slices.Grow(w.buf, n*size+checksumLen)
	}
}

// room is where the next n bytes go, a piece at most where the state goes on its way.
func (w *Writer) room(n int) []byte {
	if w.to != nil && len(w.buf)+n > 2*piece {
		w.send()
	}
	at := len(w.buf)
	w.buf = slices.Grow(w.buf, n)[:at+n]
	return w.buf[at:]
}

// send lets go of what has been written. After an error nothing more is sent.
func (w *Writer) send() {
	if w.err == nil {
		w.sum = crc32.Update(w.sum, castagnoli(), w.buf)
		_, w.err = w.to.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// Close ends a state that goes to a writer with its checksum, and returns the first error of that writer.
func (w *Writer) Close() error {
	w.send()
	w.buf = binary.LittleEndian.AppendUint32(w.buf, w.sum)
	w.send()
	return w.err
}

// Bytes closes the state with its checksum and returns it. The Writer is not to be used afterwards.
func (w *Writer) Bytes() []byte {
	return binary.LittleEndian.AppendUint32(w.buf, crc32.Checksum(w.buf, castagnoli()))
}
