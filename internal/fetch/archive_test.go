package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/filelock"
)

// A member is an entry of an archive: a file with the content text, a symbolic link if link, its
// target, is not empty, or a folder if the name ends in a slash.
type member struct{ name, text, link string }

// tarOf returns a tar, compressed by gzip if compress is true.
func tarOf(t testing.TB, compress bool, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(&out)
	if compress {
		w = tar.NewWriter(z)
	}
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o644, Size: int64(len(m.text)), Typeflag: tar.TypeReg}
		if m.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.link
		} else if strings.HasSuffix(m.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(m.text))
	}
	w.Close()
	if compress {
		z.Close()
	}
	return out.Bytes()
}

// zipOf returns a zip.
func zipOf(t testing.TB, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		if m.link != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			m.text = m.link
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte(m.text))
	}
	w.Close()
	return out.Bytes()
}

// TestArchives checks that Tree downloads and unpacks archives of all kinds. If an archive has one
// top folder, Tree returns that folder. Its last argument is the expected SHA-256 of the archive,
// or "". newCache returns an empty cache, and serve starts a server that the cache trusts.
func TestArchives(t *testing.T) {
	t.Parallel()
	photos := []member{{name: "photos/", text: ""}, {name: "photos/cat/a.png", text: "cat"}, {name: "./photos/dog/b.png", text: "dog"}}
	served := map[string][]byte{
		"/p.tar": tarOf(t, false, photos...), "/p.tar.gz": tarOf(t, true, photos...), "/p.TGZ": tarOf(t, true, photos...), "/p.zip": zipOf(t, photos...),
		"/mac.zip":  zipOf(t, append(photos, member{name: ".DS_Store", text: "x"}, member{name: "__MACOSX/photos/cat/._a.png", text: "x"})...),
		"/flat.zip": zipOf(t, member{name: "a.png", text: "a"}, member{name: "b.png", text: "b"}),
	}
	c := newCache(t)
	s := serve(t, c, func(w http.ResponseWriter, r *http.Request) { w.Write(served[r.URL.Path]) })
	for _, name := range []string{"/p.tar", "/p.tar.gz", "/p.TGZ", "/p.zip"} {
		dir, err := c.Tree(t.Context(), s.URL+name, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := os.ReadFile(filepath.Join(dir, "dog", "b.png")); err != nil || string(got) != "dog" {
			t.Errorf("%s: dog/b.png holds %q, error %v; want dog", name, got, err)
		}
	}
	if dir, err := c.Tree(t.Context(), s.URL+"/mac.zip", ""); err != nil || filepath.Base(dir) != "photos" {
		t.Errorf("an archive of macOS: %s, %v; want its folder photos", dir, err)
	}
	dir, err := c.Tree(t.Context(), s.URL+"/flat.zip", hexSum(served["/flat.zip"]))
	if err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("the folder holds %v, want 2 files", files)
	}
	if _, err := c.Tree(t.Context(), s.URL+"/p.rar", ""); err == nil || !strings.Contains(err.Error(), "not an archive") {
		t.Errorf("an archive of another kind: error %v, want one with %q", err, "not an archive")
	}
}

// TestHostileArchives checks that no archive writes outside its folder, or more than the allowed
// 1 MiB and 20 files.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("\x00", 1<<20)
	many := make([]member, 30)
	for i := range many {
		many[i] = member{name: strings.Repeat("x", i+1), text: "x"}
	}
	for name, c := range map[string]struct {
		members []member
		want    string
	}{
		"a parent path":           {[]member{{name: "../evil", text: "x"}}, "leaves its folder"},
		"a parent path inside":    {[]member{{name: "a/../../evil", text: "x"}}, "leaves its folder"},
		"an absolute path":        {[]member{{name: "/tmp/evil", text: "x"}}, "leaves its folder"},
		"a Windows path":          {[]member{{name: `..\evil`, text: "x"}}, "leaves its folder"},
		"a link":                  {[]member{{name: "a", link: "/etc"}, {name: "a/passwd", text: "x"}}, "a link or a device"},
		"too many bytes":          {[]member{{name: "a", text: zeros}, {name: "b", text: zeros}}, "more than 1048576 bytes"},
		"too many files":          {many, "more than 20 files"},
		"a file that is a folder": {[]member{{name: "a", text: "x"}, {name: "a/b", text: "x"}}, "unpacking"},
	} {
		for kind, raw := range map[string][]byte{".tar.gz": tarOf(t, true, c.members...), ".zip": zipOf(t, c.members...)} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				top := t.TempDir()
				dir := filepath.Join(top, "in")
				archive := filepath.Join(top, "x"+kind)
				if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(archive, raw, 0o666)); err != nil {
					t.Fatal(err)
				}
				_, err := unpack(t.Context(), archive, "x"+kind, dir, 1<<20, 20)
				if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %v, want %q", err, c.want)
				}
				if files, _ := os.ReadDir(top); len(files) != 2 {
					t.Errorf("files were written outside the folder: %v", files)
				}
			})
		}
	}
}

