package dataset

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// IDXOptions are the options of OpenIDX, which reads the format of MNIST and related datasets.
// Files may end in .gz.
type IDXOptions struct {
	Images string // a file of images, or a folder of files with the names of MNIST or EMNIST
	Labels string // the file of labels; "": the one beside Images with the name of MNIST, if any
	Part   string // files of a folder: "test" (default; MNIST's t10k files), "train" or "all"
}

// An IDX is a source of grey images in the IDX format, one byte per pixel. Images are returned as
// stored: those of EMNIST are transposed.
type IDX struct {
	metadata
	parts []idxPart
	size  int // number of samples
}

// An idxPart is a file of images with its labels.
type idxPart struct {
	name   string
	images fileData
	header idxHeader
	first  int     // index of its first sample
	labels []uint8 // nil: no labels
}

// OpenIDX opens IDX files. The classes are the numbers from "0" to the largest label.
func OpenIDX(ctx context.Context, o IDXOptions) (*IDX, error) {
	x := &IDX{}
	if err := x.openAll(ctx, o); err != nil {
		x.Close()
		return nil, fmt.Errorf("opening IDX data: %w", err)
	}
	return x, nil
}

func (x *IDX) openAll(ctx context.Context, o IDXOptions) error {
	paths, err := idxPaths(o)
	if err != nil {
		return err
	}
	if len(paths) > 1 && o.Labels != "" {
		return fmt.Errorf("labels %s belong to one file of images, and there are %d: leave out the labels or name one file", o.Labels, len(paths))
	}
	d := newDigest("idx")
	for _, path := range paths {
		if err := x.open(ctx, path, o.Labels, d); err != nil {
			return err
		}
	}
	x.setFingerprint(d)
	x.classes, err = x.nameClasses()
	return err
}

// nameClasses returns the names of the classes. It is an error if only some parts have labels.
func (x *IDX) nameClasses() ([]string, error) {
	highest := NoLabel
	for _, p := range x.parts {
		if (p.labels == nil) != (x.parts[0].labels == nil) {
			return nil, fmt.Errorf("only one of %s and %s has labels", x.parts[0].name, p.name)
		}
		for _, l := range p.labels {
			highest = max(highest, int(l))
		}
	}
	return numberNames(highest), nil
}

