package pictures

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSet reads files and entries of an archive, one of which is damaged and one of which a file
// replaces.
func TestSet(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range []string{"pictures/maps/a.png", "pictures/maps/b.png", "pictures/maps/damaged.png"} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = f.Write([]byte("archived " + filepath.Base(name)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	raw := bytes.Replace(b.Bytes(), []byte("archived damaged"), []byte("archived dAmaged"), 1)
	dir := t.TempDir()
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "pictures", "maps"), 0o777), os.WriteFile(filepath.Join(dir, Archive), raw, 0o666),
		os.WriteFile(filepath.Join(dir, "pictures", "maps", "b.png"), []byte("file"), 0o666))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, folder := range []fs.FS{os.DirFS(dir), root.FS()} {
		s, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		names, err := fs.Glob(s, "pictures/*/*.png")
		if want := []string{"pictures/maps/a.png", "pictures/maps/b.png", "pictures/maps/damaged.png"}; err != nil || !slices.Equal(names, want) {
			t.Errorf("%q, error %v", names, err)
		}
		for name, want := range map[string]string{"pictures/maps/a.png": "archived a.png", "pictures/maps/b.png": "file"} {
			info, err := fs.Stat(s, name)
			if err != nil || info.Size() != int64(len(want)) {
				t.Errorf("%s: %v, %v", name, info, err)
			}
			if got, err := fs.ReadFile(s, name); err != nil || string(got) != want {
				t.Errorf("%s holds %q, error %v", name, got, err)
			}
		}
		if _, err := fs.ReadFile(s, "pictures/maps/damaged.png"); !errors.Is(err, zip.ErrChecksum) {
			t.Errorf("a damaged entry: %v", err)
		}
		if _, err := fs.ReadFile(s, "pictures/maps/c.png"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no such picture: %v", err)
		}
	}
}

// TestOpenDamaged opens archives that cannot be read. The files can be.
func TestOpenDamaged(t *testing.T) {
	t.Parallel()
	for what, make := range map[string]func(path string) error{
		"empty":    func(path string) error { return os.WriteFile(path, nil, 0o666) },
		"no zip":   func(path string) error { return os.WriteFile(path, []byte("PK, but no archive"), 0o666) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o777) },
	} {
		dir := t.TempDir()
		if err := errors.Join(make(filepath.Join(dir, Archive)), os.WriteFile(filepath.Join(dir, "a.png"), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(os.DirFS(dir))
		if err == nil {
			t.Errorf("%s: no error", what)
		}
		if _, err := fs.Stat(s, "a.png"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		s.Close()
	}
}
