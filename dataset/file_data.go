package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/noether-ml/noether/internal/machine"
)

// maxDecompressed bounds the size in bytes of a decompressed file, which is held in memory. The
// bound is lower where half of the free memory of the machine, or half of the memory limit of the
// process, is less.
const maxDecompressed = 8 << 30

// decompressedLimit returns the largest decompressed size of a file, in bytes.
func decompressedLimit() int64 {
	limit := int64(maxDecompressed)
	for _, memory := range []int64{machine.FreeMemory(), machine.MemoryLimit()} {
		if memory > 0 {
			limit = min(limit, memory/2)
		}
	}
	return limit
}

// A fileData provides random access to bytes: those of a file, of a part of it, or of a
// decompressed file in memory. To close a part is to close the file.
type fileData struct {
	io.ReaderAt
	size int64
	file io.Closer // nil: in memory
}

// Close closes the file, if there is one.
func (b fileData) Close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// openSized opens a file and returns its size in bytes.
func openSized(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// openData opens a file. A file whose name ends in .gz is decompressed into memory, unless that
// exceeds decompressedLimit, which is an error, or ctx ends.
func openData(ctx context.Context, path string) (fileData, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileData{}, err
	}
	if strings.HasSuffix(path, ".gz") {
		defer f.Close()
		z, err := gzip.NewReader(contextReader{ctx, f})
		if err != nil {
			return fileData{}, fmt.Errorf("%s: %w", path, err)
		}
		b, err := decompress(z, decompressedLimit())
		if err != nil {
			return fileData{}, fmt.Errorf("%s: %w", path, err)
		}
		return b, nil
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, not a file", path)
	}
	if err != nil {
		f.Close()
		return fileData{}, err
	}
	return fileData{f, info.Size(), f}, nil
}

// decompress reads r to its end; more than limit bytes are an error. Memory grows with the data
// read: a size stated in a header is not trusted.
func decompress(r io.Reader, limit int64) (fileData, error) {
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fileData{}, fmt.Errorf("the compressed data end too early: is the file truncated?")
	}
	if err != nil {
		return fileData{}, err
	}
	if n > limit {
		return fileData{}, tooLarge(limit)
	}
	return fileData{ReaderAt: bytes.NewReader(buf.Bytes()), size: n}, nil
}

func tooLarge(limit int64) error {
	return fmt.Errorf("the decompressed data exceed %d bytes: save the file without compression", limit)
}
