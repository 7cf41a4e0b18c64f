package dataset

import (
	"context"
	"fmt"
	"path/filepath"
)

// A Decoder reads files of one kind, each of which is a sample.
type Decoder struct {
	Kind       string // in fingerprints
	Version    int    // increased when the same file gives another sample
	What       string // such as "videos", for messages
	Extensions []string
	Sequences  bool // a file holds a sequence of frames; see Sample.Frames
	// Read sets Input, and what else the file holds, of a sample of a file in a frame.
	Read func(ctx context.Context, path string, f Frame, s *Sample) error
}

// A Decoded is a source over files that a Decoder reads.
type Decoded struct {
	fileList
	decoder Decoder
}

// OpenDecoded opens a folder of files, with labels as OpenFolder finds those of images.
func OpenDecoded(ctx context.Context, o FolderOptions, decoder Decoder) (*Decoded, error) {
	s := &Decoded{fileList{dir: o.Dir, what: decoder.What, extensions: decoder.Extensions}, decoder}
	d := newDigest(decoder.Kind)
	d.add(decoder.Version)
	err := s.findAndLabel(ctx, labelSource{table: o.Labels, column: o.Label, pattern: o.Pattern, layout: o.Layout})
	if err == nil {
		err = s.hash(ctx, d)
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder %s: %w", o.Dir, err)
	}
	s.setFingerprint(d)
	return s, nil
}

// At reads file i. If it cannot be read, the error is a *BadSample.
func (s *Decoded) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "folder "+s.dir, i, len(s.files)); err != nil {
		return Sample{}, err
	}
	return s.watched.read(ctx, i, func() (Sample, error) {
		out := s.Describe(i)
		err := s.decoder.Read(ctx, filepath.Join(s.dir, out.Name), frame, &out)
		return out, asBadSample(ctx, out.Name, err)
	})
}

// AreSequences reports whether the samples of a source, or of the one that it wraps, are sequences of
// frames.
func AreSequences(src Source) bool {
	s, ok := find[*Decoded](src)
	return ok && s.decoder.Sequences
}
