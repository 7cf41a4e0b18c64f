package dataset

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strconv"
)

// A nanReader reads JSON and replaces NaN and infinity, which Python writes and JSON lacks, by
// null.
type nanReader struct {
	in       *bufio.Reader
	inString bool
	pending  string // of a replacement, what is not read yet
	read     int64  // bytes that Read has returned
	shifts   []nanShift
}

// A nanShift says that from an offset in what Read returns on, the file is ahead by some bytes.
type nanShift struct{ from, ahead int64 }

func newNaNReader(r io.Reader) *nanReader { return &nanReader{in: bufio.NewReaderSize(r, 1<<20)} }

// inFile returns the offset in the file of an offset in what Read returns.
func (r *nanReader) inFile(offset int64) int64 {
	if i := sort.Search(len(r.shifts), func(i int) bool { return r.shifts[i].from > offset }); i > 0 {
		return offset + r.shifts[i-1].ahead
	}
	return offset
}

func (r *nanReader) Read(p []byte) (n int, err error) {
	defer func() { r.read += int64(n) }()
	for n < len(p) {
		if r.pending != "" {
			copied := copy(p[n:], r.pending)
			n, r.pending = n+copied, r.pending[copied:]
			continue
		}
		b, err := r.in.ReadByte()
		if err != nil {
			if n > 0 {
				return n, nil
			}
			return 0, err
		}
		switch {
		case b == '"':
			r.inString = !r.inString
		case b == '\\' && r.inString:
			next, err := r.in.ReadByte() // which may be a quote
			if err == nil {
				r.pending = string([]byte{next})
			}
		case !r.inString && (b == 'N' || b == 'I' || b == '-') && r.skip(b, r.read+int64(n)):
			continue
		}
		p[n] = b
		n++
	}
	return n, nil
}

// skip skips NaN or infinity, which begins with b, sets its replacement, which begins at an offset,
// and reports whether it is one of them.
func (r *nanReader) skip(b byte, at int64) bool {
	const replacement = "null"
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if word[0] != b {
			continue
		}
		rest, _ := r.in.Peek(len(word) - 1)
		if string(rest) != word[1:] {
			continue
		}
		r.in.Discard(len(word) - 1)
		ahead := int64(len(word) - len(replacement))
		if n := len(r.shifts); n > 0 {
			ahead += r.shifts[n-1].ahead
		}
		r.shifts = append(r.shifts, nanShift{at + int64(len(replacement)), ahead})
		r.pending = replacement
		return true
	}
	return false
}

// A cocoNumber is a number that must be one: null is an error, where encoding/json takes 0.
type cocoNumber float64

func (n *cocoNumber) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || v-v != 0 {
		return fmt.Errorf("%s is not a finite number", text)
	}
	*n = cocoNumber(v)
	return nil
}
