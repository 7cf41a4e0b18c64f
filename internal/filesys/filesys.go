// Package filesys changes files and folders in a way that tests can observe.
//
// Its functions do what those of package os do, with the differences that they state. A test that
// calls Observe is told of every change of a folder and of what is in it: it can record the
// changes, or make one fail. Files that must survive a kill, a full disk or a power loss are
// written through this package.
package filesys

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// An Op is an operation that changes files.
type Op int

// The operations.
const (
	OpMkdir     Op = iota // makes a folder
	OpCreate              // makes an empty file
	OpWrite               // writes data at the end of a file
	OpSync                // syncs a file, or the entries of a folder
	OpRename              // renames a file or a folder
	OpRemove              // removes a file or an empty folder
	OpRemoveAll           // removes a folder with all that is in it
	OpTruncate            // cuts a file
)

// String returns the name of the operation.
func (o Op) String() string {
	return [...]string{"mkdir", "create", "write", "sync", "rename", "remove", "remove all", "truncate"}[o]
}

// A Change is a change of a file or a folder.
type Change struct {
	Op   Op
	Path string
	To   string // the new path of OpRename
	Data []byte // the data of OpWrite, valid during the call of the observer
	Size int64  // the new size of OpTruncate
}

// An Observer is called in place of a change. It calls do to make the change, or not, and returns
// the error that the function of this package then returns. It must not itself change files in the
// folder through this package.
type Observer func(c Change, do func() error) error

// An observed is a folder with its observer.
type observed struct {
	dir      string     // absolute, with a separator at the end
	mu       sync.Mutex // held during a call of the observer
	observer Observer
}

var (
	observers      atomic.Pointer[[]*observed]
	observersMutex sync.Mutex // held by the one goroutine that replaces the list
)

// Observe calls the observer for every change of the folder dir and of what is in it, one at a
// time, until stop is called. Where observed folders contain each other, only the first observer is
// called.
func Observe(dir string, observer Observer) (stop func(), err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	o := &observed{dir: dir + string(filepath.Separator), observer: observer}
	replace := func(change func(list []*observed) []*observed) {
		observersMutex.Lock()
		defer observersMutex.Unlock()
		var list []*observed
		if current := observers.Load(); current != nil {
			list = *current
		}
		list = change(list)
		observers.Store(&list)
	}
	replace(func(list []*observed) []*observed { return append(list[:len(list):len(list)], o) })
	return func() {
		replace(func(list []*observed) []*observed {
			var rest []*observed
			for _, other := range list {
				if other != o {
					rest = append(rest, other)
				}
			}
			return rest
		})
	}, nil
}

// change makes a change, through the observer of its folder if there is one.
func change(c Change, do func() error) error {
	list := observers.Load()
	if list == nil || len(*list) == 0 {
		return do()
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return err
	}
	for _, o := range *list {
		if strings.HasPrefix(path+string(filepath.Separator), o.dir) {
			o.mu.Lock()
			defer o.mu.Unlock()
			return o.observer(c, do)
		}
	}
	return do()
}

// MkdirAll makes a folder and its parents, and syncs the folders that get a new entry.
func MkdirAll(path string, mode fs.FileMode) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MkdirAll(parent, mode); err != nil {
			return err
		}
	}
	err := change(Change{Op: OpMkdir, Path: path}, func() error { return os.MkdirAll(path, mode) })
	if err == nil {
		SyncDir(parent)
	}
	return err
}

// ReadDir returns the entries of a folder in no order. os.ReadDir sorts them, which takes longer
// than listing them if there are 100,000.
func ReadDir(dir string) ([]fs.DirEntry, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(-1)
}

// Remove removes a file or an empty folder.
func Remove(path string) error {
	return change(Change{Op: OpRemove, Path: path}, func() error { return os.Remove(path) })
}

// RemoveAll removes a file or a folder with all that is in it. A path that does not exist is no
// error.
func RemoveAll(path string) error {
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		return nil
	}
	return change(Change{Op: OpRemoveAll, Path: path}, func() error { return os.RemoveAll(path) })
}

// Rename renames a file or a folder.
func Rename(from, to string) error {
	return change(Change{Op: OpRename, Path: from, To: to}, func() error { return os.Rename(from, to) })
}

// SyncDir syncs the entries of a folder, so that a rename survives a loss of power. Errors are
// ignored: not every system can sync a folder.
func SyncDir(dir string) {
	dir = cmp.Or(dir, ".")
	_ = change(Change{Op: OpSync, Path: dir}, func() error {
		d, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer d.Close()
		return d.Sync()
	})
}

// A File is a new file, which is written at its end.
type File struct{ file *os.File }

// Create creates a file that must not exist.
func Create(path string, mode fs.FileMode) (*File, error) {
	f := &File{}
	err := change(Change{Op: OpCreate, Path: path}, func() (err error) {
		f.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, mode)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Write implements io.Writer.
func (f *File) Write(data []byte) (n int, err error) {
	err = change(Change{Op: OpWrite, Path: f.file.Name(), Data: data}, func() (err error) {
		n, err = f.file.Write(data)
		return err
	})
	return n, err
}

// Truncate cuts the file to a size.
func (f *File) Truncate(size int64) error {
	return change(Change{Op: OpTruncate, Path: f.file.Name(), Size: size}, func() error { return f.file.Truncate(size) })
}

// Sync writes the file's data to the disk.
func (f *File) Sync() error {
	return change(Change{Op: OpSync, Path: f.file.Name()}, f.file.Sync)
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, at int64) (int, error) { return f.file.ReadAt(p, at) }

// Stat describes the file, which may have been renamed or removed.
func (f *File) Stat() (fs.FileInfo, error) { return f.file.Stat() }

// Close closes the file. Further calls are errors.
func (f *File) Close() error { return f.file.Close() }
