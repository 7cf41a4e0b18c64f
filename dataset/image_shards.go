package dataset

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/filestate"
	"github.com/noether-ml/noether/internal/filesys"
)

// ShardsOptions are the options of OpenShards.
type ShardsOptions struct {
	Paths []string // tar files, in order
	// Image is the extension of the member that is the image, such as "left.jpg". If it is "", the
	// only member with an extension of images is used.
	Image string
	// Label is the extension of the member that holds the label as text, such as "cls", or
	// "json.KEY" for a field of the member with extension json. If it is "", the label is that of
	// the member cls, if there is one.
	Label string
	// Names is a text file with the name of class i in line i + 1. The labels are such names, or
	// numbers of lines from 0. If it is "", the labels are the names.
	Names string
}

// Shards is a Source of images in the shards of a WebDataset, which are tar files.
type Shards struct {
	metadata
	paths   []string
	samples []shardSample
	notes   []string
}

// A shardSample is one sample, whose image is a part of a shard.
type shardSample struct {
	shard        int    // index into Shards.paths
	name         string // of the shard and of the member
	offset, size int64  // of the image, in bytes
	label        int
}

// OpenShards opens images in tar files as WebDataset stores them: consecutive members whose paths
// are equal up to the first dot of the file name are one sample, and the rest of the name says what
// a member is, such as jpg or cls. Samples without an image are left out, with a note.
//
// Labels that are all whole numbers are indices of the classes. Otherwise the classes are the
// sorted labels. Only headers and labels are read when the shards are opened; At reads the images,
// in any order. A shard that is compressed, is truncated or contains a name twice is an error.
//
// The fingerprint is a hash of the names of the classes, the names and labels of all images, and
// their contents, whose hashes are kept as those of OpenFolder.
func OpenShards(ctx context.Context, o ShardsOptions) (*Shards, error) {
	s := &Shards{paths: o.Paths}
	var labels []string
	withoutImage := 0
	d := newDigest("shards")
	for i, p := range o.Paths {
		if err := d.watch(ctx, p); err != nil {
			return nil, fmt.Errorf("opening shard %s: %w", p, err)
		}
		r := shardReader{index: i, name: filepath.Base(p), image: strings.ToLower(o.Image), label: strings.ToLower(o.Label), seen: map[string]bool{}}
		if key, ok := strings.CutPrefix(o.Label, "json."); ok {
			r.label, r.field = "json", key
		}
		if err := r.read(ctx, p); err != nil {
			return nil, fmt.Errorf("opening shard %s: %w", p, explainHDF5(p, err))
		}
		s.samples = append(s.samples, r.samples...)
		labels = append(labels, r.labels...)
		withoutImage += r.withoutImage
	}
	if len(s.samples) == 0 {
		return nil, fmt.Errorf("opening shards: no images (%s) in %s", strings.Join(imageExtensions, ", "), strings.Join(o.Paths, ", "))
	}
	if withoutImage > 0 {
		s.notes = append(s.notes, fmt.Sprintf("left out %d samples of the shards that have no image", withoutImage))
	}
	if err := s.setLabels(labels, o); err != nil {
		return nil, err
	}
	if err := s.hash(ctx, d); err != nil {
		return nil, fmt.Errorf("opening shards: %w", err)
	}
	s.setFingerprint(d)
	return s, nil
}

// setLabels sets the labels of the samples and the names of the classes from the texts of the
// labels; "": no label, NoLabel.
func (s *Shards) setLabels(texts []string, o ShardsOptions) error {
	missing := 0
	labels, classes, err := labelsOf(texts)
	if err != nil {
		return fmt.Errorf("opening shards: %w", err)
	}
	for i, text := range texts {
		s.samples[i].label = labels[i]
		if text == "" {
			missing++
		}
	}
	switch {
	case missing == len(texts) && o.Label != "":
		return fmt.Errorf("opening shards: no sample has a label in %q", o.Label)
	case missing == len(texts):
		return nil
	case missing > 0:
		s.notes = append(s.notes, fmt.Sprintf("%d of %d images have no label", missing, len(texts)))
	}
	s.classes = classes
	if o.Names == "" {
		return nil
	}
	names, err := readLines(o.Names)
	if err != nil {
		return err
	}
	if len(names) < len(classes) {
		return fmt.Errorf("%s names %d classes, and the labels are of %d", o.Names, len(names), len(classes))
	}
	s.classes = names
	if slices.Equal(classes, numberNames(len(classes)-1)) {
		return nil
	}
	places := make([]int, len(classes)) // of the sorted labels, which are names, among all names
	for i, class := range classes {
		if places[i] = slices.Index(names, class); places[i] < 0 {
			return fmt.Errorf("%s has no class %q, which is a label", o.Names, class)
		}
	}
	for i, label := range labels {
		if label != NoLabel {
			s.samples[i].label = places[label]
		}
	}
	return nil
}

