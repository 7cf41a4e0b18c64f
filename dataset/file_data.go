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

	"github.com/noether-ml/noether/internal/filesys"
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

// readFull fills dst with the bytes from an offset on. It is an error if there are fewer: a file
// may have been cut short since it was opened.
func (b fileData) readFull(dst []byte, at int64) error {
	n, err := b.ReadAt(dst, at)
	switch {
	case n == len(dst):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("the file ends at byte %d of %d: it was cut short after it was opened", at+int64(n), at+int64(len(dst)))
	}
	return err
}

// openSized opens a file and returns its size in bytes.
func openSized(path string) (*os.File, int64, error) {
	f, err := filesys.Open(path)
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
	f, err := filesys.Open(path)
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
	var blocks memoryBlocks
	for size := int64(0); ; {
		block := make([]byte, min(memoryBlock, limit+1-size)) // a buffer that grows would take twice the memory
		n := 0
		var err error
		for n < len(block) && err == nil {
			var more int
			more, err = r.Read(block[n:])
			n += more
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fileData{}, fmt.Errorf("the compressed data end too early: is the file truncated?")
		}
		if err != nil && err != io.EOF {
			return fileData{}, err
		}
		if size += int64(n); size > limit {
			return fileData{}, tooLarge(limit)
		}
		if n < len(block) {
			return fileData{ReaderAt: append(blocks, bytes.Clone(block[:n])), size: size}, nil
		}
		blocks = append(blocks, block)
		if err == io.EOF {
			return fileData{ReaderAt: blocks, size: size}, nil
		}
	}
}

// memoryBlocks are bytes in memory, in blocks of memoryBlock bytes and a shorter last one. A single
// slice that grows would be copied, and take up to three times its size.
type memoryBlocks [][]byte

const memoryBlock = 16 << 20

// ReadAt is that of io.ReaderAt.
func (b memoryBlocks) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		i, offset := (at+int64(n))/memoryBlock, (at+int64(n))%memoryBlock
		if i >= int64(len(b)) || offset >= int64(len(b[i])) {
			return n, io.EOF
		}
		n += copy(p[n:], b[i][offset:])
	}
	return n, nil
}

func tooLarge(limit int64) error {
	return fmt.Errorf("the decompressed data exceed %d bytes: save the file without compression", limit)
}
