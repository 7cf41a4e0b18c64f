package state

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// A reader holds the bytes of a state that are not read yet.
type reader struct {
	rest []byte // with Unmarshal

	from *bufio.Reader // with open; else nil
	sum  uint32        // checksum (CRC-32C) of the bytes that were read from the field from
}

var errAltered = errors.New("the state is cut short or altered: its checksum does not match")

// open returns a Codec of a state that is read in pieces, of piece (2^15) bytes at most. The
// checksum is at the end, so only finish reports whether the state is complete and unchanged.
func open(from io.Reader, kind string, version int) (*Codec, error) {
	c := &Codec{r: &reader{from: bufio.NewReaderSize(from, piece)}}
	if string(c.take(len(magic), 1)) != magic {
		return nil, errors.New("not a state: its bytes do not start with the magic of one")
	}
	if c.readHead(kind, version); c.err != nil {
		return nil, c.finish()
	}
	return c, nil
}

// finish reads the rest of the state and returns the first error. A wrong checksum replaces an
// earlier error, since it is the cause.
func (c *Codec) finish() error {
	var last []byte
	left := 0
	for {
		b, err := c.r.from.Peek(piece)
		if len(b) == 0 && err != nil {
			if err != io.EOF {
				c.Fail(err)
				return c.err
			}
			break
		}
		left += len(b)
		last = append(last, b...)
		c.r.from.Discard(len(b))
		if ready := len(last) - checksumLen; ready > 0 {
			c.r.sum = crc32.Update(c.r.sum, castagnoli(), last[:ready])
			last = last[:copy(last, last[ready:])]
		}
	}
	switch {
	case len(last) < checksumLen || binary.LittleEndian.Uint32(last) != c.r.sum:
		c.err = errAltered
	case left > checksumLen:
		c.Fail(fmt.Errorf("the state has %d bytes too many", left-checksumLen))
	}
	return c.err
}

// take returns the bytes of n elements of size bytes, or nil with the error set if fewer remain.
// With open, n * size must be at most piece, and the bytes are valid until the next call.
func (c *Codec) take(n, size int) []byte {
	if c.Failed() {
		return nil
	}
	r := c.r
	if r.from == nil {
		if n < 0 || n > len(r.rest)/size {
			c.err = fmt.Errorf("the state claims %d elements of %d bytes with %d bytes left", n,
				size, len(r.rest))
			return nil
		}
		b := r.rest[: n*size : n*size]
		r.rest = r.rest[n*size:]
		return b
	}
	var b []byte
	if n >= 0 {
		b, c.err = r.from.Peek(n * size)
	}
	if n < 0 || c.err == io.EOF {
		c.err = fmt.Errorf("the state claims %d elements of %d bytes and has fewer", n, size)
	}
	if c.err != nil {
		return nil
	}
	r.sum = crc32.Update(r.sum, castagnoli(), b)
	r.from.Discard(len(b))
	return b
}
