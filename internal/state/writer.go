package state

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
)

// A writer builds a state in memory, or writes it to an io.Writer piece by piece.
type writer struct {
	buf []byte    // the bytes that are not yet sent to the io.Writer
	to  io.Writer // nil: the whole state is kept in buf
	sum uint32    // checksum of the bytes that were sent
	err error     // the first error of the io.Writer
}

// content is an io.Writer to the payload of a state.
type content struct{ *writer }

func (c content) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		rest = rest[copy(c.room(min(len(rest), piece)), rest):]
	}
	return len(p), c.err
}

// length writes n, the number of elements that follow, each of size bytes. For a state in memory it
// also reserves space for them.
func (w *writer) length(n, size int) {
	integers.put(w.room(integers.size), n)
	if w.to == nil {
		w.buf = slices.Grow(w.buf, n*size+checksumLen)
	}
}

// room extends the buffer by n bytes and returns these for the caller to set. With an io.Writer, n
// is at most piece.
func (w *writer) room(n int) []byte {
	if w.to != nil && len(w.buf)+n > 2*piece {
		w.send()
	}
	end := len(w.buf)
	w.buf = slices.Grow(w.buf, n)[:end+n]
	return w.buf[end:]
}

// send writes the buffer to the io.Writer. After an error nothing more is written.
func (w *writer) send() {
	if w.err == nil {
		w.sum = crc32.Update(w.sum, castagnoli(), w.buf)
		_, w.err = w.to.Write(w.buf)
	}
	w.buf = w.buf[:0]
}

// close ends a state with its checksum. It returns the first error of the io.Writer.
func (w *writer) close() error {
	w.send()
	w.buf = binary.LittleEndian.AppendUint32(w.buf, w.sum)
	w.send()
	return w.err
}