// byteOrderMark starts the text files of some programs.
const byteOrderMark = "\ufeff"

// readLines returns the lines of a short text file, without empty ones at its end.
func readLines(file string) ([]string, error) {
	const maxBytes = 16 << 20
	f, err := filesys.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%s has more than %d bytes: a list of class names is expected", file, maxBytes)
	}
	lines := strings.Split(strings.TrimRight(strings.TrimPrefix(string(text), byteOrderMark), "\r\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines, nil
}

// A shardReader collects the samples of one shard.
type shardReader struct {
	index        int // of the shard
	name         string
	image, label string // extensions of the members with image and label; "": the default
	field        string // of the JSON in the label's member; "": the label is the whole text

	samples      []shardSample
	labels       []string        // of samples; "": none
	withoutImage int             // number of samples without an image
	seen         map[string]bool // keys of the groups so far
	group        shardGroup      // the members read last
}

// A shardGroup is the members of one sample.
type shardGroup struct {
	key    string        // path up to the first dot of the file name
	kinds  []string      // extensions of the members
	images []shardSample // the members that are images
	label  string        // "": none
}

// read reads the headers and labels of a shard.
func (r *shardReader) read(ctx context.Context, file string) error {
	f, size, err := openSized(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var magic [2]byte
	if n, _ := f.ReadAt(magic[:], 0); n == 2 && string(magic[:]) == "\x1f\x8b" { // gzip
		return errors.New("the shard is compressed, so samples cannot be read in any order: decompress it (gunzip)")
	}
	t := tar.NewReader(f)
	end := int64(0) // offset after the last member, where the end mark starts
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		at, seekErr := f.Seek(0, io.SeekCurrent)
		switch {
		case errors.Is(err, io.EOF) && seekErr == nil:
			if at <= end { // two blocks of zeros end a tar
				return errors.New("the shard has no end mark, so samples may be missing: is it truncated?")
			}
			return r.finish()
		case err != nil || seekErr != nil:
			return fmt.Errorf("the shard is damaged: %w", errors.Join(err, seekErr))
		case h.Size > size-at:
			return fmt.Errorf("%s has %d bytes, and %d are left in the shard: is it truncated?", h.Name, h.Size, size-at)
		}
		end = at + (h.Size+511)/512*512 // padded to blocks of 512 bytes
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if slices.ContainsFunc(sparseRecords, func(key string) bool { return h.PAXRecords[key] != "" }) {
			return fmt.Errorf("%s is stored as a sparse file, which is not supported", h.Name)
		}
		if err := r.add(t, h, at); err != nil {
			return err
		}
	}
}

// sparseRecords are records of the tar header (PAX). One of them is set for a sparse file.
var sparseRecords = []string{"GNU.sparse.major", "GNU.sparse.map", "GNU.sparse.numblocks"}

// add adds one member at an offset of the shard.
func (r *shardReader) add(t io.Reader, h *tar.Header, offset int64) error {
	dir, base := path.Split(path.Clean(h.Name))
	stem, kind, found := strings.Cut(base, ".")
	if !found || stem == "" {
		return nil
	}
	kind = strings.ToLower(kind)
	if key := dir + stem; key != r.group.key {
		if err := r.finish(); err != nil {
			return err
		}
		if r.seen[key] {
			return fmt.Errorf("the members of %s are not consecutive, or it is there twice", key)
		}
		r.seen[key] = true
		r.group = shardGroup{key: key}
	}
	if slices.Contains(r.group.kinds, kind) {
		return fmt.Errorf("%s is there twice", h.Name)
	}
	r.group.kinds = append(r.group.kinds, kind)
	if r.image == kind || r.image == "" && slices.Contains(imageExtensions, path.Ext("."+kind)) {
		r.group.images = append(r.group.images, shardSample{shard: r.index, name: r.name + "/" + path.Clean(h.Name), offset: offset, size: h.Size})
	}
	if kind == r.label || r.label == "" && kind == "cls" {
		text, err := r.readLabel(t, h)
		if err != nil {
			return err
		}
		r.group.label = text
	}
	return nil
}

// readLabel reads a label from a member: its text, or a field of its JSON.
func (r *shardReader) readLabel(t io.Reader, h *tar.Header) (string, error) {
	const maxBytes = 1 << 20
	if h.Size > maxBytes {
		return "", fmt.Errorf("%s has %d bytes: a label is expected, of at most %d", h.Name, h.Size, maxBytes)
	}
	text, err := io.ReadAll(t)
	if err != nil {
		return "", fmt.Errorf("the shard is damaged: %s: %w", h.Name, err)
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if r.field == "" {
		return strings.TrimSpace(string(text)), nil
	}
	fields := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(withoutNaN(text, infinite)))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		if errors.As(err, new(*json.UnmarshalTypeError)) {
			err = errors.New("it is no object of JSON")
		}
		return "", fmt.Errorf("%s: %w", h.Name, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("%s holds more than one object of JSON", h.Name)
	}
	switch v := fields[r.field].(type) {
	case nil:
		return "", nil
	case string:
		return strings.TrimSpace(v), nil
	case json.Number:
		if v == infinite || v == "-"+infinite {
			return strings.Replace(v.String(), infinite, "Infinity", 1), nil
		}
		if number, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), "eE") {
			return strconv.FormatFloat(number, 'f', -1, 64), nil
		}
		return v.String(), nil
	}
	return "", fmt.Errorf("%s: %q is neither a number nor text", h.Name, r.field)
}

