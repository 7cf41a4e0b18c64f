package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// FolderOptions says how a folder of pictures is labelled.
type FolderOptions struct {
	Dir    string
	Labels string // CSV file of file,label and columns of factors; the files are relative to Dir
	Layout string // "classes", "synsets" or "flat"; "": by what is there, see OpenFolder
}

// A Folder is a source over picture files: JPEG, PNG, GIF (the first frame), BMP, TIFF and WebP.
type Folder struct {
	dir         string
	files       []pictureFile
	classes     []string
	factors     []string
	fingerprint string
}

type pictureFile struct {
	name    string // relative to the folder, with slashes
	size    int64
	label   int
	factors map[string]float64
}

// OpenFolder opens a folder of pictures. With a CSV file of labels, the files that it lists are the samples, in its order.
// Otherwise the layout says where labels come from:
//
//	classes  a folder a class, pictures in it at any depth (ImageNet, torchvision's ImageFolder); classes sorted by name
//	synsets  no folders, and file names that start with a WordNet synset, such as n01440764_tench.JPEG; classes sorted
//	flat     no labels, pictures at any depth
//
// Without a layout it is "classes" where there are folders, "synsets" where every name starts with one, else "flat". Names that
// start with a dot are passed over.
//
// The fingerprint hashes the names, sizes, labels and factors of all files, and the first and last 64 KiB of up to 10,000
// of them, evenly spaced: reading every byte of ImageNet would take longer than many a study.
func OpenFolder(ctx context.Context, o FolderOptions) (*Folder, error) {
	f := &Folder{dir: o.Dir}
	if err := f.list(ctx, o); err != nil {
		return nil, fmt.Errorf("opening folder %s: %w", o.Dir, err)
	}
	if err := f.hash(ctx); err != nil {
		return nil, fmt.Errorf("opening folder %s: %w", o.Dir, err)
	}
	return f, nil
}

func (f *Folder) list(ctx context.Context, o FolderOptions) error {
	if o.Labels != "" {
		if o.Layout != "" {
			return fmt.Errorf("labels come from %s or from layout %q, not from both", o.Labels, o.Layout)
		}
		return f.fromCSV(ctx, o.Labels)
	}
	var err error
	if f.files, err = pictureFiles(ctx, o.Dir, ""); err != nil {
		return err
	}
	if len(f.files) == 0 {
		return fmt.Errorf("no pictures (%s)", strings.Join(pictureExtensions, ", "))
	}
	layout := o.Layout
	if layout == "" {
		if layout, err = f.detect(); err != nil {
			return err
		}
	}
	switch layout {
	case "flat":
		return nil
	case "classes":
		return f.labelByFolder()
	case "synsets":
		return f.labelBySynset()
	}
	return fmt.Errorf("layout %q is not known: classes, synsets or flat", layout)
}

// pictureFiles lists the pictures beneath a folder: its own by name, then those of its folders by name. Links are followed.
func pictureFiles(ctx context.Context, root, dir string) ([]pictureFile, error) {
	const maxDepth = 32 // deeper than any dataset: a link that leads back up
	if strings.Count(dir, "/") > maxDepth {
		return nil, fmt.Errorf("%s: folders nested deeper than %d: does a link lead back up?", dir, maxDepth)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		return nil, err
	}
	var files []pictureFile
	var folders []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || (e.Type().IsRegular() && !isPicture(name)) {
			continue
		}
		info, err := followed(root, name, e)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			folders = append(folders, name)
		case isPicture(name):
			files = append(files, pictureFile{name: name, size: info.Size(), label: NoLabel})
		}
	}
	for _, name := range folders {
		inner, err := pictureFiles(ctx, root, name)
		if err != nil {
			return nil, err
		}
		files = append(files, inner...)
	}
	return files, nil
}

func followed(root, name string, e fs.DirEntry) (fs.FileInfo, error) {
	if e.Type()&fs.ModeSymlink != 0 {
		return os.Stat(filepath.Join(root, name))
	}
	return e.Info()
}

