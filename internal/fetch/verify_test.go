package fetch

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// forget makes this process verify files again, as a new process does.
func forget() {
	intact.Lock()
	defer intact.Unlock()
	clear(intact.files)
}

// flip changes one bit in the middle of a file and keeps its modification time, by which a change
// could otherwise be noticed.
func flip(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	os.Chtimes(path, info.ModTime(), info.ModTime())
}

// newCache returns an empty cache, serve starts a server that it trusts, and content1 are 40,000
// bytes. The cache is given the SHA-256 of the file, or "".
func TestDamagedFileIsFetchedAgain(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	var gets atomic.Int64
	s := serve(t, c, func(w http.ResponseWriter, _ *http.Request) {
		gets.Add(1)
		w.Write(content1)
	})
	for _, sum := range []string{hexSum(content1), ""} {
		path := want(t, c, s.URL+"/x.bin", sum, content1) // fetches the file and checks its content
		flip(t, path)                                     // path is a hard link to the stored content, which changes too
		forget()
		want(t, c, s.URL+"/x.bin", sum, content1)
	}
	before := gets.Load()
	want(t, c, s.URL+"/x.bin", hexSum(content1), content1)
	if gets.Load() != before {
		t.Error("an intact file was fetched again")
	}
}

// The cache stores content by its SHA-256 and returns the path of a link to it, or of a copy, with
// the name of the file.
func TestDamagedCopyIsReplaced(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	s := serve(t, c, func(w http.ResponseWriter, _ *http.Request) { w.Write(content1) })
	path := want(t, c, s.URL+"/x.bin", hexSum(content1), content1)
	os.Remove(path) // replaces the link by a copy, as on a file system without hard links
	if err := os.WriteFile(path, content1, 0o666); err != nil {
		t.Fatal(err)
	}
	flip(t, path)
	forget()
	want(t, c, s.URL+"/x.bin", hexSum(content1), content1)
}

// A tree is the folder into which an archive is unpacked. The hashes of its files are in
// tree.sha256.
func TestDamagedTreeIsUnpackedAgain(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	archive := tarOf(t, true, member{name: "photos/cat/a.png", text: "a cat"}, member{name: "photos/dog/b.png", text: "a dog"})
	var gets atomic.Int64
	s := serve(t, c, func(w http.ResponseWriter, _ *http.Request) {
		gets.Add(1)
		w.Write(archive)
	})
	damages := map[string]func(dir string) error{
		"a flipped bit":  func(dir string) error { flip(t, filepath.Join(dir, "cat", "a.png")); return nil },
		"a missing file": func(dir string) error { return os.Remove(filepath.Join(dir, "dog", "b.png")) },
		"another file":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "dog", "c.png"), []byte("x"), 0o666) },
		"a link":         func(dir string) error { return os.Symlink("b.png", filepath.Join(dir, "dog", "c.png")) },
		"no list of hashes": func(dir string) error {
			return os.Remove(filepath.Join(filepath.Dir(filepath.Dir(dir)), "tree.sha256"))
		},
		"damaged list of hashes": func(dir string) error {
			flip(t, filepath.Join(filepath.Dir(filepath.Dir(dir)), "tree.sha256"))
			return nil
		},
		"empty list of hashes": func(dir string) error {
			return os.Truncate(filepath.Join(filepath.Dir(filepath.Dir(dir)), "tree.sha256"), 0)
		},
	}
	for name, damage := range damages {
		// Tree unpacks the archive and returns its single top folder, photos.
		dir, err := c.Tree(t.Context(), s.URL+"/p.tgz", hexSum(archive))
		if err != nil {
			t.Fatal(err)
		}
		if err := damage(dir); err != nil {
			t.Fatal(err)
		}
		forget()
		if dir, err = c.Tree(t.Context(), s.URL+"/p.tgz", hexSum(archive)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found := map[string]string{}
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			if !d.IsDir() {
				raw, _ := os.ReadFile(path)
				found[d.Name()] = string(raw)
			}
			return nil
		})
		if len(found) != 2 || found["a.png"] != "a cat" || found["b.png"] != "a dog" {
			t.Errorf("%s: the folder has %v", name, found)
		}
	}
	if gets.Load() != 1 {
		t.Errorf("%d downloads, want 1", gets.Load())
	}
	if left, _ := filepath.Glob(c.path("content", "*", "tree.old-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// The weights of an ONNX model may be in external files, which are fetched with it.
func TestDamagedExternalFileIsFetchedAgain(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("content of " + r.URL.Path)) })
	list := func(string) ([]string, error) { return []string{"net.bin"}, nil }
	for range 2 {
		path, err := c.Model(t.Context(), s.URL+"/m/net.onnx", "", list)
		if err != nil {
			t.Fatal(err)
		}
		weights := filepath.Join(filepath.Dir(path), "net.bin")
		if raw, err := os.ReadFile(weights); err != nil || string(raw) != "content of /m/net.bin" {
			t.Fatalf("the weights are %q, want those of the server; error %v", raw, err)
		}
		flip(t, weights)
		forget()
	}
}
