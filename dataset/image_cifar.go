package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/plural"
)

// CIFAROptions are the options of OpenCIFAR10 and OpenCIFAR100, which read the binary version.
type CIFAROptions struct {
	Paths  []string // files, in order; or one folder
	Part   string   // files of the folder: "test" (default), "train" or "all" (train, then test)
	Coarse bool     // CIFAR-100: the 20 superclasses as labels instead of the 100 classes
}

const (
	cifarSide   = 32
	cifarPixels = 3 * cifarSide * cifarSide // bytes of an image
)

// A CIFAR is a Source of CIFAR's binary files. A record, of one image, is its labels, a byte each,
// followed by 32 x 32 red, green and blue bytes.
type CIFAR struct {
	metadata
	files      []cifarFile
	labelBytes int
	size       int // number of samples
}

type cifarFile struct {
	name   string
	file   *os.File
	first  int     // index of its first sample
	labels []uint8 // of each record
}

// OpenCIFAR10 opens CIFAR-10, which has ten classes.
func OpenCIFAR10(ctx context.Context, o CIFAROptions) (*CIFAR, error) {
	if o.Coarse {
		return nil, fmt.Errorf("opening CIFAR-10: only CIFAR-100 has coarse labels")
	}
	return openCIFAR(ctx, o, "CIFAR-10", 1, 0, cifar10Classes)
}

// OpenCIFAR100 opens CIFAR-100, which has 100 classes or 20 coarse ones.
func OpenCIFAR100(ctx context.Context, o CIFAROptions) (*CIFAR, error) {
	if o.Coarse {
		return openCIFAR(ctx, o, "CIFAR-100", 2, 0, cifar100Coarse)
	}
	return openCIFAR(ctx, o, "CIFAR-100", 2, 1, cifar100Fine)
}

// openCIFAR opens files whose records start with labelBytes bytes, each one label. Byte label of
// them is the one used. kind is the name of the data set.
func openCIFAR(ctx context.Context, o CIFAROptions, kind string, labelBytes, label int, classes []string) (*CIFAR, error) {
	paths, err := cifarPaths(o, labelBytes)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", kind, err)
	}
	c := &CIFAR{labelBytes: labelBytes, metadata: metadata{classes: classes}}
	d := newDigest(kind)
	d.add(o.Coarse)
	for _, path := range paths {
		f, err := c.open(ctx, path, kind, label, d)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("opening %s: %w", kind, err)
		}
		c.files = append(c.files, f)
		c.size += len(f.labels)
	}
	c.setFingerprint(d)
	return c, nil
}

// cifarPaths returns the files to read. In a folder they have the names of the published archives.
func cifarPaths(o CIFAROptions, labelBytes int) ([]string, error) {
	if len(o.Paths) == 0 {
		return nil, fmt.Errorf("no file and no folder")
	}
	if len(o.Paths) > 1 {
		return o.Paths, nil
	}
	info, err := os.Stat(o.Paths[0])
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return o.Paths, nil
	}
	train, test := "data_batch_*.bin", "test_batch.bin"
	if labelBytes == 2 {
		train, test = "train.bin", "test.bin"
	}
	patterns, err := partOf(o.Part, train, test)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range patterns {
		found, err := matchingFiles(o.Paths[0], p)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no file %s in the folder: is it the binary version?", o.Paths[0], p)
		}
		paths = append(paths, found...)
	}
	return paths, nil
}

