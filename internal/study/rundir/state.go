package rundir

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/plainjson"
	"github.com/noether-ml/noether/internal/study/plan"
)

// A state file (states/KEY.SHARD.bin in the run folder, where KEY is a hash that identifies the
// cell) holds the progress of a cell (a measure for one model, data set, transformation value and
// trial) in one shard (part) of the samples: for each unfinished task (layer) the serialised
// accumulator (running sums) and the position in the order of the samples up to which it was fed,
// for each finished task its scores.
//
// Layout: magic, payloads one after another, a JSON index, the index's length (8 bytes, little
// endian), the index's CRC-32C (4 bytes). The index is last, so that each payload can be written as
// soon as it is made.
const stateMagic = "noether state 1\n"

// A stateIndex is the table of contents of a state file.
type stateIndex struct {
	Cell       string       `json:"cell"` // key of the cell; for a checkpoint of a procedure the file name
	Shard      plan.Shard   `json:"part"`
	N          int          `json:"n"` // number of samples of the data
	Entries    []stateEntry `json:"entries"`
	Unreadable []string     `json:"unreadable,omitempty"` // names of samples that could not be read
}

// A stateEntry describes the payload of one task of a cell.
type stateEntry struct {
	Layer  string `json:"layer"`            // Task.Name
	Seen   int    `json:"seen"`             // position in the order of the samples up to which the task was fed
	Scored bool   `json:"scored,omitempty"` // the payload holds scores, not an accumulator
	Offset int64  `json:"offset"`           // of the payload in the file, in bytes
	Size   int64  `json:"size"`             // of the payload, in bytes
	CRC32C string `json:"crc,omitempty"`    // of the payload; "" in files of earlier versions
}

// entry returns the entry of a layer, or nil.
func (x *stateIndex) entry(layer string) *stateEntry {
	for i := range x.Entries {
		if x.Entries[i].Layer == layer {
			return &x.Entries[i]
		}
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxIndex is the largest size of an index that is read, in bytes. It protects against a damaged
// length.
const maxIndex = 256 << 20

// writeState writes a state file atomically. It calls payload for each entry in order, and sets the
// entry's Offset, Size and CRC32C.
func writeState(path string, index *stateIndex, payload func(w io.Writer, e *stateEntry) error) error {
	return atomicfile.WriteFunc(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, stateMagic); err != nil {
			return err
		}
		offset := int64(len(stateMagic))
		for i := range index.Entries {
			e := &index.Entries[i]
			count := &checksumWriter{w: w, sum: crc32.New(castagnoli)}
			if err := payload(count, e); err != nil {
				return err
			}
			e.Offset, e.Size, e.CRC32C = offset, count.size, fmt.Sprintf("%08x", count.sum.Sum32())
			offset += count.size
		}
		raw, err := json.Marshal(index)
		if err != nil {
			return err
		}
		sum := crc32.Checksum(raw, castagnoli)
		raw = binary.LittleEndian.AppendUint64(raw, uint64(len(raw)))
		_, err = w.Write(binary.LittleEndian.AppendUint32(raw, sum))
		return err
	})
}

// A checksumWriter counts the bytes that pass through it, and computes their CRC-32C.
type checksumWriter struct {
	w    io.Writer
	size int64
	sum  hash.Hash32
}

func (c *checksumWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.size += int64(n)
	c.sum.Write(p[:n])
	return n, err
}

// errDamaged is the error of a truncated or altered state file. A run then computes its cell from
// the start.
var errDamaged = errors.New("the state file is damaged")

// A stateFile is an open state file. A small one is held in memory: a merge may read 200,000.
type stateFile struct {
	stateIndex
	io.ReaderAt
	path string
	file *os.File // nil if the content is in memory
}

// openState opens a state file and reads its index. A missing file is an error satisfying
// os.ErrNotExist.
func openState(path string) (*stateFile, error) {
	if content, ok := filesys.ReadSmall(path); ok {
		s := &stateFile{ReaderAt: bytes.NewReader(content), path: path}
		if err := readStateIndex(s, int64(len(content)), &s.stateIndex); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return s, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		s := &stateFile{ReaderAt: f, path: path, file: f}
		if err = readStateIndex(f, info.Size(), &s.stateIndex); err == nil {
			return s, nil
		}
	}
	f.Close()
	return nil, fmt.Errorf("%s: %w", path, err)
}

