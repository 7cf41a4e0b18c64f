package features

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"os"
	"unsafe"
)

// A Table holds one vector for each of n samples: n x d. It is safe for concurrent reading.
type Table struct {
	Positions []int // position of each row's sample in the data set
	Dim       int   // d

	data []float32 // n x d; nil if the rows are on disk
	file *os.File  // nil if the rows are in memory
}

// NewTable returns a table in memory that uses data, n x d in row-major order, without a copy. If
// positions is nil, they are 0 to n - 1.
func NewTable(positions []int, dim int, data []float32) *Table {
	if positions == nil {
		for i := range len(data) / max(1, dim) {
			positions = append(positions, i)
		}
	}
	return &Table{Positions: positions, Dim: dim, data: data}
}

// Len returns the number of samples.
func (t *Table) Len() int { return len(t.Positions) }

// Row copies the vector of the i-th sample to dst[:Dim].
func (t *Table) Row(dst []float32, i int) error {
	dst = dst[:t.Dim]
	if t.data != nil {
		copy(dst, t.data[i*t.Dim:])
		return nil
	}
	if _, err := t.file.ReadAt(bytesOf(dst), headSize+int64(i)*int64(t.Dim)*4); err != nil {
		return fmt.Errorf("reading a representation: %w", err)
	}
	return nil
}

// Close closes the file of the table, if there is one.
func (t *Table) Close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// bytesOf returns the memory of v. Files are little endian, as are all machines that ONNX
// Runtime, which runs the models, supports.
func bytesOf(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}

// The file of a table, all numbers little endian: magic (8 bytes), d (8 bytes); n x d float32; n
// positions (8 bytes each); n (8 bytes), CRC-32C of all before (4 bytes).
const (
	magic    = "noether\x02"
	headSize = 16 // bytes before the rows
	tailSize = 12 // bytes after the positions
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type writer struct {
	to        *bufio.Writer
	sum       hash.Hash32 // checksum of what has been written
	dim       int
	positions []int // of the rows that have been written
}

func newWriter(to io.Writer, dim int) (*writer, error) {
	w := &writer{to: bufio.NewWriterSize(to, 1<<18), sum: crc32.New(castagnoli), dim: dim}
	return w, w.write(binary.LittleEndian.AppendUint64([]byte(magic), uint64(dim)))
}

func (w *writer) write(b []byte) error {
	w.sum.Write(b)
	_, err := w.to.Write(b)
	return err
}

func (w *writer) add(position int, row []float32) error {
	w.positions = append(w.positions, position)
	return w.write(bytesOf(row))
}

func (w *writer) finish() error {
	var b []byte
	for _, p := range w.positions {
		b = binary.LittleEndian.AppendUint64(b, uint64(p))
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(w.positions)))
	if err := w.write(b); err != nil {
		return err
	}
	if _, err := w.to.Write(binary.LittleEndian.AppendUint32(nil, w.sum.Sum32())); err != nil {
		return err
	}
	return w.to.Flush()
}

var errDamaged = errors.New("the file is damaged")

// openTable opens a table with rows of dim numbers. It reads the rows into memory if they take at
// most memory bytes. The error of a damaged file is errDamaged, or one of package io if the file
// becomes shorter while it is read.
func openTable(path string, dim int, memory int64) (*Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t := &Table{Dim: dim, file: f}
	if err := t.read(memory); err != nil {
		f.Close()
		return nil, err
	}
	if t.data != nil {
		t.file = nil
		return t, f.Close()
	}
	return t, nil
}

// read checks the file, and reads the rows if they take at most memory bytes.
func (t *Table) read(memory int64) error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	sampleBytes := int64(t.Dim)*4 + 8 // a row and a position
	n := (info.Size() - headSize - tailSize) / sampleBytes
	if info.Size() < headSize+tailSize || headSize+tailSize+n*sampleBytes != info.Size() || n > math.MaxInt32 {
		return errDamaged
	}
	sum := crc32.New(castagnoli)
	in := io.TeeReader(bufio.NewReaderSize(t.file, 1<<18), sum)
	head := make([]byte, headSize)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	if string(head[:8]) != magic || binary.LittleEndian.Uint64(head[8:]) != uint64(t.Dim) {
		return errDamaged
	}
	size := n * int64(t.Dim) * 4
	if size <= memory {
		t.data = make([]float32, n*int64(t.Dim))
		_, err = io.ReadFull(in, bytesOf(t.data))
	} else {
		_, err = io.CopyN(io.Discard, in, size)
	}
	if err != nil {
		return err
	}
	return t.readTail(in, sum, n)
}

// readTail reads the n positions and checks the number and the checksum after them.
func (t *Table) readTail(in io.Reader, sum hash.Hash32, n int64) error {
	b := make([]byte, 8*n+8)
	if _, err := io.ReadFull(in, b); err != nil {
		return err
	}
	t.Positions = make([]int, n)
	for i := range t.Positions {
		t.Positions[i] = int(binary.LittleEndian.Uint64(b[8*i:]))
	}
	want := sum.Sum32()
	last := make([]byte, 4)
	if _, err := io.ReadFull(in, last); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(b[8*n:]) != uint64(n) || binary.LittleEndian.Uint32(last) != want {
		return errDamaged
	}
	return nil
}
