package dataset

import (
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

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/plural"
)

// A fileList is a list of the files of a folder, with their labels and factors.
type fileList struct {
	dir        string
	what       string // "images" or "audio files", for error messages
	extensions []string
	files      []fileEntry
	metadata
	categories map[string][]string // by factor that is text: names of its categories, by value
	// Symbolic links with a matching extension whose target is missing.
	dangling []string
	// Files of formats that are not read, whose extensions are in others, and what has a matching
	// extension but is no file, such as a pipe.
	others    []string
	unread    []string
	irregular []string
	notes     []string // on what else is left out
}

type fileEntry struct {
	name    string // relative to the folder, with slashes
	size    int64  // in bytes
	label   int    // index into classes, or NoLabel
	factors map[string]float64
}

// A labelSource describes where the labels and factors of files come from.
type labelSource struct {
	table string // a CSV file
	// column of the CSV file, or field of the pattern, that holds the label; "": label.
	column  string
	pattern string // pattern of file names
	// layout is "classes" (a folder for each class), "synsets" (names start with a WordNet synset,
	// such as n01440764), "flat" (no labels), or "" to detect which of these it is.
	layout string
}

// hasExtension reports whether a file has one of the list's extensions.
func (l *fileList) hasExtension(name string) bool {
	return slices.Contains(l.extensions, strings.ToLower(path.Ext(name)))
}

// findAndLabel finds the files and sets their labels.
func (l *fileList) findAndLabel(ctx context.Context, by labelSource) error {
	if by.table != "" {
		switch {
		case by.layout != "":
			return fmt.Errorf("labels come from %s or from layout %q, not from both", by.table, by.layout)
		case by.pattern != "":
			return fmt.Errorf("labels come from %s or from the pattern %q, not from both", by.table, by.pattern)
		}
		return l.fromCSV(ctx, by.table, by.column)
	}
	if err := l.find(ctx); err != nil {
		return err
	}
	if by.pattern != "" {
		if by.layout != "" {
			return fmt.Errorf("labels come from the pattern %q or from layout %q, not from both", by.pattern, by.layout)
		}
		return l.labelByPattern(by.pattern, by.column)
	}
	if by.column != "" {
		return fmt.Errorf("label %q needs a CSV file or a pattern of file names: set one of them", by.column)
	}
	layout, err := by.layout, error(nil)
	if layout == "" {
		if layout, err = l.detectLayout(); err != nil {
			return err
		}
	}
	switch layout {
	case "flat":
		return nil
	case "classes":
		return l.labelByFolder()
	case "synsets":
		return l.labelBySynset()
	}
	return fmt.Errorf("unknown layout %q: use classes, synsets or flat", layout)
}

// find lists the files in the folder. It returns an error if there are none.
func (l *fileList) find(ctx context.Context) error {
	var err error
	if l.files, err = l.filesBeneath(ctx, ""); err != nil {
		return err
	}
	if len(l.files) == 0 {
		why := ""
		if notes := l.leftOut(); len(notes) > 0 {
			why = "; " + strings.Join(notes, "; ")
		}
		return fmt.Errorf("no %s (%s)%s", l.what, strings.Join(l.extensions, ", "), why)
	}
	return nil
}

func (l *fileList) Len() int { return len(l.files) }

// Describe returns sample i without its values. Its name is relative to the folder.
func (l *fileList) Describe(i int) Sample {
	f := l.files[i]
	return Sample{Index: i, Name: f.name, Label: f.label, Factors: maps.Clone(f.factors)}
}

// Notes returns sentences on what was left out: the number, some of the names, and the reason.
func (l *fileList) Notes() []string {
	return append(l.leftOut(), l.notes...)
}

