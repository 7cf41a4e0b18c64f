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
)

// maxInflated bounds what a compressed file may hold, since it is kept in memory.
const maxInflated = 8 << 30

// A blob is bytes that can be read anywhere: a file, or in memory what a compressed file held. Parts of a file share its
// closer.
type blob struct {
	io.ReaderAt
	size int64
	file io.Closer // nil: in memory
}

// Close closes the file, if there is one.
func (b blob) Close() error {
	if b.file == nil {
		return nil
	}
	return b.file.Close()
}

// openBlob opens a file; one that ends in .gz is inflated into memory.
func openBlob(ctx context.Context, path string) (blob, error) {
	f, err := os.Open(path)
	if err != nil {
		return blob{}, err
	}
	if strings.HasSuffix(path, ".gz") {
		defer f.Close()
		z, err := gzip.NewReader(contextReader{ctx, f})
		if err != nil {
			return blob{}, fmt.Errorf("%s: %w", path, err)
		}
		b, err := inflate(z, maxInflated)
		if err != nil {
			return blob{}, fmt.Errorf("%s: %w", path, err)
		}
		return b, nil
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, not a file", path)
	}
	if err != nil {
		f.Close()
		return blob{}, err
	}
	return blob{f, info.Size(), f}, nil
}

// inflate reads at most limit bytes. Memory grows with what is really there, not with what a header claims.
func inflate(r io.Reader, limit int64) (blob, error) {
	var buf bytes.Buffer
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return blob{}, fmt.Errorf("the compressed data end too early: is the file truncated?")
	}
	if err != nil {
		return blob{}, err
	}
	if n > limit {
		return blob{}, fmt.Errorf("holds more than %d bytes", limit)
	}
	return blob{ReaderAt: bytes.NewReader(buf.Bytes()), size: n}, nil
}
