package dataset

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// FolderOptions are the options of OpenFolder: the folder, its labels and its factors.
type FolderOptions struct {
	Dir    string
	Labels string // CSV file with columns file (relative to Dir) and label; others are factors
	Layout string // "classes", "synsets" or "flat" (see OpenFolder); "": detected
	// Pattern is the pattern of the file names, such as "{label}_{camera}.jpg": its fields are the
	// label and factors. See OpenAudio.
	Pattern string
	Label   string // column of the CSV file, or field of Pattern, with the label; "": label
}

// A Folder is a data source over image files: JPEG, PNG, GIF (the first frame), BMP, TIFF and WebP.
type Folder struct {
	fileList
}

// OpenFolder opens a folder of images. With a CSV file of labels, the samples are the files that it
// lists, in its order. With a Pattern, the labels and factors are parts of the file names.
// Otherwise the layout defines the labels; to set two of Labels, Pattern and Layout is an error.
// The layouts:
//
//	classes  one folder per class, with images at any depth, as for torchvision's ImageFolder;
//	         the classes are sorted by name
//	synsets  no folders, and file names that start with the identifier of a synset (a set of
//	         synonyms of WordNet), such as n01440764_tench.JPEG; the classes are the sorted
//	         identifiers
//	flat     no labels, images at any depth
//
// The default layout is "classes" if all images are in subfolders. If none is, it is "synsets" if
// every name starts with such an identifier, else "flat". If only some are, Layout must be set.
// Names that start with a dot are ignored.
//
// The fingerprint hashes the names, labels, factors and contents of all files. Hashes of contents
// are kept in the user's cache: a file is read again only if its size, times or inode differ. If
// there are WebP, GIF or TIFF files, the fingerprint also hashes webpVersion, gifVersion or
// tiffVersion, which change when decoding changes.
func OpenFolder(ctx context.Context, o FolderOptions) (*Folder, error) {
	f := &Folder{fileList: fileList{dir: o.Dir, what: "images", extensions: imageExtensions, others: otherImageExtensions}}
	err := f.findAndLabel(ctx, labelSource{table: o.Labels, column: o.Label, pattern: o.Pattern, layout: o.Layout})
	d := newDigest("folder")
	if err == nil {
		err = f.hash(ctx, d)
	}
	for _, decoder := range []struct {
		name, extension string
		version         int
	}{{"webp", ".webp", webpVersion}, {"gif", ".gif", gifVersion}, {"tiff", ".tif", tiffVersion}, {"tiff", ".tiff", tiffVersion}} {
		if slices.ContainsFunc(f.files, func(f fileEntry) bool { return strings.EqualFold(path.Ext(f.name), decoder.extension) }) {
			d.add(decoder.name, decoder.version)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder %s: %w", o.Dir, explainHDF5(o.Dir, err))
	}
	f.setFingerprint(d)
	return f, nil
}

// At decodes image i. If the image cannot be read, the error is a *BadSample.
func (f *Folder) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "folder "+f.dir, i, len(f.files)); err != nil {
		return Sample{}, err
	}
	return f.watched.read(ctx, i, func() (Sample, error) {
		s := f.Describe(i)
		var err error
		s.Input, err = frameFile(ctx, filepath.Join(f.dir, s.Name), frame)
		return s, asBadSample(ctx, s.Name, err)
	})
}
