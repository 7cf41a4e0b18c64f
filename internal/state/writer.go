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
	"hash/crc32"
	"math"
	"slices"
)

const (
	magic       = "noether\x01"
	checksumLen = 4
)

// castagnoli is the polynomial of CRC-32C, which processors compute at memory speed.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// A Writer puts a state together.
type Writer struct{ buf []byte }

// NewWriter starts a state of a kind and a version.
func NewWriter(kind string, version int) *Writer {
	w := &Writer{buf: []byte(magic)}
	w.String(kind)
	w.Int(version)
	return w
}

// Grow makes room for so many bytes more, so that a large state is not copied while it grows.
func (w *Writer) Grow(n int) { w.buf = slices.Grow(w.buf, n) }

// Int writes an integer.
func (w *Writer) Int(v int) { w.buf = binary.LittleEndian.AppendUint64(w.buf, uint64(v)) }

// Float writes a float64, NaN and infinities included.
func (w *Writer) Float(v float64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v))
}

// Bool writes a truth value.
func (w *Writer) Bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	w.buf = append(w.buf, b)
}

// String writes a string of any bytes.
func (w *Writer) String(v string) {
	w.Int(len(v))
	w.buf = append(w.buf, v...)
}

// Ints writes a slice of integers.
func (w *Writer) Ints(v []int) {
	b := w.slice(len(v), 8)
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(x))
	}
}

// Floats writes a slice of float64.
func (w *Writer) Floats(v []float64) {
	b := w.slice(len(v), 8)
	for i, x := range v {
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
	}
}

// Float32s writes a slice of float32.
func (w *Writer) Float32s(v []float32) {
	b := w.slice(len(v), 4)
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
}

// Int32s writes a slice of 32-bit integers.
func (w *Writer) Int32s(v []int32) {
	b := w.slice(len(v), 4)
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
	}
}

// slice writes a length and returns the room for that many elements.
func (w *Writer) slice(n, size int) []byte {
	w.Int(n)
	start := len(w.buf)
	w.buf = slices.Grow(w.buf, n*size+checksumLen)[:start+n*size]
	return w.buf[start:]
}

// Bytes closes the state with its checksum and returns it. The Writer is not to be used afterwards.
func (w *Writer) Bytes() []byte {
	return binary.LittleEndian.AppendUint32(w.buf, crc32.Checksum(w.buf, castagnoli()))
}