// idxPaths finds the files of images, such as train-images-idx3-ubyte (an array of three dimensions
// and unsigned bytes), t10k-images.idx3-ubyte and emnist-letters-test-images-idx3-ubyte.gz.
func idxPaths(o IDXOptions) ([]string, error) {
	info, err := os.Stat(o.Images)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{o.Images}, nil
	}
	parts, err := partOf(o.Part, []string{"*train-images?idx3-ubyte"}, []string{"*t10k-images?idx3-ubyte", "*test-images?idx3-ubyte"})
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, patterns := range parts {
		path, err := onlyFile(o.Images, patterns)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// onlyFile returns the file of a folder that matches one of the patterns, or, without such a file,
// the one that does so with .gz. Two files are an error.
func onlyFile(dir string, patterns []string) (string, error) {
	for _, ending := range []string{"", ".gz"} {
		var paths []string
		for _, p := range patterns {
			found, err := matchingFiles(dir, p+ending)
			if err != nil {
				return "", err
			}
			paths = append(paths, found...)
		}
		if len(paths) > 1 {
			return "", fmt.Errorf("%s contains %s and %s: set the path of the file", dir, filepath.Base(paths[0]), filepath.Base(paths[1]))
		}
		if len(paths) == 1 {
			return paths[0], nil
		}
	}
	return "", fmt.Errorf("%s: no file %s, with .gz or without", dir, strings.Join(patterns, " or "))
}

// open adds a file of images and its labels, and adds both to d.
func (x *IDX) open(ctx context.Context, path, labels string, d digest) error {
	const rank = 3 // number of images, height, width
	if err := d.watch(ctx, path); err != nil {
		return err
	}
	images, header, err := openIDXFile(ctx, path, rank)
	if err != nil {
		return err
	}
	x.parts = append(x.parts, idxPart{name: filepath.Base(path), images: images, header: header, first: x.size})
	x.size += header.dims[0]
	d.add(filepath.Base(path))
	if err := d.addFile(ctx, path); err != nil {
		return err
	}
	if labels == "" {
		labels = idxLabelsBeside(path)
	}
	if labels == "" {
		return nil
	}
	p := &x.parts[len(x.parts)-1]
	if p.labels, err = readIDXLabels(ctx, labels, header.dims[0]); err != nil {
		return err
	}
	d.Write(p.labels)
	return nil
}

func readIDXLabels(ctx context.Context, path string, images int) ([]uint8, error) {
	const rank = 1 // number of labels
	file, header, err := openIDXFile(ctx, path, rank)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if header.dims[0] != images {
		return nil, fmt.Errorf("%s has %d labels for %d images", path, header.dims[0], images)
	}
	labels := make([]uint8, images)
	if err := file.readFull(labels, header.length()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return labels, nil
}

// idxLabelsBeside returns the file of labels that belongs to a file of images by its name, in the
// same folder: train-labels-idx1-ubyte for train-images-idx3-ubyte. It returns "" if there is none.
func idxLabelsBeside(images string) string {
	dir, name := filepath.Split(images)
	name = strings.Replace(strings.Replace(name, "images", "labels", 1), "idx3", "idx1", 1)
	if name == filepath.Base(images) {
		return ""
	}
	plain := strings.TrimSuffix(name, ".gz")
	for _, n := range []string{name, plain, plain + ".gz"} {
		if info, err := os.Stat(dir + n); err == nil && !info.IsDir() {
			return dir + n
		}
	}
	return ""
}

// An idxHeader is the header of an IDX file: two zero bytes, the type of the values, the rank, and
// the dimensions as big-endian 32-bit numbers.
//
// dims are the dimensions: number of images, height and width, or number of labels.
type idxHeader struct{ dims []int }

// length returns the number of bytes before the values.
func (h idxHeader) length() int64 { return int64(4 + 4*len(h.dims)) }

// openIDXFile opens an array of bytes with the given rank, and checks the size of the file against
// the dimensions. A .gz file is decompressed into memory, and its size is that of the content.
func openIDXFile(ctx context.Context, path string, rank int) (fileData, idxHeader, error) {
	b, err := openData(ctx, path)
	if err != nil {
		return b, idxHeader{}, err
	}
	h, err := readIDXHeader(b, rank)
	if err != nil {
		b.Close()
		return b, h, fmt.Errorf("%s: %w", path, err)
	}
	return b, h, nil
}

func readIDXHeader(b fileData, rank int) (idxHeader, error) {
	raw := make([]byte, 4+4*rank)
	n, err := b.ReadAt(raw, 0)
	if err != nil && err != io.EOF {
		return idxHeader{}, err
	}
	switch {
	case n < 4 || raw[0] != 0 || raw[1] != 0:
		return idxHeader{}, fmt.Errorf("not an IDX file: it starts with %#x, not 0x0000", raw[:min(n, 2)])
	case raw[2] != 8: // unsigned bytes
		return idxHeader{}, fmt.Errorf("unsupported IDX value type %#x: only bytes (0x8) are supported", raw[2])
	case int(raw[3]) != rank:
		return idxHeader{}, fmt.Errorf("the IDX array has %d dimensions, not %d: are images and labels exchanged?", raw[3], rank)
	case n < len(raw):
		return idxHeader{}, fmt.Errorf("%d bytes, too short for an IDX header of %d", n, len(raw))
	}
	h := idxHeader{}
	values := int64(1)
	for i := range rank {
		d := int64(binary.BigEndian.Uint32(raw[4+4*i:]))
		if d == 0 {
			return h, fmt.Errorf("dimension %d of the IDX array is 0", i)
		}
		if values > b.size/d {
			values = -1 // more than the file can hold, whatever the other dimensions
			break
		}
		values *= d
		h.dims = append(h.dims, int(d))
	}
	if values < 0 || int64(len(raw))+values != b.size {
		return h, fmt.Errorf("%d bytes do not fit the dimensions in the IDX header: the file is truncated or of another kind", b.size)
	}
	return h, nil
}

func (x *IDX) Close() error {
	var err error
	for _, p := range x.parts {
		err = errors.Join(err, p.images.Close())
	}
	return err
}

func (x *IDX) Len() int { return x.size }

func (x *IDX) Describe(i int) Sample {
	p := &x.parts[x.locate(i)]
	s := Sample{Index: i, Name: fmt.Sprintf("%s#%d", p.name, i-p.first), Label: NoLabel}
	if p.labels != nil {
		s.Label = int(p.labels[i-p.first])
	}
	return s
}

func (x *IDX) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "idx", i, x.size); err != nil {
		return Sample{}, err
	}
	return x.watched.read(ctx, x.locate(i), func() (Sample, error) { return x.at(i, frame) })
}

func (x *IDX) at(i int, frame Frame) (Sample, error) {
	s, p := x.Describe(i), &x.parts[x.locate(i)]
	h, w := p.header.dims[1], p.header.dims[2]
	pixels := make([]byte, h*w)
	if err := p.images.readFull(pixels, p.header.length()+int64(i-p.first)*int64(h*w)); err != nil {
		return s, fmt.Errorf("reading %s: %w", s.Name, err)
	}
	var err error
	s.Input, err = frame.fromBytes(pixels, 1, h, w)
	return s, err
}

// locate returns the index of the part that contains image i.
func (x *IDX) locate(i int) int {
	n := len(x.parts) - 1
	for i < x.parts[n].first {
		n--
	}
	return n
}