func (f *Folder) detect() (string, error) {
	nested := func(p pictureFile) bool { return strings.Contains(p.name, "/") }
	synset := func(p pictureFile) bool { return synsetOf(p.name) != "" }
	switch i := slices.IndexFunc(f.files, nested); {
	case i > 0: // a folder's own files come first
		return "", fmt.Errorf("pictures both in the folder (%s) and in folders beneath it (%s): set the layout, classes or flat", f.files[0].name, f.files[i].name)
	case i == 0:
		return "classes", nil
	case !slices.ContainsFunc(f.files, func(p pictureFile) bool { return !synset(p) }):
		return "synsets", nil
	}
	return "flat", nil
}

// labelByFolder takes the first folder of a name as the class. As with torchvision, a folder without pictures is a
// class all the same.
func (f *Folder) labelByFolder() error {
	classes, err := classFolders(f.dir)
	if err != nil {
		return err
	}
	f.classes = classes
	for i := range f.files {
		class, _, nested := strings.Cut(f.files[i].name, "/")
		if !nested {
			return fmt.Errorf("%s lies outside the folders of the classes", class)
		}
		f.files[i].label, _ = slices.BinarySearch(classes, class)
	}
	return nil
}

// classFolders lists the folders in a folder, sorted.
func classFolders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if info, err := followed(dir, e.Name(), e); err == nil && info.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

var synsetPrefix = regexp.MustCompile(`^n\d{8}(?:[^0-9A-Za-z]|$)`)

// synsetOf is the WordNet synset that a file's name starts with, or "".
func synsetOf(name string) string {
	if base := path.Base(name); synsetPrefix.MatchString(base) {
		return base[:9]
	}
	return ""
}

func (f *Folder) labelBySynset() error {
	for _, p := range f.files {
		s := synsetOf(p.name)
		if s == "" {
			return fmt.Errorf("%s: the name does not start with a synset such as n01440764", p.name)
		}
		f.classes = append(f.classes, s)
	}
	slices.Sort(f.classes)
	f.classes = slices.Compact(f.classes)
	for i := range f.files {
		f.files[i].label, _ = slices.BinarySearch(f.classes, synsetOf(f.files[i].name))
	}
	return nil
}

// fingerprinted is the number of files whose bytes enter the fingerprint.
const fingerprinted = 10_000

func (f *Folder) hash(ctx context.Context) error {
	d := newDigest("folder")
	d.add(len(f.classes))
	for _, c := range f.classes {
		d.add(c)
	}
	for _, p := range f.files {
		d.add(p.name, p.size, p.label)
		for _, name := range f.factors {
			d.add(name, p.factors[name])
		}
	}
	n := min(len(f.files), fingerprinted)
	for i := range n {
		if err := f.hashEnds(ctx, d, f.files[i*len(f.files)/n]); err != nil {
			return err
		}
	}
	f.fingerprint = d.String()
	return nil
}

func (f *Folder) hashEnds(ctx context.Context, d digest, p pictureFile) error {
	file, err := os.Open(filepath.Join(f.dir, p.name))
	if err != nil {
		return err
	}
	defer file.Close()
	return d.addBlocks(ctx, file, p.size, 2)
}

// Len is the number of pictures.
func (f *Folder) Len() int { return len(f.files) }

// Classes are the names of the labels, sorted; nil in an unlabelled folder.
func (f *Folder) Classes() []string { return f.classes }

// Factors are the further columns of the CSV file.
func (f *Folder) Factors() []string { return f.factors }

// Fingerprint is described at OpenFolder.
func (f *Folder) Fingerprint() string { return f.fingerprint }

// Describe is picture i without its pixels; its name is relative to the folder.
func (f *Folder) Describe(i int) Sample {
	p := f.files[i]
	return Sample{Index: i, Name: p.name, Label: p.label, Factors: maps.Clone(p.factors)}
}

// At decodes picture i. One that cannot be read is a BadSample.
func (f *Folder) At(ctx context.Context, i int, frame Frame) (Sample, error) {
	if err := checkAccess(ctx, "folder "+f.dir, i, len(f.files)); err != nil {
		return Sample{}, err
	}
	s := f.Describe(i)
	img, err := readPicture(filepath.Join(f.dir, s.Name))
	if err == nil {
		s.Input, err = frame.Image(img)
	}
	if err != nil {
		return s, &BadSample{Name: s.Name, Err: cmp.Or(pathless(err), err)}
	}
	return s, nil
}

// pathless is the cause of an error of the file system, without the path, which the sample's name says already; nil for
// other errors.
func pathless(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return nil
}