// readStateIndex reads the index of a state file of the given size in bytes. Any mistake is
// errDamaged.
func readStateIndex(r io.ReaderAt, size int64, index *stateIndex) error {
	magic := make([]byte, len(stateMagic))
	var tail [12]byte
	if size < int64(len(magic)+len(tail)) {
		return errDamaged
	}
	if _, err := r.ReadAt(magic, 0); err != nil || string(magic) != stateMagic {
		return errDamaged
	}
	if _, err := r.ReadAt(tail[:], size-int64(len(tail))); err != nil {
		return errDamaged
	}
	length := binary.LittleEndian.Uint64(tail[:])
	body := size - int64(len(tail)) - int64(len(magic))
	if length > maxIndex || int64(length) > body {
		return errDamaged
	}
	raw := make([]byte, length)
	start := size - int64(len(tail)) - int64(length)
	if _, err := r.ReadAt(raw, start); err != nil || crc32.Checksum(raw, castagnoli) != binary.LittleEndian.Uint32(tail[8:]) {
		return errDamaged
	}
	if !scanStateIndex(raw, index) { // faster than encoding/json, for the layout that writeState writes
		*index = stateIndex{}
		if err := json.Unmarshal(raw, index); err != nil {
			return errDamaged
		}
	}
	for _, e := range index.Entries {
		if e.Offset < int64(len(magic)) || e.Size < 0 || e.Offset > start || e.Size > start-e.Offset {
			return errDamaged
		}
	}
	return nil
}

// scanStateIndex decodes an index that is laid out exactly as writeState writes it, without
// unreadable samples. It returns false for any other text, which may still be a valid index: after
// a Want that does not find its text, Done reports false.
func scanStateIndex(raw []byte, index *stateIndex) bool {
	s := plainjson.Scanner{Rest: raw}
	s.Want(`{"cell":`)
	index.Cell = s.Text()
	s.Want(`,"part":{"index":`)
	index.Shard.Index = s.Int()
	s.Want(`,"of":`)
	index.Shard.Count = s.Int()
	s.Want(`},"n":`)
	index.N = s.Int()
	s.Want(`,"entries":`)
	s.List(func() {
		var e stateEntry
		s.Want(`{"layer":`)
		e.Layer = s.Text()
		s.Want(`,"seen":`)
		e.Seen = s.Int()
		e.Scored = s.Take(`,"scored":true`)
		s.Want(`,"offset":`)
		e.Offset = int64(s.Int())
		s.Want(`,"size":`)
		e.Size = int64(s.Int())
		s.Want(`,"crc":`)
		e.CRC32C = s.Text()
		s.Want("}")
		index.Entries = append(index.Entries, e)
	})
	s.Want("}")
	return s.Done()
}

// section returns a reader of an entry's payload.
func (s *stateFile) section(e *stateEntry) io.Reader {
	return io.NewSectionReader(s, e.Offset, e.Size)
}

// bytes returns an entry's payload after verifying its checksum.
func (s *stateFile) bytes(e *stateEntry) ([]byte, error) {
	data := make([]byte, e.Size)
	if _, err := io.ReadFull(s.section(e), data); err != nil {
		return nil, err
	}
	if e.CRC32C != "" && e.CRC32C != fmt.Sprintf("%08x", crc32.Checksum(data, castagnoli)) {
		return nil, fmt.Errorf("%s: %w", s.path, errDamaged)
	}
	return data, nil
}

// verify returns an error if an entry's payload was altered.
func (s *stateFile) verify(e *stateEntry) error {
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, s.section(e)); err != nil {
		return err
	}
	if e.CRC32C != "" && e.CRC32C != fmt.Sprintf("%08x", sum.Sum32()) {
		return fmt.Errorf("%s: %w", s.path, errDamaged)
	}
	return nil
}

// isIntact reports whether all payloads can be read and none was altered.
func (s *stateFile) isIntact() bool {
	for i := range s.Entries {
		if s.verify(&s.Entries[i]) != nil {
			return false
		}
	}
	return true
}

// Close implements io.Closer.
func (s *stateFile) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