func TestDamagedArchives(t *testing.T) {
	t.Parallel()
	// Half of an archive of each kind. The cache unpacks an archive into a folder called tree.
	for kind, raw := range map[string][]byte{".tar": tarOf(t, false, member{name: "a", text: strings.Repeat("x", 3000)}),
		".tgz": tarOf(t, true, member{name: "a", text: strings.Repeat("x", 3000)}), ".zip": zipOf(t, member{name: "a", text: "x"})} {
		c := newCache(t)
		s := serve(t, c, func(w http.ResponseWriter, _ *http.Request) { w.Write(raw[:len(raw)/2]) })
		if _, err := c.Tree(t.Context(), s.URL+"/a"+kind, ""); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("half of an archive a%s: the error is %v, want one line", kind, err)
		}
		if left, _ := filepath.Glob(c.path("content", "*", "*tree*")); len(left) > 0 {
			t.Errorf("a%s: files of half an archive are left: %v", kind, left)
		}
	}
	// A tar ends with a mark of two blocks of 512 zero bytes.
	whole := tarOf(t, false, member{name: "a", text: strings.Repeat("x", 3000)})
	flipped := tarOf(t, true, member{name: "a", text: strings.Repeat("x", 3000)})
	flipped[len(flipped)-8] ^= 1 // a bit of gzip's checksum
	for name, raw := range map[string][]byte{"no end mark": whole[:len(whole)-1024], "half an end mark": whole[:len(whole)-512], "wrong checksum": flipped} {
		file := filepath.Join(t.TempDir(), "a.tar")
		if err := os.WriteFile(file, raw, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := unpack(t.Context(), file, "a.tar", t.TempDir(), 1<<20, 10); err == nil || !strings.Contains(err.Error(), "the archive is damaged") {
			t.Errorf("%s: the error is %v, want one that says that the archive is damaged", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "a.tar")
	if err := os.WriteFile(file, tarOf(t, false, member{name: "a", text: "x"}), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(ctx, file, "a.tar", t.TempDir(), 1<<20, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v, want context.Canceled", err)
	}
}

// FuzzUnpack checks that unpacking any bytes, with a limit of 64 KiB and 50 files, writes nothing
// outside the folder, and at most one byte beyond the limit, by which unpack detects the excess.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, false, member{name: "../a", text: "x"}), ".tar")
	f.Add(tarOf(f, true, member{name: "a/b", text: "x"}), ".tgz")
	f.Add(zipOf(f, member{name: "a", text: "x"}), ".zip")
	f.Fuzz(func(t *testing.T, raw []byte, kind string) {
		top := t.TempDir()
		dir, archive := filepath.Join(top, "in"), filepath.Join(top, "archive")
		if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(archive, raw, 0o666)); err != nil {
			t.Fatal(err)
		}
		unpack(t.Context(), archive, "x"+kind, dir, 1<<16, 50)
		if files, _ := os.ReadDir(top); len(files) != 2 {
			t.Fatalf("files were written outside the folder: %v", files)
		}
		if size := diskUse(dir); size > 1<<16+1 {
			t.Fatalf("%d bytes were written, want at most 1<<16 + 1", size)
		}
	})
}

// TestKilledUnpacking checks that the folders in which killed processes unpacked archives are
// removed when any archive is unpacked, but not one that a process uses.
func TestKilledUnpacking(t *testing.T) {
	t.Parallel()
	c := newCache(t)
	file := filepath.Join(t.TempDir(), "a.tar")
	if err := os.WriteFile(file, tarOf(t, false, member{name: "a.txt", text: "a"}), 0o600); err != nil {
		t.Fatal(err)
	}
	sum, err := FileHash(file)
	if err != nil {
		t.Fatal(err)
	}
	leave := func(content, name string) string {
		folder := c.path("content", content, ".unpacking-"+name)
		if err := errors.Join(os.MkdirAll(filepath.Join(folder, "files", "sub"), 0o777), os.WriteFile(filepath.Join(folder, ".noether-temporary"), nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	other := strings.Repeat("0", 64)
	killed, live, killedOther := leave(sum, "1"), leave(sum, "2"), leave(other, "3")
	lock := filelock.Shared(filepath.Join(live, ".noether-temporary"))
	if lock == nil {
		t.Skip("the file system of temporary files has no locks")
	}
	defer lock.Close()
	if _, err := c.Local(t.Context(), file, ""); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]bool{killed: false, live: true, killedOther: false} {
		if _, err := os.Stat(folder); (err == nil) != want {
			t.Errorf("%s: %v, want it to be there: %v", folder, err, want)
		}
	}
}

// A contextThat calls a function when a context is asked for its error for the time at.
type contextThat struct {
	context.Context
	calls atomic.Int32
	at    int32
	call  func()
}

func (c *contextThat) Err() error {
	if c.calls.Add(1) == c.at {
		c.call()
	}
	return c.Context.Err()
}

// TestArchiveThatChanges replaces an archive after it was hashed, before it is unpacked. Its files
// are not kept under the hash of the earlier one.
func TestArchiveThatChanges(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{".tar", ".zip"} {
		c, file := newCache(t), filepath.Join(t.TempDir(), "a"+kind)
		of := func(text string) []byte {
			if kind == ".zip" {
				return zipOf(t, member{name: "a.txt", text: text})
			}
			return tarOf(t, false, member{name: "a.txt", text: text})
		}
		write := func(text string) {
			if err := errors.Join(os.WriteFile(file+".new", of(text), 0o600), os.Rename(file+".new", file)); err != nil {
				t.Fatal(err)
			}
		}
		write("one")
		ctx := &contextThat{Context: t.Context(), at: 1, call: func() { write("two") }}
		if _, err := c.Local(ctx, file, ""); err == nil || !strings.Contains(err.Error(), "has changed since its content was hashed") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: a changed archive: error %v", kind, err)
		}
		for _, text := range []string{"one", "two"} {
			write(text)
			dir, err := c.Local(t.Context(), file, "")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(got) != text {
				t.Errorf("%s: the file of the archive is %q, error %v; want %q", kind, got, err, text)
			}
		}
	}
}

// TestDiskBound unpacks archives in other processes, of which every second one is killed in the
// middle. After each the cache takes no more than its bound and what the killed one had written, and
// after a further process no more than its bound.
func TestDiskBound(t *testing.T) {
	const files, size, variable = 90, 10_000, "NOETHER_TEST_UNPACK" // files of an archive, and bytes of a file
	open := func(dir string) *Cache { return &Cache{Dir: dir, Size: 2 << 20, MaxFile: 1 << 20} }
	if task := os.Getenv(variable); task != "" { // in another process
		dir, file, _ := strings.Cut(task, "|")
		file, stop := strings.CutSuffix(file, "|stop")
		ctx := &contextThat{Context: t.Context(), at: files / 2, call: func() {
			if stop {
				os.WriteFile(file+".half", nil, 0o600)
				select {}
			}
		}}
		if _, err := open(dir).Local(ctx, file, ""); err != nil {
			t.Fatal(err)
		}
		return
	}
	if lock := filelock.Shared(os.Args[0]); lock == nil {
		t.Skip("the file system of the program of the tests has no locks, by which an unpacking that goes on is told from a killed one")
	} else {
		lock.Close()
	}
	top, dir := t.TempDir(), t.TempDir()
	for i := range 8 {
		var members []member
		for k := range files {
			members = append(members, member{name: fmt.Sprintf("%d.txt", k), text: strings.Repeat(string(rune('a'+i)), size)})
		}
		kill := i%2 == 0
		file := filepath.Join(top, fmt.Sprintf("%d.tar.gz", i))
		if err := os.WriteFile(file, tarOf(t, true, members...), 0o600); err != nil {
			t.Fatal(err)
		}
		task := dir + "|" + file
		if kill {
			task += "|stop"
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestDiskBound$")
		cmd.Env = append(os.Environ(), variable+"="+task)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kill {
			for range 3000 {
				if _, err := os.Stat(file + ".half"); err == nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			cmd.Process.Kill()
		}
		err := cmd.Wait()
		if (err != nil) != kill {
			t.Fatalf("archive %d: %v", i, err)
		}
		most := int64(2 << 20)
		if kill {
			most += 1 << 20
		}
		if used := diskUse(dir); used > most {
			t.Errorf("after archive %d the cache takes %d bytes, want at most %d", i, used, most)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "content", "*", unpackingPrefix+"*")); len(left) > 0 {
		t.Errorf("left by killed processes: %v", left)
	}
}

// TestTreeWithinTheCache checks that an archive is not unpacked whose files alone exceed the cache.
func TestTreeWithinTheCache(t *testing.T) {
	t.Parallel()
	c, file := newCache(t), filepath.Join(t.TempDir(), "a.tar.gz")
	if err := os.WriteFile(file, tarOf(t, true, member{name: "a.txt", text: strings.Repeat("a", 20_000)}), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Size = 10_000
	if _, err := c.Local(t.Context(), file, ""); err == nil || !strings.Contains(err.Error(), "more than 10000 bytes") {
		t.Errorf("an archive of 20,000 bytes in a cache of 10,000: error %v", err)
	}
	if used := diskUse(c.Dir); used > 10_000 {
		t.Errorf("the cache takes %d bytes", used)
	}
}