// outsideJSON matches a text of JSON, or one of the numbers that JSON lacks and Python writes.
var outsideJSON = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b`)

// infinite is a number of JSON that no float holds, in place of infinity.
const infinite = "1e9999"

// withoutNaN returns a text of JSON with null for NaN, and for infinity what infinity says.
func withoutNaN(text []byte, infinity string) []byte {
	return outsideJSON.ReplaceAllFunc(text, func(match []byte) []byte {
		switch {
		case match[0] == '"':
			return match
		case bytes.HasSuffix(match, []byte("NaN")):
			return []byte("null")
		case match[0] == '-' && infinity == infinite:
			return []byte("-" + infinity)
		}
		return []byte(infinity)
	})
}

// finish adds the sample of the group, if it has an image.
func (r *shardReader) finish() error {
	g := r.group
	r.group = shardGroup{}
	switch {
	case g.key == "":
	case len(g.images) == 0:
		r.withoutImage++
	case len(g.images) > 1:
		return fmt.Errorf("%s has several images (%s): set image to one of these extensions", g.key, strings.Join(g.kinds, ", "))
	default:
		r.samples = append(r.samples, g.images[0])
		r.labels = append(r.labels, g.label)
	}
	return nil
}

// hash adds to a digest the parts that OpenShards lists.
func (s *Shards) hash(ctx context.Context, d digest) error {
	for _, c := range s.classes {
		d.add(c)
	}
	for _, p := range s.samples {
		d.add(path.Base(p.name), p.label)
	}
	parts := make([][]filestate.Part, len(s.paths))
	for _, p := range s.samples {
		parts[p.shard] = append(parts[p.shard], filestate.Part{Name: filepath.Base(s.paths[p.shard]), Offset: p.offset, Size: p.size})
	}
	for i, shard := range s.paths {
		if err := d.addParts(ctx, shard, parts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Shards) Len() int { return len(s.samples) }

// Notes returns notes on what was left out and on missing labels.
func (s *Shards) Notes() []string { return s.notes }

// Describe returns image i without its pixels. Its name is that of the shard and of the member.
func (s *Shards) Describe(i int) Sample {
	return Sample{Index: i, Name: s.samples[i].name, Label: s.samples[i].label}
}

// At decodes image i. If the image cannot be read, the error is a *BadSample.
func (s *Shards) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "shards", i, len(s.samples)); err != nil {
		return Sample{}, err
	}
	return s.watched.read(ctx, s.samples[i].shard, func() (Sample, error) {
		sample, image := s.Describe(i), s.samples[i]
		data, err := readPart(s.paths[image.shard], image.offset, image.size)
		if err == nil {
			sample.Input, err = frameEncoded(ctx, bytes.NewReader(data), int64(len(data)), frame)
		}
		return sample, asBadSample(ctx, sample.Name, err)
	})
}

// readPart reads size bytes of a file from an offset.
func readPart(file string, offset, size int64) ([]byte, error) {
	if size > maxFile {
		return nil, fmt.Errorf("the image has %d bytes; the limit is %d MiB", size, maxFile>>20)
	}
	f, err := filesys.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, size)
	_, err = f.ReadAt(data, offset)
	return data, err
}
