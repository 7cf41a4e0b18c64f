package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

// The format of a log; the package comment explains it.
const (
	magic      = "noether log 1\n"
	dataMark   = "\x93nod"
	recordMark = "\x93nor"
	headerSize = 16
	maxData    = 1 << 20 // bytes of a data frame
	maxRecord  = 1 << 30 // bytes of a record frame
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendHeader(b []byte, mark string, payload []byte) []byte {
	start := len(b)
	b = append(b, mark...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(payload, castagnoli))
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

type header struct {
	record bool
	size   int64 // of the payload
	sum    uint32
}

func (h header) matches(payload []byte) bool {
	return int64(len(payload)) == h.size && crc32.Checksum(payload, castagnoli) == h.sum
}

func parseHeader(b []byte) (h header, ok bool) {
	if len(b) < headerSize || crc32.Checksum(b[:12], castagnoli) != binary.LittleEndian.Uint32(b[12:]) {
		return h, false
	}
	mark := string(b[:4])
	h = header{mark == recordMark, int64(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint32(b[8:])}
	return h, h.record && h.size <= maxRecord || mark == dataMark && h.size <= maxData
}

// A head is the decoded payload of a record frame.
type head struct {
	key     string
	version uint64
	parts   []partSize
	body    []byte
}

type partSize struct {
	name string
	size int64
}

func (h *head) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, h.version)
	b = append(binary.LittleEndian.AppendUint16(b, uint16(len(h.key))), h.key...)
	b = append(b, byte(len(h.parts)))
	for _, p := range h.parts {
		b = append(append(b, byte(len(p.name))), p.name...)
		b = binary.LittleEndian.AppendUint64(b, uint64(p.size))
	}
	return append(b, h.body...)
}

func (h *head) dataSize() (sum int64) {
	for _, p := range h.parts {
		sum += p.size
	}
	return sum
}

// parseHead decodes the payload of a record frame. The body is a part of b.
func parseHead(b []byte) (h head, ok bool) {
	take := func(n int) (out []byte) {
		if ok = ok && n <= len(b); !ok {
			return make([]byte, min(n, 8))
		}
		out, b = b[:n], b[n:]
		return out
	}
	ok = true
	h.version = binary.LittleEndian.Uint64(take(8))
	h.key = string(take(int(binary.LittleEndian.Uint16(take(2)))))
	for range int(take(1)[0]) {
		p := partSize{name: string(take(int(take(1)[0])))}
		p.size = int64(binary.LittleEndian.Uint64(take(8)))
		h.parts = append(h.parts, p)
		if ok = ok && p.size >= 0; !ok {
			break
		}
	}
	h.body = b
	return h, ok
}

// A span is where a record is in its log.
type span struct{ data, frame, end int64 } // offsets of its first data frame, of its record frame, and of its end

// A scan is what a part of a log holds besides valid records.
type scan struct {
	End     int64    // the end of the last record
	Damaged int      // damaged records and other damaged stretches that are followed by intact frames
	Keys    []string // of damaged records, where they are known
}

// scanLog calls each for the valid records of a log of the given size that begin at from or later.
// With verify it checks the data frames too.
func scanLog(r io.ReaderAt, from, size int64, verify bool, each func(h head, at span)) (out scan, err error) {
	w := window{r: r, size: size}
	out.End = from
	at := from
	if from == 0 {
		start := w.bytes(0, len(magic))
		switch {
		case start == nil:
			return out, w.err
		case string(start) == magic:
			at, out.End = int64(len(magic)), int64(len(magic))
		default:
			out.Damaged = 1
			if at = w.find(0); at < 0 {
				return out, w.err
			}
		}
	}
	type frame struct {
		at, size int64
		intact   bool
	}
	var data []frame // since the last record
	broken := false  // a stretch since the last record is damaged
	for at < size && w.err == nil {
		h, ok := w.header(at)
		if !ok {
			next := w.find(at + 1)
			if next < 0 {
				break
			}
			at, data, broken = next, nil, true
			continue
		}
		end := at + headerSize + h.size
		intact := true
		var payload []byte
		if h.record || verify {
			if payload = w.bytes(at+headerSize, int(h.size)); payload == nil {
				break
			}
			intact = h.matches(payload)
		}
		if !h.record {
			data = append(data, frame{at, h.size, intact})
			at = end
			continue
		}
		var record head
		known := false
		if intact {
			record, known = parseHead(payload)
		}
		at2 := span{at, at, end}
		if known {
			intact = true
			left := record.dataSize()
			for i := len(data) - 1; i >= 0 && left > 0; i-- {
				left -= data[i].size
				intact = intact && data[i].intact
				at2.data = data[i].at
			}
			if intact = intact && left == 0; intact {
				each(record, at2)
			} else {
				out.Keys = append(out.Keys, record.key)
			}
		}
		if !known || !intact || broken {
			out.Damaged++
		}
		at, data, broken, out.End = end, nil, false, end
	}
	return out, w.err
}

// A window reads a file through a buffer.
type window struct {
	r    io.ReaderAt
	size int64
	buf  []byte
	at   int64 // of buf in the file
	err  error // any but the end of the file
}

// bytes returns n bytes at an offset, valid until the next call, or nil if the file has fewer.
func (w *window) bytes(at int64, n int) []byte {
	if at+int64(n) > w.size || w.err != nil {
		return nil
	}
	if at < w.at || at+int64(n) > w.at+int64(len(w.buf)) {
		want := int(min(max(int64(n), 1<<18), w.size-at))
		w.buf = slices.Grow(w.buf[:0], want)[:want]
		got, err := w.r.ReadAt(w.buf, at)
		w.buf, w.at = w.buf[:got], at
		if got < n {
			if !errors.Is(err, io.EOF) { // else the owner has cut the file
				w.err = err
			}
			return nil
		}
	}
	return w.buf[at-w.at:][:n]
}

// header returns the header at an offset, and false unless the whole frame is in the file.
func (w *window) header(at int64) (header, bool) {
	h, ok := parseHeader(w.bytes(at, headerSize))
	return h, ok && at+headerSize+h.size <= w.size
}

// find returns the offset of the first frame at or after an offset, or -1.
func (w *window) find(at int64) int64 {
	for at+headerSize <= w.size {
		b := w.bytes(at, int(min(1<<18, w.size-at)))
		if b == nil {
			return -1
		}
		i := bytes.Index(b, []byte(dataMark[:3]))
		switch {
		case i < 0:
			at += int64(len(b)) - 2
		case i > 0:
			at += int64(i)
		default:
			if _, ok := w.header(at); ok {
				return at
			}
			at++
		}
	}
	return -1
}
