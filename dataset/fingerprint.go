package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// A digest computes the fingerprint of a source. Each part is written with its length, so different
// lists of parts have different hashes.
type digest struct{ hash.Hash }

// newDigest returns the digest of a source of a kind, such as "idx" or "coco".
func newDigest(kind string) digest {
	d := digest{sha256.New()}
	d.add(kind)
	return d
}

// add hashes the text of parts, each after its length, so that other parts have another hash even
// if their texts joined are the same.
func (d digest) add(parts ...any) {
	for _, p := range parts {
		s := fmt.Sprint(p)
		fmt.Fprintf(d, "%d:%s", len(s), s)
	}
}

func (d digest) String() string { return hex.EncodeToString(d.Sum(nil)) }

const (
	wholeFile = 256 << 20 // bytes; files up to this size are hashed completely
	blockSize = 64 << 10  // bytes
	blocks    = 4096      // number of evenly spaced blocks of a larger file
)

// addFile hashes a file: its size and, up to 256 MiB, all its bytes. Of a larger file it hashes
// 4,096 evenly spaced blocks of 64 KiB, including the first and the last.
func (d digest) addFile(ctx context.Context, path string) error {
	f, size, err := openSized(path)
	if err != nil {
		return err
	}
	defer f.Close()
	d.add(size)
	if size > wholeFile {
		return d.addBlocks(ctx, f, size, blocks)
	}
	_, err = io.Copy(d, contextReader{ctx, f})
	return err
}

// addBlocks hashes n evenly spaced blocks of data of the given size, including the first and the
// last, or all of the data if blocks would overlap.
func (d digest) addBlocks(ctx context.Context, r io.ReaderAt, size int64, n int64) error {
	if size <= n*blockSize {
		_, err := io.Copy(d, contextReader{ctx, io.NewSectionReader(r, 0, size)})
		return err
	}
	for i := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.Copy(d, io.NewSectionReader(r, (size-blockSize)*i/(n-1), blockSize)); err != nil {
			return err
		}
	}
	return nil
}

// A contextReader returns an error once its context is done.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}