// leftOut returns the notes on the files that find did not list.
func (l *fileList) leftOut() []string {
	var notes []string
	if len(l.dangling) > 0 {
		notes = append(notes, "left out links to files that do not exist: "+firstNames(l.dangling, 20))
	}
	if len(l.irregular) > 0 {
		notes = append(notes, "left out what is no file, such as a named pipe: "+firstNames(l.irregular, 20))
	}
	if len(l.unread) > 0 {
		var formats []string
		for _, name := range l.unread {
			formats = append(formats, strings.ToLower(path.Ext(name)))
		}
		notes = append(notes, fmt.Sprintf("left out %s of formats that are not read (%s): %s", plural.Of(len(l.unread), "file"), strings.Join(distinct(formats), ", "),
			firstNames(l.unread, 5)))
	}
	return notes
}

// firstNames joins the first names, and says how many more there are.
func firstNames(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// filesBeneath lists the files of a folder that have a matching extension, by name, followed by
// those of its folders, by name. Symbolic links are followed. Dangling ones are left out and
// recorded.
func (l *fileList) filesBeneath(ctx context.Context, dir string) ([]fileEntry, error) {
	const maxDepth = 32 // deeper than any data set: there must be a link to a parent folder
	if strings.Count(dir, "/") > maxDepth {
		return nil, fmt.Errorf("%s: folders are nested deeper than %d: is there a link to a parent folder?", dir, maxDepth)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(l.dir, dir))
	if err != nil {
		return nil, err
	}
	var files []fileEntry
	var folders []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if filesys.IsHidden(e.Name()) {
			continue
		}
		if !e.IsDir() && slices.Contains(l.others, strings.ToLower(path.Ext(name))) {
			l.unread = append(l.unread, name)
		}
		if e.Type().IsRegular() && !l.hasExtension(name) {
			continue
		}
		info, err := statEntry(l.dir, name, e)
		switch {
		case e.Type()&fs.ModeSymlink != 0 && errors.Is(err, fs.ErrNotExist):
			if l.hasExtension(name) {
				l.dangling = append(l.dangling, name)
			}
		case err != nil:
			return nil, err
		case info.IsDir():
			folders = append(folders, name)
		case !l.hasExtension(name):
		case !info.Mode().IsRegular():
			l.irregular = append(l.irregular, name)
		default:
			files = append(files, fileEntry{name: name, size: info.Size(), label: NoLabel})
		}
	}
	for _, name := range folders {
		inner, err := l.filesBeneath(ctx, name)
		if err != nil {
			return nil, err
		}
		files = append(files, inner...)
	}
	return files, nil
}

func statEntry(root, name string, e fs.DirEntry) (fs.FileInfo, error) {
	if e.Type()&fs.ModeSymlink != 0 {
		return os.Stat(filepath.Join(root, name))
	}
	return e.Info()
}

// detectLayout returns the layout of the files: "classes" if all are in subfolders that may be
// classes, "synsets" if all names start with a synset, and "flat" otherwise. It is an error if only
// some are in subfolders.
func (l *fileList) detectLayout() (string, error) {
	nested := func(p fileEntry) bool { return strings.Contains(p.name, "/") }
	synset := func(p fileEntry) bool { return synsetOf(p.name) != "" }
	switch i := slices.IndexFunc(l.files, nested); {
	case i > 0: // the files of the folder itself are listed first
		return "", fmt.Errorf("%s are both in the folder (%s) and in its subfolders (%s): set the layout, classes or flat", l.what, l.files[0].name, l.files[i].name)
	case i == 0:
		if why := l.withoutClasses(); why != "" {
			l.notes = append(l.notes, why)
			return "flat", nil
		}
		return "classes", nil
	case !slices.ContainsFunc(l.files, func(p fileEntry) bool { return !synset(p) }):
		return "synsets", nil
	}
	return "flat", nil
}

// part matches the names of the parts of a data set, which are no classes.
var part = regexp.MustCompile(`^(?i:train|training|val|valid|validation|dev|test|testing|trainval|minival|unlabell?ed)[-_]?\d{0,4}$`)

