package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"
)

// An Item is a record that was read. Its parts are read when they are asked for.
type Item struct {
	Key     string
	Version uint64
	Body    []byte
	parts   []partSize
	path    string // of the log, when the record was read
	file    io.ReaderAt
	span
	small []byte // the frames, if they are small
}

// smallRecord is the size of a record up to which it is read at once.
const smallRecord = 1 << 16

// Get reads the record of a key. Without one it returns an error satisfying fs.ErrNotExist.
func (s *Store) Get(key string) (*Item, error) {
	for tries := 0; ; tries++ {
		s.mu.Lock()
		e, ok := s.index[key]
		s.mu.Unlock()
		if !ok {
			return nil, fmt.Errorf("%s: record %s: %w", s.dir, key, fs.ErrNotExist)
		}
		it, err := s.get(key, e)
		if !errors.Is(err, fs.ErrNotExist) || tries == 12 {
			return it, err
		}
		if tries > 0 { // it is in no log: its process writes it again
			time.Sleep(time.Millisecond << tries)
		}
		if err := s.Refresh(); err != nil { // another process has moved the log
			return nil, err
		}
	}
}

func (s *Store) get(key string, e entry) (*Item, error) {
	file, path, err := s.fileOf(e.log)
	if err != nil {
		return nil, err
	}
	it := &Item{Key: key, Version: e.version, path: path, file: file, span: e.span}
	from := e.frame
	if e.end-e.data <= smallRecord {
		from = e.data
	}
	raw := make([]byte, e.end-from)
	if err := it.read(raw, from); err != nil {
		return nil, err
	}
	if from == e.data {
		it.small = raw
	}
	raw = raw[e.frame-from:]
	frame, ok := parseHeader(raw)
	payload := raw[min(headerSize, len(raw)):]
	h, known := parseHead(payload)
	if !ok || !frame.matches(payload) || !known || h.key != key {
		return nil, it.damaged()
	}
	it.Body, it.parts = h.body, h.parts
	return it, nil
}

// Where returns the path of the record's log, for messages.
func (it *Item) Where() string { return it.path }

func (it *Item) damaged() error {
	return fmt.Errorf("%s: record %s: %w", it.Where(), it.Key, ErrDamaged)
}

// Size returns the size of a part, and false if the record has no such part.
func (it *Item) Size(part string) (int64, bool) {
	for _, p := range it.parts {
		if p.name == part {
			return p.size, true
		}
	}
	return 0, false
}

// Part returns a reader of a part, which verifies it, or nil if the record has no such part.
func (it *Item) Part(name string) io.Reader {
	at := int64(0)
	for _, p := range it.parts {
		if p.name == name {
			return &partReader{it: it, at: it.data, skip: at, left: p.size}
		}
		at += p.size
	}
	return nil
}

// Record returns the record, for Put.
func (it *Item) Record() Record {
	out := Record{Key: it.Key, Body: it.Body}
	for _, p := range it.parts {
		out.Parts = append(out.Parts, Part{Name: p.name, Write: func(w io.Writer) error {
			_, err := io.Copy(w, it.Part(p.name))
			return err
		}})
	}
	return out
}

// Bytes returns a part, or nil if the record has no such part.
func (it *Item) Bytes(part string) ([]byte, error) {
	size, ok := it.Size(part)
	if !ok {
		return nil, nil
	}
	out := make([]byte, size)
	_, err := io.ReadFull(it.Part(part), out)
	return out, err
}

// A partReader reads the data frames of a part.
type partReader struct {
	it         *Item
	at         int64 // of the next frame
	skip, left int64 // bytes of earlier parts that are left to skip, and of this one to read
	payload    []byte
	buffer     []byte
}

func (r *partReader) Read(p []byte) (int, error) {
	for len(r.payload) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.payload)
	r.payload = r.payload[n:]
	return n, nil
}

// next reads the next frame of the part.
func (r *partReader) next() error {
	for {
		var head [headerSize]byte
		if err := r.it.read(head[:], r.at); err != nil {
			return err
		}
		h, ok := parseHeader(head[:])
		end := r.at + headerSize + h.size
		if !ok || h.record || end > r.it.frame {
			return r.it.damaged()
		}
		if r.skip > 0 {
			r.at, r.skip = end, r.skip-h.size
			continue
		}
		r.buffer = slices.Grow(r.buffer[:0], int(h.size))[:h.size]
		if err := r.it.read(r.buffer, r.at+headerSize); err != nil {
			return err
		}
		r.payload, r.at, r.left = r.buffer, end, r.left-h.size
		if r.left < 0 || r.skip < 0 || !h.matches(r.payload) {
			return r.it.damaged()
		}
		return nil
	}
}

func (it *Item) read(p []byte, at int64) error {
	if it.small != nil {
		copy(p, it.small[min(at-it.data, int64(len(it.small))):])
		return nil
	}
	n, err := it.file.ReadAt(p, at)
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF):
		return it.damaged()
	}
	return err
}