// matchingFiles lists the files of a folder whose names match a pattern of filepath.Match, sorted.
func matchingFiles(dir, pattern string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if ok, err := filepath.Match(pattern, e.Name()); err != nil {
			return nil, err
		} else if ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

// partOf returns the training part, the test part or both of a published dataset.
func partOf[T any](part string, train, test T) ([]T, error) {
	switch part {
	case "", "test":
		return []T{test}, nil
	case "train":
		return []T{train}, nil
	case "all":
		return []T{train, test}, nil
	}
	return nil, fmt.Errorf("unknown part %q: use test, train or all", part)
}

// open opens a file, reads its labels and adds its bytes to d.
func (c *CIFAR) open(ctx context.Context, path, kind string, label int, d digest) (cifarFile, error) {
	if err := d.watch(ctx, path); err != nil {
		return cifarFile{}, err
	}
	file, err := filesys.Open(path)
	if err != nil {
		return cifarFile{}, err
	}
	f := cifarFile{name: filepath.Base(path), file: file, first: c.size}
	if err := f.readLabels(ctx, kind, c.record(), label, len(c.classes), d); err != nil {
		file.Close()
		return cifarFile{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.files.check(len(c.files)); err != nil {
		file.Close()
		return cifarFile{}, err
	}
	return f, nil
}

// imageCount returns a number of images in words.
func imageCount(n int64) string {
	if n == 1 {
		return "1 image"
	}
	return plural.Of(int(n), "image")
}

// readLabels reads a file. A record has the length record in bytes, and its label is byte label,
// which must be less than classes. readLabels checks and stores the labels, and adds all bytes of
// the file to d.
func (f *cifarFile) readLabels(ctx context.Context, kind string, record, label, classes int, d digest) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	n := size / int64(record)
	if size%int64(record) != 0 || n == 0 {
		return fmt.Errorf("%d bytes is not a multiple of %s records of %d bytes; %s would be %d bytes",
			size, kind, record, imageCount(max(n, 1)), max(n, 1)*int64(record))
	}
	d.add(f.name, size)
	const chunk = 256 // records
	buf := make([]byte, chunk*record)
	for int64(len(f.labels)) < n {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := buf[:min(chunk, n-int64(len(f.labels)))*int64(record)]
		if _, err := io.ReadFull(f.file, part); err != nil {
			return err
		}
		d.Write(part)
		for ; len(part) > 0; part = part[record:] {
			if int(part[label]) >= classes {
				return fmt.Errorf("record %d: label %d, but %s has %d classes: is this the file of another dataset?", len(f.labels), part[label], kind, classes)
			}
			f.labels = append(f.labels, part[label])
		}
	}
	return nil
}

// record returns the length of a record in bytes.
func (c *CIFAR) record() int { return c.labelBytes + cifarPixels }

func (c *CIFAR) Close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.file.Close())
	}
	return err
}

func (c *CIFAR) Len() int { return c.size }

func (c *CIFAR) Describe(i int) Sample {
	n, at := c.locate(i)
	f := &c.files[n]
	return Sample{Index: i, Name: fmt.Sprintf("%s#%d", f.name, at), Label: int(f.labels[at])}
}

// At reads image i and brings it to the frame. Its errors are those of the file, of ctx, and of an
// i outside the samples.
func (c *CIFAR) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "cifar", i, c.size); err != nil {
		return Sample{}, err
	}
	n, at := c.locate(i)
	return c.watched.read(ctx, n, func() (Sample, error) { return c.at(i, &c.files[n], at, frame) })
}

// at reads image i, which is record at of a file.
func (c *CIFAR) at(i int, f *cifarFile, at int, frame Frame) (Sample, error) {
	s := c.Describe(i)
	var pixels [cifarPixels]byte
	if _, err := f.file.ReadAt(pixels[:], int64(at)*int64(c.record())+int64(c.labelBytes)); err != nil {
		return s, fmt.Errorf("reading %s: %w", s.Name, err)
	}
	var err error
	s.Input, err = frame.fromBytes(pixels[:], 3, cifarSide, cifarSide)
	return s, err
}

// locate returns the index of the file of image i, and that of its record there.
func (c *CIFAR) locate(i int) (file, record int) {
	n, _ := slices.BinarySearchFunc(c.files, i, func(f cifarFile, i int) int { return f.first + len(f.labels) - 1 - i })
	return n, i - c.files[n].first
}