// withoutClasses returns why the folders of the files are no classes: they are the parts of a data
// set, or one folder that has the folders of the classes. "": they may be classes.
func (l *fileList) withoutClasses() string {
	var folders, inner []string
	for _, f := range l.files {
		names := strings.Split(f.name, "/")
		folders = append(folders, names[0])
		if len(names) > 2 {
			inner = append(inner, names[1])
		}
	}
	all := len(inner) == len(folders)
	folders, inner = distinct(folders), distinct(inner)
	switch {
	case !slices.ContainsFunc(folders, func(name string) bool { return !part.MatchString(name) }):
		return fmt.Sprintf("the folders (%s) are parts of a data set and no classes, so the %s have no labels: name one of these folders, or set layout: classes",
			firstNames(folders, 5), l.what)
	case len(folders) == 1 && all && len(inner) > 1:
		return fmt.Sprintf("all %s are in folders of %s (%s), so they have no labels: name that folder, or set layout: classes", l.what, folders[0], firstNames(inner, 5))
	}
	return ""
}

// labelByFolder labels files by the first folder of their paths. As in torchvision with
// allow_empty, a folder without images is a class too.
func (l *fileList) labelByFolder() error {
	classes, err := classFolders(l.dir)
	if err != nil {
		return err
	}
	l.classes = classes
	for i := range l.files {
		class, _, nested := strings.Cut(l.files[i].name, "/")
		if !nested {
			return fmt.Errorf("%s is outside the folders of the classes", class)
		}
		l.files[i].label, _ = slices.BinarySearch(classes, class)
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
		if filesys.IsHidden(e.Name()) {
			continue
		}
		if info, err := statEntry(dir, e.Name(), e); err == nil && info.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// synsetPrefix matches the start of a name like n01440764_tench.JPEG: "n" and eight digits.
var synsetPrefix = regexp.MustCompile(`^n\d{8}(?:[^0-9A-Za-z]|$)`)

// synsetOf returns the WordNet synset at the start of a file's name, or "".
func synsetOf(name string) string {
	if base := path.Base(name); synsetPrefix.MatchString(base) {
		return base[:9] // without what follows the digits
	}
	return ""
}

func (l *fileList) labelBySynset() error {
	for _, p := range l.files {
		s := synsetOf(p.name)
		if s == "" {
			return fmt.Errorf("%s: the name does not start with a synset such as n01440764", p.name)
		}
		l.classes = append(l.classes, s)
	}
	l.classes = distinct(l.classes)
	for i := range l.files {
		l.files[i].label, _ = slices.BinarySearch(l.classes, synsetOf(l.files[i].name))
	}
	return nil
}

// hash adds the names, labels, factors and contents of the files to a digest.
func (l *fileList) hash(ctx context.Context, d digest) error {
	d.add(len(l.classes))
	for _, c := range l.classes {
		d.add(c)
	}
	names := make([]string, len(l.files))
	for i, p := range l.files {
		names[i] = p.name
		d.add(p.name, p.label)
		for _, name := range l.factors {
			d.add(name, p.factors[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.categories)) {
		d.add(name, l.categories[name])
	}
	return d.addFiles(ctx, l.dir, names)
}

// withoutPath returns the cause of a file system error without the path, which is in the sample's
// name already. It returns nil for other errors.
func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return nil
}

// Path returns the absolute path of the file of a sample, by its index in the original source, or
// "" if it has none of its own.
func Path(src Source, index int) string {
	if s, ok := find[interface{ path(int) string }](src); ok {
		return s.path(index)
	}
	return ""
}

func (l *fileList) path(index int) string {
	if index < 0 || index >= len(l.files) {
		return ""
	}
	path, err := filepath.Abs(filepath.Join(l.dir, filepath.FromSlash(l.files[index].name)))
	if err != nil {
		return "" // there is no working directory
	}
	return path
}
