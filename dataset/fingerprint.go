package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/filestate"
)

// A digest computes the fingerprint of a source. Each part is written with its length, so different
// lists of parts have different hashes.
type digest struct {
	hash.Hash
	files *watched // those that addFiles has hashed
}

// newDigest returns the digest of a source of a kind, such as "idx" or "coco".
func newDigest(kind string) digest {
	d := digest{sha256.New(), &watched{}}
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

// addFiles hashes the content of files of a folder, and watches them.
func (d digest) addFiles(ctx context.Context, dir string, names []string) error {
	sums, err := filestate.Sums(ctx, dir, names)
	if err != nil {
		return err
	}
	for i, s := range sums {
		d.Write(s.SHA256[:])
		d.files.add(filepath.Join(dir, names[i]), s.State)
	}
	return nil
}

// addFile hashes the content of a file, which is watched already.
func (d digest) addFile(ctx context.Context, path string) error {
	sums, err := filestate.Sums(ctx, filepath.Dir(path), []string{filepath.Base(path)})
	if err == nil {
		err = d.addSums(path, sums)
	}
	return err
}

// addParts hashes parts of a file, which is watched already. A part's name is that of the file.
func (d digest) addParts(ctx context.Context, path string, parts []filestate.Part) error {
	sums, err := filestate.SumsOfParts(ctx, filepath.Dir(path), parts)
	if err == nil {
		err = d.addSums(path, sums)
	}
	return err
}

// addSums adds hashes of a file in the state in which it is watched.
func (d digest) addSums(path string, sums []filestate.Sum) error {
	watched := d.files.states[slices.Index(d.files.paths, path)]
	for _, s := range sums {
		if s.State != watched {
			return &filestate.ChangedError{Path: path}
		}
		d.Write(s.SHA256[:])
	}
	return nil
}

// watch watches a file that is about to be opened, so that a change before addFile is found.
func (d digest) watch(ctx context.Context, path string) error {
	return filestate.Retry(ctx, func() error {
		s, err := filestate.Of(path)
		if err == nil {
			d.files.add(path, s)
		}
		return err
	})
}

// watched are the files that the samples of a source are read from, in the states whose content the
// source's fingerprint covers.
type watched struct {
	paths  []string
	states []filestate.State
}

func (w *watched) add(path string, s filestate.State) {
	w.paths, w.states = append(w.paths, path), append(w.states, s)
}

// check returns an error if file i is not what it was.
func (w *watched) check(i int) error { return w.states[i].Check(w.paths[i]) }

// read reads a sample of file i. An error of the system that may pass is tried again. If the file
// is not what it was when it was hashed, or the error does not pass, the error is one of the source
// and no *BadSample: it says nothing about the sample.
func (w *watched) read(ctx context.Context, i int, at func() (Sample, error)) (sample Sample, err error) {
	var changed error
	_ = filestate.Retry(ctx, func() error {
		sample, err = at()
		if changed = w.check(i); filestate.Passing(changed) {
			return changed
		}
		return err
	})
	var bad *BadSample
	switch {
	case ctx.Err() != nil:
		return sample, ctx.Err()
	case changed != nil:
		return sample, changed
	case errors.As(err, &bad) && filestate.Passing(err):
		return sample, fmt.Errorf("reading %s failed %d times: %w", bad.Name, filestate.Attempts, bad.Err)
	}
	return sample, err
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
