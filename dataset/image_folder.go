package dataset

import (
	"context"
	"fmt"
	"path/filepath"
)

// FolderOptions are the options of OpenFolder: the folder and its labels.
type FolderOptions struct {
	Dir    string
	Labels string // CSV file with the columns file (relative to Dir) and label; other columns are factors
	Layout string // "classes", "synsets" or "flat" (see OpenFolder); "": detected from the folder's contents
	// Pattern is the pattern of the file names, such as "{label}_{camera}.jpg": its fields are the
	// label and factors. See OpenAudio.
	Pattern string
	Label   string // the column of the CSV file, or the field of Pattern, that holds the label; "": label
}

// A Folder is a source over image files: JPEG, PNG, GIF (the first frame), BMP, TIFF and WebP.
type Folder struct {
	fileList
	fingerprint string
}

// OpenFolder opens a folder of images. With a CSV file of labels, the samples are the files that it
// lists, in its order. Otherwise the layout defines the labels:
//
//	classes  one folder per class, images in it at any depth (ImageNet, torchvision's ImageFolder); classes sorted by name
//	synsets  no folders, and file names that start with a WordNet synset, such as n01440764_tench.JPEG; classes sorted
//	flat     no labels, images at any depth
//
// Without a layout it is "classes" if the folder has folders, "synsets" if every name starts with a
// synset ID, else "flat". Names that start with a dot are ignored.
//
// The fingerprint hashes the names, sizes, labels and factors of all files, and the first and last
// 64 KiB of up to 10,000 of them, evenly spaced: reading every byte of ImageNet would take longer
// than many studies take. If there are WebP files, it also hashes webpVersion, which changes when
// decoding changes.
func OpenFolder(ctx context.Context, o FolderOptions) (*Folder, error) {
	f := &Folder{fileList: fileList{dir: o.Dir, what: "images", extensions: imageExtensions}}
	err := f.list(ctx, labelSource{table: o.Labels, column: o.Label, pattern: o.Pattern, layout: o.Layout})
	d := newDigest("folder")
	if err == nil {
		err = f.hash(ctx, d)
	}
	if f.has(".webp") {
		d.add("webp", webpVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("opening folder %s: %w", o.Dir, err)
	}
	f.fingerprint = d.String()
	return f, nil
}

// Len returns the number of images.
func (f *Folder) Len() int { return len(f.files) }

// Notes returns a note that names the links left out because their target does not exist, if there
// are any.
func (f *Folder) Notes() []string { return f.danglingNotes() }

// Classes returns the names of the labels, sorted; nil if the folder has no labels.
func (f *Folder) Classes() []string { return f.classes }

// Factors returns the further columns of the CSV file, or the further fields of Pattern.
func (f *Folder) Factors() []string { return f.factors }

// Fingerprint returns the fingerprint that OpenFolder describes.
func (f *Folder) Fingerprint() string { return f.fingerprint }

// Describe returns image i without its pixels. Its name is relative to the folder.
func (f *Folder) Describe(i int) Sample { return f.describe(i) }

// At decodes image i. If it cannot be read, the error is a *BadSample.
func (f *Folder) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "folder "+f.dir, i, len(f.files)); err != nil {
		return Sample{}, err
	}
	s := f.Describe(i)
	var err error
	s.Input, err = frameFile(ctx, filepath.Join(f.dir, s.Name), frame)
	return s, asBadSample(ctx, s.Name, err)
}
