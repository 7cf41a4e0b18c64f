package video

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
)

// A spool stores patches of one size in a temporary file, in the order of
// writing.
type spool struct {
	file   *os.File
	out    *bufio.Writer
	values int // number of values of a patch
	n      int // number of patches
}

// newSpool returns an empty spool of patches with the given number of values.
func newSpool(values int) (*spool, error) {
	f, err := os.CreateTemp("", "noether-video-*")
	if err != nil {
		return nil, fmt.Errorf("making the temporary file of patches: %w", err)
	}
	// The file is unlinked now, so it never outlives the process. On systems that cannot unlink an
	// open file, close removes it.
	os.Remove(f.Name())
	return &spool{file: f, out: bufio.NewWriterSize(f, 1<<20), values: values}, nil
}

// put writes a patch.
func (s *spool) put(patch []float32) error {
	if err := binary.Write(s.out, binary.LittleEndian, patch); err != nil {
		return fmt.Errorf("writing the temporary file of patches: %w", err)
	}
	s.n++
	return nil
}

// read reads patch i into patch, which has s.values elements. s.out must have been flushed since
// patch i was put.
func (s *spool) read(i int, patch []float32) error {
	raw := make([]byte, 4*s.values)
	if _, err := s.file.ReadAt(raw, int64(i)*int64(len(raw))); err != nil {
		return fmt.Errorf("reading the temporary file of patches: %w", err)
	}
	_, err := binary.Decode(raw, binary.LittleEndian, patch)
	return err
}

func (s *spool) close() error {
	err := s.file.Close()
	os.Remove(s.file.Name()) // removed already on most systems
	return err
}
