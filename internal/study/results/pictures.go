package results

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/pictures"
)

// pictureFolders are the folders of the pictures that a run makes.
var pictureFolders = []string{viewSheetFolder, sampleSheetFolder, mapSheetFolder, mistakeSheetFolder, modelImageFolder}

// An archive takes the pictures of a run that did not ask for any, so that they are one file.
type archive struct {
	mu    sync.Mutex
	zip   *zip.Writer
	names map[string]bool
	later []picture // sample sheets, which are drawn beside the views: the order of entries is always the same
}

// A picture is a file of a picture: an image or its description.
type picture struct {
	name string // path in the run folder, with slashes
	data []byte
}

func (a *archive) add(p picture) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if path.Dir(p.name) == sampleSheetFolder {
		a.later = append(a.later, p)
		return nil
	}
	return a.write(p)
}

func (a *archive) write(p picture) error {
	if a.names[p.name] {
		return nil
	}
	a.names[p.name] = true
	w, err := a.zip.CreateHeader(&zip.FileHeader{Name: p.name, Method: zip.Store})
	if err == nil {
		_, err = w.Write(p.data)
	}
	return err
}

func (a *archive) close() error {
	for _, p := range a.later {
		if err := a.write(p); err != nil {
			return err
		}
	}
	return a.zip.Close()
}

var errNoPictures = errors.New("there are no pictures")

// writePictures writes all pictures: as files if the study asks for pictures, otherwise as an
// archive.
func (r *Writer) writePictures(ctx context.Context) error {
	if r.Plan.Study.AsksForImages() {
		if err := r.makePictures(ctx); err != nil {
			return err
		}
		return optional(filesys.Remove(r.Folder.Path(pictures.Archive)))
	}
	err := r.Folder.write(pictures.Archive, func(w io.Writer) error {
		r.archive = &archive{zip: zip.NewWriter(w), names: map[string]bool{}}
		defer func() { r.archive = nil }()
		if err := r.makePictures(ctx); err != nil {
			return err
		}
		if r.Plan.Study.Images == 0 { // sheets stay if a later run asks for none
			if err := r.keepSheets(); err != nil {
				return err
			}
		}
		if len(r.archive.names)+len(r.archive.later) == 0 {
			return errNoPictures
		}
		return r.archive.close()
	})
	if errors.Is(err, errNoPictures) {
		err = optional(filesys.Remove(r.Folder.Path(pictures.Archive)))
	}
	if err != nil {
		return err
	}
	// Files of former runs, and of the feature maps of a shard.
	for _, folder := range pictureFolders {
		if folder == modelImageFolder || r.Plan.Study.Images > 0 {
			if err := r.Folder.removeSheets(folder, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Writer) makePictures(ctx context.Context) error {
	group, both := errgroup.WithContext(ctx) // most of the time is the compression of sheets
	group.Go(func() error { return r.writeImages(both) })
	group.Go(func() error { return r.writeSampleSheets(both) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := r.writeMistakeSheets(ctx); err != nil {
		return err
	}
	if err := r.collectMaps(); err != nil {
		return err
	}
	return r.copyModelImages()
}

// keepSheets copies the sheets of the archive of a former run.
func (r *Writer) keepSheets() error {
	set, err := pictures.Open(os.DirFS(r.Folder.dir))
	if err != nil {
		return nil // another run draws them
	}
	defer set.Close()
	for _, folder := range pictureFolders[:4] {
		names, err := set.Glob(folder + "/*")
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, isFile := r.Folder.mode(name); isFile {
				continue
			}
			if data, err := fs.ReadFile(set, name); err == nil {
				if err := r.archive.add(picture{name, data}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writePicture writes a file of a picture, into the archive if there is one.
func (r *Writer) writePicture(name string, fill func(w io.Writer) error) error {
	if r.archive == nil {
		if err := filesys.MkdirAll(r.Folder.Path(path.Dir(name)), 0o755); err != nil {
			return err
		}
		return r.Folder.write(name, fill)
	}
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	return r.archive.add(picture{name, b.Bytes()})
}

// picture returns a file of a picture, or an error that is fs.ErrNotExist. The file is read before
// the archive: another process removes it when the archive has it.
func (f Folder) picture(name string) ([]byte, error) {
	if mode, ok := f.mode(name); ok && mode.IsRegular() {
		data, err := os.ReadFile(f.Path(name))
		if !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	set, err := pictures.Open(os.DirFS(f.dir))
	if err != nil {
		return nil, err
	}
	defer set.Close()
	return fs.ReadFile(set, name)
}

// sameModelImages reports whether the archive of a finished run has the images of the models as
// they are now.
func (r *Writer) sameModelImages() bool {
	set, err := pictures.Open(os.DirFS(r.Folder.dir))
	if err != nil {
		return false
	}
	defer set.Close()
	archived, err := set.Glob(modelImageFolder + "/*")
	same := err == nil
	n := 0
	err = r.modelImages(func(p picture) error {
		data, err := fs.ReadFile(set, p.name)
		same = same && err == nil && bytes.Equal(data, p.data)
		n++
		return nil
	})
	return same && err == nil && n == len(archived)
}
